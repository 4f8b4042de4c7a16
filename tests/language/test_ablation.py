"""Which heads are taken out, and models of which it is known whether they use their topical head."""

import copy
import json
from collections import Counter
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers
from torch import Tensor
from transformers import BertConfig, BertForMaskedLM

from tests.language import planted, tiny
from tests.language.planted import HEAD, NAMES, SPECIAL, TOPIC, TOPICS, WORDS, unit
from tests.language.samples import assignment
from tests.language.test_losses import headed
from topicscope.ground import InputError, Stream, adapter_of, generator
from topicscope.language import (
    AblationRow,
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
from topicscope.language.losses import (
    HeadMeans,
    Rises,
    ablation_row,
    changed_heads,
    drawn_from,
    heads_of_layers,
    judged,
    losses_by_document,
    random_sets,
    replacing,
    spread,
)
from topicscope.language.probe_rows import DRAWS, ablated_documents
from topicscope.language.probes import ablation_sentences
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
    assert [ablated_documents(n) for n in (1, 49, 250, 251, 1000, 10**6)] == [1, 49, 50, 50, 200, 1000]


def with_topical_head(kind: str, seed: int) -> tuple[LoadedModel, Assignment, list[str]]:
    """One layer. Head HEAD looks at words of the same topic, and from a mask at all words alike.

    'used': what it puts out tells the masked word which topics its document has. 'unused': nothing is taken from it.
    'other': the same is taken from the next head, which has no topics in its attention.
    """
    rng, tokens = np.random.default_rng(seed), planted.tokenizer()
    torch.manual_seed(seed)
    shape: dict[str, Any] = {"vocab_size": len(tokens), "hidden_size": DIM, "num_attention_heads": HEADS}
    shape |= {"num_hidden_layers": 1, "intermediate_size": 8, "max_position_embeddings": 64}
    build_: Any = BertForMaskedLM
    model = build_(BertConfig(**shape, hidden_act="linear")).eval()
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
    for seed in range(3):
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
    loaded, topics, texts = with_topical_head("used", 3)
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


def drawn(topical: float, random: float, spread: float = 0.0, documents: int = 40, seed: int = 0) -> Rises:
    """Losses of about 4 nats; without the topical heads they rise by `topical`, without random ones by `random`."""
    rng = np.random.default_rng(seed)
    positions = rng.integers(0, 12, documents)
    base = rng.gamma(4.0, 1.0, documents) * positions
    rises = np.array([0.0, topical, *(random + spread * rng.standard_normal(DRAWS))])
    noise = 0.05 * rng.standard_normal((2 + DRAWS, documents))
    noise[0] = 0
    return Rises(base + (rises[:, None] + noise) * positions, positions)


def row_of(rises: Rises) -> AblationRow:
    return ablation_row("bert", 3, "topic words", rises, resamples=400, seed=7)


def test_numbers_are_those_of_double_loops() -> None:
    rises = drawn(0.3, 0.1, 0.05)
    row = row_of(rises)
    documents = [d for d in range(40) if rises.positions[d]]
    assert len(documents) < 40
    count = sum(int(rises.positions[d]) for d in documents)

    def rise(which: int, times: list[int]) -> float:
        total = number = 0.0
        for d, n in zip(documents, times, strict=True):
            for _ in range(n):
                total += rises.sums[which, d] - rises.sums[0, d]
                number += rises.positions[d]
        return total / number

    once = [1] * len(documents)
    mean = sum(rise(2 + r, once) for r in range(DRAWS)) / DRAWS
    assert (row.positions, row.documents, row.draws, row.heads) == (count, len(documents), DRAWS, 3)
    assert row.loss == pytest.approx(sum(rises.sums[0, d] for d in documents) / count, rel=1e-10)
    assert row.topical_rise == pytest.approx(rise(1, once), rel=1e-10)
    assert row.random_rise == pytest.approx(mean, rel=1e-10)
    assert row.difference == pytest.approx(rise(1, once) - mean, rel=1e-10)
    stream = generator(7, Stream.BOOTSTRAP_ABLATION)
    every = stream.multinomial(len(documents), [1 / len(documents)] * len(documents), 400).tolist()
    one = stream.integers(DRAWS, size=400).tolist()
    topical = [rise(1, times) for times in every]
    random = [rise(2 + r, times) for r, times in zip(one, every, strict=True)]
    means = [sum(rise(2 + r, times) for r in range(DRAWS)) / DRAWS for times in every]
    for found, values in (
        (row.topical_interval, topical),
        (row.random_interval, random),
        (row.interval, [a - b for a, b in zip(topical, random, strict=True)]),
        (row.mean_interval, [a - b for a, b in zip(topical, means, strict=True)]),
    ):
        assert found == pytest.approx(tuple(np.quantile(values, [0.025, 0.975])), rel=1e-10)


@pytest.mark.parametrize(
    ("topical", "random", "spread", "answer", "why"),
    [
        (0.5, 0.1, 0.02, "yes", ""),
        (0.0, 0.0, 0.0, "no", "hardly rises"),
        (-0.2, 0.0, 0.0, "no", "hardly rises"),
        (0.3, 0.3, 0.0, "no", "rises about as much"),
        (0.1, 0.5, 0.1, "no", "rises more"),
        (0.3, 0.1, 0.3, "unsure", "sets of random heads it rises as much"),
        (0.055, 0.03, 0.0, "no", "smallest difference that matters"),
    ],
)
def test_the_rule(topical: float, random: float, spread: float, answer: str, why: str) -> None:
    for seed in range(5):
        row = row_of(drawn(topical, random, spread, documents=200, seed=seed))
        assert (row.answer, why in row.why) == (answer, True), row


def test_equal_heads_are_seldom_called_topical() -> None:
    """The topical set is one more random one: at most one in ten may be called more than the others."""
    answers = []
    for seed in range(100):
        topical = 0.3 + 0.2 * np.random.default_rng(1000 + seed).standard_normal()
        answers.append(row_of(drawn(topical, 0.3, 0.2, seed=seed)).answer)
    assert answers.count("yes") <= 10


ROW = AblationRow(
    model="x/bert", heads=2, draws=DRAWS, at="topic words", positions=300, documents=50, loss=4.0,
    topical_rise=0.5, topical_interval=(0.4, 0.6), random_rise=0.1, random_interval=(0.0, 0.2), difference=0.4,
    interval=(0.2, 0.6), mean_interval=(0.3, 0.5), answer="yes",
)  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "answer"),
    [
        ({}, "yes"),
        ({"documents": 9}, "unsure"),
        ({"positions": 49}, "unsure"),
        ({"draws": DRAWS - 1}, "unsure"),
        ({"interval": (0.0, 0.6)}, "unsure"),
        ({"topical_interval": (-0.1, 0.6)}, "unsure"),
        ({"topical_interval": (-0.1, 0.039)}, "no"),
        ({"mean_interval": (-0.3, 0.039)}, "no"),
        ({"difference": 0.039}, "unsure"),
        ({"interval": None}, "unsure"),
    ],
)
def test_each_condition_can_fail(changes: dict[str, Any], answer: str) -> None:
    found, why = judged(replace(ROW, **changes), 0)
    assert (found, bool(why)) == (answer, answer != "yes")
    if changes.get("interval"):
        assert why == "the difference 0.4 [0, 0.6] may be zero: raise --documents"
        _, few = judged(replace(ROW, **changes, draws=3), 0)
        assert few.endswith("may be zero (with 3 sets of other heads in these layers, a yes is out of reach)")


