"""What every experiment may measure, built by hand: one Found per id that is reproduced, and ones that just are not.

`GOOD[id]()` is plausible and 'reproduced'. `BAD[id]` has a Found for every clause of the rule that breaks this clause
alone, and `STILL[id]` ones that look worse and must not change the verdict.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from tests.paper import samples_clocks as clocks, samples_law as law, samples_worlds as worlds
from tests.paper.samples_blocks import (
    OWN_WORD,
    block_rows,
    block_runs,
    diagonal_rows,
    diagonal_runs,
    gram_panels,
    no_cross_entropy_diagonals,
    no_diagonals,
    one_cross_entropy_diagonal,
    panels,
    small_diagonal,
    topic_attention,
    value_runs,
    weak_panels,
)
from tests.paper.samples_models import (
    cooccurrence,
    effect,
    probed,
    small_bert,
    small_probed,
    small_word_maps,
    weak_effects,
    weak_ratios,
    weak_small,
    word_map,
    word_maps,
)
from tests.paper.samples_stages import (
    FLAT,
    at,
    by_axis,
    course,
    curves,
    layer_starts,
    norms,
    ramp,
    sandbox_timelines,
    stage_maps,
    stage_settings,
    with_value_late,
)
from tests.paper.samples_theory import THEOREM3, bad_grids, dev_losses, distances, family, grids, no_gain, second
from topicscope.measure import AttentionMeans
from topicscope.paper import EXPERIMENTS, Outcome
from topicscope.paper.matrices import Blocks
from topicscope.paper.two_stage import LR, SCALE

GOOD: dict[str, Callable[[], Any]] = {
    "figure1": gram_panels,
    "figure2": panels,
    "figure3": word_maps,
    "figure4": stage_settings,
    "figure5": layer_starts,
    "figure6": lambda: value_runs(0.0, 0.0, 0.6),
    "figure7": lambda: grids("diagonal"),
    "figure8": lambda: grids("blocks"),
    "figure9": panels,
    "figure10": panels,
    "table1": probed,
    "table2": cooccurrence,
    "table3": block_rows,
    "table4": diagonal_rows,
    "table5": probed,
    "theorem1": family,
    "theorem2": distances,
    "theorem3": lambda: second(7.0, 7.0, others=(7.0, 7.0)),
    "theorem5": second,
    "losses": dev_losses,
    **worlds.GOOD,
    **law.GOOD,
    **clocks.GOOD,
    "pipeline": small_bert,
    "timeline": sandbox_timelines,
    "two-stage": lambda: stage_maps(at(1e-3, 1e-2, "two-stage")),
}


BAD: dict[str, dict[str, Any]] = {
    "figure1": {
        **{f"nothing in panel {i}": gram_panels(i, block_runs(0.0, 0.0, 0.01)) for i in (0, 1, 3)},
        "a diagonal that was there from the start": gram_panels(3, small_diagonal(0.3)),
        "a diagonal that is no higher than the rest": gram_panels(3, small_diagonal(0.04, same=0.6)),
        "one run diverged": gram_panels(1, [*block_runs()[:2], replace(block_runs()[0], diverged=True)]),
    },
    "figure2": weak_panels(),
    "figure3": {
        "one model the other way round": word_maps(0.2, 0.6),
        "one model without difference": word_maps(0.3, 0.3),
        "whole tokens the other way round, pieces not": word_maps(0.2, 0.6, (1, 1, 2) * 3),
        "one model fails and another decides nothing": replace(
            word_maps(), maps=word_maps(0.2, 0.6).maps | {"x": word_map("x", 0.6, 0.2, (1, 2, 2) * 3)}
        ),
        "random weights show as much": small_word_maps(0.6, 0.6),
    },
    "figure4": {
        "interval reaches below 1": with_value_late(),
        "key first": stage_settings(*[norms(40, 0, 50)] * 3),
        "query first": stage_settings(*[norms(40, 50, 0)] * 3),
        "all at once": stage_settings(*[norms(10, 10, 10)] * 3),
        "one key never rises": stage_settings(norms(), norms(), norms() | {"norm_key": np.full(101, 0.1)}),
        "one value never rises": stage_settings(norms(), norms(), norms() | {"norm_value": np.full(101, 0.1)}),
    },
    "figure5": {
        "query of one layer of one run is first": layer_starts(norm_query_3=ramp(0, 15)),
        "key of one layer of one run is first": layer_starts(norm_key_0=ramp(0, 15)),
        "key starts with value": layer_starts(norm_key_2=ramp(0, 20)),
        "a key never rises": layer_starts(norm_key_1=np.full(101, 0.1)),
        "a query never rises": layer_starts(norm_query_1=np.full(101, 0.1)),
        "a value never rises": layer_starts(norm_value_1=np.full(101, 0.1)),
    },
    "figure6": {
        "no diagonal run": value_runs(0.3, -0.1, 0.4),
        "a diagonal that just does not stand out": value_runs(0.25, 0.0, 0.5),
    },
    "figure7": bad_grids("diagonal", alpha=(1.58e4, 1.58e4), beta_low=(1e-4, 1e-2), beta_high=(1.0, 1e9)),
    "figure8": bad_grids("blocks", low=(1.0, 1.0), high=(1e9, 1e9))
    | {
        "one gamma above": grids("blocks", gamma=0.0051),
        "one gamma below": grids("blocks", gamma=-0.0051),
        "the last gamma": grids("blocks", tau=80, gamma=0.0051),
    },
    "figure9": weak_panels(),
    "figure10": weak_panels(),
    "table1": weak_ratios(("cosine", "dot", "attention")) | weak_small(("cosine", "dot", "attention")),
    "table2": {
        "one row below": cooccurrence(0.4, (-0.05, 0.05)),
        "one row whose interval begins at zero": cooccurrence(0.45, (0.0, 0.1)),
        "one row without pairs of a topic": cooccurrence(None, None),
        "one row without interval": cooccurrence(0.45, None),
    },
    "table3": {
        **{f"no difference in row {i}": block_rows(i, topic_attention(0.007, 0.007)) for i in range(5)},
        "the other way round": block_rows(2, topic_attention(0.007, 0.011)),
        "no blocks in one row": block_rows(4, runs=block_runs(0.0, 0.0)),
        "one seed spoils the interval": block_rows(0, [*topic_attention()[:2], AttentionMeans(0.008, 0.001, 0.007)]),
    },
    "table4": {
        "no cross-entropy run is diagonal": no_cross_entropy_diagonals(),
        "no run at all is diagonal": no_diagonals(),
        "topic above different topic in one run": diagonal_rows(3, [AttentionMeans(0.09, 0.003, 0.0026)] * 3),
        "topic equal to different topic": diagonal_rows(0, [AttentionMeans(0.09, 0.0026, 0.0026)] * 3),
        "own word below different topic": diagonal_rows(1, [AttentionMeans(0.0025, 0.0018, 0.0026)] * 3),
        "own word equal to different topic": diagonal_rows(2, [AttentionMeans(0.0026, 0.0018, 0.0026)] * 3),
        "one of three diagonal runs": diagonal_rows(
            0, [*OWN_WORD[:2], AttentionMeans(0.09, 0.003, 0.0026)], [Blocks(0.0, 0.0, 0.6)] * 3
        ),
    },
    "table5": weak_ratios(("attention",)) | weak_small(("attention",)),
    "theorem1": {
        "one violation of a hundredth": family(violation=0.01),
        "one loss above by 1e-4": family(excess=1.0001e-4),
    },
    "theorem2": {
        "longer documents are no nearer": distances(0.5, 0.02, 0.1, 5e-4),
        "the same distance twice": distances(0.5, 0.1, 0.1, 5e-4),
        "infinite documents are no nearer than long ones": distances(0.5, 0.1, 4e-4, 5e-4),
        "too far on infinite documents": distances(0.5, 0.1, 0.02, 1.001e-3),
    },
    "theorem3": {
        "one seed below": second(1.0, 1.0, **THEOREM3),
        "one seed above": second(6e4, 6e4, **THEOREM3),
    },
    "theorem5": {
        "one beta below": second(0.01, 0.2),
        "one beta above": second(0.8, 4.5e3),
        "one alpha too large": second(10.0, 70.0),
    },
    "losses": {
        "one part at a fifth": dev_losses(squared_value=0.95001),
        "the embedding with cross entropy": dev_losses(entropy_embedding=3.57),
        "no gain at all": no_gain(),
    },
    **worlds.BAD,
    **law.BAD,
    **clocks.BAD,
    "pipeline": weak_effects()
    | {
        "one word in twenty too many in the wrong topic": small_bert(0.9499),
        "random attention above": small_bert(variant="random", attention=effect(-0.1, 1.0101)),
        "random attention below": small_bert(variant="random", attention=effect(-0.1, 0.9899)),
        "random cosine above zero": small_bert(variant="random", cosine=effect(0.001)),
        "random cosine below zero": small_bert(variant="random", cosine=effect(-0.201)),
    },
    "timeline": {
        "one run at the same time": sandbox_timelines(course(10)),
        "one run earlier": sandbox_timelines(course(100), course(5)),
        "the last run at the same time": sandbox_timelines(course(100), course(100), course(10)),
        "one attention never rises": sandbox_timelines(FLAT),
    },
    "two-stage": {
        "two-stage everywhere": stage_maps(lambda _: "two-stage"),
        "two-stage nowhere": stage_maps(lambda _: "at once"),
        "only the rate matters": stage_maps(by_axis(LR, "two-stage", "at once", 5e-3)),
        "only the scale matters": stage_maps(by_axis(SCALE, "two-stage", "at once", 5e-2)),
        "other courses diverge": stage_maps(at(1e-3, 1e-2, "two-stage", "diverged")),
        "other courses, none two-stage": stage_maps(at(1e-3, 1e-2, "never")),
    },
}


STILL: dict[str, dict[str, Any]] = {
    "figure1": {
        "nothing in the panel that does not decide": gram_panels(2, block_runs(0.0, 0.0, 0.01)),
        "a diagonal in one panel": gram_panels(0, diagonal_runs()),
        "a diagonal that has just doubled": gram_panels(1, small_diagonal(0.2999)),
    },
    "figure4": {
        "other settings do not show it": replace(
            with_value_late(), settings=dict(reversed(with_value_late().settings.items()))
        )
    },
    "figure5": {
        "the usual start has another order": layer_starts(curves("usual start", late=0, norm_key_0=ramp(0, 5))),
    },
    "figure7": {"off in the sixth digit": grids("diagonal", off=4e-6), "and below": grids("diagonal", off=-4e-6)},
    "figure8": {
        "off in the sixth digit": grids("blocks", off=4e-6),
        "gamma within half a percent": grids("blocks", gamma=0.0049),
        "and below": grids("blocks", gamma=-0.0049),
    },
    "figure3": {
        "small models, random weights show less": small_word_maps(0.6, 0.59),
        "two whole tokens in every group": word_maps(0.6, 0.2, (1, 1, 2, 1, 3, 1, 2, 1, 1)),
    },
    "table1": {
        "a random model just inside": probed(8, attention=effect(-0.1, 1.0099)),
        "small models: one threshold, and an encoder that shows nothing": small_probed(),
        "small models: p just at the limit": small_probed(0, cosine=effect(0.05, 2.0, p_value=0.05)),
    },
    "table2": {"just above zero": cooccurrence(0.45, (0.0001, 0.1))},
    "table4": {"one cross-entropy run of six is diagonal": one_cross_entropy_diagonal()},
    "table5": {
        "no effect in the cosine": probed(1, cosine=effect(-0.1)),
        "no pairs for the dot product": probed(2, dot=None),
        "small models: no effect in the cosine": small_probed(0, cosine=effect(-0.1)),
    },
    "theorem1": {"just inside": family(0.0099, 0.99e-4), "below the optimum by rounding": family(excess=-1e-16)},
    "theorem2": {"just near enough": distances(0.5, 0.1, 0.02, 0.999e-3)},
    "theorem3": {"just above the lower bound": second(1.16, 1.16, **THEOREM3)},
    "theorem5": {"just above the lower bound": second(0.01, 0.27), "just below the upper": second(0.8, 4.4e3)},
    "losses": {"just below a fifth": dev_losses(squared_value=0.9499)},
    **worlds.STILL,
    **law.STILL,
    **clocks.STILL,
    "pipeline": {
        "exactly 95%": small_bert(0.95),
        "p just below": small_bert(cosine=effect(0.05, p_value=0.049)),
        "random cosine from zero on": small_bert(variant="random", cosine=effect(0.0)),
        "random cosine up to zero": small_bert(variant="random", cosine=effect(-0.2)),
    },
    "two-stage": {
        "some diverge": stage_maps(
            lambda place: (
                "diverged" if (place[LR], place[SCALE]) == (1e-2, 1e-1) else at(1e-3, 1e-2, "two-stage")(place)
            )
        )
    },
}


UNDECIDED: dict[str, dict[str, Any]] = {
    "figure3": {
        "six of nine words are no whole tokens": word_maps(0.6, 0.2, (1, 2, 2) * 3),
        "one group has a single whole token": word_maps(0.6, 0.2, (1, 1, 1, 1, 1, 1, 1, 2, 3)),
        "no word is a whole token": word_maps(0.6, 0.2, (2,) * 9),
    },
    **worlds.UNDECIDED,
    **law.UNDECIDED,
    **clocks.UNDECIDED,
}
"""What decides nothing: words that the model does not have, intervals that are too wide, runs that are too short."""


def judged(name: str, found: Any = None) -> Outcome:
    """The outcome of this Found, else of the plausible one."""
    return EXPERIMENTS[name].judge(GOOD[name]() if found is None else found)
