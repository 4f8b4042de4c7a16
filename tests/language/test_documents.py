"""The documents of a probe: rows against a double loop, which are shown, their pieces and attention, and the folder."""

import csv
import functools
import json
from dataclasses import replace
from importlib import resources
from itertools import islice
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pyarrow.parquet
import pytest
import torch

from tests.language import tiny
from tests.language.samples import (
    SHARED,
    THETA,
    assert_same,
    assignment,
    corpus_file,
    document_row,
    head_row,
    model_folder,
    needs_shared,
    texts,
    tiny_encoder,
)
from tests.language.test_attention import by_loop, loaded_model
from topicscope import InputError
from topicscope.ground import Result, Stream, adapter_of, generator, open_folder
from topicscope.language import (
    LoadedModel,
    Measurement,
    ProbeConfig,
    Vocabulary,
    attention,
    checked,
    documents,
    fit_topics,
    load_model,
    losses,
    predictor_of,
    probe,
    probe_model,
    probing,
    read_probe,
    read_words,
    whole_words,
    with_output_head,
    word_map,
)
from topicscope.language.attention import DocumentSums, TopicRelation
from topicscope.language.commands import WORDS
from topicscope.language.documents import (
    Pieces,
    chosen_documents,
    document_losses,
    large_text_note,
    pooled,
    ranked_heads,
    visible,
)
from topicscope.language.losses import position_losses
from topicscope.language.models import load_weights
from topicscope.language.probe_rows import (
    LOSS_TOKENS,
    DocumentRow,
    Piece,
    ShownDocument,
    ShownHead,
    decoded_links,
    encoded_links,
)
from topicscope.language.states import originals
from topicscope.language.vocabulary import windows
from topicscope.measure import Effect, Timeline
from topicscope.pages.topics import marked_text, measured_at

QUICK = Measurement(bootstrap=9, shuffles=20, random=False, states=False, cooccurrence=False)


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("tokens", tiny.KINDS)
@pytest.mark.parametrize("kind", tiny.MODELS)
def test_the_contrast_of_each_document_is_that_of_the_double_loop(kind: str, tokens: str, several: bool) -> None:
    """Windows of a document are in several chunks, and the second of two relations is kept."""
    tokenizer = tiny.tokenizer(tokens)
    loaded, vocabulary = loaded_model(kind, tokenizer), whole_words(tokenizer, ["the"])
    a = assignment(vocabulary, several=several)
    others = assignment(vocabulary, several=not several)
    relations = [TopicRelation(one, len(tokenizer)) for one in (others, a)]
    sums, length = DocumentSums(1), 20
    with mock.patch.object(attention, "CHUNK", 2):
        pieces = windows(loaded, vocabulary, tiny.TEXTS, None, length)
        attention.tally_attention(loaded, pieces, relations, bootstrap=3, by_document=sums)
    compared = 0
    main = "decoder" if kind == "decoder" else "encoder"
    for number, text in enumerate(tiny.TEXTS):
        with mock.patch.object(tiny, "TEXTS", [text]):
            groups = by_loop(loaded, vocabulary, a, length)
        means: list[float | None] = []
        pairs: list[int] = []
        for relation in (1, 2):
            total = np.sum(
                [value for group, value in groups.items() if group[:2] == (main, relation)] or [np.zeros(2)], 0
            )
            means.append(float(total[:-1].mean() / total[-1]) if total[-1] else None)
            pairs.append(int(total[-1]))
        same, different, *numbers = sums.means(number)
        assert numbers == pairs
        for measured, expected in zip((same, different), means, strict=True):
            assert (measured is None) == (expected is None)
            if expected is not None:
                assert measured == pytest.approx(expected, rel=1e-10)
                compared += 1
    assert sums.part == main
    assert compared >= 6


