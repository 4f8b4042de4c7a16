"""The two stages (Section 5.1, Figure 4): does the value matrix settle before key and query begin?"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

ROTATION_SPAN = 10
"""Steps between the two value matrices whose rotation is measured (Figure 5)."""

RISEN = 1.05  # times its start that a norm must reach


def risen(norm: Float[np.ndarray, " S"], share: float = 0.5, steps: Float[np.ndarray, " S"] | None = None) -> float:
    """The first step at which the norm has made a share of its rise from start to plateau (the mean of its last tenth).

    With half of the rise this step is called t50. `steps`: those of the norms, where some were left out.
    """
    start, plateau = float(norm[0]), float(norm[-max(1, len(norm) // 10) :].mean())
    if not plateau > start * RISEN:
        return float("nan")
    place = int(np.argmax(norm >= start + share * (plateau - start)))
    return float(place if steps is None else steps[place])


def still_rising(norm: Float[np.ndarray, " S"]) -> bool:
    """Whether the last tenth of the steps adds more than a twentieth of the rise: then there is no plateau yet."""
    if len(norm) < 2:
        return False
    tenth = max(1, len(norm) // 10)
    plateau, before = float(norm[-tenth:].mean()), float(norm[-2 * tenth : -tenth].mean())
    return plateau > norm[0] * RISEN and plateau - before > (plateau - norm[0]) / 20


@dataclass(frozen=True)
class Stages:
    """Halfway points of the norms, and their ratio."""

    value: float
    key: float
    query: float

    @property
    def separation(self) -> float:
        """t50(key and query, the earlier of them) / t50(value): above 1 the value matrix is first."""
        return float(np.fmin(self.key, self.query)) / max(self.value, 1.0)

    def as_dict(self) -> dict[str, float | None]:
        """None where a norm has not risen."""
        steps = {"t50_value": self.value, "t50_key": self.key, "t50_query": self.query, "separation": self.separation}
        return {name: value if np.isfinite(value) else None for name, value in steps.items()}


def stages(metrics: Mapping[str, Float[np.ndarray, " S"]], share: float = 0.5) -> Stages:
    """Halfway points; or the steps at which another share of the rise is made."""
    steps = metrics.get("step")
    return Stages(*(risen(metrics[f"norm_{part}"], share, steps) for part in ("value", "key", "query")))


def stage_bands(metrics: dict[str, Float[np.ndarray, " S"]]) -> list[tuple[float, float, str]]:
    """From, to and name of the two stages, where there are two.

    The second starts when key or query has made a tenth of its rise.
    """
    if not stages(metrics).separation > 1:
        return []
    starts, last = stages(metrics, START), len(metrics["norm_key"]) - 1
    begins = float(np.nanmin([starts.key, starts.query]))
    end = float(metrics["step"][last]) if "step" in metrics else float(last)
    return [(0.0, begins, "stage 1: value"), (begins, end, "stage 2: key and query")]


Phase = Literal["two-stage", "staggered", "at once", "first stage only", "never", "diverged"]
PHASES: tuple[Phase, ...] = get_args(Phase)
NOT_COVERED = "not covered"  # in place of a phase, where no law predicts one

TWO_STAGE = 2.0
"""From this stage separation on a run counts as two-stage."""

WORSE = 1.01  # a run whose loss ends above this multiple of its start has diverged, even where it is still finite
START = 0.1  # share of its rise with which a norm has started


def phase(halves: Stages, starts: Stages, first_loss: float, last_loss: float) -> Phase:
    """Which kind of course a run took, from the steps at which half and a tenth of each rise were made.

    'diverged': the loss ends above its start, or is not finite. 'never': the value matrix does not rise.
    'first stage only': the value matrix rises, key and query do not. 'two-stage': key and query are at least
    TWO_STAGE times as late as value. 'staggered': they start so much later, but are not half-way so much later,
    since the value matrix levels off first and rises again once attention has formed. 'at once': all others.
    """
    rules: list[tuple[Phase, bool]] = [  # the first that holds
        ("diverged", not last_loss <= WORSE * first_loss),  # NaN too
        ("never", not np.isfinite(halves.value)),
        ("first stage only", not np.isfinite(halves.separation)),
        ("two-stage", halves.separation >= TWO_STAGE),
        ("staggered", starts.separation >= TWO_STAGE),
        ("at once", True),
    ]
    return next(name for name, holds in rules if holds)


READINGS: dict[Phase, str] = {
    "two-stage": "The value matrix has learnt topics before attention forms, as the paper's two stages say.",
    "staggered": "Key and query start later than value, but value goes on rising once attention has formed.",
    "at once": "Key and query are not later than value by a factor of two: this run does not show two stages.",
    "first stage only": "The value matrix rises; key and query have not, within these steps.",
    "never": "No norm has risen: the run is too short, or it starts at a scale from which norms do not grow.",
    "diverged": "The loss ends above its start, or nowhere; try a smaller learning rate.",
}


@dataclass(frozen=True)
class Course:
    """The course of a run: its phase, and when half (t50) and a tenth of each norm's rise were made."""

    phase: Phase
    halves: Stages | None = None
    starts: Stages | None = None
    rising: tuple[str, ...] = ()  # norms without a plateau

    @property
    def sentence(self) -> str:
        """One sentence on the phase with its numbers, and one on how to read it."""
        if self.halves is None or not np.isfinite(self.halves.value):
            return f"Phase: {self.phase}. {READINGS[self.phase]}"
        steps = ", ".join(
            f"{name} {f'{step:,.0f}' if np.isfinite(step) else 'not yet'}" for name, step in asdict(self.halves).items()
        )
        ratio = "" if not np.isfinite(self.halves.separation) else f", separation {self.halves.separation:.3g}"
        said = f"Phase: {self.phase} (half of the rise at step: {steps}{ratio}). {READINGS[self.phase]}"
        if not self.rising:
            return said
        return f"{said} Not final: {', '.join(self.rising)} still rising at the end; more steps may change the phase."

    def as_dict(self) -> dict[str, float | str | None]:
        """Phase, half-way steps, separation; `start_separation` is that of the starts."""
        if self.halves is None or self.starts is None:
            return {"phase": self.phase}
        return {"phase": self.phase, **self.halves.as_dict(), "start_separation": self.starts.as_dict()["separation"]}