def test_sentences() -> None:
    other = replace(ROW, at="other words", topical_rise=0.01, random_rise=0.02)
    (said,) = ablation_sentences([replace(ROW, which="1.0, 1.3"), other])
    assert said == (
        "bert: use of topical heads: yes. Rise of the loss at topic words (4 nats, 300 words in 50 documents) without "
        "2 topical heads (1.0, 1.3 as layer.head), and without as many random ones of the same layers (19 sets): "
        "0.5 [0.4, 0.6] and 0.1 [0, 0.2]. At other words: 0.01 [0.4, 0.6] and 0.02 [0, 0.2]. They matter more than "
        "random heads."
    )
    few = replace(ROW, answer="unsure", remark="layer 0 has few heads", why=judged(replace(ROW, draws=1), 0)[1])
    (said,) = ablation_sentences([few, other])
    assert said.endswith("chance alone makes one of 2 sets the largest. Note: layer 0 has few heads.")
    off = [AblationRow(model="bert", heads=0, draws=0, at=at, why="no head") for at in ("topic words", "other words")]
    assert list(ablation_sentences(off)) == ["bert: use of topical heads: off. No head."]
    none = row_of(Rises(np.zeros((3, 4)), np.zeros(4, dtype=np.int64)))
    assert (none.answer, none.loss, none.positions) == ("unsure", None, 0)


def test_rows_are_read_as_written() -> None:
    for row in (ROW, AblationRow(model="bert", heads=0, draws=0, at="topic words", why="no head")):
        assert adapter_of(AblationRow).validate_python(row.as_dict()) == row


