"""Hidden states against double loops over positions, in float64, for every kind of model."""

import itertools
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from tests.language import tiny
from tests.language.samples import assignment, texts
from tests.measure.samples import there
from topicscope.ground import silent
from topicscope.language import (
    TREATMENTS,
    LoadedModel,
    Measurement,
    StateProbe,
    TopicRelation,
    checked,
    probe_model,
    shifted_right,
    states as states_module,
    tally_attention,
    whole_words,
)
from topicscope.language.attention import PairRelation
from topicscope.language.probe_rows import SPOTS
from topicscope.language.states import TOP, StateTally, originals, read_first, top_directions
from topicscope.language.vocabulary import windows
from topicscope.measure import frequency_bins

TOKENIZER = tiny.tokenizer("wordpiece")
VOCABULARY = whole_words(TOKENIZER, ["the"])
# the seed draws halves that share most words: there are seven documents
BARE = Measurement(bootstrap=5, shuffles=0, random=False, cooccurrence=False, seed=3)
LENGTH = 20
TEXTS = originals(tiny.TEXTS)


def loaded_model(kind: str) -> LoadedModel:
    return checked(kind, tiny.model(kind, len(TOKENIZER)), TOKENIZER)


@torch.no_grad()
def states_alone(loaded: LoadedModel, tokens: np.ndarray) -> dict[str, tuple[list[np.ndarray], int]]:
    """By part: the states of one window that is read alone, and how much later than its place a word is read."""
    ids = torch.as_tensor(tokens)[None]
    wanted = {"output_hidden_states": True, "return_dict": True}
    if loaded.model.config.is_encoder_decoder:
        shifted, _ = shifted_right(ids, torch.ones_like(ids), loaded.model.config)
        out = loaded.model(input_ids=ids, decoder_input_ids=shifted, **wanted)
        parts = {"encoder": (out.encoder_hidden_states, 0), "decoder": (out.decoder_hidden_states, 1)}
    else:
        part = "decoder" if loaded.name == "decoder" else "encoder"
        parts = {part: (loaded.model(input_ids=ids, **wanted).hidden_states, 0)}
    return {name: ([layer[0].numpy() for layer in layers], later) for name, (layers, later) in parts.items()}


Occurrence = tuple[int, int, np.ndarray]  # document, token, state


def occurrences(loaded: LoadedModel, pieces: list[Any]) -> dict[tuple[str, int], list[Occurrence]]:
    """By part and layer, every whole word in order."""
    found: dict[tuple[str, int], list[Occurrence]] = {}
    for piece in pieces:
        for part, (layers, later) in states_alone(loaded, piece.tokens).items():
            for number, layer in enumerate(layers):
                for place in piece.places:
                    if place + later < len(piece.tokens):
                        occurrence = (piece.document, int(piece.tokens[place]), layer[place + later])
                        found.setdefault((part, number), []).append(occurrence)
    return found


def treated(state: np.ndarray, treatment: str, mean: np.ndarray, directions: np.ndarray) -> np.ndarray:
    if treatment != "raw":
        state = state - mean
    if treatment == "all_but_top":
        for direction in directions:
            state = state - (state @ direction) * direction
    return state / np.linalg.norm(state)


def word_pairs(listed: list[Occurrence], halves: np.ndarray, change: Any) -> dict[tuple[int, int], float]:
    """The mean cosine of each ordered pair of words, over positions in the one and the other half of documents."""
    cosines: dict[tuple[int, int], list[float]] = {}
    for (one, word, left), (two, other, right) in itertools.product(listed, repeat=2):
        if halves[one] == 0 and halves[two] == 1:
            cosines.setdefault((word, other), []).append(float(change(left) @ change(right)))
    return {pair: float(np.mean(values)) for pair, values in cosines.items()}