def test_a_row_says_length_topics_and_contrast() -> None:
    loaded, vocabulary, a = tiny_encoder()
    found = probe_model(loaded, tiny.TEXTS, a, QUICK, vocabulary=vocabulary, places=range(10, 17))
    assert [row.document for row in found.documents] == [0, 1, 3, 4, 5, 6]  # one text is empty
    row = found.documents[4]  # judge judge judge court honey garlic
    assert (row.place, row.words, row.tokens, row.topic_words) == (15, 6, 6, 2)
    assert [(topic.name, topic.share) for topic in row.topics] == [("kitchen", 1.0)]
    assert (row.same_pairs, row.different_pairs, row.different, row.contrast) == (2, 0, None, None)
    long = found.documents[5]
    assert [topic.name for topic in long.topics] == ["kitchen", "sea", "music"]
    assert long.topics[0].share == pytest.approx(6 / 19)
    assert long.contrast == pytest.approx((long.same or 0) - (long.different or 0), rel=1e-12)
    assert (long.threshold, long.part, long.loss) == (None, "encoder", None)
    assert "loss of documents: this model was given without an output head that predicts words" in found.notes


def rows(contrasts: list[float | None], pairs: int = 100) -> list[DocumentRow]:
    return [
        document_row(number, contrast=contrast, same_pairs=pairs, different_pairs=pairs)
        for number, contrast in enumerate(contrasts)
    ]


@pytest.mark.parametrize(("count", "high", "low", "drawn"), [(0, 0, 0, 0), (1, 1, 0, 0), (2, 1, 1, 0), (5, 2, 2, 1)])
def test_extremes_and_random_documents_are_chosen(count: int, high: int, low: int, drawn: int) -> None:
    every = rows([0.1, 0.5, None, -0.2, 0.4, 0.0, 0.3, 0.2])
    chosen = chosen_documents(every, count, seed=4)
    by_reason = {why: [row.document for row, reason in chosen if reason == why] for _, why in chosen}
    assert by_reason.get("highest contrast", []) == [1, 4][:high]
    assert by_reason.get("lowest contrast", []) == [3, 5][:low]
    assert len(by_reason.get("random", [])) == drawn
    if drawn:
        others = [0, 2, 6, 7]
        assert by_reason["random"] == [others[generator(4, Stream.SHOWN_DOCUMENTS).permutation(4)[0]]]
    assert chosen == chosen_documents(every, count, seed=4)


def test_no_document_is_chosen_twice_and_few_pairs_are_no_extreme() -> None:
    assert [row.document for row, _ in chosen_documents(rows([0.2, 0.1]), 5, 0)] == [0, 1]
    assert {why for _, why in chosen_documents(rows([0.2, 0.1], pairs=19), 5, 0)} == {"random"}
    assert len(chosen_documents(rows([None] * 8), 5, 0)) == 5


@pytest.mark.parametrize("tokens", tiny.KINDS)
def test_pieces_are_the_text_and_their_tokens_those_of_the_pass(tokens: str) -> None:
    tokenizer = tiny.tokenizer(tokens)
    loaded, vocabulary = loaded_model("encoder", tokenizer), whole_words(tokenizer)
    for text in ("boat anchor, beach!\nunboatly bread", "judge  court crime\n\n appeal", "bread " * 60):
        read = Pieces.of(loaded, vocabulary, text)
        (window,) = islice(windows(loaded, vocabulary, [text], 1), 1)
        np.testing.assert_array_equal(read.tokens, window.tokens)
        assert len(read.owner) == len(read.tokens)
        assert sorted(set(read.owner.tolist())) == list(range(len(read.texts)))
        # spaces that are a token of their own are shown as a dot
        joined = "".join("".join(before + piece for before, piece in read.texts[1:-1]).replace("·", "").split())
        assert "".join(text.split()).startswith(joined)
        assert read.cut == (joined != "".join(text.split()))
        assert [piece for _, piece in read.texts[:1] + read.texts[-1:]] == ["<s>", "</s>"]
        whole = {int(read.owner[place]): int(window.tokens[place]) for place in window.places}
        assert {number: token for number, token in enumerate(read.word.tolist()) if token >= 0} == whole


