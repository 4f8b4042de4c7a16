"""Which heads carry topics: every head against shuffled topics, corrected for how many heads there are.

With as many heads as a model has, one of them is always far out. So a shuffle counts against a head where some head
is as far out after it. All parts of a model see the same shuffles.
"""

from collections.abc import Mapping

import numpy as np
from jaxtyping import Float

from topicscope.language.attention import attention_effect, shuffled_attention
from topicscope.language.attention_tallies import PartTally
from topicscope.language.controls import POSITION_PAIRS
from topicscope.language.probe_rows import HeadRow
from topicscope.language.relations import DIFFERENT, SAME_TOPIC
from topicscope.measure import corrected_p

LOOKED_AT = 0.001  # mean weight at the topics' words below which a head does not look at them; without preference .01
TOO_FEW = "too few pairs"
ELSEWHERE = "does not look at these words"


def remarks(tally: PartTally) -> list[str]:
    """Of each head why it cannot be judged; '' where it can."""
    groups = (tally.relation.relations, tally.relation.strata)
    pairs, sums = tally.pairs.numpy().reshape(groups).sum(1), tally.sums.numpy().reshape(*groups, -1).sum(1)
    weight = (sums[SAME_TOPIC] + sums[DIFFERENT]) / max(1.0, pairs[SAME_TOPIC] + pairs[DIFFERENT])
    few = min(pairs[SAME_TOPIC], pairs[DIFFERENT]) < POSITION_PAIRS
    return [TOO_FEW if few else ELSEWHERE if mean < LOOKED_AT else "" for mean in weight]


@np.errstate(invalid="ignore", divide="ignore")
def differences(tally: PartTally) -> tuple[Float[np.ndarray, " H"], Float[np.ndarray, "S H"]]:
    """Of all heads, and the same after each shuffle."""
    groups = (tally.relation.relations, tally.relation.strata)
    pairs, sums = tally.pairs.numpy().reshape(groups).sum(1), tally.sums.numpy().reshape(*groups, -1).sum(1)
    found = sums[SAME_TOPIC] / pairs[SAME_TOPIC] - sums[DIFFERENT] / pairs[DIFFERENT]
    heads = [shuffled_attention(tally, [head]) for head in range(len(found))]
    return found, np.stack([same - different for same, different in heads], 1)


def corrected(tallies: Mapping[str, PartTally]) -> dict[str, list[float | None]]:
    """By part: p of each head, corrected for all heads of the model that can be judged; None for the others."""
    judged = {name: np.array([not remark for remark in remarks(tally)]) for name, tally in tallies.items()}
    scores = [differences(tally) for tally in tallies.values()]
    among = np.concatenate(list(judged.values()))
    p = np.full(len(among), np.nan)
    if among.any() and all(len(shuffled) for _, shuffled in scores):
        found, shuffled = np.concatenate([one for one, _ in scores]), np.concatenate([two for _, two in scores], 1)
        p[among] = corrected_p(found[among], shuffled[:, among])
    parts = np.split(p, np.cumsum([len(which) for which in judged.values()])[:-1])
    return {
        name: [float(one) if np.isfinite(one) else None for one in part]
        for name, part in zip(tallies, parts, strict=True)
    }


def head_rows(
    tallies: Mapping[str, PartTally], model: str, threshold: float | None, topics_per_word: str
) -> list[HeadRow]:
    """Every head of every part, the largest difference first; heads without pairs are left out."""
    p, rows = corrected(tallies), []
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
                        corrected_p=p[part][number],
                        remark=remark,
                    )
                )
    return sorted(rows, key=lambda one: (bool(one.remark), -one.effect.difference))
