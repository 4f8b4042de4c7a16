"""Attention between words by their relation, debiased, streamed over documents: every layer and head, with bootstrap and null.

A weight is multiplied by the number of positions that its query can attend to and divided by 100, so that every text averages .01.
Documents are cut into windows; sums go into tables whose size does not depend on how many there are. The bootstrap over documents is
Poisson's: document i counts n_i times, n_i drawn once for each of the resamples.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from topicscope.ground import Engine
from topicscope.language.models import AttentionPart, LoadedModel, attention_of
from topicscope.language.relations import Relation, TopicRelation
from topicscope.language.sharding import in_shards, is_here
from topicscope.language.vocabulary import Vocabulary, encode

DEBIAS = 100
CHUNK = 128
"""Windows that are sorted by length and bootstrapped together, and by one worker where there are several."""

TOKENS = 8192
"""Positions of a batch, padding included."""


@dataclass(frozen=True)
class Window:
    """A stretch of a document, with the model's special tokens; `places` are those of whole words in it."""

    document: int
    tokens: Int[np.ndarray, " N"]
    places: Int[np.ndarray, " P"]


def windows(
    loaded: LoadedModel,
    vocabulary: Vocabulary,
    texts: Iterable[str],
    per_document: int | None,
    length: int | None = None,
) -> Iterator[Window]:
    """Documents cut to the model's length, at most `per_document` pieces of each; a word at a cut is no whole word."""
    before, after = special_tokens(loaded.tokenizer)
    room = min(length or loaded.window, loaded.window) - len(before) - len(after)
    for number, text in enumerate(texts):
        tokens = encode(loaded.tokenizer, [text[: room * 40 * per_document] if per_document else text])[0]
        words = vocabulary.words_at(tokens)
        for start in range(0, len(tokens), room)[: per_document or None]:
            piece = slice(start, start + room)
            places = np.flatnonzero(words[piece] >= 0) + len(before)
            yield Window(number, np.concatenate([before, tokens[piece], after]).astype(np.int64), places)


def special_tokens(tokenizer: object) -> tuple[list[int], list[int]]:
    """What the tokenizer puts before and after a text."""
    bare = tokenizer("a", add_special_tokens=False)["input_ids"]  # type: ignore[operator]
    full = tokenizer("a")["input_ids"]  # type: ignore[operator]
    for start in range(len(full) - len(bare) + 1):
        if full[start : start + len(bare)] == bare:
            return full[:start], full[start + len(bare) :]
    return [], []