@pytest.mark.parametrize(("which", "loss"), [(0, np.inf), (1, np.nan), (5, np.inf)])
def test_a_loss_that_is_no_number_is_said_and_can_be_stored(which: int, loss: float) -> None:
    """Of the whole model, without the topical heads, or without random ones."""
    rises = drawn(0.5, 0.1)
    rises.sums[which, int(rises.positions.argmax())] = loss
    row = row_of(rises)
    assert (row.answer, row.why) == ("unsure", "the loss is not a number (NaN) at some of the words")
    assert (row.loss, row.topical_rise, row.difference) == (None, None, None)
    assert row_of(drawn(0.5, 0.1)).answer == "yes"
    assert "unsure" in next(ablation_sentences([row, replace(row, at="other words")]))
    json.dumps(row.as_dict(), allow_nan=False)


LAYERS, FEW, WIDTH, TOKENS = 3, 4, 16, 30
SMALL: dict[str, Any] = {"vocab_size": TOKENS, "num_hidden_layers": LAYERS, "num_attention_heads": FEW}
SMALL |= {"hidden_size": WIDTH, "intermediate_size": 20, "initializer_range": 0.5}
IDS: dict[str, Any] = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
PARTS: dict[str, Any] = {"encoder_layers": LAYERS, "decoder_layers": 2, "encoder_attention_heads": FEW}
PARTS |= {"decoder_attention_heads": FEW, "encoder_ffn_dim": 20, "decoder_ffn_dim": 20, "decoder_start_token_id": 2}

# by architecture: its class, its config, and where the output projection of a layer of its main part is
KINDS: dict[str, tuple[str, dict[str, Any], Callable[[Any, int], Any]]] = {
    "Bert": ("MaskedLM", SMALL, lambda m, i: m.bert.encoder.layer[i].attention.output.dense),
    "Roberta": ("MaskedLM", SMALL, lambda m, i: m.roberta.encoder.layer[i].attention.output.dense),
    "Electra": ("MaskedLM", SMALL, lambda m, i: m.electra.encoder.layer[i].attention.output.dense),
    "Albert": (
        "MaskedLM",
        {**SMALL, "embedding_size": 8},
        lambda m, i: m.albert.encoder.albert_layer_groups[i].albert_layers[0].attention.dense,
    ),
    "DistilBert": (
        "MaskedLM",
        {"vocab_size": TOKENS, "dim": WIDTH, "n_layers": LAYERS, "n_heads": FEW, "hidden_dim": 20}
        | {"initializer_range": 0.5},
        lambda m, i: m.distilbert.transformer.layer[i].attention.out_lin,
    ),
    "GPT2": (
        "LMHeadModel",
        {"vocab_size": TOKENS, "n_embd": WIDTH, "n_layer": LAYERS, "n_head": FEW, "initializer_range": 0.5, **IDS},
        lambda m, i: m.transformer.h[i].attn.c_proj,
    ),
    "GPTNeoX": ("ForCausalLM", {**SMALL, **IDS}, lambda m, i: m.gpt_neox.layers[i].attention.dense),
    "Llama": (
        "ForCausalLM",
        {**SMALL, **IDS, "num_key_value_heads": 2},
        lambda m, i: m.model.layers[i].self_attn.o_proj,
    ),
    "Bart": (
        "ForConditionalGeneration",
        {"vocab_size": TOKENS, "d_model": WIDTH, "init_std": 0.5, "forced_eos_token_id": 2, **PARTS, **IDS},
        lambda m, i: m.model.encoder.layers[i].self_attn.out_proj,
    ),
    "T5": (
        "ForConditionalGeneration",
        {"vocab_size": TOKENS, "d_model": WIDTH, "d_kv": 4, "d_ff": 20, "num_layers": LAYERS, "num_heads": FEW}
        | {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 2, "initializer_factor": 3.0},
        lambda m, i: m.encoder.block[i].layer[0].SelfAttention.o,
    ),
}


def build(kind: str, **settings: Any) -> Any:
    head, config, _ = KINDS[kind]
    torch.manual_seed(3)
    made = getattr(transformers, f"{kind}Config")(**{**config, **settings})
    name = f"{kind}{head}" if head.startswith(("For", "LM")) else f"{kind}For{head}"
    model = getattr(transformers, name)(made).double().eval()
    model.set_attn_implementation("eager")
    return model


def inputs_of(model: Any) -> dict[str, Tensor]:
    torch.manual_seed(5)
    tokens, mask = torch.randint(3, TOKENS, (4, 9)), torch.ones(4, 9, dtype=torch.long)
    mask[2:, 6:] = 0
    inputs = {"input_ids": tokens, "attention_mask": mask}
    return inputs | ({"decoder_input_ids": tokens[:, :5]} if model.config.is_encoder_decoder else {})


