"""Which label a document has, from the states of a model: a classifier for every layer, against words and majority."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Int

from topicscope.ground import Progress
from topicscope.language.configs import Measurement
from topicscope.language.label_rows import LabelRow
from topicscope.language.mixtures import Tokens, bags_of_words
from topicscope.language.models import LoadedModel
from topicscope.language.states import StateTally
from topicscope.measure import FOLDS, ClassScores, chosen_inside, classified, stratified_folds

FEWEST_LABELS = 2


@dataclass(frozen=True)
class LabelTargets:
    """The documents whose label is guessed, the same for trained and random weights; and the guesses from words."""

    documents: list[int]
    truth: Int[np.ndarray, " D"]
    folds: Int[np.ndarray, " D"]
    bag_of_words: ClassScores

    @property
    def majority(self) -> float:
        return float(np.bincount(self.truth).max() / len(self.truth))


def label_targets(
    labels: Sequence[str | None], documents: Mapping[int, Tokens], seed: int
) -> tuple[LabelTargets | None, str]:
    """Of documents by number, and what was left out: a label of fewer documents than folds cannot be in all of them."""
    known = {n: label for n in sorted(documents) if (label := labels[n]) is not None}
    counts = Counter(known.values())
    names = sorted(label for label, count in counts.items() if count >= FOLDS)
    rare = len(counts) - len(names)
    if len(names) < FEWEST_LABELS:
        return None, (
            f"labels from hidden states: fewer than two labels have {FOLDS} of the {len(known)} documents that are "
            "probed and have a label, so none is guessed; give more documents"
        )
    number = {label: k for k, label in enumerate(names)}
    mine = [n for n, label in known.items() if label in number]
    truth = np.array([number[known[n]] for n in mine])
    folds = stratified_folds(truth, seed)
    bag = classified(bags_of_words([documents[n] for n in mine]), truth, folds).scores
    note = (
        f"labels from hidden states: {rare} labels with fewer than {FOLDS} of the {len(known)} documents are left out"
        if rare
        else ""
    )
    return LabelTargets(mine, truth, folds, bag), note


def label_rows(
    targets: LabelTargets, loaded: LoadedModel, tally: StateTally, measurement: Measurement, progress: Progress
) -> list[LabelRow]:
    """Every layer of each part, from the mean state of a document at its words."""
    layers = [(part, layer) for part, sums in tally.sums.items() for layer in range(len(sums))]
    phase, guesses = f"labels from states of {loaded.name} ({loaded.variant})", []
    for done, (part, layer) in enumerate(layers):
        progress(phase, done, len(layers))
        mine = [tally.documents[n] for n in targets.documents]
        means = np.stack([one.sums[part][layer] / max(1, one.numbers[part]) for one in mine])
        guesses.append(classified(means, targets.truth, targets.folds))
    if not guesses:
        return []
    draws = (measurement.bootstrap, measurement.seed)
    chosen, taken = chosen_inside(guesses, targets.folds)
    rows = []
    for place, ((part, layer), guess) in enumerate(zip(layers, guesses, strict=True)):
        accuracy, macro_f1 = guess.scores.intervals(*draws)
        rows.append(
            LabelRow(
                model=loaded.name,
                variant=loaded.variant,
                part=part,
                layer=layer,
                documents=len(targets.truth),
                classes=int(targets.truth.max()) + 1,
                accuracy=guess.scores.accuracy,
                interval=accuracy,
                macro_f1=guess.scores.macro_f1,
                macro_f1_interval=macro_f1,
                majority=targets.majority,
                bag_of_words=targets.bag_of_words.accuracy,
                bag_of_words_interval=targets.bag_of_words.intervals(*draws)[0],
                bag_of_words_macro_f1=targets.bag_of_words.macro_f1,
                chosen_accuracy=chosen.accuracy,
                chosen_interval=chosen.intervals(*draws)[0],
                chosen_macro_f1=chosen.macro_f1,
                chosen_folds=int((taken == place).sum()),
            )
        )
    return rows
