"""Where in a model are topics? Its hidden states, layer by layer: cosines by topic, and the topics of documents.

measure = StateProbe(assignments, pairs, topics, measurement, originals(texts))
tally = measure.started(loaded, windows)
tally_attention(loaded, windows, relations, states=tally); measure.rows(loaded, tally, progress)
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import Progress, Stream, generator
from topicscope.language.assignment import Assignment, LabelWords
from topicscope.language.configs import Measurement
from topicscope.language.documents import Originals, copies_note, drawn_halves, once
from topicscope.language.label_probing import LabelTargets, label_rows, label_targets
from topicscope.language.label_rows import LabelRow
from topicscope.language.mixtures import Targets, mixture_scores, targets_of
from topicscope.language.models import LoadedModel
from topicscope.language.relations import PairRelation
from topicscope.language.state_rows import (
    DOCUMENT_BYTES,
    HALVES,
    MOST_DOCUMENTS,
    MOST_WORDS,
    SPOTS,
    TREATMENTS,
    WORD_BYTES,
    CooccurringMean,
    MixtureScore,
    StateRow,
)
from topicscope.language.states import StatePlan, StateTally, read_first
from topicscope.language.topics import Topics
from topicscope.language.vocabulary import Window
from topicscope.measure import (
    FEWEST,
    Effect,
    Membership,
    embedding_effect,
    frequency_bins,
    interval,
    pair_sums,
    shuffled_means,
)

States = tuple[Float[np.ndarray, "W d"], Float[np.ndarray, "W d"]]  # of words, in both halves of the documents


@dataclass
class StateProbe:
    """What is measured on the hidden states of a model and of its random weights, layer by layer.

    Attributes:
        assignments: Words and their topics.
        pairs: Pairs that stand together, by number of an assignment.
        topics: The topics of documents.
        measurement: Resamples, shuffles and seed.
        originals: Of each document the first with its text.
        notes: What was left out.
        targets: Topic mixtures of the documents, made with the first variant of the model.
        labels: Labels of the documents, where they have some.
        classes: The labels as targets.

    Example:
        See `probe_model`.
    """

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
        if not means:
            self.notes.append("hidden states: this model returns none for each position, so they are not measured")
        words = min(MOST_WORDS, WORD_BYTES // max(1, 8 * HALVES * len(TREATMENTS) * numbers))
        most = max(FEWEST, min(MOST_DOCUMENTS, DOCUMENT_BYTES // max(1, (8 + 4 * SPOTS) * numbers)))
        if len(self.originals) > most:
            self.notes.append(f"hidden states: topics of documents are predicted for the first {most:,} documents")
        if note := copies_note(self.originals):
            self.notes.append(note)
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
        others = np.setdiff1d(np.concatenate([np.empty(0, dtype=token.dtype), *paired]), token)
        return np.concatenate([token, others[: most - len(token)]])

    def rows(self, loaded: LoadedModel, tally: StateTally, progress: Progress) -> list[StateRow]:
        """Every layer of each part at each threshold."""
        layers = [(part, layer) for part, sums in tally.sums.items() for layer in range(len(sums))]
        phase = f"hidden states of {loaded.name} ({loaded.variant})"
        scores = self.mixtures(loaded, tally, layers, progress, phase)
        found = []
        for done, (part, layer) in enumerate(layers):
            progress(phase, len(layers) + done, 2 * len(layers))
            for number, assignment in enumerate(self.assignments):
                rows = rows_of(tally, part, assignment.token)
                kept = np.flatnonzero(rows >= 0)
                members = assignment.membership.among(kept)
                bins = frequency_bins(assignment.frequency)[kept] if self.measurement.matched and len(kept) else None
                effects: dict[str, Effect | None] = dict.fromkeys(TREATMENTS)
                for name in TREATMENTS if len(kept) else ():
                    states = mean_states(tally, part, layer, name, rows[kept])
                    # equal frequencies cost as much as all the rest, and are compared for the states as they are
                    effects[name] = self.effect(states, members, bins if name == "raw" else None)
                found.append(
                    StateRow(
                        model=loaded.name,
                        variant=loaded.variant,
                        threshold=assignment.threshold,
                        topics_per_word=assignment.topics_per_word,
                        part=part,
                        layer=layer,
                        words=len(kept),
                        effects=effects,
                        cooccurring=self.cooccurring(tally, part, layer, number, effects),
                        mixture=scores.get((part, layer)),
                    )
                )
        return found

    def effect(self, states: States, members: Membership, bins: Int[np.ndarray, " W"] | None) -> Effect | None:
        """Bootstrap over topics; topics shuffled among words; with `bins` also at equal word frequencies."""
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
        self, tally: StateTally, part: str, layer: int, number: int, effects: Mapping[str, Effect | None]
    ) -> dict[str, CooccurringMean]:
        """The pairs of words that stand together most often; bootstrap over pairs, of the margin over topics too."""
        if number not in self.pairs:
            return {}
        relation = self.pairs[number]
        rows = rows_of(tally, part, relation.token[relation.pairs])
        rows = rows[(rows >= 0).all(1)]
        if not len(rows):
            return {}
        times = generator(self.measurement.seed, Stream.BOOTSTRAP_STATE_PAIRS).multinomial(
            len(rows), np.full(len(rows), 1 / len(rows)), self.measurement.bootstrap
        )
        means = {}
        for name in TREATMENTS:
            (first, first_there), (second, second_there) = (
                mean_states(tally, part, layer, name, side) for side in rows.T
            )
            cosines = ((first * second_there).sum(1) + (second * first_there).sum(1)) / 2
            if np.isfinite(cosines).all():
                resampled, effect = times @ cosines / len(rows), effects[name]
                same = None if effect is None else effect.same_resamples
                margin = None if same is None else interval(same - resampled)
                means[name] = CooccurringMean(float(cosines.mean()), interval(resampled), len(rows), margin)
        return means

    def mixtures(
        self,
        loaded: LoadedModel,
        tally: StateTally,
        layers: Sequence[tuple[str, int]],
        progress: Progress,
        phase: str,
    ) -> dict[tuple[str, int], MixtureScore]:
        """By part and layer. Targets are the same for trained and random weights, which read the same words."""
        progress(phase, 0, 2 * len(layers))
        if self.targets is None and layers:
            self.targets = targets_of(self.topics, self.tokens(tally), self.measurement.seed, self.labels)
            if self.targets is None:
                self.notes.append(
                    f"hidden states: fewer than {FEWEST} documents have words of topics, too few to predict mixtures; "
                    "give more documents"
                )
        scores = {}
        if self.targets is not None:
            for done, (part, layer) in enumerate(layers):
                scores[part, layer] = mixture_scores(
                    self.targets,
                    tally.documents,
                    part,
                    layer,
                    resamples=self.measurement.bootstrap,
                    seed=self.measurement.seed,
                    positions=loaded.variant == "trained",
                )
                progress(phase, done + 1, 2 * len(layers))
        return scores

    def label_rows(self, loaded: LoadedModel, tally: StateTally, progress: Progress) -> list[LabelRow]:
        """The label of a document from its states, every layer; nothing where documents have no labels."""
        if self.classes is None and self.labels and tally.documents:
            self.classes, note = label_targets(self.labels, self.tokens(tally), self.measurement.seed)
            self.notes += [note] if note else []
        return label_rows(self.classes, loaded, tally, self.measurement, progress) if self.classes else []

    def tokens(self, tally: StateTally) -> dict[int, Int[np.ndarray, " n"]]:
        """The words of documents whose states are kept, each text once: its first copy, or the first with a label."""
        numbers = sorted(tally.documents, key=lambda n: (bool(self.labels) and self.labels[n] is None, n))
        return {n: np.concatenate(tally.documents[n].tokens) for n in once(numbers, self.originals)}


def mean_states(tally: StateTally, part: str, layer: int, treatment: str, row: Int[np.ndarray, " W"]) -> States:
    """The mean states of some words of the plan."""
    sums, counts = tally.sums[part][layer, TREATMENTS.index(treatment)], tally.counts[part]
    here, there = (sums[half][row] / counts[half][row][:, None] for half in range(HALVES))
    return here, there


def rows_of(tally: StateTally, part: str, token: Int[np.ndarray, "*S"]) -> Int[np.ndarray, "*S"]:
    """The row of each token in the sums; -1 of those that are not summed or that only one half of the documents has."""
    row = np.full(tally.plan.vocabulary_size, -1)
    usable = np.flatnonzero((tally.counts[part] > 0).all(0))
    row[tally.plan.token[usable]] = usable
    return row[token]