def tallied(loaded: LoadedModel, probe: StateProbe, several: list[str], length: int = LENGTH) -> StateTally:
    tally = probe.started(loaded, windows(loaded, VOCABULARY, several, None, length))
    relation = TopicRelation(probe.assignments[0], len(TOKENIZER))
    pieces = windows(loaded, VOCABULARY, several, None, length)
    tally_attention(loaded, pieces, [relation], bootstrap=2, states=tally)
    return tally


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("kind", tiny.MODELS)
def test_means_are_those_of_the_double_loop(kind: str, several: bool) -> None:
    loaded, a = loaded_model(kind), assignment(VOCABULARY, several=several)
    probe = StateProbe([a], {}, a, BARE, TEXTS)
    tally = tallied(loaded, probe, tiny.TEXTS)
    rows = {(row.part, row.layer): row for row in probe.rows(loaded, tally, silent)}
    found = occurrences(loaded, list(windows(loaded, VOCABULARY, tiny.TEXTS, None, LENGTH)))
    assert set(rows) == set(found)
    topics = {int(a.token[w]): set(a.membership.topic[a.membership.word == w]) for w in range(len(a.token))}
    halves = tally.plan.halves
    assert abs(halves.sum() - len(tiny.TEXTS) / 2) <= 0.5
    for (part, layer), listed in found.items():
        row = rows[part, layer]
        even, odd = ({token for d, token, _ in listed if halves[d] == half and token in topics} for half in (0, 1))
        assert row.words == len(even & odd) > 10
        bin_of = dict(zip(map(int, a.token), frequency_bins(a.frequency), strict=True))  # of all words of the topics
        for treatment in TREATMENTS:
            mean, directions = tally.plan.means[part][layer], tally.plan.directions[part][layer]
            pairs = word_pairs(listed, halves, lambda s: treated(s, treatment, mean, directions))  # noqa: B023
            same: list[float] = []
            different: list[float] = []
            strata: dict[tuple[int, int], tuple[list[float], list[float]]] = {}
            for (i, j), cosine in pairs.items():
                if i == j or i not in even & odd or j not in even & odd:
                    continue
                common = topics[i] & topics[j]
                many = [cosine] * len(common) if common else [cosine] * (len(topics[i]) * len(topics[j]))
                (same if common else different).extend(many)
                strata.setdefault((bin_of[i], bin_of[j]), ([], []))[0 if common else 1].extend(many)
            effect = there(row.effects[treatment])
            assert (effect.same, effect.different) == pytest.approx((np.mean(same), np.mean(different)), abs=1e-10)
            if not several:
                assert (effect.pairs, effect.other_pairs) == (len(same) / 2, len(different) / 2)
            if treatment == "raw":
                usable = [sides for sides in strata.values() if sides[0] and sides[1]]
                share = np.array([len(inside) for inside, _ in usable]) / sum(len(inside) for inside, _ in usable)
                matched, expected = there(effect.matched), [[np.mean(side) for side in sides] for sides in usable]
                assert (matched.same, matched.different) == pytest.approx(tuple(share @ expected), abs=1e-10)
            else:
                assert effect.matched is None


@pytest.mark.parametrize("kind", tiny.MODELS)
def test_documents_have_the_mean_of_their_words_and_single_states(kind: str) -> None:
    loaded, a = loaded_model(kind), assignment(VOCABULARY, several=False)
    tally = tallied(loaded, StateProbe([a], {}, a, BARE, TEXTS), tiny.TEXTS)
    pieces = list(windows(loaded, VOCABULARY, tiny.TEXTS, None, LENGTH))
    assert len(pieces) > len({piece.document for piece in pieces})  # one of them has several windows
    for number, document in tally.documents.items():
        mine = [piece for piece in pieces if piece.document == number]
        words = np.concatenate([piece.tokens[piece.places] for piece in mine])
        assert np.concatenate(document.tokens).tolist() == words.tolist()
        whole, first = occurrences(loaded, mine), occurrences(loaded, mine[:1])
        for (part, layer), listed in whole.items():
            assert document.numbers[part] == len(listed)
            np.testing.assert_allclose(document.sums[part][layer], sum(s for _, _, s in listed), atol=1e-10)
            opening = first[part, layer]
            for spot in range(SPOTS):
                place = int(np.ceil((spot + 1) * len(opening) / SPOTS)) - 1
                np.testing.assert_allclose(document.spots[part][spot, layer], opening[place][2], atol=1e-10)


