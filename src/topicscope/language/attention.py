"""Attention between words by their relation, debiased, for every layer and head, with bootstrap and shuffled topics.

A weight is multiplied by the number of positions that its query can attend to and divided by 100, so that the mean over
any text is .01. A relation gives a code to every pair of positions. Documents are cut into windows. Their sums go into
tables whose size does not depend on the number of documents. The bootstrap over documents is Poisson's: document i
counts n_i times, n_i drawn once for each resample.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from topicscope.ground import Engine, Progress, Stream, generator, serial, silent
from topicscope.language.counting import in_shards
from topicscope.language.documents import DocumentSums
from topicscope.language.models import LoadedModel, outputs_of, padded
from topicscope.language.position_pairs import padded_places, pairs_of, slabs, sums_by_relation
from topicscope.language.relations import DIFFERENT, SAME_TOPIC, SAME_WORD, Relation
from topicscope.language.states import Arrays, ChunkStates, StatePlan, StateTally
from topicscope.language.vocabulary import Window, batches, chunks
from topicscope.measure import Effect, effect

FEW = (
    200  # resamples of what single heads show at equal word frequencies: a table of heads by pairs of frequencies each
)
CHUNK = 128  # windows that are sorted by length and bootstrapped together, and by one worker where there are several


class PartTally:
    """Sums over pairs of positions for one part of the model and one relation, for all its heads.

    `heads` are the numbers of heads of the layers.
    """

    def __init__(self, relation: Relation, heads: Sequence[int], bootstrap: int) -> None:
        self.relation, self.heads = relation, heads
        groups, all_heads = relation.relations * relation.strata, sum(heads)

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(*shape, dtype=torch.float64)

        self.sums, self.pairs = zeros(groups, all_heads), zeros(groups)
        # same topic after each shuffle, and all pairs of different words
        self.null_sums, self.null_pairs = zeros(relation.shuffles, all_heads), zeros(relation.shuffles)
        self.other_sums, self.other_pairs = zeros(all_heads), zeros(1)
        # resampled sums: by relation for every head, and by stratum for the mean over heads
        self.boot_sums, self.boot_pairs = zeros(bootstrap, relation.relations, all_heads), zeros(bootstrap, groups)
        self.boot_strata = zeros(bootstrap, groups)
        # the first of them by stratum for every head, where heads are compared with shuffles
        self.boot_heads = zeros(min(FEW, bootstrap) if relation.shuffles else 0, groups, all_heads)

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: table.numpy() for name, table in vars(self).items() if isinstance(table, Tensor)}

    def add(self, arrays: dict[str, np.ndarray]) -> None:
        """Adds the sums of other windows."""
        for name, array in arrays.items():
            getattr(self, name).numpy()[...] += array


class ChunkTally:
    """The same sums for each of `windows` windows, on the device of the model: a row for each of them.

    What is not resampled is summed over all windows at once.
    """

    def __init__(self, relation: Relation, heads: Sequence[int], windows: int) -> None:
        self.relation, self.heads = relation, heads
        tables = {
            name: table for name, table in vars(PartTally(relation, heads, 0)).items() if isinstance(table, Tensor)
        }

        def zeros(*names: str, rows: tuple[int, ...]) -> dict[str, Tensor]:
            return {
                name: torch.zeros(*rows, *tables[name].shape, dtype=torch.float64, device=relation.device)
                for name in names
            }

        self.rows = zeros("sums", "pairs", rows=(windows,))
        self.totals = zeros("null_sums", "null_pairs", "other_sums", "other_pairs", rows=())

    def add(self, first: int, sums: dict[str, Float[Tensor, "B ..."]]) -> None:
        """Adds the sums of some windows, from the first on."""
        for name, some in sums.items():
            if name in self.rows:
                self.rows[name][first : first + len(some)] += some
            else:
                self.totals[name] += some.sum(0)

    def arrays(self, times: Float[Tensor, "R n"]) -> dict[str, np.ndarray]:
        """As a PartTally adds them. `times`: how often each resample draws each window."""
        sums, pairs = self.rows["sums"], self.rows["pairs"]  # n x G x H, n x G
        n, _, heads = sums.shape
        relations = sums.view(n, self.relation.relations, -1, heads).sum(2)
        tables = {name: rows.sum(0) for name, rows in self.rows.items()} | self.totals
        tables["boot_sums"] = (times @ relations.flatten(1)).view(len(times), self.relation.relations, heads)
        tables["boot_pairs"], tables["boot_strata"] = times @ pairs, times @ sums.mean(2)
        few = times[: FEW if self.relation.shuffles else 0]
        tables["boot_heads"] = (few @ sums.flatten(1)).view(len(few), *sums.shape[1:])
        # one transfer: what waits for the GPU waits once
        flat = torch.cat([table.flatten() for table in tables.values()]).cpu().numpy()
        borders = np.cumsum([table.numel() for table in tables.values()])
        return {
            name: array.reshape(table.shape)
            for (name, table), array in zip(tables.items(), np.split(flat, borders[:-1]), strict=True)
        }

    def by_document(self, owners: Sequence[int]) -> dict[int, Float[np.ndarray, "2 R"]]:
        """Sums of the mean over heads, and numbers of pairs, by relation. `owners`: the document of each window."""
        means, shape = self.rows["sums"].mean(2), (len(owners), self.relation.relations, -1)
        tables = torch.stack([rows.view(shape).sum(2) for rows in (means, self.rows["pairs"])], 1).cpu().numpy()
        found: dict[int, np.ndarray] = {}
        for owner, table in zip(owners, tables, strict=True):
            found[owner] = found.get(owner, 0) + table
        return found


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
    """The sums of each part of the model. Every engine of the same machine gives the same bytes.

    Windows are taken as they are needed: a stream of them is never in memory as a whole. `documents`: how many they
    are cut from, for the progress. `states`: filled with the hidden states of the same pass. `by_document`: filled with
    the sums of each document, of the first part of the model.
    """

    def advance(done: float) -> None:
        progress(phase, done, documents)

    advance(0)
    parts: Parts = {}
    here = engine is serial
    plan, relation = states.plan if states else None, by_document.relation if by_document else None
    common = Pass(loaded, relations, bootstrap, seed, advance if here else None, plan, relation)
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
        if not here:
            advance(done)
    return parts


@torch.inference_mode()
def tally_chunk(
    common: Pass, chunk: Sequence[Window]
) -> tuple[float, dict[str, tuple[Sequence[int], list[dict[str, np.ndarray]]]], Arrays | None, dict[int, np.ndarray]]:
    """How many documents are done; by part the heads of its layers, and the arrays of every tally; those of states; and
    sums by document.
    """
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
            places = torch.as_tensor(padded_places(batch, relation.wanted)).to(device, non_blocking=True)
            for some, queries in slabs(len(batch), places.shape[1], device):
                of_slab = inputs[0][some], inputs[1][some]
                for name, layers in attention.items():
                    weights = [layer[some] for layer in layers]
                    pairs = pairs_of(name, weights, of_slab, places[some], queries, shift)
                    parts[name][number].add(len(owners) + some.start, sums_by_relation(relation, pairs))
        owners += [window.document for window in batch]
        if common.advance is not None:  # batches are in order of length, so documents are done in proportion
            first, last = chunk[0].reached, chunk[-1].reached
            common.advance(first + (last - first) * len(owners) / len(chunk))
    times = document_resamples(owners, common.bootstrap, common.seed).to(device)
    tables = {name: (tallies[0].heads, [tally.arrays(times) for tally in tallies]) for name, tallies in parts.items()}
    of_documents = {}
    if common.by_document is not None:
        of_documents = next(iter(parts.values()))[common.by_document].by_document(owners)
    return chunk[-1].reached, tables, None if states is None else states.arrays(), of_documents


def document_resamples(owners: Sequence[int], bootstrap: int, seed: int) -> Float[Tensor, "R n"]:
    """How often each resample draws the document of each window."""
    drawn = {
        document: generator(seed, Stream.BOOTSTRAP_DOCUMENTS, document).poisson(1, bootstrap)
        for document in set(owners)
    }
    return torch.as_tensor(np.stack([drawn[document] for document in owners], 1), dtype=torch.float64)


@np.errstate(invalid="ignore", divide="ignore")
def attention_effect(
    tally: PartTally, heads: Sequence[int] | None = None, *, controls: bool = True, matched: bool = False
) -> Effect | None:
    """Attention to words of the same topic against attention to others. Bootstrap over documents.

    Of the mean over all heads, or over some of them. `controls`: beside the same with shuffled topics, where there are
    some; `matched`: also at equal word frequencies.
    """
    shape, chosen = (-1, tally.relation.relations, tally.relation.strata), slice(None) if heads is None else list(heads)
    pairs, boot_pairs = (table.numpy().reshape(shape).sum(-1) for table in (tally.pairs, tally.boot_pairs))
    sums = tally.sums.numpy().reshape(*shape[1:], -1).sum(1)[:, chosen].mean(1)
    means, resampled = sums / pairs[0], tally.boot_sums.numpy()[:, :, chosen].mean(2) / boot_pairs
    null = equal = None
    if controls and len(tally.null_sums):
        null = shuffled_attention(tally, chosen)
    if matched:
        left, right, (first, second) = matched_attention(tally, heads)
        equal = (left, right, first - second)
    return effect(
        float(means[SAME_TOPIC]),
        float(means[DIFFERENT]),
        (resampled[:, SAME_TOPIC], resampled[:, DIFFERENT]),
        pairs=(float(pairs[0, SAME_TOPIC]), float(pairs[0, DIFFERENT])),
        null=null,
        matched=equal,
        same_word=float(means[SAME_WORD]) if np.isfinite(means[SAME_WORD]) else None,
    )


@np.errstate(invalid="ignore", divide="ignore")
def shuffled_attention(tally: PartTally, chosen: slice | list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Same-topic and different-topic mean of each shuffle, of the mean over the chosen heads."""
    same, number = tally.null_sums.numpy()[:, chosen].mean(1), tally.null_pairs.numpy()
    other = tally.other_sums.numpy()[chosen].mean()
    return same / number, (other - same) / (float(tally.other_pairs) - number)


