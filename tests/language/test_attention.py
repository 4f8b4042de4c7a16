"""Tallies of attention against a double loop over positions, for every kind of model and tokenizer."""

from dataclasses import replace
from types import SimpleNamespace
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch

from tests.language import tiny
from tests.language.samples import assignment, tiny_encoder
from tests.measure.samples import there
from topicscope.ground import Stream, generator
from topicscope.language import Assignment, Vocabulary, attention, vocabulary as vocabulary_module, whole_words
from topicscope.language.attention import (
    ELSEWHERE,
    TOO_FEW,
    PairRelation,
    PartTally,
    TopicRelation,
    attention_effect,
    corrected,
    head_rows,
    matched_attention,
    pairs_of,
    remarks,
    slabs,
    tally_attention,
)
from topicscope.language.models import LoadedModel, checked
from topicscope.language.probe_rows import topical_heads
from topicscope.language.vocabulary import special_tokens, windows
from topicscope.measure.pairs import Membership, frequency_bins

Group = tuple[str, int, int]


def loaded_model(kind: str, tokenizer: Any) -> LoadedModel:
    return checked(kind, tiny.model(kind, len(tokenizer)), tokenizer)


def by_loop(loaded: LoadedModel, vocabulary: Vocabulary, a: Assignment, length: int) -> dict[Group, np.ndarray]:
    """Sums and numbers of pairs by part, relation and stratum: text by text, position by position, no padding."""
    topics = [set(a.membership.topic[a.membership.word == w].tolist()) for w in range(len(a.words))]
    number = {int(token): i for i, token in enumerate(a.token)}
    bins = frequency_bins(a.frequency)
    before, after = special_tokens(loaded.tokenizer)
    room = length - len(before) - len(after)
    found: dict[Group, np.ndarray] = {}
    for text in tiny.TEXTS:
        tokens = np.array(loaded.tokenizer(text, add_special_tokens=False)["input_ids"], dtype=int)
        words = vocabulary.words_at(tokens)
        for start in range(0, len(tokens), room):
            ids = [*before, *tokens[start : start + room].tolist(), *after]
            read = zip(tokens[start : start + room], words[start : start + room], strict=True)
            mine = [number.get(int(t), -1) if w >= 0 else -1 for t, w in read]
            word_of = [*[-1] * len(before), *mine, *[-1] * len(after)]
            inputs: dict[str, Any] = {"input_ids": torch.tensor([ids]), "output_attentions": True}
            if loaded.model.config.is_encoder_decoder:
                inputs["decoder_input_ids"] = torch.tensor([[loaded.model.config.decoder_start_token_id, *ids[:-1]]])
            with torch.no_grad():
                out = loaded.model(**inputs)
            if loaded.model.config.is_encoder_decoder:
                later = [-1, *word_of[:-1]]
                parts = [
                    ("encoder", out.encoder_attentions, word_of, word_of, False),
                    ("decoder", out.decoder_attentions, later, later, True),
                    ("cross", out.cross_attentions, later, word_of, False),
                ]
            else:
                causal = loaded.name == "decoder"
                parts = [("decoder" if causal else "encoder", out.attentions, word_of, word_of, causal)]
            for name, layers, queries, keys, causal in parts:
                weights = torch.cat([layer[0] for layer in layers]).numpy()
                for q, i in enumerate(queries):
                    for k, j in enumerate(keys):
                        own = q - 1 == k if name == "cross" else q == k
                        if i < 0 or j < 0 or own or (causal and k > q):
                            continue
                        relation = 0 if i == j else 1 if topics[i] & topics[j] else 2
                        available = q + 1 if causal else len(ids)
                        group = (name, relation, int(bins[i] * (bins.max() + 1) + bins[j]))
                        sums = found.setdefault(group, np.zeros(weights.shape[0] + 1))
                        sums[:-1] += weights[:, q, k] * available / 100
                        sums[-1] += 1
    return found