def test_attention_by_piece_is_that_of_the_double_loop() -> None:
    tokens = torch.softmax(torch.randn(3, 7, 7, dtype=torch.float64, generator=torch.Generator().manual_seed(1)), -1)
    owner = np.array([0, 1, 1, 2, 3, 3, 3])
    found = pooled(tokens, owner)
    for head, u, v in np.ndindex(3, 4, 4):
        queries, keys = np.flatnonzero(owner == u), np.flatnonzero(owner == v)
        total = sum(float(tokens[head, q, k]) for q in queries for k in keys)
        assert found[head, u, v] == pytest.approx(total / len(queries), rel=1e-10)
    np.testing.assert_allclose(found.sum(2), 1, rtol=1e-12)


def test_a_corpus_cannot_turn_the_direction_of_a_page() -> None:
    """Overrides and controls become marks; letters that are written from right to left, joiners and lines stay."""
    assert visible("a\u202eb\u2066c\u200f\x00\x1b\x9b") == "a\ufffdb\ufffdc" + 4 * "\ufffd"
    assert visible("\u05d0\u05d1\u200d\n\t\r\u00e9") == "\u05d0\u05d1\u200d\n\t\r\u00e9"
    loaded, vocabulary, _ = tiny_encoder()
    pieces = Pieces.of(loaded, vocabulary, "bread \u202e\u2067 butter \u202eboat").texts
    assert not any(c in "\u202e\u2067" for pair in pieces for part in pair for c in part)
    assert any("\ufffd" in before for before, _ in pieces)
    style = resources.files("topicscope.pages") / "static" / "style.css"
    assert ".pieces span { cursor: pointer; unicode-bidi: isolate; }" in style.read_text()


def test_stored_links_lead_to_the_largest_weights() -> None:
    weights = np.random.default_rng(0).dirichlet(np.full(300, 0.05), 300)
    order, levels = decoded_links(encoded_links(weights, 6), 300, 6)
    for row in range(300):
        largest = np.sort(weights[row])[::-1][:6]
        np.testing.assert_array_equal(weights[row][order[row]], largest)
        assert (np.abs(levels[row] - largest) <= np.sqrt(largest) / 255 + 1 / 255**2).all()
    with pytest.raises(ValueError, match="do not fit"):
        decoded_links(encoded_links(weights, 6), 299, 6)
    with pytest.raises(ValueError, match="not there"):
        decoded_links(encoded_links(np.eye(4)[:3], 1).replace("A", "/", 1), 3, 1)


def test_heads_come_layer_means_first_then_topical_ones() -> None:
    ranked, topical = ranked_heads([], "encoder", [2, 1])
    assert ranked == [(0, None), (1, None), (0, 0), (0, 1), (1, 0)]
    assert topical == set()
    heads = [head_row(1, 0, 0.2), head_row(0, 1, 0.05), head_row(0, 0, 0.001, part="decoder")]
    ranked, topical = ranked_heads(heads, "encoder", [2, 1])
    assert ranked == [(0, None), (1, None), (0, 1), (1, 0), (0, 0)]  # then by difference, then what is left
    assert topical == {(0, 1)}


@pytest.mark.parametrize(
    ("large", "said"),
    [
        ((20, 20, 20), ""),  # exactly a fifth of all
        ((21, 20, 20), "21% of the pairs of positions of one topic"),
        ((20, 80, 20), "50% of the pairs of positions of different topics"),
        ((20, 20, 80), "50% of the positions of topic words"),
    ],
)
def test_a_text_with_more_than_a_fifth_is_named(large: tuple[int, int, int], said: str) -> None:
    rows = [
        document_row(number, place=101 + number, same_pairs=same, different_pairs=different, topic_words=words)
        for number, (same, different, words) in enumerate([*[(10, 10, 10)] * 8, large])
    ]
    note = large_text_note(rows, np.arange(9))
    assert note.startswith(f"warning: document 109 of the corpus has {said}") if said else not note


