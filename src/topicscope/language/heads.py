"""Which heads carry topics: every head against shuffled topics, corrected for how many heads there are.

The difference of a head is divided by its spread over the shuffles, so that heads can be compared. A shuffle counts
against a head where the largest of all heads is as large after it: with as many heads as a model has, one of them is
always far out (Westfall and Young's correction). All parts of a model see the same shuffles.
"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from topicscope.language.attention import PartTally, attention_effect, shuffled_attention
from topicscope.language.probe_rows import HeadRow
from topicscope.language.relations import DIFFERENT, SAME_TOPIC

ENOUGH_PAIRS = 100  # of positions with words of one topic
LOOKED_AT = 0.001  # mean weight at the topics' words below which a head does not look at them; without preference .01
TOO_FEW = "too few pairs"
ELSEWHERE = "does not look at these words"


def remarks(tally: PartTally) -> list[str]:
    """Of each head why it cannot be judged; '' where it can."""
    groups = (tally.relation.relations, tally.relation.strata)
    pairs, sums = tally.pairs.numpy().reshape(groups).sum(1), tally.sums.numpy().reshape(*groups, -1).sum(1)
    weight = (sums[SAME_TOPIC] + sums[DIFFERENT]) / max(1.0, pairs[SAME_TOPIC] + pairs[DIFFERENT])
    few = min(pairs[SAME_TOPIC], pairs[DIFFERENT]) < ENOUGH_PAIRS
    return [TOO_FEW if few else ELSEWHERE if mean < LOOKED_AT else "" for mean in weight]


@np.errstate(invalid="ignore", divide="ignore")
def standardised(tally: PartTally) -> tuple[Float[np.ndarray, " H"], Float[np.ndarray, "S H"]]:
    """The differences of all heads, and those of the shuffles, in units of the shuffles' spread; zero where it is."""
    groups = (tally.relation.relations, tally.relation.strata)
    pairs, sums = tally.pairs.numpy().reshape(groups).sum(1), tally.sums.numpy().reshape(*groups, -1).sum(1)
    found = sums[SAME_TOPIC] / pairs[SAME_TOPIC] - sums[DIFFERENT] / pairs[DIFFERENT]
    heads = [shuffled_attention(tally, [head]) for head in range(len(found))]
    null = np.stack([same - different for same, different in heads], 1)
    usable = null[np.isfinite(null).all(1)]  # a shuffle may leave no pairs of one kind
    if not len(usable):
        return np.zeros(len(found)), np.full(null.shape, np.nan)
    middle, spread = usable.mean(0), usable.std(0)
    scale = np.where(spread > 1e-12 * np.abs(found).max(), spread, np.inf)
    return (found - middle) / scale, (null - middle) / scale


def corrected_p(tallies: Mapping[str, PartTally]) -> dict[str, list[float | None]]:
    """By part, of each head: the share of shuffles in which some head of the model stands out as far, itself included.

    None where there are no shuffles, or the head cannot be judged.
    """
    judged = {name: np.array([not remark for remark in remarks(tally)]) for name, tally in tallies.items()}
    nothing: dict[str, list[float | None]] = {name: [None] * len(which) for name, which in judged.items()}
    if not any(which.any() for which in judged.values()) or not all(len(t.null_sums) for t in tallies.values()):
        return nothing
    scores = {name: standardised(tally) for name, tally in tallies.items() if judged[name].any()}
    largest = np.max([null[:, judged[name]].max(1) for name, (_, null) in scores.items()], 0)
    largest = largest[np.isfinite(largest)]
    if not len(largest):
        return nothing
    for name, (found, _) in scores.items():
        p = (1 + (largest[:, None] >= found).sum(0)) / (1 + len(largest))
        nothing[name] = [float(x) if ok else None for x, ok in zip(p, judged[name], strict=True)]
    return nothing


def head_rows(
    tallies: Mapping[str, PartTally], model: str, threshold: float | None, topics_per_word: str
) -> list[HeadRow]:
    """Every head of every part, the largest difference first; heads without pairs are left out."""
    corrected, rows = corrected_p(tallies), []
    for part, tally in tallies.items():
        places = [(layer, head) for layer, count in enumerate(tally.heads) for head in range(count)]
        for number, ((layer, head), remark) in enumerate(zip(places, remarks(tally), strict=True)):
            found = attention_effect(tally, [number], controls=False)
            if found is not None:
                rows.append(
                    HeadRow(
                        model=model,
                        threshold=threshold,
                        topics_per_word=topics_per_word,
                        part=part,
                        layer=layer,
                        head=head,
                        effect=found,
                        corrected_p=corrected[part][number],
                        remark=remark,
                    )
                )
    return sorted(rows, key=lambda one: (bool(one.remark), -one.effect.difference))
