"""Which courses runs may take: norms, phases and timelines, built by hand."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.paper.samples_blocks import CONFIG
from tests.pretraining import small
from topicscope.measure import Effect, Timeline
from topicscope.paper import figure4, figure5, timeline, two_stage
from topicscope.paper.figure5 import Curves
from topicscope.paper.two_stage import EMBEDDING, EPS, LOSS, LR, SCALE


def ramp(start: int, end: int, steps: int = 101) -> np.ndarray:
    """Near zero until `start`, then straight up to 1 at `end`."""
    return 1e-3 + np.clip((np.arange(steps) - start) / (end - start), 0, 1)


def norms(value: int = 0, key: int = 40, query: int = 45) -> figure4.Norms:
    """Norms that start to rise at these steps, and take 20 steps."""
    return {
        "norm_value": ramp(value, value + 20),
        "norm_key": ramp(key, key + 20),
        "norm_query": ramp(query, query + 20),
    }


def stage_settings(*nearest: figure4.Norms) -> figure4.StageNorms:
    """The five settings, three seeds each; of the first setting these runs."""
    names = list(figure4.SETTINGS)
    runs = {name: [norms(seed) for seed in range(3)] for name in names}
    return figure4.StageNorms(runs | ({names[0]: list(nearest)} if nearest else {}), CONFIG)


def curves(setting: str, late: int = 40, layers: int = 4, seed: int = 0, **norms: np.ndarray) -> Curves:
    metrics = {"loss": np.linspace(5, 3, 101)}
    for layer in range(layers):
        metrics |= {
            f"norm_key_{layer}": ramp(late, 60),
            f"norm_query_{layer}": ramp(late + 5, 70),
            f"norm_value_{layer}": ramp(0, 20),
            f"rotation_{layer}": np.linspace(0.5, 0, 101),
        }
    return Curves(setting, small.run_of(metrics | norms, seed))


def layer_starts(usual: Curves | None = None, **norms: np.ndarray) -> figure5.Found:
    near = [curves("near zero, a"), curves("near zero, b", 40, 4, 1, **norms)]
    return figure5.Found(near, [usual or curves("usual start", late=0)], False)


def point(phase: str, **more: Any) -> dict[str, Any]:
    """A row of a sweep."""
    made = {"phase": phase, "separation": 3.0, "start_separation": 3.0, "loss": 0.9, "contrast": 0.1}
    made |= {"steps_done": 100, "t50_value": 10.0, "t50_key": 30.0, "t50_query": None}
    return made | {"predicted_phase": phase, "predicted_by": "closed form", "predicted_separation": 3.0} | more


def swept(axes: dict[str, list[Any]], phase_at: Callable[[dict[str, Any]], str]) -> two_stage.Swept:
    places = [dict(zip(axes, values, strict=True)) for values in itertools.product(*axes.values())]
    return two_stage.Swept(axes, [place | point(phase_at(place)) for place in places])


def stage_maps(phase_at: Callable[[dict[str, Any]], str]) -> two_stage.StageMaps:
    """Small maps. `phase_at`: the course of Adam with squared loss and trained embedding; all else is 'at once'."""

    def everywhere(place: dict[str, Any]) -> str:
        here = (place.get(LOSS), place.get(EMBEDDING))
        return phase_at(place) if here == ("squared", "trained") else "at once"

    axes: dict[str, list[Any]] = {LOSS: two_stage.LOSSES, EMBEDDING: two_stage.EMBEDDINGS}
    square: dict[str, list[Any]] = {LR: [1e-3, 1e-2], SCALE: [1e-2, 1e-1], "seed": [0]}
    line: dict[str, list[Any]] = {EPS: [1e-20, 1e-8], SCALE: [1e-3], "seed": [0]}
    maps = {"adam": swept(axes | square, everywhere), "sgd": swept(axes | square, lambda _: "at once")}
    flow = swept(axes | {LR: [0.1, 0.3], SCALE: [0.1]}, lambda _: "two-stage").rows
    return two_stage.StageMaps(maps, swept(axes | line, lambda _: "at once"), flow, {"steps": 100})


def at(lr: float, scale: float, phase: str, other: str = "at once") -> Callable[[dict[str, Any]], str]:
    return lambda place: phase if (place[LR], place[SCALE]) == (lr, scale) else other


def by_axis(axis: str, low: str, high: str, limit: float) -> Callable[[dict[str, Any]], str]:
    return lambda place: low if place[axis] < limit else high


def course(half: int) -> dict[int, Effect | None]:
    """A measure that rises from 0 to 1 and is half-way at this step; in resamples a little lower or higher there."""
    spread = np.array([0.98, 1.0, 1.02])
    return {0: at_height(0.0, np.zeros(3)), half: at_height(0.5, 0.5 * spread), 1000: at_height(1.0, np.ones(3))}


def at_height(y: float, resamples: np.ndarray) -> Effect:
    ends = (y - 0.01, y + 0.01)
    return Effect(same=y + 0.1, different=0.1, difference=y, ratio=None, interval=ends, resamples=resamples)


FLAT: dict[int, Effect | None] = {step: at_height(0.1, np.array([0.1, 0.1])) for step in (0, 10, 1000)}
"""A measure that is there from the start and never rises."""


def timeline_of(attention: dict[int, Effect | None], words: str = "embedding") -> Timeline:
    """The words are half-way at step 10."""
    return Timeline.of({words: course(10), "attention": attention})


def sandbox_timelines(*attention: dict[int, Effect | None]) -> timeline.Found:
    """Three runs; attention as given, else half-way at 100."""
    given = [*attention, *[course(100)] * (3 - len(attention))]
    return timeline.Found([timeline_of(a) for a in given], None, {"seed": 0})


def with_value_late() -> figure4.StageNorms:
    """Two seeds are clear, one is not: the interval reaches below 1."""
    return stage_settings(norms(0), norms(0), norms(40, 0, 0))