def test_copies_count_as_one_text() -> None:
    rows, texts = [document_row(number) for number in range(10)], [*map(str, range(7)), "same", "same", "same"]
    assert large_text_note(rows, np.arange(10)) == large_text_note([], np.arange(0)) == ""
    note = large_text_note(rows, originals(texts))
    assert note.startswith("warning: document 7 with 2 of its copies has 30% of the pairs of positions of one topic")


def test_the_head_that_is_shown_first_is_of_the_documents_part_and_the_first_threshold() -> None:
    links = encoded_links(np.eye(2), 1)
    about: dict[str, Any] = {"model": "a/b", "document": 0, "why": "random", "part": "encoder", "topics": []}
    about |= {"pieces": [Piece("", "a"), Piece(" ", "b")], "keys": 1, "all_heads": 2, "cut": False}
    marks = ((None, False), (0, True), (1, True))
    shown = ShownDocument(**about, heads=[ShownHead(0, head, topical, links) for head, topical in marks])
    row = replace(rows([0.1])[0], model="a/b", threshold=0.002)
    heads = [head_row(0, 0, 0.01, part="decoder"), head_row(0, 1, 0.01), head_row(0, 0, 0.01)]
    assert marked_text(shown, row, heads).first == 2  # not 0.0, the first of the decoder
    assert marked_text(shown, row, [*heads[1:], head_row(0, 0, 0.001, threshold=0.2)]).first == 2
    assert marked_text(shown, row, heads[::-1]).first == 1
    assert measured_at([row, row]) == "encoder, threshold 0.002, the one with most words"
    other = replace(row, model="c", part="decoder", threshold=None)
    assert measured_at([row, other]).endswith("; c: decoder, given topics")


def test_what_is_shown_is_the_attention_of_the_model() -> None:
    loaded, vocabulary, a = tiny_encoder()
    found = probe_model(loaded, tiny.TEXTS, a, replace(QUICK, show_documents=6), vocabulary=vocabulary)
    shown = next(document for document in found.shown if document.document == 1)
    heads = (None, 0, 1, 2, 3)
    assert [(head.layer, head.head) for head in shown.heads] == [(layer, h) for layer in (0, 1) for h in heads]
    read = Pieces.of(loaded, vocabulary, tiny.TEXTS[1])
    with torch.no_grad():
        output = loaded.model(torch.as_tensor(read.tokens)[None], output_attentions=True)
    by_head = pooled(output.attentions[1][0], read.owner)
    assert shown.heads[7].links == encoded_links(by_head[1], shown.keys)
    assert shown.heads[5].links == encoded_links(by_head.mean(0), shown.keys)
    words = ("boat", "anchor", "beach", "captain", "coral", "harbour")
    named = {piece.text: shown.topics[piece.topic].name for piece in shown.pieces if piece.topic is not None}
    assert named == dict.fromkeys(words, "sea") | {"bread": "kitchen"}
    assert shown.topics[0].name == "sea"  # of most places
    assert probe_model(loaded, tiny.TEXTS, a, replace(QUICK, show_documents=0)).shown == []


def test_the_budget_bounds_the_heads_that_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, vocabulary, a = tiny_encoder()
    monkeypatch.setattr("topicscope.language.documents.MOST_BYTES", 6000)
    shown = probe_model(loaded, tiny.TEXTS, a, replace(QUICK, show_documents=2), vocabulary=vocabulary).shown
    assert 0 < sum(len(head.links) for document in shown for head in document.heads) <= 6000
    kept = [(head.layer, head.head) for head in shown[0].heads]
    assert {(0, None), (1, None)} <= set(kept)
    assert len(kept) < shown[0].all_heads + 2


