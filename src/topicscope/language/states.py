"""Hidden states at the positions of words, summed in the pass that reads attention: nothing grows with the documents.

The documents are drawn into two halves. A pair is a position in a document of one half and a position in a
document of the other, so a shared context makes no two states alike; copies of a text are
in the same half. Then sums of states by word, layer and half are
enough for every mean over pairs: the sum over the pairs of word w here and word v there is S_w . S_v.

States are treated in three ways before they are summed (TREATMENTS). The mean and the directions of most variance that
two of them need come from a few windows that are read beforehand. Inside a chunk of windows sums have the precision of
the model, as those of attention; across chunks they are float64.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from topicscope.language.forward import States, outputs_of, padded
from topicscope.language.models import LoadedModel
from topicscope.language.probe_rows import HALVES, SPOTS, TREATMENTS
from topicscope.language.vocabulary import Window, batches

TOP = 3  # directions of most variance that are removed
READ_FIRST = 8  # windows that means and directions are taken from
NEGLIGIBLE = 1e-12  # variance of a direction, as a share of the largest: below it is rounding

Arrays = dict[str, Any]


@dataclass(frozen=True)
class StatePlan:
    """Which words and how many documents are summed, and what the treatments take away in each part."""

    token: Int[np.ndarray, " W"]
    vocabulary_size: int
    documents: int  # the first of them, whose states are kept one by one
    halves: Int[np.ndarray, " D"]  # of all documents
    means: dict[str, Float[np.ndarray, "L d"]]
    directions: dict[str, Float[np.ndarray, "L t d"]]


def read_first(loaded: LoadedModel, pieces: Iterable[Window]) -> tuple[dict[str, np.ndarray], dict[str, np.ndarray]]:
    """Mean and TOP directions of the states at words, for every layer of each part, from the first few windows."""
    first = list(islice((piece for piece in pieces if len(piece.places)), READ_FIRST))
    gathered: dict[str, list[list[Tensor]]] = {}
    for batch in batches(first) if first else ():
        for name, layers in outputs_of(loaded.model, *padded(batch, loaded), states=True)[1].items():
            where = Positions(batch, name, loaded.model.config.is_encoder_decoder)
            gathered.setdefault(name, []).append([where.of(layer) for layer in layers])
    states = {
        name: [torch.cat(list(layer)).double().cpu().numpy() for layer in zip(*parts, strict=True)]
        for name, parts in gathered.items()
    }
    means = {name: np.stack([layer.mean(0) for layer in layers]) for name, layers in states.items()}
    return means, {name: np.stack([*map(top_directions, layers)]) for name, layers in states.items()}


def top_directions(states: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "t d"]:
    """The TOP directions of most variance; zeros if there are fewer."""
    x = states - states.mean(0)
    if not np.isfinite(x).all():
        return np.zeros((TOP, x.shape[1]))
    squares, axes = np.linalg.eigh(x.T @ x)
    kept = axes.T[::-1][:TOP] * (squares[::-1][:TOP] > NEGLIGIBLE * squares[-1])[:, None]
    return np.concatenate([kept, np.zeros((TOP - len(kept), x.shape[1]))])


class Positions:
    """The whole words of some windows, in order. A `shifted` decoder reads each later, and may miss the last."""

    def __init__(self, batch: Sequence[Window], part: str, shifted: bool) -> None:
        later = int(shifted and part == "decoder")
        kept = [window.places[window.places + later < len(window.tokens)] for window in batch]
        self.counts = np.array([len(places) for places in kept])
        self.row = np.repeat(np.arange(len(batch)), self.counts)
        self.place = np.concatenate(kept) + later
        self.token = np.concatenate([window.tokens[places] for window, places in zip(batch, kept, strict=True)])

    def of(self, layer: Float[Tensor, "B N d"]) -> Float[Tensor, "n d"]:
        row, place = (torch.as_tensor(x, device=layer.device) for x in (self.row, self.place))
        return layer[row, place]

    def spots(self) -> Int[np.ndarray, "B SPOTS"]:
        """For each window the positions after 1/4, 2/4, ... of its words."""
        inside = -(-np.arange(1, SPOTS + 1) * self.counts[:, None] // SPOTS) - 1
        return np.clip(inside + (np.cumsum(self.counts) - self.counts)[:, None], 0, max(0, len(self.row) - 1))


class ChunkStates:
    def __init__(self, plan: StatePlan, device: torch.device) -> None:
        self.plan, self.device = plan, device
        self.index = np.full(plan.vocabulary_size, -1)
        self.index[plan.token] = np.arange(len(plan.token))
        self.parts: dict[str, dict[str, list[Any]]] = defaultdict(lambda: defaultdict(list))
        self.sums: dict[str, Tensor] = {}
        self.windows: list[Window] = []

    def add(self, batch: Sequence[Window], hidden: States, shift: int) -> None:
        for name, layers in hidden.items():
            self._add_part(name, batch, layers, Positions(batch, name, bool(shift)))
        self.windows += batch

    def _add_part(self, name: str, batch: Sequence[Window], layers: Sequence[Tensor], where: Positions) -> None:
        rows = HALVES * len(self.plan.token)
        if name not in self.sums:
            self.sums[name] = layers[0].new_zeros(len(layers), len(TREATMENTS), rows, layers[0].shape[2])
        half = self.plan.halves[[window.document for window in batch]]
        word = self.index[where.token]
        wanted = np.flatnonzero(word >= 0)
        key = half[where.row[wanted]] * len(self.plan.token) + word[wanted]
        row, chosen, keys, spots = (
            torch.as_tensor(x, device=self.device) for x in (where.row, wanted, key, where.spots())
        )
        like = layers[0]
        means, directions = (torch.as_tensor(table[name]).to(like) for table in (self.plan.means, self.plan.directions))
        sums, singles = [], []
        for number, layer in enumerate(layers):
            states = where.of(layer)
            sums.append(like.new_zeros(len(batch), states.shape[1]).index_add_(0, row, states))
            singles.append(states[spots] if len(states) else like.new_zeros(*spots.shape, states.shape[1]))
            treated = treatments(states[chosen], means[number], directions[number])
            for table, directed in zip(self.sums[name][number], treated, strict=True):
                table.index_add_(0, keys, directed)
        batch_arrays = {
            "counts": np.bincount(key, minlength=rows),
            "means": torch.stack(sums, 1),
            "spots": torch.stack(singles, 2),
            "numbers": where.counts,
        }
        for kind, array in batch_arrays.items():
            self.parts[name][kind].append(array)

    def arrays(self) -> Arrays:
        """The sums as a StateTally adds them, and single documents as far as the plan keeps them."""
        rows = [row for row, window in enumerate(self.windows) if window.document < self.plan.documents]
        kept = [self.windows[row] for row in rows]
        parts = {
            name: {
                "sums": self.sums[name].cpu().numpy(),
                "counts": np.sum(part["counts"], 0),
                "means": torch.cat(part["means"]).cpu().numpy()[rows],
                "spots": torch.cat(part["spots"]).cpu().numpy()[rows],
                "numbers": np.concatenate(part["numbers"])[rows],
            }
            for name, part in self.parts.items()
        }
        return {
            "documents": [window.document for window in kept],
            "tokens": [window.tokens[window.places] for window in kept],
            "parts": parts,
        }


def treatments(
    states: Float[Tensor, "n d"], mean: Float[Tensor, " d"], directions: Float[Tensor, "t d"]
) -> Iterator[Float[Tensor, "n d"]]:
    """The states at length 1, in the order of TREATMENTS: their dot products are cosines."""
    yield normalize(states)
    centred = states - mean
    yield normalize(centred)
    yield normalize(centred - (centred @ directions.T) @ directions)


@dataclass
class DocumentStates:
    """One document: its words in order, and by part the sum of the states at words and single states of it."""

    tokens: list[Int[np.ndarray, " n"]] = field(default_factory=list)
    sums: dict[str, Float[np.ndarray, "L d"]] = field(default_factory=dict)
    numbers: dict[str, int] = field(default_factory=dict)
    spots: dict[str, Float[np.ndarray, "SPOTS L d"]] = field(default_factory=dict)


class StateTally:
    def __init__(self, plan: StatePlan) -> None:
        self.plan = plan
        self.sums: dict[str, Float[np.ndarray, "L T 2 W d"]] = {}
        self.counts: dict[str, Int[np.ndarray, "2 W"]] = {}
        self.documents: dict[int, DocumentStates] = {}

    def add(self, arrays: Arrays) -> None:
        for name, part in arrays["parts"].items():
            layers, ways, _, size = part["sums"].shape
            if name not in self.sums:
                self.sums[name] = np.zeros((layers, ways, HALVES, len(self.plan.token), size))
                self.counts[name] = np.zeros((HALVES, len(self.plan.token)), dtype=np.int64)
            self.sums[name] += part["sums"].reshape(self.sums[name].shape)
            self.counts[name] += part["counts"].reshape(self.counts[name].shape)
        for row, number in enumerate(arrays["documents"]):
            document = self.documents.setdefault(number, DocumentStates())
            document.tokens.append(arrays["tokens"][row])
            for name, part in arrays["parts"].items():
                document.sums[name] = document.sums.get(name, 0.0) + part["means"][row].astype(np.float64)
                document.numbers[name] = document.numbers.get(name, 0) + int(part["numbers"][row])
                if part["numbers"][row] and name not in document.spots:
                    # its first window: windows come in order of length, and only the last one is shorter
                    document.spots[name] = part["spots"][row].copy()

    @property
    def layers(self) -> list[tuple[str, int]]:
        return [(part, layer) for part, sums in self.sums.items() for layer in range(len(sums))]

    def document_means(self, documents: Sequence[int], part: str, layer: int) -> Float[np.ndarray, "D d"]:
        mine = [self.documents[number] for number in documents]
        return np.stack([document.sums[part][layer] / max(1, document.numbers[part]) for document in mine])

    def word_means(
        self, part: str, layer: int, treatment: str, row: Int[np.ndarray, " W"]
    ) -> tuple[Float[np.ndarray, "W d"], Float[np.ndarray, "W d"]]:
        """The mean states of words in both halves of the documents."""
        sums, counts = self.sums[part][layer, TREATMENTS.index(treatment)], self.counts[part]
        here, there = (sums[half][row] / counts[half][row][:, None] for half in range(HALVES))
        return here, there

    def rows_of(self, part: str, token: Int[np.ndarray, "*S"]) -> Int[np.ndarray, "*S"]:
        """The row of each token in the sums; -1 if it is not summed or only one half of the documents has it."""
        row = np.full(self.plan.vocabulary_size, -1)
        usable = np.flatnonzero((self.counts[part] > 0).all(0))
        row[self.plan.token[usable]] = usable
        return row[token]
