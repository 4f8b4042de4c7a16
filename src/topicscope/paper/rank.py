"""Rank: at the second plateau W_K' W_Q has T - 1 equal singular values, one for each topic contrast, and no others."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from topicscope.pages import Figure, Lines, Series, TableData
from topicscope.paper.experiment import Context, Experiment, Number, Outcome, cell, verdict
from topicscope.paper.stage_flows import COMMON, GROUP, SMALL, WORLDS, StageFlow, World, stage_flows

ALIKE, NONE = 0.9, 0.01
"""The least of the T - 1 over the largest; the next one over the least of them."""

SHOWN = 1e-12  # smaller shares are drawn as this


@dataclass(frozen=True)
class Found:
    """One flow for each world, scale and seed."""

    flows: list[StageFlow]


def measure(context: Context) -> Found:
    return Found(stage_flows(context))


def shares(flow: StageFlow) -> tuple[float, float]:
    """The least of the first T - 1 singular values over the largest, and the next one over the least."""
    first, last, following = (flow.singular[i] for i in (0, flow.world.T - 2, flow.world.T - 1))
    return last / first, following / last


def panel(world: World, flows: list[StageFlow]) -> Lines:
    here = [flow for flow in flows if flow.world == world and flow.scale == COMMON]
    return Lines(
        f"{world}: T - 1 = {world.T - 1}",
        [
            Series(
                f"seed {flow.seed}",
                [float(i + 1) for i in range(len(flow.singular))],
                np.maximum(np.array(flow.singular) / flow.singular[0], SHOWN).tolist(),
                markers=True,
            )
            for flow in here
        ],
        "singular value, by size",
        "share of the largest",
        log_y=True,
        levels=[(NONE, "1%")],
    )


def judge(found: Found) -> Outcome:
    small = [flow for flow in found.flows if flow.scale <= SMALL]
    alike, others = min(shares(flow)[0] for flow in small), max(shares(flow)[1] for flow in small)
    return Outcome(
        paper="not asked: the paper counts no singular values",
        theory="the force on attention is sigma times the projector on topic contrasts: T - 1 equal singular values",
        measured=f"in {len(small)} flows the T - 1 largest differ by {100 * (1 - alike):.2g}% at most, and the next is "
        f"at most {cell(others)} of the smallest of them",
        verdict=verdict(alike >= ALIKE and others <= NONE),
        reason=f"the (T - 1)-th singular value over the largest: {cell(alike)} (at least {ALIKE} asked); the T-th over "
        f"the (T - 1)-th: {cell(others)} (at most {NONE} asked). From larger starts the flow leaves the plateau before "
        "all contrasts are learnt",
        figures=[
            Figure(
                "rank",
                f"Singular values of W_K' W_Q at the second plateau, scale {COMMON:g}",
                "In each world the first T - 1 singular values are equal, and the others lie far below.",
                [panel(world, found.flows) for world in WORLDS],
                columns=3,
            )
        ],
        tables=[
            TableData(
                "Singular values at the second plateau (at the slowest point where there is none)",
                ["world", "scale", "seed", "largest", "(T - 1)-th / largest", "T-th / (T - 1)-th"],
                [
                    [
                        str(flow.world),
                        f"{flow.scale:g}",
                        str(flow.seed),
                        cell(flow.singular[0]),
                        *map(cell, shares(flow)),
                    ]
                    for flow in found.flows
                ],
                folded=True,
            )
        ],
        numbers={
            "flows": [
                {"world": list(flow.world), "scale": flow.scale, "seed": flow.seed, "singular": flow.singular}
                for flow in found.flows
            ]
        },
        ours=others,
    )


EXPERIMENT = Experiment(
    id="rank",
    claim="Key and query learn the T - 1 topic contrasts with equal strength, and nothing else.",
    rule="The flows of stage-law from initial scales up to .001, at the second plateau (the slowest point after the "
    f"half-time of key). In every flow the T - 1 largest singular values of W_K' W_Q are at least {ALIKE} of the "
    "largest, and all others at most 1% of the smallest of these T - 1.",
    measure=measure,
    judge=judge,
    seconds=20,
    group=GROUP,
    number=Number(
        "singular values, T/T-1",
        "the T-th singular value of W_K' W_Q at the second plateau over the (T - 1)-th, largest over flows (0 in "
        "theory); the paper prints none",
    ),
)
