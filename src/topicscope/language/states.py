"""Where in a model are topics? Its hidden states, layer by layer: cosines by topic, and the topics of documents.

measure = StateProbe(assignments, pairs, topics, measurement, originals(texts))
tally = measure.started(loaded, windows)
tally_attention(loaded, windows, relations, states=tally); measure.rows(loaded, tally, progress)

States at the positions of words are summed in the pass that reads attention; nothing grows with the documents. These
are drawn into two halves, copies of a text into the same one. A pair is a position in each half, so a shared context
makes no two states alike. Then sums of states by word, layer and half are enough for every mean over pairs: the sum
over the pairs of word w here and word v there is S_w . S_v. States are treated in three ways before they are summed
(TREATMENTS). Inside a chunk of windows sums have the precision of the model; across chunks they are float64.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.functional import normalize

from topicscope.ground import Progress, Stream, generator
from topicscope.language.assignment import Assignment, LabelWords
from topicscope.language.configs import Measurement
from topicscope.language.forward import States, outputs_of, padded
from topicscope.language.models import LoadedModel
from topicscope.language.probe_rows import (
    DOCUMENT_BYTES,
    HALVES,
    MOST_DOCUMENTS,
    MOST_WORDS,
    SPOTS,
    TREATMENTS,
    WORD_BYTES,
    CooccurringMean,
    LabelRow,
    MixtureScore,
    PairContrast,
    StateRow,
)
from topicscope.language.topics import Topics
from topicscope.language.vocabulary import Window, batches
from topicscope.measure import (
    FEWEST,
    FOLDS,
    ClassScores,
    Effect,
    Membership,
    Scores,
    chosen_inside,
    classified,
    direct_scores,
    draws,
    embedding_effect,
    folded_in,
    frequency_bins,
    pair_sums,
    ridge_scores,
    shuffled_means,
    stratified_folds,
)

if TYPE_CHECKING:
    from topicscope.language.attention import PairRelation

TOP = 3  # directions of most variance that are removed
READ_FIRST = 8  # windows that means and directions are taken from
NEGLIGIBLE = 1e-12  # variance of a direction, as a share of the largest: below it is rounding

Arrays = dict[str, Any]


@dataclass(frozen=True)
class StatePlan:
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
        sums, counts = self.sums[part][layer, TREATMENTS.index(treatment)], self.counts[part]
        here, there = (sums[half][row] / counts[half][row][:, None] for half in range(HALVES))
        return here, there

    def rows_of(self, part: str, token: Int[np.ndarray, "*S"]) -> Int[np.ndarray, "*S"]:
        """The row of each token in the sums; -1 if it is not summed or only one half of the documents has it."""
        row = np.full(self.plan.vocabulary_size, -1)
        usable = np.flatnonzero((self.counts[part] > 0).all(0))
        row[self.plan.token[usable]] = usable
        return row[token]


Originals = Int[np.ndarray, " D"]


def originals(texts: Sequence[str]) -> Originals:
    """The number of the first text with the same words, for each text; white space does not count."""
    first: dict[bytes, int] = {}
    digests = (
        blake2b(" ".join(text.split()).encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts
    )
    return np.array([first.setdefault(digest, number) for number, digest in enumerate(digests)], dtype=np.int64)


def drawn_halves(of: Originals, seed: int) -> Int[np.ndarray, " D"]:
    """A half for every text, drawn: a corpus may be in an order, such as two sources in turn."""
    texts, which = np.unique(of, return_inverse=True)
    return (generator(seed, Stream.STATE_HALVES).permutation(len(texts)) % HALVES)[which]


def once(documents: Sequence[int], of: Originals) -> list[int]:
    """The documents that remain if each text counts once: its first copy."""
    return sorted({int(of[number]): number for number in reversed(documents)}.values())


def copies_note(of: Originals) -> str:
    copies = len(of) - len(np.unique(of))
    return (
        f"{copies:,} of the {len(of):,} documents have the text of another: where the topics or labels of documents "
        "are predicted each text counts once, and no states are compared between copies"
        if copies
        else ""
    )


SHUFFLES = 5  # of mixtures among documents

Tokens = Int[np.ndarray, " n"]
Mixture = Float[np.ndarray, " K"]


@dataclass(frozen=True)
class Targets:
    documents: list[int]
    shares: Float[np.ndarray, "D K"]
    bag_of_words: Scores
    half_document: Scores | None  # of labels None: no topic model infers them
    orders: list[Int[np.ndarray, " D"]]  # of the shuffles


def mixture_of(
    topics: Topics | LabelWords | Assignment, labels: Sequence[str | None] = ()
) -> Callable[[int, Tokens], Mixture | None]:
    """From a document's number and the tokens of its words to its topics; None if no topic has any of the words.

    Fitted topics: the likeliest mixture (`folded_in`). Given lists of words: the shares of the topics among the words
    that are listed; a word of several topics is shared out equally. A label is the whole mixture of its document.
    """
    if isinstance(topics, LabelWords):
        return lambda number, _: topics.mixture(labels[number])
    size = int(topics.token.max()) + 1
    index = np.full(size, -1)
    index[topics.token] = np.arange(len(topics.token))
    if isinstance(topics, Topics):
        table = topics.probability
    else:
        members = topics.membership
        table = np.asarray((members.matrix() / np.maximum(members.topics_of_word, 1)[:, None]).todense()).T

    def mixture(_: int, tokens: Tokens) -> Mixture | None:
        known = index[tokens[tokens < size]]
        counts = np.bincount(known[known >= 0], minlength=len(topics.token)).astype(float)
        if not (counts @ table.T).any():
            return None
        shares = folded_in(table, counts) if isinstance(topics, Topics) else table @ counts
        return shares / shares.sum()

    return mixture


def targets_of(
    topics: Topics | LabelWords | Assignment,
    documents: Mapping[int, Tokens],
    seed: int,
    labels: Sequence[str | None] = (),
) -> Targets | None:
    """The targets, or None if too few documents have a mixture. A label is the whole mixture of its document."""
    half, mixture = None, mixture_of(topics, labels)
    found = {n: shares for n in sorted(documents) if (shares := mixture(n, documents[n])) is not None}
    if len(found) < FEWEST:
        return None
    shares = np.stack(list(found.values()))
    if not isinstance(topics, LabelWords):
        # every second of the words that have topics, the first among them, so that no half is empty
        halves = [mixture(n, documents[n][np.isin(documents[n], topics.token)][::2]) for n in found]
        even = np.full(shares.shape[1], 1 / shares.shape[1])
        half = direct_scores(np.stack([even if one is None else one for one in halves]), shares, seed=seed)
    (bag,) = ridge_scores(bags_of_words([documents[number] for number in found]), shares, seed=seed)
    orders = [generator(seed, Stream.SHUFFLED_MIXTURES, i).permutation(len(found)) for i in range(SHUFFLES)]
    return Targets(list(found), shares, bag, half, orders)


def bags_of_words(documents: Sequence[Tokens]) -> Float[np.ndarray, "D V"]:
    words, place = np.unique(np.concatenate(documents), return_inverse=True)
    ends = np.cumsum([len(tokens) for tokens in documents])[:-1]
    return np.log1p(np.stack([np.bincount(some, minlength=len(words)) for some in np.split(place, ends)]))


@dataclass(frozen=True)
class LabelTargets:
    documents: list[int]
    truth: Int[np.ndarray, " D"]
    folds: Int[np.ndarray, " D"]
    bag_of_words: ClassScores


def label_targets(
    labels: Sequence[str | None], documents: Mapping[int, Tokens], seed: int, notes: list[str]
) -> LabelTargets | None:
    """A label of fewer documents than folds cannot be in all folds: it is left out, and `notes` say so."""
    known = {n: label for n in sorted(documents) if (label := labels[n]) is not None}
    counts = Counter(known.values())
    number = {label: k for k, label in enumerate(sorted(label for label in counts if counts[label] >= FOLDS))}
    rare = len(counts) - len(number)
    if len(number) < 2:
        notes.append(
            f"labels from hidden states: fewer than two labels have {FOLDS} of the {len(known)} documents that are "
            "probed and have a label, so none is guessed; give more documents"
        )
        return None
    if rare:
        few = f"{rare} labels with fewer than {FOLDS} of the {len(known)} documents"
        notes.append(f"labels from hidden states: {few} are left out")
    mine = [n for n, label in known.items() if label in number]
    truth = np.array([number[known[n]] for n in mine])
    folds = stratified_folds(truth, seed)
    return LabelTargets(mine, truth, folds, classified(bags_of_words([documents[n] for n in mine]), truth, folds))


@dataclass
class StateProbe:
    assignments: Sequence[Assignment]
    pairs: Mapping[int, PairRelation]
    topics: Topics | LabelWords | Assignment
    measurement: Measurement
    originals: Originals
    notes: list[str] = field(default_factory=list)
    targets: Targets | None = None
    labels: Sequence[str | None] = ()
    classes: LabelTargets | None = None

    def started(self, loaded: LoadedModel, pieces: Iterable[Window]) -> StateTally:
        """An empty tally: which words and how many documents fit into memory, and the mean state of every layer."""
        means, directions = read_first(loaded, pieces)
        numbers = sum(mean.size for mean in means.values())  # layers x dimensions
        words = min(MOST_WORDS, WORD_BYTES // max(1, 8 * HALVES * len(TREATMENTS) * numbers))
        most = max(FEWEST, min(MOST_DOCUMENTS, DOCUMENT_BYTES // max(1, (8 + 4 * SPOTS) * numbers)))
        few = f"hidden states: topics of documents are predicted for the first {most:,} documents"
        none = "hidden states: this model returns none for each position, so they are not measured"
        notes = [none if not means else "", few if len(self.originals) > most else "", copies_note(self.originals)]
        self.notes += filter(None, notes)
        token, halves = self.frequent_words(max(2, words)), drawn_halves(self.originals, self.measurement.seed)
        return StateTally(StatePlan(token, len(loaded.tokenizer), most, halves, means, directions))

    def frequent_words(self, most: int) -> Int[np.ndarray, " W"]:
        """Tokens of the words of all topics, or the most frequent ones; then the co-occurring words that have room."""
        token, first = np.unique(np.concatenate([a.token for a in self.assignments]), return_index=True)
        frequency = np.concatenate([a.frequency for a in self.assignments])[first]
        if len(token) > most:
            self.notes.append(
                f"hidden states: the {most:,} most frequent of {len(token):,} words of topics are compared"
            )
            token = token[np.sort(np.argsort(-frequency, kind="stable")[:most])]
        paired = [relation.token[relation.pairs].ravel() for relation in self.pairs.values()]
        others = np.setdiff1d(np.concatenate([token, *paired]), token)
        return np.concatenate([token, others[: most - len(token)]])

    def rows(self, loaded: LoadedModel, tally: StateTally, progress: Progress) -> Iterator[StateRow]:
        layers, phase = tally.layers, f"hidden states of {loaded.name} ({loaded.variant})"

        def shown(done: int) -> None:
            progress(phase, done, 2 * len(layers))

        scores = dict(self.mixtures(loaded, tally, shown))
        for done, (part, layer) in enumerate(layers, start=len(layers)):
            shown(done)
            for number, assignment in enumerate(self.assignments):
                rows = tally.rows_of(part, assignment.token)
                kept = np.flatnonzero(rows >= 0)
                members = assignment.membership.among(kept)
                bins = frequency_bins(assignment.frequency)[kept] if self.measurement.matched and len(kept) else None
                effects: dict[str, Effect | None] = dict.fromkeys(TREATMENTS)
                for name in TREATMENTS if len(kept) else ():
                    states = tally.word_means(part, layer, name, rows[kept])
                    # equal frequencies cost as much as all the rest, and are compared for the states as they are
                    effects[name] = self.effect(states, members, bins if name == "raw" else None)
                yield StateRow(
                    model=loaded.name,
                    variant=loaded.variant,
                    threshold=assignment.threshold,
                    topics_per_word=assignment.topics_per_word,
                    part=part,
                    layer=layer,
                    words=len(kept),
                    effects=effects,
                    cooccurring=dict(self.cooccurring(tally, part, layer, self.pairs.get(number), effects)),
                    mixture=scores.get((part, layer)),
                )

    def effect(
        self,
        states: tuple[Float[np.ndarray, "W d"], Float[np.ndarray, "W d"]],
        members: Membership,
        bins: Int[np.ndarray, " W"] | None,
    ) -> Effect | None:
        """The effect with a bootstrap over topics and shuffled topics; with `bins` also at equal word frequencies."""
        settings, (here, there) = self.measurement, states
        if not (np.isfinite(here).all() and np.isfinite(there).all()):
            return None
        sums, null = pair_sums(here, members, bins, partners=there), None
        shuffles = settings.attention_shuffles  # not all of them: there are many layers
        if shuffles and sums.same_pairs.any() and sums.between_pairs.any():
            null = shuffled_means(here, members, shuffles, settings.seed, partners=there)
        return embedding_effect(
            [sums], resamples=settings.bootstrap, seed=settings.seed, null=null, matched=bins is not None
        )

    def cooccurring(
        self,
        tally: StateTally,
        part: str,
        layer: int,
        relation: PairRelation | None,
        effects: Mapping[str, Effect | None],
    ) -> Iterator[tuple[str, CooccurringMean]]:
        rows = np.empty((0, 2), int) if relation is None else tally.rows_of(part, relation.token[relation.pairs])
        rows = rows[(rows >= 0).all(1)]
        if not len(rows):
            return
        rng = generator(self.measurement.seed, Stream.BOOTSTRAP_STATE_PAIRS)
        times = draws(rng, len(rows), self.measurement.bootstrap)
        for name in TREATMENTS:
            (first, first_there), (second, second_there) = (
                tally.word_means(part, layer, name, side) for side in rows.T
            )
            cosines = ((first * second_there).sum(1) + (second * first_there).sum(1)) / 2
            if np.isfinite(cosines).all():
                mean = float(cosines.mean())
                of = PairContrast.of(effects[name], mean, times @ cosines / len(rows), len(rows))
                yield name, CooccurringMean(mean, of.interval, of.pairs, of.margin_interval)

    def mixtures(
        self, loaded: LoadedModel, tally: StateTally, done: Callable[[int], None]
    ) -> Iterator[tuple[tuple[str, int], MixtureScore]]:
        """Scores by part and layer. Trained and random weights have the same targets: they read the same words."""
        done(0)
        if self.targets is None and tally.layers:
            self.targets = targets_of(self.topics, self.tokens(tally), self.measurement.seed, self.labels)
            if self.targets is None:
                self.notes.append(
                    f"hidden states: fewer than {FEWEST} documents have words of topics, too few to predict mixtures; "
                    "give more documents"
                )
        for number, (part, layer) in enumerate(tally.layers if self.targets else (), start=1):
            yield (part, layer), self.mixture(tally, part, layer, positions=loaded.variant == "trained")
            done(number)

    def mixture(self, tally: StateTally, part: str, layer: int, *, positions: bool) -> MixtureScore:
        assert self.targets is not None
        targets, seed = self.targets, self.measurement.seed
        bag, half = targets.bag_of_words, targets.half_document
        resampled = (self.measurement.bootstrap, seed)
        means = tally.document_means(targets.documents, part, layer)
        score, *shuffled = ridge_scores(means, targets.shares, targets.orders, seed=seed)
        chance = [one.r2 for one in shuffled if one.r2 is not None]
        by_position: dict[str, float | None] = {}
        if positions:
            none = np.zeros((SPOTS, means.shape[1]))  # a decoder may not read the only word of a document
            spots = [tally.documents[number].spots for number in targets.documents]
            states = np.stack([of[part][:, layer] if part in of else none for of in spots], 1)
            by_position = {
                f"{spot}/{SPOTS}": ridge_scores(here, targets.shares, seed=seed)[0].r2
                for spot, here in enumerate(states, start=1)
            }
        return MixtureScore(
            mixture_r2=score.r2,
            mixture_interval=score.interval(*resampled),
            bag_of_words_r2=bag.r2,
            bag_of_words_interval=bag.interval(*resampled),
            half_document_r2=half.r2 if half else None,
            half_document_interval=half.interval(*resampled) if half else None,
            shuffled_r2=float(np.mean(chance)) if chance else None,
            documents=len(targets.documents),
            by_position=by_position,
        )

    def label_rows(self, loaded: LoadedModel, tally: StateTally, progress: Progress) -> Iterator[LabelRow]:
        if self.classes is None and self.labels and tally.documents:
            self.classes = label_targets(self.labels, self.tokens(tally), self.measurement.seed, self.notes)
        targets, layers = self.classes, tally.layers
        if targets is None or not layers:
            return
        guesses = []
        for done, (part, layer) in enumerate(layers):
            progress(f"labels from states of {loaded.name} ({loaded.variant})", done, len(layers))
            means = tally.document_means(targets.documents, part, layer)
            guesses.append(classified(means, targets.truth, targets.folds))
        resampled = (self.measurement.bootstrap, self.measurement.seed)
        chosen, taken = chosen_inside(guesses, targets.folds)
        for number, ((part, layer), guess) in enumerate(zip(layers, guesses, strict=True)):
            accuracy, macro_f1 = guess.intervals(*resampled)
            yield LabelRow(
                model=loaded.name,
                variant=loaded.variant,
                part=part,
                layer=layer,
                documents=len(targets.truth),
                classes=int(targets.truth.max()) + 1,
                accuracy=guess.accuracy,
                interval=accuracy,
                macro_f1=guess.macro_f1,
                macro_f1_interval=macro_f1,
                majority=float(np.bincount(targets.truth).max() / len(targets.truth)),
                bag_of_words=targets.bag_of_words.accuracy,
                bag_of_words_interval=targets.bag_of_words.intervals(*resampled)[0],
                bag_of_words_macro_f1=targets.bag_of_words.macro_f1,
                chosen_accuracy=chosen.accuracy,
                chosen_interval=chosen.intervals(*resampled)[0],
                chosen_macro_f1=chosen.macro_f1,
                chosen_folds=int((taken == number).sum()),
            )

    def tokens(self, tally: StateTally) -> dict[int, Tokens]:
        """The words of documents whose states are kept; each text counts once, if possible with a label."""
        numbers = sorted(tally.documents, key=lambda n: (bool(self.labels) and self.labels[n] is None, n))
        return {n: np.concatenate(tally.documents[n].tokens) for n in once(numbers, self.originals)}
