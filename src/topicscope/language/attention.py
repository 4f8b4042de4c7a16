"""Attention between words by their relation, debiased, for every layer and head, with bootstrap and shuffled topics.

A weight is multiplied by the number of positions that its query can attend to and divided by 100, so that the mean over
any text is .01. A relation gives a code to every pair of positions. Documents are cut into windows. Their sums go into
tables whose size does not depend on the number of documents. The bootstrap over documents is Poisson's: document i
counts n_i times, n_i drawn once for each resample.
"""

from collections.abc import Callable, Iterable, Sequence, Sized
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import torch
from jaxtyping import Bool, Float
from torch import Tensor

from topicscope.ground import Engine, Progress, Stream, generator, serial, silent
from topicscope.language.counting import in_shards
from topicscope.language.models import LoadedModel, attention_of, padded
from topicscope.language.relations import CPU, DIFFERENT, SAME_TOPIC, SAME_WORD, Relation, TopicRelation
from topicscope.language.vocabulary import Window, batches, chunks
from topicscope.measure import Effect, effect

DEBIAS = 100
CHUNK = 128  # windows that are sorted by length and bootstrapped together, and by one worker where there are several


class PartTally:
    """Sums over pairs of positions for one part of the model and one relation, for all its heads.

    `heads` are the numbers of heads of the layers.
    """

    def __init__(self, relation: Relation, heads: Sequence[int], bootstrap: int, device: torch.device = CPU) -> None:
        self.relation, self.heads = relation, heads
        self.windows: list[tuple[Tensor, Tensor]] = []  # sums and numbers of pairs of each, for the bootstrap
        groups, all_heads = relation.relations * relation.strata, sum(heads)

        def zeros(*shape: int) -> Tensor:
            return torch.zeros(*shape, dtype=torch.float64, device=device)

        self.sums, self.pairs = zeros(groups, all_heads), zeros(groups)
        # same topic, mean over heads
        self.null_sums, self.null_pairs = zeros(relation.shuffles), zeros(relation.shuffles)
        # different words, mean over heads
        self.other_sums, self.other_pairs = zeros(1), zeros(1)
        # resampled sums: by relation for every head, and by stratum for the mean over heads
        self.boot_sums, self.boot_pairs = zeros(bootstrap, relation.relations, all_heads), zeros(bootstrap, groups)
        self.boot_strata = zeros(bootstrap, groups)

    def arrays(self) -> dict[str, np.ndarray]:
        return {name: table.cpu().numpy() for name, table in vars(self).items() if isinstance(table, Tensor)}

    def add(self, arrays: dict[str, np.ndarray]) -> None:
        """Adds the sums of other windows. Only a tally on the CPU can take them."""
        for name, array in arrays.items():
            getattr(self, name).numpy()[...] += array

    def window(self, weights: Float[Tensor, "H Q K"], query: Tensor, key: Tensor, allowed: Tensor) -> None:
        relation, groups = self.relation, len(self.sums)
        i, j = relation.index[query], relation.index[key]
        rows, columns = (torch.nonzero(words >= 0)[:, 0] for words in (i, j))  # most words are in no topic
        flat = weights[:, rows][:, :, columns].flatten(1)
        i, j, allowed = i[rows], j[columns], allowed[rows][:, columns]
        codes = relation.codes(i, j)
        codes = torch.where(allowed & (codes >= 0), codes, groups).flatten()
        sums = flat.new_zeros(groups + 1, len(flat)).index_add_(0, codes, flat.T)[:-1].double()
        pairs = torch.bincount(codes, minlength=groups + 1)[:-1].double()
        self.sums += sums
        self.pairs += pairs
        self.windows.append((sums, pairs))
        if isinstance(relation, TopicRelation) and relation.shuffles:
            same, other = (side.flatten(-2) for side in relation.shuffled(i, j, allowed))
            mean = flat.mean(0)
            self.null_sums += (same.to(mean.dtype) @ mean).double()
            self.null_pairs += same.sum(1)
            self.other_sums += mean[other].sum().double()
            self.other_pairs += other.sum().double()

    def resample(self, times: Float[Tensor, "R n"]) -> None:
        """`times`: how often each resample draws each window."""
        sums, pairs = (torch.stack(side) for side in zip(*self.windows, strict=True))  # n x G x H, n x G
        n, _, heads = sums.shape
        relations = sums.view(n, self.relation.relations, -1, heads).sum(2)
        self.boot_sums += (times @ relations.view(n, -1)).view(len(times), -1, heads)
        self.boot_pairs += times @ pairs
        self.boot_strata += times @ sums.mean(2)


Parts = dict[str, list[PartTally]]  # by part of the model ('encoder', 'decoder', 'cross'): a tally for every relation


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
) -> Parts:
    """The sums of each part of the model. Every engine of the same machine gives the same bytes."""
    done, total = 0, len(pieces) if isinstance(pieces, Sized) else None

    def advance(count: int) -> None:
        nonlocal done
        done += count
        progress(phase, done, total)

    advance(0)
    parts: Parts = {}
    here = engine is serial
    common = Pass(loaded, relations, bootstrap, seed, advance if here else None)
    for count, sums in in_shards(engine, tally_chunk, common, chunks(pieces, CHUNK)):
        for name, (heads, tables) in sums.items():
            if name not in parts:
                parts[name] = [PartTally(relation, heads, bootstrap) for relation in relations]
            for tally, arrays in zip(parts[name], tables, strict=True):
                tally.add(arrays)
        if not here:
            advance(count)
    return parts