@pytest.mark.parametrize("several", [False, True])
@pytest.mark.parametrize("tokens", tiny.KINDS)
@pytest.mark.parametrize("kind", tiny.MODELS)
def test_tallies_are_those_of_the_double_loop(kind: str, tokens: str, several: bool) -> None:
    tokenizer = tiny.tokenizer(tokens)
    loaded, vocabulary = loaded_model(kind, tokenizer), whole_words(tokenizer, ["the"])
    a = assignment(vocabulary, several=several)
    relation = TopicRelation(a, len(tokenizer), shuffles=3, seed=5)
    length = 20
    tallies = tally_attention(loaded, windows(loaded, vocabulary, tiny.TEXTS, None, length), [relation], bootstrap=7)
    expected = by_loop(loaded, vocabulary, a, length)
    assert len(expected) > 10
    for part, (tally,) in tallies.items():
        sums, pairs = tally.sums.numpy(), tally.pairs.numpy()
        listed = {(relation_, stratum): value for (name, relation_, stratum), value in expected.items() if name == part}
        for group in range(len(sums)):
            value = listed.get(divmod(group, relation.strata), np.zeros(sum(tally.heads) + 1))
            assert pairs[group] == value[-1]
            np.testing.assert_allclose(sums[group], value[:-1], rtol=1e-10, atol=1e-12)


def test_shuffled_topics_and_strata() -> None:
    """The null is the tally of an assignment whose words have changed places; different words stay different words."""
    loaded, vocabulary, _ = tiny_encoder()
    size, pieces = len(loaded.tokenizer), list(windows(loaded, vocabulary, tiny.TEXTS, None))
    for several in (False, True):
        a = assignment(vocabulary, several=several)
        (tally,) = tally_attention(loaded, pieces, [TopicRelation(a, size, 2, 9)], bootstrap=0)["encoder"]
        orders = generator(9, Stream.SHUFFLED_ATTENTION)
        for i in range(2):
            order = orders.permutation(len(a.words))
            # word w takes the topics of word order[w]
            topics = (a.membership.topic[a.membership.word == old].tolist() for old in order)
            listed = sorted((k, w) for w, mine in enumerate(topics) for k in mine)
            topic, word = (np.array(side) for side in zip(*listed, strict=True))
            moved = replace(a, membership=Membership(word, topic, len(a.words), 4))
            (other,) = tally_attention(loaded, pieces, [TopicRelation(moved, size)], bootstrap=0)["encoder"]
            sums = other.sums.view(3, -1, sum(other.heads)).sum(1)
            np.testing.assert_allclose(tally.null_sums[i], sums[1], rtol=1e-10)
            assert float(tally.null_pairs[i]) == float(other.pairs.view(3, -1)[1].sum())
            np.testing.assert_allclose(tally.other_sums, sums[1:].sum(0), rtol=1e-10)


