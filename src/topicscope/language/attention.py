"""Attention between words by their relation, debiased, for every layer and head, with bootstrap and shuffled topics.

A weight is multiplied by the number of positions that its query can attend to and divided by 100, so that the mean over
any text is .01. A relation gives a code to every pair of positions. Documents are cut into windows. Their sums go into
tables whose size does not depend on the number of documents. The bootstrap over documents is Poisson's: document i
counts n_i times, n_i drawn once for each resample.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from functools import partial
from itertools import islice, product
from math import isfinite, nan
from typing import ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from topicscope.ground import Engine, Progress, Stream, generator, serial, silent
from topicscope.language.assignment import Assignment
from topicscope.language.forward import outputs_of, padded
from topicscope.language.models import LoadedModel
from topicscope.language.probe_rows import HeadRow
from topicscope.language.states import Arrays, ChunkStates, StatePlan, StateTally
from topicscope.language.verdicts import POSITION_PAIRS
from topicscope.language.vocabulary import Window, batches, chunks, in_shards
from topicscope.measure import Effect, Resamples, corrected_p, effect, frequency_bins, matched_means

SAME_WORD, SAME_TOPIC, DIFFERENT = 0, 1, 2
CPU = torch.device("cpu")


class NumberedWords:
    """Words of a relation. `index[token]` is the word's number; 0 for other tokens, which `wanted` leaves out."""

    def number(self, token: Int[np.ndarray, " W"], vocabulary_size: int, device: torch.device) -> None:
        self.wanted = np.zeros(vocabulary_size, dtype=bool)
        self.wanted[token] = True
        self.index = torch.zeros(vocabulary_size, dtype=torch.int64, device=device)
        self.index[torch.as_tensor(token)] = torch.arange(len(token), device=device)

    def __reduce__(self) -> tuple[object, ...]:
        """Sent without its tables (words by words, or shuffles by words), which are made again from the fields."""
        return type(self), tuple(getattr(self, part.name) for part in fields(self))  # type: ignore[arg-type]


@dataclass
class TopicRelation(NumberedWords):
    """How two words of a text stand to each other: same word, another word of the same topic, a word of another topic.

    Codes are relation * strata + stratum, where a stratum is a pair of classes of word frequency. A pair of words with
    several topics counts once.
    """

    assignment: Assignment
    vocabulary_size: int
    shuffles: int = 0
    seed: int = 0
    device: torch.device = CPU
    relations: ClassVar[int] = 3

    def __post_init__(self) -> None:
        members, words = self.assignment.membership, len(self.assignment.token)
        self.bin_of = torch.as_tensor(frequency_bins(self.assignment.frequency), device=self.device)
        self.bin_count = int(self.bin_of.max()) + 1
        self.strata = self.bin_count**2
        self.number(self.assignment.token, self.vocabulary_size, self.device)
        self.several = bool((members.topics_of_word > 1).any())
        rng = generator(self.seed, Stream.SHUFFLED_ATTENTION)
        # (1 + shuffles) x W: the words, or their topics, as they are and then shuffled
        table = np.stack([np.arange(words), *(rng.permutation(words) for _ in range(self.shuffles))])
        if self.several:
            matrix = members.matrix()
            self.share = torch.from_numpy((matrix @ matrix.T).toarray() > 0).to(self.device)
        else:
            topic = np.empty(words, dtype=np.int16 if members.topics < 2**15 else np.int32)  # compared often: small
            topic[members.word] = members.topic
            table = topic[table]
        self.table = torch.as_tensor(table, device=self.device)

    def codes(
        self, i: Int[Tensor, "B Q"], j: Int[Tensor, "B K"]
    ) -> tuple[Int[Tensor, "B Q K"], Bool[Tensor, "B S Q K"] | None]:
        """The code of every pair of positions with the words i and j; and which pairs a shuffle puts into one topic."""
        same = self._same(i, j)
        relation = torch.where(same[:, 0], SAME_TOPIC * self.strata, DIFFERENT * self.strata)
        relation = torch.where(i[:, :, None] == j[:, None], SAME_WORD * self.strata, relation)
        relation += (self.bin_of[i] * self.bin_count)[:, :, None] + self.bin_of[j][:, None]
        return relation, same[:, 1:] if self.shuffles else None

    def _same(self, i: Tensor, j: Tensor) -> Bool[Tensor, "B 1+S Q K"]:
        left, right = (self.table[:, words].transpose(0, 1).contiguous() for words in (i, j))
        left, right = left[:, :, :, None], right[:, :, None]
        return self.share[left, right] if self.several else left == right