def tally_chunk(
    common: Pass, chunk: Sequence[Window]
) -> tuple[int, dict[str, tuple[Sequence[int], list[dict[str, np.ndarray]]]]]:
    """The number of windows; and by part the heads of its layers, and the arrays of every tally."""
    loaded, owners = common.loaded, []
    parts: Parts = {}
    for batch in batches([window.only(common.wanted) for window in chunk]):
        for name, layers in attention_of(loaded.model, *padded(batch, loaded)).items():
            if name not in parts:
                heads = [layer.shape[1] for layer in layers]
                parts[name] = [PartTally(r, heads, common.bootstrap, loaded.device) for r in common.relations]
            for number, window in enumerate(batch):
                pairs = pairs_of(name, [layer[number] for layer in layers], window, loaded)
                for tally in parts[name]:
                    tally.window(*pairs)
        owners += [window.document for window in batch]
        if common.advance is not None:
            common.advance(len(batch))
    if common.bootstrap:
        times = document_resamples(owners, common.bootstrap, common.seed).to(loaded.device)
        for tallies in parts.values():
            for tally in tallies:
                tally.resample(times)
    return len(chunk), {name: (part[0].heads, [tally.arrays() for tally in part]) for name, part in parts.items()}


def document_resamples(owners: Sequence[int], bootstrap: int, seed: int) -> Float[Tensor, "R n"]:
    """How often each resample draws the document of each window."""
    drawn = {
        document: generator(seed, Stream.BOOTSTRAP_DOCUMENTS, document).poisson(1, bootstrap)
        for document in set(owners)
    }
    return torch.as_tensor(np.stack([drawn[document] for document in owners], 1), dtype=torch.float64)


def pairs_of(
    part: str, layers: Sequence[Float[Tensor, "H Q K"]], window: Window, loaded: LoadedModel
) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    """Debiased weights (all heads) between the whole words of a window, their tokens, and which pairs count.

    A position does not pair with itself; in a decoder only with those before it. The decoder of an encoder-decoder
    reads each word one place later.
    """
    length, device = len(window.tokens), loaded.device
    # copies: the arrays that Ray sends are read-only
    tokens, places = torch.tensor(window.tokens, device=device), torch.tensor(window.places, device=device)
    shift = int(loaded.model.config.is_encoder_decoder)
    later = places[places + shift < length] + shift
    query, query_shift = (places, 0) if part == "encoder" else (later, shift)
    key, key_shift = (later, shift) if part == "decoder" else (places, 0)
    weights = torch.cat([layer[:, query[:, None], key] for layer in layers])
    if part == "decoder":
        weights, allowed = weights * ((query + 1).to(weights.dtype) / DEBIAS)[:, None], query[:, None] > key
    else:  # the same place of the text is no pair, in cross attention neither
        weights, allowed = weights * (length / DEBIAS), (query - query_shift)[:, None] != key
    return weights, tokens[query - query_shift], tokens[key - key_shift], allowed


@np.errstate(invalid="ignore", divide="ignore")
def attention_effect(tally: PartTally, heads: Sequence[int] | None = None, *, matched: bool = False) -> Effect | None:
    """Attention to words of the same topic against attention to others. Bootstrap over documents.

    Of the mean over all heads, or over some of them (then without the controls).
    """
    shape, chosen = (-1, tally.relation.relations, tally.relation.strata), slice(None) if heads is None else list(heads)
    pairs, boot_pairs = (table.numpy().reshape(shape).sum(-1) for table in (tally.pairs, tally.boot_pairs))
    sums = tally.sums.numpy().reshape(*shape[1:], -1).sum(1)[:, chosen].mean(1)
    means, resampled = sums / pairs[0], tally.boot_sums.numpy()[:, :, chosen].mean(2) / boot_pairs
    null = equal = None
    if heads is None and len(tally.null_sums):
        same, number = tally.null_sums.numpy(), tally.null_pairs.numpy()
        null = same / number, (float(tally.other_sums) - same) / (float(tally.other_pairs) - number)
    if heads is None and matched:
        left, right, (first, second) = matched_attention(tally)
        equal = (left, right, first - second)
    return effect(
        float(means[SAME_TOPIC]),
        float(means[DIFFERENT]),
        (resampled[:, SAME_TOPIC], resampled[:, DIFFERENT]),
        null=null,
        matched=equal,
        same_word=float(means[SAME_WORD]) if np.isfinite(means[SAME_WORD]) else None,
    )


@np.errstate(invalid="ignore", divide="ignore")
def matched_attention(tally: PartTally) -> tuple[float, float, tuple[np.ndarray, np.ndarray]]:
    """Same-topic and different-topic mean and their resamples, with the word frequencies of the same-topic pairs."""

    def means(sums: Tensor, pairs: Tensor) -> tuple[np.ndarray, np.ndarray]:
        shape = (-1, tally.relation.relations, tally.relation.strata)
        summed, number = sums.numpy().reshape(shape), pairs.numpy().reshape(shape)
        usable = number[:, SAME_TOPIC] * (number[:, DIFFERENT] > 0)
        share = usable / usable.sum(-1, keepdims=True)
        each = summed / np.maximum(number, 1)
        return (share * each[:, SAME_TOPIC]).sum(-1), (share * each[:, DIFFERENT]).sum(-1)

    (same,), (different,) = means(tally.sums.mean(1), tally.pairs)
    return float(same), float(different), means(tally.boot_strata, tally.boot_pairs)