def course(
    status: str,
    losses: Float[np.ndarray, " S"],
    last_loss: float | None,
    layers: Sequence[Mapping[str, Float[np.ndarray, " S"]]],
) -> Course:
    """The course of a run from the norms of its layers.

    Of several layers the one with the smallest separation counts: a run is as two-stage as its least two-stage layer.
    """
    if status == "diverged" or last_loss is None or len(losses) < 2:
        return Course("diverged")
    halves = [stages(metrics) for metrics in layers]
    least = min(range(len(halves)), key=lambda i: np.nan_to_num(halves[i].separation, nan=np.inf))
    starts = stages(layers[least], START)
    rising = tuple(part for part in ("value", "key", "query") if still_rising(layers[least][f"norm_{part}"]))
    return Course(phase(halves[least], starts, float(losses[0]), last_loss), halves[least], starts, rising)


Act = Literal["start", "stage 1", "between", "stage 2", "at once", "third act", "ended"]
MOVING = 0.02  # share of its norm that a part gains in the last tenth of the steps


def act(metrics: Mapping[str, Float[np.ndarray, " S"]]) -> Act:
    """Where a run that goes on stands: which norms have risen from their start, and which are rising now.

    Unlike `phase` it knows no plateau: the rest of the run is not there yet.
    """
    norms = [metrics[f"norm_{part}"] for part in ("value", "key", "query")]
    window = max(1, len(norms[0]) // 10)
    if len(norms[0]) < 3:
        return "start"
    has_risen = [norm[-1] > RISEN * norm[0] for norm in norms]
    moves = [norm[-1] > (1 + MOVING) * norm[-1 - window] for norm in norms]
    value, attention = has_risen[0], any(has_risen[1:])
    apart = stages(metrics, START).separation >= TWO_STAGE  # value had started long before key and query
    rules: list[tuple[Act, bool]] = [  # the first that holds
        ("start", not value and not attention),
        ("stage 1", not attention and moves[0]),
        ("between", not attention),
        ("stage 2", any(moves[1:]) and not moves[0]),
        ("at once", any(moves[1:]) and not apart),
        ("third act", moves[0] and apart),
        ("stage 1", moves[0]),
        ("ended", True),
    ]
    return next(name for name, holds in rules if holds)