@dataclass
class PairRelation(NumberedWords):
    """A list of pairs of words (the top co-occurring ones): code 0 for them, -1 for all others."""

    token: Int[np.ndarray, " W"]
    pairs: Int[np.ndarray, "P 2"]  # places in `token`
    vocabulary_size: int
    device: torch.device = CPU
    relations: ClassVar[int] = 1
    strata: ClassVar[int] = 1
    shuffles: ClassVar[int] = 0

    def __post_init__(self) -> None:
        self.number(self.token, self.vocabulary_size, self.device)
        self.listed = torch.zeros(len(self.token), len(self.token), dtype=torch.bool, device=self.device)
        left, right = torch.as_tensor(self.pairs, device=self.device).T
        self.listed[left, right] = self.listed[right, left] = True

    def codes(self, i: Int[Tensor, "B Q"], j: Int[Tensor, "B K"]) -> tuple[Int[Tensor, "B Q K"], None]:
        return torch.where(self.listed[i[:, :, None], j[:, None]], 0, -1), None


Relation = TopicRelation | PairRelation


DEBIAS = 100
# pairs of positions that are summed together. A CPU is fastest where they fit into its cache, a GPU with few calls
TOGETHER = {"cpu": 2**14, "cuda": 2**19}


@dataclass(frozen=True)
class PositionPairs:
    """Whole words of some windows in one part of a model. The rest up to the largest number of words is not allowed."""

    weights: Float[Tensor, "B H Q*K"]  # debiased, of all heads
    query: Int[Tensor, "B Q"]  # tokens
    key: Int[Tensor, "B K"]
    allowed: Bool[Tensor, "B Q K"]


def padded_places(windows: Sequence[Window], wanted: Bool[np.ndarray, " V"]) -> Int[Tensor, "B P"]:
    chosen = [torch.from_numpy(window.places[wanted[window.tokens[window.places]]]) for window in windows]
    return pad_sequence(chosen, batch_first=True, padding_value=-1)