@np.errstate(invalid="ignore", divide="ignore")
def matched_attention(
    tally: PartTally, heads: Sequence[int] | None = None
) -> tuple[float, float, tuple[np.ndarray, np.ndarray]]:
    """Same-topic and different-topic mean and their resamples, with the word frequencies of the same-topic pairs.

    Of some heads there are fewer resamples.
    """

    def means(sums: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        shape = (-1, tally.relation.relations, tally.relation.strata)
        summed, number = sums.reshape(shape), pairs.reshape(shape)
        usable = number[:, SAME_TOPIC] * (number[:, DIFFERENT] > 0)
        share = usable / usable.sum(-1, keepdims=True)
        each = summed / np.maximum(number, 1)
        return (share * each[:, SAME_TOPIC]).sum(-1), (share * each[:, DIFFERENT]).sum(-1)

    pairs, boot_pairs = tally.pairs.numpy(), tally.boot_pairs.numpy()
    if heads is None:
        (same,), (different,) = means(tally.sums.mean(1).numpy(), pairs)
        return float(same), float(different), means(tally.boot_strata.numpy(), boot_pairs)
    (same,), (different,) = means(tally.sums.numpy()[:, list(heads)].mean(1), pairs)
    few = tally.boot_heads.numpy()[:, :, list(heads)].mean(2)
    return float(same), float(different), means(few, boot_pairs[: len(few)])