def test_a_folder_keeps_documents_and_refuses_damaged_ones(tmp_path: Path) -> None:
    model, corpus, lists = model_folder(tmp_path), corpus_file(tmp_path), tmp_path / "topics.json"
    lists.write_text(json.dumps(tiny.TOPICS))
    config = ProbeConfig(
        str(model), str(corpus), topics_from=str(lists), documents=40, bootstrap=9, shuffles=20, show_documents=4
    )
    found = probe(config, tmp_path / "out")
    again = read_probe(tmp_path / "out")
    assert (again.documents, again.shown) == (found.documents, found.shown)
    assert (len(found.documents), len(found.shown)) == (40, 4)
    all_texts = texts(120)
    assert [len(all_texts[(row.place or 0) - 1].split()) for row in found.documents] == [30] * 40
    places = [row.place or 0 for row in found.documents]
    assert sorted(set(places)) == places
    table = pyarrow.parquet.read_table(tmp_path / "out" / "documents.parquet").to_pylist()
    with (tmp_path / "out" / "documents.csv").open() as stream:
        lines = list(csv.DictReader(stream))
    assert [row["contrast"] for row in table] == [row.contrast for row in found.documents]
    assert [float(line["share_1"]) for line in lines] == [row.topics[0].share for row in found.documents]
    file = tmp_path / "out" / "shown.json"
    stored = file.read_text()
    file.write_text(stored.replace("bread", "broad", 1))
    with pytest.raises(InputError, match=r"shown\.json is damaged"):
        read_probe(tmp_path / "out")
    document = json.loads(stored)[0]
    for name, value in (("pieces", document["pieces"][1:]), ("topics", []), ("keys", 0)):
        with pytest.raises(ValueError, match=r"fit|topic"):
            adapter_of(ShownDocument).validate_python(document | {name: value})


@functools.cache
def shared_model() -> tuple[LoadedModel, Vocabulary]:
    loaded = load_model(str(SHARED / "models" / "bert-mini-wiki"))
    return loaded, whole_words(loaded.tokenizer)


@needs_shared
def test_the_loss_of_a_document_is_the_mean_over_its_predicted_tokens() -> None:
    loaded, vocabulary = shared_model()
    some = ["The river flows through the old city to the sea. " * 30, "", "Music of the nineteenth century."]
    found, why = document_losses(with_output_head(loaded), vocabulary, some, 3, lambda *_: None)
    predictor, expected = with_output_head(loaded), {}
    for number in (0, 2):
        (piece,) = (w for w in windows(loaded, vocabulary, some, 1, LOSS_TOKENS) if w.document == number)
        ((_, _, losses),) = position_losses(predictor, [piece], 3)
        expected[number] = float(losses.mean())
    assert why == ""
    assert found == pytest.approx(expected, rel=1e-4)
    assert document_losses(predictor_of(tiny_encoder()[0]), vocabulary, some, 0, lambda *_: None)[0] == {}


@needs_shared
def test_a_loss_or_attention_that_is_no_number_is_stored_as_none() -> None:
    """Half precision may overflow; a folder of results takes numbers only."""
    (loaded, vocabulary), some = shared_model(), ["The river flows to the sea.", "Music of the old city."]

    def overflow(*of: Any) -> Any:
        for number, one in enumerate(position_losses(*of)):
            yield one._replace(losses=one.losses * (np.inf if number == 0 else 1.0))

    with mock.patch.object(documents, "position_losses", overflow):
        found, why = document_losses(with_output_head(loaded), vocabulary, some, 3, lambda *_: None)
    assert list(found) == [1]
    assert why == "loss of documents: of 1 it is not a number (NaN)"
    sums = DocumentSums(0)
    sums.add("encoder", {0: np.array([[0.0, np.nan, 2.0], [0.0, 4.0, 4.0]])})
    assert sums.means(0) == (None, 0.5, 4, 4)


@needs_shared
def test_the_output_head_is_loaded_once() -> None:
    """Losses of documents and ablation share the model that predicts words."""
    loaded, vocabulary = shared_model()
    words = vocabulary.words[:40]
    a = replace(tiny_encoder()[2], token=vocabulary.token[:19], words=words[:19])
    with (
        mock.patch.object(losses, "load_weights", wraps=load_weights) as loading,
        mock.patch.object(probing, "topical_heads", lambda heads, _: heads[:1]),
    ):
        found = probe_model(loaded, [" ".join(words)] * 3, a, QUICK, vocabulary=vocabulary)
    assert loading.call_count == 1
    assert [row.draws > 0 for row in found.ablation] == [True, True]
    assert all(row.loss is not None for row in found.documents)