def test_means_and_directions_are_those_of_the_first_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded = loaded_model("encoder")
    pieces = list(windows(loaded, VOCABULARY, tiny.TEXTS, None, LENGTH))
    monkeypatch.setattr(states_module, "READ_FIRST", 4)
    means, directions = read_first(loaded, iter(pieces))
    first = [piece for piece in pieces if len(piece.places)][:4]
    assert len(first) == 4 < len(pieces)
    for (part, layer), listed in occurrences(loaded, first).items():
        states = np.stack([state for _, _, state in listed])
        np.testing.assert_allclose(means[part][layer], states.mean(0), atol=1e-10)
        axes = np.linalg.svd(states - states.mean(0))[2][:TOP]
        np.testing.assert_allclose(directions[part][layer].T @ directions[part][layer], axes.T @ axes, atol=1e-8)
    line = np.outer(np.arange(5.0), [3.0, 4.0, 0.0, 0.0]) + 1
    np.testing.assert_allclose(np.abs(top_directions(line)), np.outer([1, 0, 0], [0.6, 0.8, 0, 0]), atol=1e-12)
    assert read_first(loaded, []) == ({}, {})


def test_cooccurring_pairs_are_those_of_the_double_loop() -> None:
    loaded, a = loaded_model("encoder"), assignment(VOCABULARY, several=False)
    pairs = np.array([[0, 6], [1, 2], [3, 12], [7, 18]])
    probe = StateProbe([a], {0: PairRelation(a.token, pairs, len(TOKENIZER))}, a, BARE, TEXTS)
    tally = tallied(loaded, probe, tiny.TEXTS)
    found = occurrences(loaded, list(windows(loaded, VOCABULARY, tiny.TEXTS, None, LENGTH)))
    for row in probe.rows(loaded, tally, silent):
        cosines = word_pairs(found[row.part, row.layer], tally.plan.halves, lambda s: s / np.linalg.norm(s))
        both = [(int(a.token[i]), int(a.token[j])) for i, j in pairs]
        known = [pair for pair in both if all(p in cosines for p in (pair, pair[::-1]))]
        assert row.cooccurring["raw"].pairs == len(known) > 1
        expected = np.mean([(cosines[i, j] + cosines[j, i]) / 2 for i, j in known])
        assert abs(row.cooccurring["raw"].mean - expected) < 1e-10
        assert set(row.cooccurring) == set(TREATMENTS)


def test_states_turned_scaled_or_read_in_other_chunks_are_the_same() -> None:
    loaded, a = loaded_model("encoder"), assignment(VOCABULARY, several=False)
    probe = StateProbe([a], {}, a, BARE, TEXTS)
    plain = tallied(loaded, probe, tiny.TEXTS)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("topicscope.language.attention.CHUNK", 2)
        chunked = tallied(loaded, probe, tiny.TEXTS)
    for part, sums in plain.sums.items():
        np.testing.assert_allclose(chunked.sums[part], sums, atol=1e-10)
        assert (chunked.counts[part] == plain.counts[part]).all()
    turn = np.linalg.qr(np.random.default_rng(0).normal(size=(16, 16)))[0]
    turned = StateTally(plain.plan)
    turned.sums, turned.counts = {name: sums @ turn for name, sums in plain.sums.items()}, plain.counts
    turned.documents = {}
    for one, two in zip(probe.rows(loaded, plain, silent), probe.rows(loaded, turned, silent), strict=True):
        for name in TREATMENTS:
            left, right = there(one.effects[name]), there(two.effects[name])
            assert (right.same, right.different) == pytest.approx((left.same, left.different), abs=1e-10)


def test_too_many_words_and_documents_are_left_out_and_said(monkeypatch: pytest.MonkeyPatch) -> None:
    loaded, a = loaded_model("encoder"), assignment(VOCABULARY, several=False)
    monkeypatch.setattr(states_module, "MOST_WORDS", 12)
    monkeypatch.setattr(states_module, "MOST_DOCUMENTS", 15)
    found = probe_model(loaded, texts(30), a, BARE, vocabulary=VOCABULARY)
    assert [note for note in found.notes if not note.startswith("warning: document ")] == [
        "hidden states: topics of documents are predicted for the first 15 documents",
        "hidden states: the 12 most frequent of 19 words of topics are compared",
        "loss of documents: this model was given without an output head that predicts words",
    ]
    row = found.states[0]
    assert row.words == 12
    assert there(row.mixture).documents == 15
    assert probe_model(loaded, texts(30), a, replace(BARE, states=False), vocabulary=VOCABULARY).states == []