def test_the_bootstrap_counts_documents_as_often_as_drawn() -> None:
    loaded, vocabulary, a = tiny_encoder()
    relation = TopicRelation(a, len(loaded.tokenizer), shuffles=1)
    pieces = list(windows(loaded, vocabulary, tiny.TEXTS, None, 16))
    (tally,) = tally_attention(loaded, pieces, [relation], bootstrap=4, seed=3)["encoder"]
    alone = [
        tally_attention(loaded, [p for p in pieces if p.document == d], [relation], bootstrap=0)
        for d in range(len(tiny.TEXTS))
    ]
    for r in range(4):
        times = [generator(3, Stream.BOOTSTRAP_DOCUMENTS, d).poisson(1, 4)[r] for d in range(len(tiny.TEXTS))]
        tallies = [(n, one["encoder"][0]) for n, one in zip(times, alone, strict=True) if one]
        np.testing.assert_allclose(tally.boot_pairs[r].numpy(), sum(n * one.pairs.numpy() for n, one in tallies))
        every = sum(n * one.sums.numpy() for n, one in tallies)
        expected = every.reshape(3, relation.strata, -1).sum(1)
        np.testing.assert_allclose(tally.boot_sums[r].numpy(), expected, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(tally.boot_heads[r].numpy(), every, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(tally.boot_strata[r].numpy(), every.mean(1), rtol=1e-9, atol=1e-12)


def test_uniform_attention_averages_one_hundredth() -> None:
    """Debiased, every text averages .01: exactly so for every pair where attention is uniform, causal or not."""
    for kind in tiny.MODELS:
        tokenizer = tiny.tokenizer("bpe")
        model = tiny.model(kind, len(tokenizer))
        with torch.no_grad():
            for name, parameter in model.named_parameters():
                if any(part in name for part in ("query", "key", "q_proj", "k_proj", "c_attn")):
                    parameter.zero_()
        loaded, vocabulary = checked(kind, model, tokenizer), whole_words(tokenizer)
        relation = TopicRelation(assignment(vocabulary, several=False), len(tokenizer))
        pieces = windows(loaded, vocabulary, tiny.TEXTS, None, 24)
        for (tally,) in tally_attention(loaded, pieces, [relation], bootstrap=3).values():
            found = there(attention_effect(tally, matched=True))
            means = (found.same, found.different, there(found.matched).difference)
            assert means == pytest.approx((0.01, 0.01, 0.0), abs=1e-12)


def test_listed_pairs_are_tallied_alone() -> None:
    loaded, vocabulary, _ = tiny_encoder()
    some = ["bread butter judge", "court judge court", "bread court"]
    pieces = windows(loaded, vocabulary, some, None)
    (tally,) = tally_attention(loaded, pieces, [listed_pairs(vocabulary)], bootstrap=0)["encoder"]
    assert tally.pairs.tolist() == [2 + 4]


def listed_pairs(vocabulary: Vocabulary) -> PairRelation:
    token = np.array([vocabulary.token[vocabulary.number[word]] for word in ("bread", "butter", "judge", "court")])
    return PairRelation(token, np.array([[0, 1], [2, 3]]), len(tiny.tokenizer("wordpiece")))


def drawn_tally(shuffles: int = 30) -> PartTally:
    """Sums as a pass may leave them: three relations, four strata, two layers of two and one heads."""
    relation: Any = SimpleNamespace(relations=3, strata=4, shuffles=shuffles)
    tally = PartTally(relation, [2, 1], 5)
    rng = np.random.default_rng(2)
    for name, table in tally.tables().items():
        shape = tuple(table.shape)
        table += torch.from_numpy(rng.integers(1, 9, shape) if "pairs" in name else rng.random(shape))
    tally.other_sums += 100
    tally.other_pairs += 100
    tally.pairs[[4 + 1, 8 + 2]] = 0  # a stratum without pairs of one topic, one without pairs of two
    tally.boot_pairs[0, 4:8] = 0  # a resample that drew none
    return tally


def test_effects_are_means_of_sums() -> None:
    tally = drawn_tally()
    sums, pairs = tally.sums.numpy().reshape(3, 4, 3), tally.pairs.numpy().reshape(3, 4)
    boot, boot_pairs = tally.boot_sums.numpy(), tally.boot_pairs.numpy().reshape(5, 3, 4)
    for heads in ([0, 1, 2], [2], [0, 1]):
        found = there(attention_effect(tally, None if len(heads) == 3 else heads, matched=True))
        means = [sums[r][:, heads].mean(1).sum() / pairs[r].sum() for r in range(3)]
        assert (found.same_word, found.same, found.different) == pytest.approx(means)
        assert (found.pairs, found.other_pairs) == (pairs[1].sum(), pairs[2].sum())
        drawn = [boot[b][:, heads].mean(1) / boot_pairs[b].sum(1) for b in range(1, 5)]
        assert there(found.resamples)[1:] == pytest.approx([one[1] - one[2] for one in drawn])
        assert not np.isfinite(there(found.resamples)[0])
        same, number = tally.null_sums.numpy()[:, heads].mean(1), tally.null_pairs.numpy()
        rest = (tally.other_sums.numpy()[heads].mean() - same) / (float(tally.other_pairs) - number)
        differences = same / number - rest
        assert found.null_interval == pytest.approx(tuple(np.quantile(differences, [0.025, 0.975])))
        assert found.p_value == pytest.approx((1 + (differences >= found.difference).sum()) / 31)
        usable = [s for s in range(4) if pairs[1, s] and pairs[2, s]]
        assert usable == [0, 3]
        weight = pairs[1, usable] / pairs[1, usable].sum()
        each = sums[:, :, heads].mean(2)[:, usable] / pairs[:, usable]
        assert (there(found.matched).same, there(found.matched).different) == pytest.approx(
            tuple((each[1:] * weight).sum(1))
        )
        bare = there(attention_effect(tally, heads, controls=False))
        assert (bare.matched, bare.p_value, bare.null_interval) == (None, None, None)
    plain = there(attention_effect(drawn_tally(0)))
    assert (plain.matched, plain.p_value) == (None, None)
    tally.pairs[0:4] = 0
    assert there(attention_effect(tally)).same_word is None
    tally.pairs[4:8] = 0
    assert attention_effect(tally) is None


def test_equal_frequencies_are_resampled_too() -> None:
    tally = drawn_tally()
    strata, pairs = (table.numpy().reshape(5, 3, 4) for table in (tally.boot_strata, tally.boot_pairs))
    for heads, summed in ((None, strata), ([1, 2], tally.boot_heads.numpy()[:, :, 1:].mean(2).reshape(5, 3, 4))):
        _, _, (same, different) = matched_attention(tally, heads)
        assert np.isnan(same[0])
        for b in range(1, 5):
            weight, each = pairs[b, 1] / pairs[b, 1].sum(), summed[b] / pairs[b]
            assert (same[b], different[b]) == pytest.approx(((weight * each[1]).sum(), (weight * each[2]).sum()))


def test_progress_counts_documents() -> None:
    """A document of three windows counts by thirds; within a chunk, each batch counts by its number of windows."""
    loaded, vocabulary, a = tiny_encoder(12)
    relation = TopicRelation(a, len(loaded.tokenizer))
    texts = ["boat", " ".join(tiny.WORDS), "", "bread"]
    pieces = list(windows(loaded, vocabulary, texts, None))
    assert [piece.reached for piece in pieces] == pytest.approx([1, 1 + 1 / 3, 1 + 2 / 3, 2, 4])
    chunked = ((128, 8192, [0, 4]), (2, 8192, [0, 1 + 1 / 3, 2, 4]), (128, 12, [0, 1.6, 2.2, 3.4, 4]))
    for chunk, tokens, expected in chunked:
        seen: list[tuple[str, float, float | None]] = []

        def watch(
            phase: str, done: float = 0, total: float | None = None, note: str = "", seen: list[Any] = seen
        ) -> None:
            seen.append((phase, done, total))

        with mock.patch.object(attention, "CHUNK", chunk), mock.patch.object(vocabulary_module, "TOKENS", tokens):
            tally_attention(loaded, iter(pieces), [relation], bootstrap=2, progress=watch, documents=4)
        assert {(phase, total) for phase, _, total in seen} == {("attention", 4)}
        assert [done for _, done, _ in seen] == pytest.approx(expected)


def test_the_pairs_of_two_windows_by_hand() -> None:
    """Four positions, words at 0, 1 and 3; and two, padded to four, a word at 1: which pairs count, and how."""
    lengths, places = (4, 2), ([0, 1, 3], [1, -1, -1])
    tokens = torch.tensor([[10, 11, 12, 13], [20, 21, 0, 0]])
    mask = torch.tensor([[1, 1, 1, 1], [1, 1, 0, 0]])
    weights = torch.arange(1.0, 33.0).view(2, 1, 4, 4)
    for part, shift in (("encoder", 0), ("decoder", 0), ("encoder", 1), ("decoder", 1), ("cross", 1)):
        # in a decoder that reads each word one place later the last word is not read
        read = {0, 1} if (part, shift) == ("decoder", 1) else {0, 1, 3}
        moved_query, moved_key = (0 if part == "encoder" else shift), (shift if part == "decoder" else 0)
        for queries in (slice(0, 3), slice(1, 2), slice(2, 9)):
            pairs = pairs_of(part, [weights, -weights], (tokens, mask), torch.tensor(places), queries, shift)
            shape = (2, -1, len(places[0][queries]), 3)
            found = pairs.weights.view(shape)
            for b, (length, words) in enumerate(zip(lengths, places, strict=True)):
                for row, i in enumerate(words[queries]):
                    for column, j in enumerate(words):
                        q, k = i + moved_query, j + moved_key
                        there = i >= 0 and j >= 0 and q < length and k < length
                        counts = there and (i > j if part == "decoder" else i != j)
                        assert pairs.allowed[b, row, column] == counts
                        if not counts:
                            continue
                        assert b == 0
                        assert {i, j} <= read or (part == "cross" and i != 3)
                        assert (int(pairs.query[b, row]), int(pairs.key[b, column])) == (10 + i, 10 + j)
                        available = q + 1 if part == "decoder" else length
                        assert found[b, 0, row, column] == pytest.approx((4 * q + k + 1) * available / 100)
                        assert found[b, 1, row, column] == -found[b, 0, row, column]


def test_slabs_cover_every_window_and_word_once() -> None:
    for windows_, words, most in ((5, 3, 20), (5, 3, 1), (2, 7, 20), (1, 1, 1), (4, 100, 2**14)):
        with mock.patch.dict(attention.TOGETHER, cpu=most):
            covered = np.zeros((windows_, words), dtype=int)
            for some, queries in slabs(windows_, words, torch.device("cpu")):
                covered[some, queries] += 1
                assert covered[some, queries].size * words <= max(most, words)
        assert (covered == 1).all()


@pytest.mark.parametrize("kind", tiny.MODELS)
def test_windows_together_are_the_windows_alone(kind: str) -> None:
    """Batches of unequal lengths, padding, windows without a word, in one slab or in many: the same sums in float64."""
    tokenizer = tiny.tokenizer("wordpiece")
    loaded, vocabulary = checked(kind, tiny.model(kind, len(tokenizer)), tokenizer), whole_words(tokenizer)
    relations = [TopicRelation(assignment(vocabulary, several=several), len(tokenizer), 3) for several in (False, True)]
    several: list[Any] = [*relations, listed_pairs(vocabulary)]
    pieces = [*windows(loaded, vocabulary, tiny.TEXTS, None), *windows(loaded, vocabulary, tiny.TEXTS[3:], None, 9)]
    assert len({len(piece.tokens) for piece in pieces}) > 5
    assert any(len(piece.places) == 0 for piece in pieces)
    alone = [tally_attention(loaded, [piece], several, bootstrap=0) for piece in pieces]
    # most windows lack most codes, and every code that is there at all is missing somewhere
    numbers = torch.stack([next(iter(one.values()))[0].pairs for one in alone])
    assert ((numbers > 0).any(0) & (numbers == 0).any(0)).sum() > 20
    for most in (2**14, 200, 1):
        with mock.patch.dict(attention.TOGETHER, cpu=most):
            together = tally_attention(loaded, pieces, several, bootstrap=0)
        assert together.keys() == alone[0].keys()
        for part, tallies in together.items():
            for number, tally in enumerate(tallies):
                for name, table in tally.tables().items():
                    total = sum(one[part][number].tables()[name] for one in alone)
                    np.testing.assert_allclose(table, total, rtol=1e-10, atol=1e-12, err_msg=f"{part} {name}")


def tally(
    rng: np.random.Generator, heads: list[int], shuffles: int = 99, planted: dict[int, float] | None = None
) -> PartTally:
    """10,000 pairs of positions without any preference, but for planted heads with so much more inside topics."""
    relation: Any = SimpleNamespace(relations=3, strata=1, shuffles=shuffles)
    made, count = PartTally(relation, heads, 5), sum(heads)
    spread = rng.uniform(0.5, 2, count) * 1e-4  # heads differ in how much their attention varies
    made.pairs += torch.tensor([500.0, 2000.0, 8000.0])
    drawn = spread * rng.standard_normal(count)
    means = 0.01 + np.stack([0 * drawn, drawn, -drawn / 4])  # what is more inside topics is less between them
    for head, more in (planted or {}).items():
        means[1, head] += more
    made.sums += torch.tensor(means * made.pairs.numpy()[:, None])
    made.null_pairs += 2000
    made.other_pairs += 10_000
    made.other_sums += made.sums[1:].sum(0)
    made.null_sums += torch.tensor(2000 * (0.01 + spread * rng.standard_normal((shuffles, count))))
    return made


def corrected_by_loop(parts: dict[str, PartTally]) -> dict[str, list[float]]:
    """The correction as it is defined, head by head and shuffle by shuffle."""
    scores, nulls = {}, {}
    for name, part in parts.items():
        for head in range(sum(part.heads)):
            difference = float(part.sums[1, head] / part.pairs[1] - part.sums[2, head] / part.pairs[2])
            shuffled = [
                float(same / number - (part.other_sums[head] - same) / (part.other_pairs[0] - number))
                for same, number in zip(part.null_sums[:, head], part.null_pairs, strict=True)
            ]
            middle, spread = np.mean(shuffled), np.std(shuffled)
            scores[name, head] = (difference - middle) / spread
            nulls[name, head] = [(one - middle) / spread for one in shuffled]
    largest = [max(null[i] for null in nulls.values()) for i in range(len(next(iter(nulls.values()))))]
    p = {key: (1 + sum(one >= score for one in largest)) / (1 + len(largest)) for key, score in scores.items()}
    return {name: [p[name, head] for head in range(sum(part.heads))] for name, part in parts.items()}


def test_p_is_corrected_for_all_heads_of_all_parts() -> None:
    rng = np.random.default_rng(0)
    parts = {"encoder": tally(rng, [4, 4], planted={3: 5e-4}), "decoder": tally(rng, [3, 2])}
    expected, found = corrected_by_loop(parts), corrected(parts)
    assert list(found) == ["encoder", "decoder"]
    for name in parts:
        assert found[name] == pytest.approx(expected[name], abs=1e-12)
    assert found["encoder"][3] == 0.01
    alone = corrected({"decoder": parts["decoder"]})["decoder"]
    assert all(a is not None and b is not None and a <= b for a, b in zip(alone, found["decoder"], strict=True))


def test_without_topics_a_head_passes_in_one_model_of_twenty() -> None:
    """144 heads without any preference: uncorrected, seven of them would pass in every model."""
    passed = [
        min(p for p in corrected({"encoder": tally(np.random.default_rng(seed), [12] * 12)})["encoder"] if p) <= 0.05
        for seed in range(100)
    ]
    assert 1 <= sum(passed) <= 12  # 5 expected


def test_heads_that_cannot_be_judged_say_why() -> None:
    rng = np.random.default_rng(1)
    part = tally(rng, [3], planted={0: 5e-4})
    part.sums[:, 1] *= 0.05  # looks elsewhere: .0005 where no preference is .01
    assert remarks(part) == ["", ELSEWHERE, ""]
    assert [p is None for p in corrected({"encoder": part})["encoder"]] == [False, True, False]
    part.pairs[1] = 99
    assert remarks(part) == [TOO_FEW] * 3
    assert corrected({"encoder": part})["encoder"] == [None] * 3
    assert corrected({"encoder": tally(rng, [3], shuffles=0)})["encoder"] == [None] * 3


def test_rows_come_by_difference_and_those_without_judgement_last() -> None:
    part = tally(np.random.default_rng(2), [2, 2], planted={1: 2e-3, 2: 1e-3})
    part.sums[1, 3], part.sums[2, 3] = 0.3 * 2000 / 1e6, 1e-9  # a large ratio of next to nothing
    rows = head_rows({"encoder": part}, "m", 0.1, "one")
    assert [(row.layer, row.head) for row in rows] == [(0, 1), (1, 0), (0, 0), (1, 1)]
    assert [row.remark for row in rows] == ["", "", "", ELSEWHERE]
    assert [row.corrected_p for row in rows[:2]] == [0.01, 0.01]
    assert rows[0].effect.pairs == 2000
    assert [(row.layer, row.head) for row in topical_heads(rows, "encoder")] == [(0, 1), (1, 0)]
    assert rows[0].as_dict() | {"corrected_p": 0.01, "pairs": 2000.0} == rows[0].as_dict()