@pytest.fixture(scope="module")
def results() -> dict[str, Any]:
    tokenizer = tiny.tokenizer("wordpiece")
    loaded = checked("tiny", tiny.model("encoder", len(tokenizer)).float(), tokenizer)
    topics = fit_topics(texts(), whole_words(tokenizer), 4, iterations=20)
    measurement = Measurement(thresholds=[THETA, 2 * THETA], bootstrap=20, shuffles=20)
    effect = Effect(same=2.0, different=1.0, difference=1.0, ratio=2.0, interval=(0.5, 1.5), resamples=np.ones(4))
    return {
        "topics": topics,
        "probe": probe_model(loaded, texts(20, 1), topics, measurement),
        "timeline": Timeline.of({"cosine": {0: effect, 10: effect}, "attention.0": {0: effect, 10: effect}}),
        "words": word_map(loaded, [["bread", "butter"], ["judge", "court"]]),
    }


@pytest.mark.parametrize(
    ("kind", "sections", "figures", "rows"),
    [("topics", 2, 2, 4), ("probe", 9, 6, 20), ("timeline", 1, 1, 4), ("words", 1, 1, 4)],
)
def test_results_show_themselves(results: dict[str, Any], kind: str, sections: int, figures: int, rows: int) -> None:
    result: Result = results[kind]
    assert result.kind == kind
    parts = result.sections()
    assert len(parts) == sections
    assert sum(len(part.figures) for part in parts) == figures
    assert all(len(row) == len(table.columns) for part in parts for table in part.tables for row in table.rows)
    assert result.table().num_rows == rows
    html = result._repr_html_()
    assert "<img" in html
    assert result.summary()[-1].replace("&", "&amp;").replace("'", "&#39;") in html
    assert len(result.plot().axes) >= 1
    assert len(repr(result)) < 100


def test_the_figures_have_the_numbers_of_the_results(results: dict[str, Any]) -> None:
    probe = results["probe"]
    _, ratios, chance, heads, topics, cooccurrence, states, ablation, documents = probe.sections()
    assert [row[2] for row in ablation.tables[0].rows] == ["off", "off"]  # the model has no output head
    panel = ratios.figures[0].panels[0]
    assert panel.title == "cosine"
    expected = [row.cosine.ratio for row in probe.rows if row.variant == "trained" and row.cosine.ratio is not None]
    assert [y for series in panel.series for y in series.y] == expected
    heat = heads.figures[0].panels[0]
    first = next(head for head in probe.heads if (head.layer, head.head) == (1, 2))
    assert heat.z[1][2] == pytest.approx(first.effect.difference)
    tight = [topic for topic in probe.topics if topic.threshold == THETA]
    assert topics.figures[0].panels[0].series[0].y == sorted((topic.cosine for topic in tight), reverse=True)
    assert len(cooccurrence.tables[0].rows) == 2
    layers = [row for row in probe.states if row.variant == "trained" and row.threshold == probe.states[-1].threshold]
    curves = states.figures[0].panels[0].series
    assert curves[0].y == [row.raw.difference for row in layers]
    assert len(states.tables[0].rows) == len(layers) == 3
    assert "With 20 shuffles p cannot be below 0.048; of attention and hidden states, with 19, not" in chance.note
    contrasts = [row.contrast for row in probe.documents if row.contrast is not None]
    assert documents.figures[0].panels[0].series[0].y == sorted(contrasts)
    assert [len(text.pieces) for text in documents.texts] == [len(one.pieces) for one in probe.shown]
    assert results["timeline"].sections()[0].figures[0].panels[0].series[0].y == [1.0, 1.0]
    assert results["words"].sections()[0].tables[0].rows[0][1] == "1.00"


def test_words_are_read_back_as_they_were(results: dict[str, Any], tmp_path: Path) -> None:
    with open_folder(tmp_path / "words", WORDS, {}) as folder:
        results["words"].write(folder)
    assert_same(read_words(tmp_path / "words"), results["words"])