def edited(model: Any, layer: Any, heads: list[int], mean: Tensor) -> None:
    """The output projection takes nothing from these heads and adds what it would make of their mean."""
    columns = torch.cat([torch.arange(head * 4, head * 4 + 4) for head in heads])
    with torch.no_grad():
        conv = type(layer).__name__ == "Conv1D"  # of GPT-2: transposed
        weight = layer.weight.T if conv else layer.weight
        added = weight[:, columns] @ mean[heads].flatten()
        bias = added if layer.bias is None else layer.bias + added
        weight = weight.clone()
        weight[:, columns] = 0
        layer.weight = torch.nn.Parameter(weight.T.contiguous() if conv else weight)
        layer.bias = torch.nn.Parameter(bias)


@pytest.mark.model
@pytest.mark.parametrize("kind", KINDS)
def test_a_head_that_puts_out_its_mean_is_a_projection_without_it(kind: str) -> None:
    model, find = build(kind), KINDS[kind][2]
    loaded: Any = SimpleNamespace(tokenizer=spoken, device=torch.device("cpu"))
    assert heads_of_layers(model, loaded) == [FEW] * LAYERS
    inputs, chosen = inputs_of(model), {0: [1], 2: [0, 3]}
    other = copy.deepcopy(model)
    if kind == "Albert":  # the layers share weights: the other model has each of them by itself
        other = build(kind, num_hidden_groups=LAYERS)
        state = dict(model.state_dict())
        for name, value in list(state.items()):
            for layer in range(1, LAYERS):
                state[name.replace("layer_groups.0.", f"layer_groups.{layer}.")] = value
        other.load_state_dict(state)
    seen: dict[int, Tensor] = {}
    for layer in range(LAYERS):
        find(other, layer).register_forward_pre_hook(lambda _, args, at=layer: seen.__setitem__(at, args[0].detach()))
    means = HeadMeans([FEW] * LAYERS)
    with torch.no_grad():
        plain = model(**inputs).logits
        unedited = other(**inputs).logits
        with changed_heads(model, means.add):
            watched = model(**inputs).logits
        with changed_heads(model, replacing(means, {})):
            untouched = model(**inputs).logits
    assert torch.equal(plain, watched)
    assert torch.equal(plain, untouched)
    torch.testing.assert_close(plain, unedited, rtol=1e-12, atol=1e-12)
    for layer in range(LAYERS):  # the mean over positions that are text, position by position
        expected, count = torch.zeros(FEW, 4, dtype=torch.float64), 0
        for row in range(4):
            for place in range(9):
                if inputs["attention_mask"][row, place]:
                    expected, count = expected + seen[layer][row, place].view(FEW, 4), count + 1
        torch.testing.assert_close(means.mean(layer), expected / count, rtol=1e-10, atol=1e-12)
    for layer, heads in chosen.items():
        edited(other, find(other, layer), heads, means.mean(layer))
    with torch.no_grad(), changed_heads(model, replacing(means, chosen)):
        ablated = model(**inputs).logits
    with torch.no_grad():
        expected = other(**inputs).logits
    assert (ablated - plain).abs().max() > 1e-3
    torch.testing.assert_close(ablated, expected, rtol=1e-10, atol=1e-10)
    with torch.no_grad():
        assert torch.equal(model(**inputs).logits, plain)  # nothing stays behind


@pytest.mark.model
def test_nothing_stays_behind_after_an_error() -> None:
    model = build("Bert")
    inputs = inputs_of(model)

    def broken(_layer: int, _outputs: Tensor, _mask: Any) -> Tensor:
        raise KeyError("broken")

    with torch.no_grad():
        plain = model(**inputs).logits
        with pytest.raises(KeyError), changed_heads(model, broken):
            model(**inputs)
        assert torch.equal(model(**inputs).logits, plain)


def spoken(_text: str, return_tensors: str) -> dict[str, Any]:
    return {"input_ids": [[3, 4, 5]]}


@pytest.mark.model
def test_an_architecture_of_its_own_way_is_refused() -> None:
    config = transformers.XLMConfig(vocab_size=TOKENS, emb_dim=WIDTH, n_layers=LAYERS, n_heads=FEW)
    build_: Any = transformers.XLMModel
    model = build_(config).eval()
    loaded: Any = SimpleNamespace(tokenizer=spoken, device=torch.device("cpu"))
    with pytest.raises(InputError, match="cannot be read in this architecture"):
        heads_of_layers(model, loaded)
