"""Which heads are taken out, and models of which it is known whether they use their topical head."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import pytest
import torch
from transformers import BertConfig, BertForMaskedLM

from tests.language import planted, tiny
from tests.language.planted import HEAD, NAMES, SPECIAL, TOPIC, TOPICS, WORDS, unit
from tests.language.samples import assignment
from tests.language.test_losses import headed
from topicscope.language import (
    Assignment,
    LoadedModel,
    Measurement,
    Probe,
    ablate,
    checked,
    predictor_of,
    probe_model,
    whole_words,
    with_output_head,
)
from topicscope.language.ablation import (
    HeadMeans,
    changed_heads,
    drawn_from,
    losses_by_document,
    random_sets,
    replacing,
    spread,
)
from topicscope.language.vocabulary import windows

HEADS, EACH = 32, TOPICS  # a head has a dimension for each topic
DIM = HEADS * EACH
BARE = Measurement(bootstrap=200, shuffles=190, matched=False, random=False, cooccurrence=False, states=False)


def test_random_sets_are_other_heads_of_the_same_layers() -> None:
    topical = {1: [0, 3], 4: [7]}
    sets = random_sets(topical, [8] * 5, 19, 3)
    assert sets == random_sets(topical, [8] * 5, 19, 3)
    assert sets != random_sets(topical, [8] * 5, 19, 4)
    assert len({str(one) for one in sets}) == 19
    for one in sets:
        assert {layer: len(heads) for layer, heads in one.items()} == {1: 2, 4: 1}
        assert not {0, 3} & set(one[1])
        assert 7 not in one[4]
    assert drawn_from(topical, [8] * 5) == ""
    drawn = Counter(head for seed in range(50) for one in random_sets(topical, [8] * 5, 19, seed) for head in one[1])
    assert set(drawn) == {1, 2, 4, 5, 6, 7}
    assert min(drawn.values()) > 0.8 * max(drawn.values())


def test_where_there_are_few_sets_all_are_taken() -> None:
    assert random_sets({0: [2]}, [4], 19, 0) == [{0: (0,)}, {0: (1,)}, {0: (3,)}]
    # most heads are topical: any may be drawn, but not the same set
    assert random_sets({0: [0, 1, 2]}, [4], 19, 0) == [{0: (0, 1, 3)}, {0: (0, 2, 3)}, {0: (1, 2, 3)}]
    assert "layer 0 has too few other heads" in drawn_from({0: [0, 1, 2], 1: [0]}, [4, 4])
    assert random_sets({0: [0, 1]}, [2], 19, 0) == []
    assert len(random_sets({0: [0]}, [21], 19, 0)) == 19  # of 20
    assert len(random_sets({0: [0]}, [20], 19, 0)) == 19  # all


def test_documents_come_from_everywhere() -> None:
    texts = [str(i) for i in range(200)]
    assert spread(texts) == texts[::4]
    assert spread(texts[:7]) == texts[:7]


def with_topical_head(kind: str, seed: int) -> tuple[LoadedModel, Assignment, list[str]]:
    """One layer. Head HEAD looks at words of the same topic, and from a mask at all words alike.

    'used': what it puts out tells the masked word which topics its document has. 'unused': nothing is taken from it.
    'other': the same is taken from the next head, which has no topics in its attention.
    """
    rng, tokens = np.random.default_rng(seed), planted.tokenizer()
    torch.manual_seed(seed)
    shape = BertConfig(
        vocab_size=len(tokens),
        hidden_size=DIM,
        num_hidden_layers=1,
        num_attention_heads=HEADS,
        intermediate_size=8,
        max_position_embeddings=64,
        hidden_act="linear",
    )
    build: Any = BertForMaskedLM
    model = build(shape).eval()
    word = unit(rng.standard_normal((WORDS, DIM)))
    read = np.linalg.pinv(word) @ np.eye(TOPICS)[TOPIC]  # d x T: which topic a word has
    special = rng.standard_normal((len(SPECIAL), DIM))  # without topics, and unlike every word
    basis = np.linalg.qr(np.vstack([word, np.ones(DIM)]).T)[0]
    special = unit(special - special @ basis @ basis.T)
    layer = model.bert.encoder.layer[0]
    own, beside = slice(HEAD * EACH, (HEAD + 1) * EACH), slice((HEAD + 1) * EACH, (HEAD + 2) * EACH)
    as_float = partial(torch.tensor, dtype=torch.float32)
    with torch.no_grad():
        for name, part in model.named_parameters():
            if "position_emb" in name or "token_type" in name or "layer.0.output.dense" in name:
                part.zero_()
        model.bert.embeddings.word_embeddings.weight[:] = as_float(np.concatenate([special, word]))
        attention, projection = layer.attention.self, layer.attention.output.dense
        for part in (attention.query, attention.key):
            part.weight[own] = as_float(4 * read.T)
        attention.query.weight[beside] = 0
        for place in (own, beside):
            attention.value.weight[place] = as_float(read.T)
            projection.weight[:, place] = 0
        if kind != "unused":
            projection.weight[:, own if kind == "used" else beside] = as_float(10 * read)
        head = model.cls.predictions
        head.transform.dense.weight[:] = torch.eye(DIM)
        head.bias[: len(SPECIAL)] = -1000.0  # a mask is most like itself
    documents = planted.texts(rng, 120, 1.0)
    counts = np.bincount([NAMES.index(w) for text in documents for w in text.split()], minlength=WORDS)
    return checked(kind, model, tokens), planted.assignment(whole_words(tokens, []), counts), documents


@pytest.mark.slow
@pytest.mark.model
@pytest.mark.parametrize("kind", ["used", "unused", "other"])
def test_planted_heads(kind: str) -> None:
    for seed in range(4):
        loaded, topics, texts = with_topical_head(kind, seed)
        vocabulary = whole_words(loaded.tokenizer, [])
        row, other = ablate(loaded, predictor_of(loaded), texts, vocabulary, [("encoder", 0, HEAD)], [topics], BARE)
        assert (row.heads, row.draws, row.documents) == (1, 19, 50)
        assert row.loss is not None
        assert row.topical_rise is not None
        assert (other.answer, other.positions) == ("unsure", 0)  # all words are words of topics
        assert row.answer == ("yes" if kind == "used" else "no"), row
        if kind == "unused":
            assert row.topical_rise == 0.0
        else:  # a masked word is of one of the two to four topics of its document: not below log 12
            assert np.log(12) < row.loss < np.log(WORDS) - 0.3
        if kind == "used":
            assert row.topical_rise > 0.4
        elif kind == "other":
            assert abs(row.topical_rise) < 0.01


@pytest.mark.slow
@pytest.mark.model
def test_a_probe_says_whether_topical_heads_are_used() -> None:
    loaded, topics, texts = with_topical_head("used", 0)
    found = probe_model(loaded, texts, topics, BARE, vocabulary=whole_words(loaded.tokenizer, []))
    row = found.ablation[0]
    assert row.answer == "yes"
    assert (found.heads[0].layer, found.heads[0].head) == (0, HEAD)
    assert row.heads == sum(head.corrected_p is not None and head.corrected_p <= 0.05 for head in found.heads)
    assert any(sentence.startswith("used: use of topical heads: yes.") for sentence in found.summary())
    assert [one["at"] for one in found.records()["ablation"]] == ["topic words", "other words"]
    assert {"interval_low", "interval_high"} <= set(found.records()["ablation"][0])
    assert Probe.from_dict(found.as_dict(), found.config).ablation == found.ablation
    bare = probe_model(loaded, texts, topics, replace(BARE, ablation=False), vocabulary=whole_words(loaded.tokenizer))
    assert bare.ablation == []
    assert bare.rows == found.rows


@pytest.mark.model
def test_no_loss_and_no_topical_head_are_said() -> None:
    tokenizer = tiny.tokenizer("wordpiece")
    loaded = checked("tiny", tiny.model("encoder", len(tokenizer)), tokenizer)
    for topical, why in (([], "no head carries topics"), ([("encoder", 0, 1)], "without an output head")):
        rows = ablate(loaded, predictor_of(loaded), tiny.TEXTS, whole_words(tokenizer), topical, [], BARE)
        assert [(row.at, row.answer, row.loss) for row in rows] == [
            ("topic words", "off", None),
            ("other words", "off", None),
        ]
        assert all(why in row.why for row in rows)


@pytest.mark.model
def test_positions_are_parted_into_topic_words_and_others() -> None:
    loaded, topics, texts = with_topical_head("used", 0)
    vocabulary = whole_words(loaded.tokenizer, [])
    pieces = list(windows(loaded, vocabulary, texts[:5], 1))
    predictor, some = with_output_head(loaded), topics.token[TOPIC < 5]
    sums, counts = losses_by_document(predictor, pieces, some, 0, 7, lambda: None)
    for number, piece in enumerate(pieces):
        inside = sum(int(token in some) for token in piece.tokens)
        assert counts[:, number].tolist() == [inside, len(piece.tokens) - 2 - inside]
    every, _ = losses_by_document(predictor, pieces, topics.token, 0, 7, lambda: None)
    np.testing.assert_allclose(every[0], sums.sum(0), rtol=1e-10)
    assert not every[1].any()


@pytest.mark.model
@pytest.mark.parametrize("kind", tiny.MODELS)
def test_all_kinds_of_models_have_losses_without_heads(kind: str) -> None:
    """The rows are those of two passes over the texts: as it is, and with head 1 of the first layer at its mean."""
    loaded = headed(kind)
    vocabulary = whole_words(loaded.tokenizer)
    part = "decoder" if kind == "decoder" else "encoder"
    topics = assignment(vocabulary, several=False)
    rows, again = (
        ablate(loaded, predictor_of(loaded), tiny.TEXTS, vocabulary, [(part, 0, 1)], [topics], BARE) for _ in range(2)
    )
    assert rows == again
    predictor, means = with_output_head(loaded), HeadMeans([4 if kind == "encoder" else 2] * 2)
    pieces = list(windows(loaded, vocabulary, tiny.TEXTS, 1, 128))
    draws = 3 if kind == "encoder" else 1
    rounds = 21 // (2 + draws)
    with changed_heads(predictor.model, means.add):
        plain, positions = losses_by_document(predictor, pieces, topics.token, 0, rounds, lambda: None)
    with changed_heads(predictor.model, replacing(means, {0: [1]})):
        without, _ = losses_by_document(predictor, pieces, topics.token, 0, rounds, lambda: None)
    for kind_of, row in enumerate(rows):
        assert (row.draws, row.positions, row.answer) == (draws, positions[kind_of].sum(), "unsure")
        assert row.positions > 5
        rise = (without[kind_of].sum() - plain[kind_of].sum()) / positions[kind_of].sum()
        assert row.topical_rise == pytest.approx(rise, rel=1e-10)
        assert abs(rise) > 1e-4
