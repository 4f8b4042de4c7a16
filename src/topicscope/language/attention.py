"""Attention between words by their relation, debiased, for every layer and head, with bootstrap and shuffled topics.

A weight is multiplied by the number of positions that its query can attend to and divided by 100, so that the mean over
any text is .01. Documents are cut into windows. Their sums go into tables whose size does not depend on the number of
documents. The bootstrap over documents is Poisson's: document i counts n_i times, n_i drawn once for each resample.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from topicscope.ground import Engine, Progress, Stream, generator, serial, silent
from topicscope.language.forward import AttentionPart, attention_of
from topicscope.language.models import LoadedModel
from topicscope.language.relations import Relation, TopicRelation
from topicscope.language.sharding import in_shards
from topicscope.language.windows import Window, batches, chunks, padded

DEBIAS = 100
CHUNK = 128
"""Windows that are sorted by length and bootstrapped together, and by one worker where there are several."""


class PartTally:
    """Sums over pairs of positions for one part of the model and one relation, for all its heads."""

    def __init__(self, relation: Relation, heads: int, bootstrap: int, device: torch.device) -> None:
        self.relation, self.heads = relation, heads
        groups = relation.relations * relation.strata

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(*shape, dtype=torch.float64, device=device)

        self.sums, self.pairs = zeros(groups, heads), zeros(groups)
        # same topic, mean over heads
        self.null_sums, self.null_pairs = zeros(relation.shuffles), zeros(relation.shuffles)
        # different words, mean over heads
        self.other_sums, self.other_pairs = zeros(1), zeros(1)
        # resampled sums: by relation for every head, and by stratum for the mean over heads
        self.boot_sums, self.boot_pairs = zeros(bootstrap, relation.relations, heads), zeros(bootstrap, groups)
        self.boot_strata = zeros(bootstrap, groups)

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name).cpu().numpy() for name in SUMS}

    def add(self, arrays: dict[str, np.ndarray]) -> None:
        """Adds the sums of other windows. Only a tally on the CPU can take them."""
        for name, array in arrays.items():
            getattr(self, name).numpy()[...] += array

    def window(
        self, weights: Float[Tensor, "H Q K"], query: Tensor, key: Tensor, allowed: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Adds one window; returns its sums and numbers of pairs by group, for the bootstrap."""
        relation, groups = self.relation, len(self.sums)
        # most words are in no topic
        rows, columns = (torch.nonzero(relation.index[side] >= 0)[:, 0] for side in (query, key))
        weights, allowed = weights[:, rows][:, :, columns], allowed[rows][:, columns]
        query, key = query[rows], key[columns]
        codes = relation.codes(query, key, allowed).flatten()
        codes = torch.where(codes >= 0, codes, groups)
        flat = weights.flatten(1)
        sums = flat.new_zeros(groups + 1, self.heads).index_add_(0, codes, flat.T)[:-1].double()
        pairs = torch.bincount(codes, minlength=groups + 1)[:-1].double()
        self.sums += sums
        self.pairs += pairs
        if isinstance(relation, TopicRelation) and relation.shuffles:
            same, other = relation.shuffled(query, key, allowed)
            mean = flat.mean(0)
            same = same.flatten(1)
            self.null_sums += (same.to(mean.dtype) @ mean).double()
            self.null_pairs += same.sum(1)
            self.other_sums += mean[other.flatten()].sum().double()
            self.other_pairs += other.sum().double()
        return sums, pairs

    def resample(self, times: Float[Tensor, "R n"], sums: Float[Tensor, "n G H"], pairs: Float[Tensor, "n G"]) -> None:
        n, _, heads = sums.shape
        relations = sums.view(n, self.relation.relations, -1, heads).sum(2)
        self.boot_sums += (times @ relations.view(n, -1)).view(len(times), -1, heads)
        self.boot_pairs += times @ pairs
        self.boot_strata += times @ sums.mean(2)


SUMS = (
    "sums",
    "pairs",
    "null_sums",
    "null_pairs",
    "other_sums",
    "other_pairs",
    "boot_sums",
    "boot_pairs",
    "boot_strata",
)


@dataclass(frozen=True)
class PartSums:
    """Of one part of the model: the number of heads of each layer, and a tally for every relation."""

    heads: list[int]
    tallies: list[PartTally]

    @classmethod
    def empty(cls, heads: list[int], relations: Sequence[Relation], bootstrap: int, device: torch.device) -> PartSums:
        return cls(heads, [PartTally(relation, sum(heads), bootstrap, device) for relation in relations])


ChunkSums = dict[str, tuple[list[int], list[dict[str, np.ndarray]]]]
"""What a worker sends back: by part the heads of its layers, and the arrays of every tally."""