def slabs(windows: int, words: int, device: torch.device) -> Iterator[tuple[slice, slice]]:
    """Windows and query words that are summed together: several windows, or a part of one that has many words."""
    most, size = TOGETHER[device.type], max(1, words)
    several, queries = max(1, most // size**2), max(1, most // size)
    for start, first in product(range(0, windows, several), range(0, words, queries)):
        yield slice(start, start + several), slice(first, first + queries)


def pairs_of(
    part: str,
    layers: Sequence[Float[Tensor, "B H N N"]],
    inputs: tuple[Int[Tensor, "B N"], Int[Tensor, "B N"]],
    places: Int[Tensor, "B P"],
    queries: slice,
    shift: int,
) -> PositionPairs:
    """The pairs of some query words and all key words; `inputs` are tokens and mask.

    A position does not pair with itself; in a decoder only with those before it. The decoder of an encoder-decoder
    reads each word `shift` = 1 places later; a word that it does not read any more is in no pair.
    """
    tokens, mask = inputs
    size, length = tokens.shape[1], mask.sum(1, keepdim=True)
    known, first = places >= 0, places.clamp(min=0)
    read, later = known, first
    if shift and part != "encoder":
        read = known & (places + shift < length)
        later = torch.where(read, places + shift, 0)
    query = (first if part == "encoder" else later)[:, queries]
    key, key_known = (later, read) if part == "decoder" else (first, known)
    here, there = places[:, queries, None], places[:, None]
    # the same place of the text is no pair, in cross attention neither
    allowed = (here > there) if part == "decoder" else (here != there)
    flat = (query[:, :, None] * size + key[:, None]).flatten(1)[:, None]
    weights = torch.cat([layer.flatten(2).gather(2, flat.expand(-1, layer.shape[1], -1)) for layer in layers], 1)
    available = query + 1 if part == "decoder" else length.expand(query.shape)
    scale = available.to(weights.dtype) / DEBIAS
    weights.view(len(weights), -1, *allowed.shape[1:]).mul_(scale[:, None, :, None])
    word = tokens.gather(1, first)
    return PositionPairs(weights, word[:, queries], word, allowed & read[:, queries, None] & key_known[:, None])


def sums_by_relation(relation: Relation, pairs: PositionPairs) -> dict[str, Float[Tensor, "B ..."]]:
    """By code; of pairs in one topic after each shuffle; of all pairs of different words: by window and head."""
    weights, allowed = pairs.weights, pairs.allowed
    i, j = relation.index[pairs.query], relation.index[pairs.key]
    codes, shuffled = relation.codes(i, j)
    count = relation.relations * relation.strata
    # a row for every code, and a last one for what does not count
    codes = torch.where(allowed & (codes >= 0), codes, count).flatten(1)[:, None]
    marks = weights.new_zeros(len(weights), count + 1, weights.shape[2]).scatter_(1, codes, 1)[:, :-1]
    sums = {"sums": marks @ weights.mT, "pairs": marks.sum(2)}
    if shuffled is not None:
        other = allowed & (i[:, :, None] != j[:, None])
        # bytes become numbers five times as fast as truth values
        chosen = (shuffled & other[:, None]).flatten(2).view(torch.uint8).to(weights.dtype)
        every = other.flatten(1)[:, :, None].view(torch.uint8).to(weights.dtype)
        sums |= {
            "null_sums": chosen @ weights.mT,
            "null_pairs": chosen.sum(2),
            "other_sums": (weights @ every)[:, :, 0],
            "other_pairs": every.sum(1),
        }
    return sums


# resamples of what single heads show at equal word frequencies: a table of heads by pairs of frequencies each
FEW = 200


class PartTally:
    """Sums over pairs of positions for one part of the model and one relation; `heads`: how many each layer has."""

    def __init__(self, relation: Relation, heads: Sequence[int], bootstrap: int) -> None:
        self.relation, self.heads = relation, heads
        groups, all_heads = relation.relations * relation.strata, sum(heads)
        zeros = partial(torch.zeros, dtype=torch.float64)
        self.sums, self.pairs = zeros(groups, all_heads), zeros(groups)
        # same topic after each shuffle, and all pairs of different words
        self.null_sums, self.null_pairs = zeros(relation.shuffles, all_heads), zeros(relation.shuffles)
        self.other_sums, self.other_pairs = zeros(all_heads), zeros(1)
        # resampled sums: by relation for every head, and by stratum for the mean over heads
        self.boot_sums, self.boot_pairs = zeros(bootstrap, relation.relations, all_heads), zeros(bootstrap, groups)
        self.boot_strata = zeros(bootstrap, groups)
        # the first of them by stratum for every head, where heads are compared with shuffles
        self.boot_heads = zeros(min(FEW, bootstrap) if relation.shuffles else 0, groups, all_heads)

    def tables(self) -> dict[str, Tensor]:
        return {name: table for name, table in vars(self).items() if isinstance(table, Tensor)}

    def add(self, arrays: dict[str, np.ndarray]) -> None:
        for name, array in arrays.items():
            getattr(self, name).numpy()[...] += array

    def by_relation(self) -> tuple[Float[np.ndarray, "R H"], Float[np.ndarray, " R"]]:
        groups = (self.relation.relations, self.relation.strata)
        return self.sums.numpy().reshape(*groups, -1).sum(1), self.pairs.numpy().reshape(groups).sum(1)


class ChunkTally:
    """The same sums on the device of the model: a row per window, or one for all where nothing is resampled."""

    def __init__(self, relation: Relation, heads: Sequence[int], windows: int) -> None:
        self.relation, self.heads = relation, heads
        shapes = {name: table.shape for name, table in PartTally(relation, heads, 0).tables().items()}
        zeros = partial(torch.zeros, dtype=torch.float64, device=relation.device)
        self.rows = {name: zeros(windows, *shapes[name]) for name in ("sums", "pairs")}
        self.totals = {name: zeros(*shapes[name]) for name in ("null_sums", "null_pairs", "other_sums", "other_pairs")}

    def add(self, first: int, sums: dict[str, Float[Tensor, "B ..."]]) -> None:
        for name, some in sums.items():
            if name in self.rows:
                self.rows[name][first : first + len(some)] += some
            else:
                self.totals[name] += some.sum(0)

    def arrays(self, times: Float[Tensor, "R n"]) -> dict[str, np.ndarray]:
        """The sums as a PartTally adds them. `times`: how often each resample draws each window."""
        sums, pairs = self.rows["sums"], self.rows["pairs"]  # n x G x H, n x G
        relations = sums.view(len(sums), self.relation.relations, -1, sums.shape[2]).sum(2)
        few = times[: FEW if self.relation.shuffles else 0]
        tables = {name: rows.sum(0) for name, rows in self.rows.items()} | self.totals
        tables |= {
            "boot_sums": (times @ relations.flatten(1)).view(len(times), *relations.shape[1:]),
            "boot_pairs": times @ pairs,
            "boot_strata": times @ sums.mean(2),
            "boot_heads": (few @ sums.flatten(1)).view(len(few), *sums.shape[1:]),
        }
        # one transfer: what waits for the GPU waits once
        flat = torch.cat([table.flatten() for table in tables.values()]).cpu().numpy()
        parts = np.split(flat, np.cumsum([table.numel() for table in tables.values()])[:-1])
        return {name: array.reshape(tables[name].shape) for name, array in zip(tables, parts, strict=True)}

    def by_document(self, owners: Sequence[int]) -> dict[int, Float[np.ndarray, "2 R"]]:
        """Sums of the mean over heads, and numbers of pairs, by relation. `owners`: the document of each window."""
        means, shape = self.rows["sums"].mean(2), (len(owners), self.relation.relations, -1)
        tables = torch.stack([rows.view(shape).sum(2) for rows in (means, self.rows["pairs"])], 1).cpu().numpy()
        sums: dict[int, np.ndarray] = {}
        for owner, table in zip(owners, tables, strict=True):
            sums[owner] = sums.get(owner, 0) + table
        return sums


CHUNK = 128  # windows that are sorted by length and bootstrapped together, and by one worker where there are several


@dataclass
class DocumentSums:
    relation: int  # its number among the relations of the pass
    part: str = ""  # whose attention it is
    sums: dict[int, Float[np.ndarray, "2 R"]] = field(default_factory=dict)  # weights and pairs, by relation

    def add(self, part: str, sums: Mapping[int, Float[np.ndarray, "2 R"]]) -> None:
        self.part = part
        for document, table in sums.items():
            self.sums[document] = self.sums.get(document, 0) + table

    def means(self, document: int) -> tuple[float | None, float | None, int, int]:
        """Same-topic and different-topic mean, None without pairs or if not finite; and the numbers of pairs."""
        weights, pairs = self.sums.get(document, np.zeros((2, 1 + DIFFERENT)))
        means = [float(weights[k] / pairs[k]) if pairs[k] else nan for k in (SAME_TOPIC, DIFFERENT)]
        same, different = (mean if isfinite(mean) else None for mean in means)
        return same, different, int(pairs[SAME_TOPIC]), int(pairs[DIFFERENT])


Parts = dict[str, list[PartTally]]  # by part of the model ('encoder', 'decoder', 'cross'): a tally for every relation


@dataclass(frozen=True)
class Pass:
    """What a pass over windows needs besides them. Model and relations are sent as what they are made from."""

    loaded: LoadedModel
    relations: Sequence[Relation]
    bootstrap: int
    seed: int
    advance: Callable[[float], None] | None  # called with the documents done after every batch, in this process only
    states: StatePlan | None = None  # what is summed of the hidden states
    by_document: int | None = None  # the number of the relation whose sums are kept for every document


def tally_attention(
    loaded: LoadedModel,
    pieces: Iterable[Window],
    relations: Sequence[Relation],
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    engine: Engine = serial,
    progress: Progress = silent,
    phase: str = "attention",
    documents: int | None = None,
    states: StateTally | None = None,
    by_document: DocumentSums | None = None,
) -> Parts:
    """Sums of attention between words by their relation, for every layer and head of each part of the model.

    Every engine of the same machine gives the same bytes. Windows are taken as they are needed, never all at once.
    """

    def advance(done: float) -> None:
        progress(phase, done, documents)

    advance(0)
    parts: Parts = {}
    common = Pass(
        loaded,
        relations,
        bootstrap,
        seed,
        advance if engine is serial else None,
        states.plan if states else None,
        by_document.relation if by_document else None,
    )
    for done, sums, hidden, of_documents in in_shards(engine, tally_chunk, common, chunks(pieces, CHUNK)):
        if by_document is not None:
            by_document.add(next(iter(sums)), of_documents)
        if states is not None and hidden is not None:
            states.add(hidden)
        for name, (heads, tables) in sums.items():
            if name not in parts:
                parts[name] = [PartTally(relation, heads, bootstrap) for relation in relations]
            for tally, arrays in zip(parts[name], tables, strict=True):
                tally.add(arrays)
        if engine is not serial:
            advance(done)
    return parts


@torch.inference_mode()
def tally_chunk(
    common: Pass, chunk: Sequence[Window]
) -> tuple[float, dict[str, tuple[Sequence[int], list[dict[str, np.ndarray]]]], Arrays | None, dict[int, np.ndarray]]:
    """Documents done; by part the heads of its layers and the arrays of tallies; those of states; sums by document."""
    loaded, device = common.loaded, common.loaded.device
    shift = int(loaded.model.config.is_encoder_decoder)
    parts: dict[str, list[ChunkTally]] = {}
    owners: list[int] = []
    states = None if common.states is None else ChunkStates(common.states, device)
    for batch in batches(list(chunk)):
        inputs = padded(batch, loaded)
        attention, hidden = outputs_of(loaded.model, *inputs, states=states is not None)
        if states is not None:
            states.add(batch, hidden, shift)
        del hidden
        for name, layers in attention.items():
            if name not in parts:
                heads = [layer.shape[1] for layer in layers]
                parts[name] = [ChunkTally(relation, heads, len(chunk)) for relation in common.relations]
        for number, relation in enumerate(common.relations):
            places = padded_places(batch, relation.wanted).to(device, non_blocking=True)
            for some, queries in slabs(len(batch), places.shape[1], device):
                for name, layers in attention.items():
                    weights = [layer[some] for layer in layers]
                    pairs = pairs_of(name, weights, (inputs[0][some], inputs[1][some]), places[some], queries, shift)
                    parts[name][number].add(len(owners) + some.start, sums_by_relation(relation, pairs))
        owners += [window.document for window in batch]
        if common.advance is not None:  # batches are in order of length, so documents are done in proportion
            first, last = chunk[0].reached, chunk[-1].reached
            common.advance(first + (last - first) * len(owners) / len(chunk))
    times = document_resamples(owners, common.bootstrap, common.seed).to(device)
    tables = {name: (tallies[0].heads, [tally.arrays(times) for tally in tallies]) for name, tallies in parts.items()}
    main = next(iter(parts.values()))
    of_documents = {} if common.by_document is None else main[common.by_document].by_document(owners)
    return chunk[-1].reached, tables, None if states is None else states.arrays(), of_documents


def document_resamples(owners: Sequence[int], bootstrap: int, seed: int) -> Float[Tensor, "R n"]:
    drawn = {d: generator(seed, Stream.BOOTSTRAP_DOCUMENTS, d).poisson(1, bootstrap) for d in set(owners)}
    return torch.as_tensor(np.stack([drawn[document] for document in owners], 1), dtype=torch.float64)


@np.errstate(invalid="ignore", divide="ignore")
def attention_effect(
    tally: PartTally, heads: Sequence[int] | None = None, *, controls: bool = True, matched: bool = False
) -> Effect | None:
    """Same topic against others, mean over heads; `controls`: with shuffles; `matched`: also at equal frequencies."""
    chosen = slice(None) if heads is None else list(heads)
    sums, pairs = tally.by_relation()
    means = sums[:, chosen].mean(1) / pairs
    boot_pairs = tally.boot_pairs.numpy().reshape(-1, tally.relation.relations, tally.relation.strata).sum(-1)
    resampled = tally.boot_sums.numpy()[:, :, chosen].mean(2) / boot_pairs
    return effect(
        float(means[SAME_TOPIC]),
        float(means[DIFFERENT]),
        (resampled[:, SAME_TOPIC], resampled[:, DIFFERENT]),
        pairs=(pairs[SAME_TOPIC], pairs[DIFFERENT]),
        null=shuffled_attention(tally, chosen) if controls and len(tally.null_sums) else None,
        matched=matched_attention(tally, heads) if matched else None,
        same_word=float(means[SAME_WORD]) if np.isfinite(means[SAME_WORD]) else None,
    )


@np.errstate(invalid="ignore", divide="ignore")
def shuffled_attention(tally: PartTally, chosen: slice | list[int]) -> Resamples:
    same, number = tally.null_sums.numpy()[:, chosen].mean(1), tally.null_pairs.numpy()
    other = tally.other_sums.numpy()[chosen].mean()
    return same / number, (other - same) / (float(tally.other_pairs) - number)


def matched_attention(tally: PartTally, heads: Sequence[int] | None = None) -> tuple[float, float, Resamples]:
    """Both means and their resamples at equal word frequencies; of some heads there are fewer resamples."""

    def means(sums: np.ndarray, pairs: np.ndarray) -> Resamples:
        shape = (-1, tally.relation.relations, tally.relation.strata)
        summed, number = sums.reshape(shape), pairs.reshape(shape)
        same, different = ((summed[:, relation], number[:, relation]) for relation in (SAME_TOPIC, DIFFERENT))
        return matched_means(same, different)

    if heads is None:
        sums, resampled = tally.sums.mean(1).numpy(), tally.boot_strata.numpy()
    else:
        sums = tally.sums.numpy()[:, list(heads)].mean(1)
        resampled = tally.boot_heads.numpy()[:, :, list(heads)].mean(2)
    (same,), (different,) = means(sums, tally.pairs.numpy())
    return float(same), float(different), means(resampled, tally.boot_pairs.numpy()[: len(resampled)])


LOOKED_AT = 0.001  # mean weight at the topics' words below which a head does not look at them; without preference .01
TOO_FEW = "too few pairs"
ELSEWHERE = "does not look at these words"


def remarks(tally: PartTally) -> list[str]:
    """Why a head cannot be judged, for every head; '' if it can."""
    sums, pairs = tally.by_relation()
    if min(pairs[SAME_TOPIC], pairs[DIFFERENT]) < POSITION_PAIRS:
        return [TOO_FEW] * sum(tally.heads)
    weight = (sums[SAME_TOPIC] + sums[DIFFERENT]) / (pairs[SAME_TOPIC] + pairs[DIFFERENT])
    return [ELSEWHERE if mean < LOOKED_AT else "" for mean in weight]


@np.errstate(invalid="ignore", divide="ignore")
def differences(tally: PartTally) -> tuple[Float[np.ndarray, " H"], Float[np.ndarray, "S H"]]:
    sums, pairs = tally.by_relation()
    found = sums[SAME_TOPIC] / pairs[SAME_TOPIC] - sums[DIFFERENT] / pairs[DIFFERENT]
    heads = [shuffled_attention(tally, [head]) for head in range(len(found))]
    return found, np.stack([same - different for same, different in heads], 1)


def corrected(tallies: Mapping[str, PartTally]) -> dict[str, list[float | None]]:
    """By part: p of each head, corrected for all heads of the model that can be judged; None for the others."""
    judged = np.array([not remark for tally in tallies.values() for remark in remarks(tally)])
    found, shuffled = (np.concatenate(parts, -1) for parts in zip(*map(differences, tallies.values()), strict=True))
    p = np.full(len(judged), np.nan)
    if judged.any() and len(shuffled):
        p[judged] = corrected_p(found[judged], shuffled[:, judged])
    every = iter(p.tolist())
    return {
        name: [one if isfinite(one) else None for one in islice(every, sum(tally.heads))]
        for name, tally in tallies.items()
    }


def head_rows(
    tallies: Mapping[str, PartTally], model: str, threshold: float | None, topics_per_word: str
) -> list[HeadRow]:
    p, rows = corrected(tallies), []
    for part, tally in tallies.items():
        places = [(layer, head) for layer, count in enumerate(tally.heads) for head in range(count)]
        effects = [attention_effect(tally, [number], controls=False) for number in range(len(places))]
        rows += [
            HeadRow(
                model=model,
                threshold=threshold,
                topics_per_word=topics_per_word,
                part=part,
                layer=layer,
                head=head,
                effect=effect,
                corrected_p=p_value,
                remark=remark,
            )
            for (layer, head), effect, p_value, remark in zip(places, effects, p[part], remarks(tally), strict=True)
            if effect is not None
        ]
    return sorted(rows, key=lambda one: (bool(one.remark), -one.effect.difference))