class PartTally:
    """Sums over pairs of positions for one part of the model and one relation, of all its heads."""

    def __init__(self, relation: Relation, heads: int, bootstrap: int, device: torch.device) -> None:
        self.relation, self.heads = relation, heads
        groups = relation.relations * relation.strata

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(*shape, dtype=torch.float64, device=device)

        self.sums, self.pairs = zeros(groups, heads), zeros(groups)
        self.null_sums, self.null_pairs = (
            zeros(relation.shuffles),
            zeros(relation.shuffles),
        )  # same topic, mean over heads
        self.other_sums, self.other_pairs = zeros(1), zeros(1)  # different words, mean over heads
        # resampled sums: by relation for every head, and by stratum for the mean over heads
        self.boot_sums, self.boot_pairs = zeros(bootstrap, relation.relations, heads), zeros(bootstrap, groups)
        self.boot_strata = zeros(bootstrap, groups)

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: getattr(self, name).cpu().numpy() for name in SUMS}

    def add(self, arrays: dict[str, np.ndarray]) -> None:
        """What other windows gave. Only a tally on the CPU can take it."""
        for name, array in arrays.items():
            getattr(self, name).numpy()[...] += array

    def window(
        self, weights: Float[Tensor, "H Q K"], query: Tensor, key: Tensor, allowed: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Adds one window; returns its sums and numbers of pairs by group, for the bootstrap."""
        relation, groups = self.relation, len(self.sums)
        rows, columns = (
            torch.nonzero(relation.index[side] >= 0)[:, 0] for side in (query, key)
        )  # most words are in no topic
        weights, query, key, allowed = (
            weights[:, rows][:, :, columns],
            query[rows],
            key[columns],
            allowed[rows][:, columns],
        )
        codes = relation.codes(query, key, allowed).flatten()
        listed = codes >= 0
        codes = torch.where(listed, codes, groups)
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
class Pass:
    """What a pass over windows needs besides them. Packed it is small: model and relations are packed as what they are made from."""

    loaded: LoadedModel
    relations: Sequence[Relation]
    bootstrap: int
    seed: int
    progress: Callable[[int], None] | None

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
    progress: Callable[[int], None] | None = None,
    engine: Engine | None = None,
) -> dict[str, tuple[list[int], list[PartTally]]]:
    """For each part of the model the heads of its layers, and a tally for every relation. The same bytes on every engine of the same machine."""
    found: dict[str, tuple[list[int], list[PartTally]]] = {}
    here = is_here(engine)
    common = Pass(loaded, relations, bootstrap, seed, progress if here else None)
    for windows_done, parts in in_shards(engine, tally_chunk, common, chunks(pieces, CHUNK)):
        for name, (heads, tallies) in parts.items():
            if name not in found:
                found[name] = (
                    heads,
                    [PartTally(relation, sum(heads), bootstrap, torch.device("cpu")) for relation in relations],
                )
            for tally, arrays in zip(found[name][1], tallies, strict=True):
                tally.add(arrays)
        if progress is not None and not here:
            progress(windows_done)
    return found


def tally_chunk(
    common: Pass, chunk: Sequence[Window]
) -> tuple[int, dict[str, tuple[list[int], list[dict[str, np.ndarray]]]]]:
    """The number of windows, and for each part the heads of its layers and the sums for every relation."""
    loaded, relations, bootstrap = common.loaded, common.relations, common.bootstrap
    found: dict[str, tuple[list[int], list[PartTally]]] = {}
    held: dict[str, list[list[tuple[Tensor, Tensor]]]] = {}
    owners: list[int] = []
    for batch in batches([only(window, common.wanted) for window in chunk]):
        tokens, mask = padded(batch, loaded)
        for part in attention_of(loaded, tokens, mask):
            if part.name not in found:
                heads = [layer.shape[1] for layer in part.weights]
                found[part.name] = (
                    heads,
                    [PartTally(relation, sum(heads), bootstrap, loaded.device) for relation in relations],
                )
            rows = held.setdefault(part.name, [[] for _ in relations])
            for number, window in enumerate(batch):
                weights, query, key, allowed = pairs_of(part, number, window, loaded)
                for tally, row in zip(found[part.name][1], rows, strict=True):
                    row.append(tally.window(weights, query, key, allowed))
        owners += [window.document for window in batch]
        if common.progress is not None:
            common.progress(len(batch))
    if bootstrap:
        drawn = {
            document: np.random.default_rng([common.seed, 0xB007, document]).poisson(1, bootstrap)
            for document in set(owners)
        }
        times = torch.as_tensor(
            np.stack([drawn[document] for document in owners], 1), dtype=torch.float64, device=loaded.device
        )
        for name, rows in held.items():
            for tally, row in zip(found[name][1], rows, strict=True):
                tally.resample(times, torch.stack([sums for sums, _ in row]), torch.stack([pairs for _, pairs in row]))
    return len(chunk), {
        name: (heads, [tally.arrays() for tally in tallies]) for name, (heads, tallies) in found.items()
    }


def pairs_of(
    part: AttentionPart, number: int, window: Window, loaded: LoadedModel
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Debiased weights (all heads) between the whole words of a window, their tokens, and which pairs of positions count.

    A position does not pair with itself; in a causal part only with those before it. A decoder reads each word one place later.
    """
    length, device = len(window.tokens), loaded.device
    tokens, places = (
        torch.tensor(window.tokens, device=device),
        torch.tensor(window.places, device=device),
    )  # copies: what Ray hands over is read-only
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


def only(window: Window, wanted: Bool[np.ndarray, " V"]) -> Window:
    """With the places of those words alone that are in some relation."""
    return Window(window.document, window.tokens, window.places[wanted[window.tokens[window.places]]])


def chunks(items: Iterable[Window], size: int) -> Iterator[list[Window]]:
    held: list[Window] = []
    for item in items:
        held.append(item)
        if len(held) == size:
            yield held
            held = []
    if held:
        yield held


def batches(chunk: list[Window]) -> Iterator[list[Window]]:
    """Windows of about the same length, at most TOKENS positions with padding."""
    held: list[Window] = []
    for window in sorted(chunk, key=lambda window: len(window.tokens), reverse=True):
        if held and (len(held) + 1) * len(held[0].tokens) > TOKENS:
            yield held
            held = []
        held.append(window)
    if held:
        yield held


def padded(batch: list[Window], loaded: LoadedModel) -> tuple[Tensor, Tensor]:
    longest = max(len(window.tokens) for window in batch)
    filler = loaded.tokenizer.pad_token_id
    tokens = np.full((len(batch), longest), 0 if filler is None else filler, dtype=np.int64)
    mask = np.zeros((len(batch), longest), dtype=np.int64)
    for row, window in enumerate(batch):
        tokens[row, : len(window.tokens)] = window.tokens
        mask[row, : len(window.tokens)] = 1
    return torch.as_tensor(tokens, device=loaded.device), torch.as_tensor(mask, device=loaded.device)