@dataclass(frozen=True)
class Pass:
    """What a pass over windows needs besides them. Model and relations are sent as what they are made from."""

    loaded: LoadedModel
    relations: Sequence[Relation]
    bootstrap: int
    seed: int
    advance: Callable[[int], None] | None  # called with the number of windows of every batch, in this process only

    @cached_property
    def wanted(self) -> Bool[np.ndarray, " V"]:
        """Tokens that are in some relation."""
        return torch.stack([relation.index >= 0 for relation in self.relations]).any(0).cpu().numpy()


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
) -> dict[str, PartSums]:
    """The sums of each part of the model. Every engine of the same machine gives the same bytes."""
    done, total = 0, len(pieces) if isinstance(pieces, Sized) else None

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress(phase, done, total)

    progress(phase, 0, total)
    parts: dict[str, PartSums] = {}
    here = engine is serial
    common = Pass(loaded, relations, bootstrap, seed, advance if here else None)
    for count, sums in in_shards(engine, tally_chunk, common, chunks(pieces, CHUNK)):
        for name, (heads, tallies) in sums.items():
            if name not in parts:
                parts[name] = PartSums.empty(heads, relations, bootstrap, torch.device("cpu"))
            for tally, arrays in zip(parts[name].tallies, tallies, strict=True):
                tally.add(arrays)
        if not here:
            advance(count)
    return parts


def tally_chunk(common: Pass, chunk: Sequence[Window]) -> tuple[int, ChunkSums]:
    """The number of windows, and their sums."""
    loaded, bootstrap = common.loaded, common.bootstrap
    parts: dict[str, PartSums] = {}
    held: dict[str, list[list[tuple[Tensor, Tensor]]]] = {}
    owners: list[int] = []
    for batch in batches([window.only(common.wanted) for window in chunk]):
        tokens, mask = padded(batch, loaded)
        for part in attention_of(loaded.model, tokens, mask):
            if part.name not in parts:
                heads = [layer.shape[1] for layer in part.weights]
                parts[part.name] = PartSums.empty(heads, common.relations, bootstrap, loaded.device)
            rows = held.setdefault(part.name, [[] for _ in common.relations])
            for number, window in enumerate(batch):
                weights, query, key, allowed = pairs_of(part, number, window, loaded)
                for tally, row in zip(parts[part.name].tallies, rows, strict=True):
                    row.append(tally.window(weights, query, key, allowed))
        owners += [window.document for window in batch]
        if common.advance is not None:
            common.advance(len(batch))
    if bootstrap:
        times = document_resamples(owners, bootstrap, common.seed).to(loaded.device)
        for name, rows in held.items():
            for tally, row in zip(parts[name].tallies, rows, strict=True):
                tally.resample(times, torch.stack([sums for sums, _ in row]), torch.stack([pairs for _, pairs in row]))
    return len(chunk), {name: (part.heads, [tally.arrays() for tally in part.tallies]) for name, part in parts.items()}


def document_resamples(owners: Sequence[int], bootstrap: int, seed: int) -> Float[Tensor, "R n"]:
    """How often each resample draws the document of each window."""
    drawn = {
        document: generator(seed, Stream.BOOTSTRAP_DOCUMENTS, document).poisson(1, bootstrap)
        for document in set(owners)
    }
    return torch.as_tensor(np.stack([drawn[document] for document in owners], 1), dtype=torch.float64)


def pairs_of(
    part: AttentionPart, number: int, window: Window, loaded: LoadedModel
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Debiased weights (all heads) between the whole words of a window, their tokens, and which pairs count.

    A position does not pair with itself; in a causal part only with those before it. A decoder reads each word one
    place later.
    """
    length, device = len(window.tokens), loaded.device
    # copies: the arrays that Ray sends are read-only
    tokens, places = torch.tensor(window.tokens, device=device), torch.tensor(window.places, device=device)
    shift = int(getattr(loaded.model.config, "is_encoder_decoder", False))
    query = key = places
    if part.name in ("decoder", "cross"):
        query = (places + shift)[places + shift < length]
    if part.name == "decoder":
        key = query
    shown_query = tokens[query - shift] if part.name in ("decoder", "cross") else tokens[query]
    shown_key = tokens[key - shift] if part.name == "decoder" else tokens[key]
    weights = torch.cat([layer[number][:, query[:, None], key] for layer in part.weights])
    if part.causal:
        weights = weights * ((query + 1).to(weights.dtype) / DEBIAS)[None, :, None]
        return weights, shown_query, shown_key, query[:, None] > key
    # the same place of the text is no pair, in cross attention neither
    own = (query - shift)[:, None] == key if part.name == "cross" else query[:, None] == key
    return weights * (length / DEBIAS), shown_query, shown_key, ~own
