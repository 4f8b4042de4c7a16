"""The two stages (Section 5.1, Figure 4): does the value matrix settle before key and query begin?"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Literal, get_args

import numpy as np
from jaxtyping import Float

ROTATION_SPAN = 10
"""Steps between the two value matrices whose rotation is measured (Figure 5)."""

RISEN = 1.05  # times its start that a norm must reach


def risen(norm: Float[np.ndarray, " S"], share: float = 0.5, steps: Float[np.ndarray, " S"] | None = None) -> float:
    """The first step at which a norm has made a share of its rise from start to plateau (the mean of its last tenth).

    With half of the rise this step is called t50.

    Args:
        norm: One number per step (S).
        share: Share of the rise.
        steps: Those of the norms, where some were left out.

    Returns:
        The step; NaN where the norm does not rise.

    Example:
        >>> risen(np.array([1.0, 1.0, 2.0, 4.0, 9.0, 9.0])), risen(np.ones(5))
        (4.0, nan)
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
    """Half-way steps of the norms (t50); NaN where one has not risen.

    Attributes:
        value: Half-way step of W_V.
        key: Half-way step of W_K.
        query: Half-way step of W_Q.

    Example:
        >>> Stages(value=10.0, key=40.0, query=50.0).separation
        4.0
    """

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

    @classmethod
    def from_dict(cls, data: Mapping[str, float | None]) -> "Stages":
        return cls(*(np.nan if (step := data[f"t50_{part}"]) is None else step for part in ("value", "key", "query")))


LAYER = re.compile(r"norm_key(?:_((?:[a-z]+_)?\d+))?")  # in the names of metrics: a layer, if there are several


def layer_names(metrics: Mapping[str, Float[np.ndarray, " S"]]) -> list[str]:
    """The layers of a run: '0' of norm_key_0, 'cross_1' of norm_key_cross_1, '' of norm_key, which has no layer.

    Args:
        metrics: Columns by name.

    Returns:
        Names of the layers.

    Example:
        >>> layer_names({"loss": np.zeros(1), "norm_key_0": np.zeros(1), "norm_key_1": np.zeros(1)})
        ['0', '1']
    """
    return [match[1] or "" for name in metrics if (match := LAYER.fullmatch(name))]


def layer_metrics(metrics: Mapping[str, Float[np.ndarray, " S"]], layer: str) -> dict[str, Float[np.ndarray, " S"]]:
    """The norms of one layer, under the names that a one-layer run has.

    Args:
        metrics: Columns by name, such as norm_key_0 of layer '0'.
        layer: Name of the layer, from `layer_names`.

    Returns:
        Columns norm_key, norm_query and norm_value.

    Example:
        >>> metrics = {f"norm_{part}_0": np.zeros(2) for part in ("key", "query", "value")}
        >>> list(layer_metrics(metrics, "0"))
        ['norm_key', 'norm_query', 'norm_value']
    """
    end = f"_{layer}" if layer else ""
    return {f"norm_{part}": metrics[f"norm_{part}{end}"] for part in ("key", "query", "value")}


def rotations(products: Float[np.ndarray, "S ..."], norms: Float[np.ndarray, "S2 ..."]) -> Float[np.ndarray, "S ..."]:
    """(1 - cos) / 2 of the angle between each matrix and that of ROTATION_SPAN steps before.

    Args:
        products: Their inner products (S x ...).
        norms: Norms of the matrices, ROTATION_SPAN more: those of the steps before come first.

    Returns:
        Between 0 and 1; NaN where a norm is 0 or not known.

    Example:
        >>> rotations(np.array([0.0, -2.0]), np.r_[np.ones(ROTATION_SPAN), 2.0, 2.0]).tolist()
        [0.5, 1.0]
    """
    with np.errstate(invalid="ignore", divide="ignore"):
        cosine = products / (norms[ROTATION_SPAN:] * norms[:-ROTATION_SPAN])
    return (1 - np.clip(cosine, -1, 1)) / 2


def stages(metrics: Mapping[str, Float[np.ndarray, " S"]], share: float = 0.5) -> Stages:
    """Half-way steps of the norms; or the steps at which another share of the rise is made.

    Args:
        metrics: Columns norm_value, norm_key and norm_query; and step, where some steps were left out.
        share: Share of the rise.

    Returns:
        The steps.

    Example:
        >>> early, late = np.array([1.0, 9, 9, 9, 9, 9]), np.array([1.0, 1, 1, 1, 9, 9])
        >>> stages({"norm_value": early, "norm_key": late, "norm_query": late})
        Stages(value=1.0, key=4.0, query=4.0)
    """
    steps = metrics.get("step")
    return Stages(*(risen(metrics[f"norm_{part}"], share, steps) for part in ("value", "key", "query")))


FIRST, SECOND = "stage 1: value", "stage 2: key and query"


def stage_bands(metrics: Mapping[str, Float[np.ndarray, " S"]]) -> list[tuple[float, float, str]]:
    """The two stages of a run, for figures. The second starts when key or query has made a tenth of its rise.

    What counts is which rise comes first. The value matrix may rise again later, and be half-way only then.

    Args:
        metrics: Columns norm_value, norm_key and norm_query.

    Returns:
        From, to and name of each; empty where there are not two.

    Example:
        >>> early, late = np.array([1.0, 9, 9, 9, 9, 9]), np.array([1.0, 1, 1, 1, 9, 9])
        >>> stage_bands({"norm_value": early, "norm_key": late, "norm_query": late})
        [(0.0, 4.0, 'stage 1: value'), (4.0, 5.0, 'stage 2: key and query')]
    """
    starts = stages(metrics, START)
    if not (stages(metrics).separation > 1 or starts.separation >= TWO_STAGE):
        return []
    begins = float(np.nanmin([starts.key, starts.query]))
    return [(0.0, begins, FIRST), (begins, last_step(metrics), SECOND)]


def last_step(metrics: Mapping[str, Float[np.ndarray, " S"]]) -> float:
    """From the column of steps, where some were left out."""
    return float(metrics["step"][-1] if "step" in metrics else len(metrics["norm_key"]) - 1)


Phase = Literal["two-stage", "staggered", "at once", "first stage only", "never", "diverged"]
PHASES: tuple[Phase, ...] = get_args(Phase)
NOT_COVERED = "not covered"  # in place of a phase, where no law predicts one

TWO_STAGE = 2.0
"""From this stage separation on a run counts as two-stage."""

WORSE = 1.01  # a run whose loss ends above this multiple of its start has diverged, even where it is still finite
START = 0.1  # share of its rise with which a norm has started


def phase(halves: Stages, starts: Stages, first_loss: float, last_loss: float) -> Phase:
    """Which course a run took, from the steps at which half and a tenth of each rise were made.

    'diverged': the loss ends above its start, or is not finite. 'never': the value matrix does not rise. 'first stage
    only': the value matrix rises, key and query do not. 'two-stage': key and query are at least TWO_STAGE times as late
    as value. 'staggered': they start so much later, but are not half-way so much later, since the value matrix levels
    off first and rises again once attention has formed. 'at once': all others.

    Args:
        halves: Steps at which half of each rise was made.
        starts: Steps at which a tenth was made.
        first_loss: Loss at the start.
        last_loss: Loss at the end.

    Returns:
        The name of the phase.

    Example:
        >>> late = Stages(value=10.0, key=400.0, query=500.0)
        >>> phase(late, late, first_loss=4.0, last_loss=3.0), phase(late, late, first_loss=3.0, last_loss=9.0)
        ('two-stage', 'diverged')
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


PHASE_MEANINGS: dict[Phase, str] = {
    "two-stage": f"key and query are half-way at least {TWO_STAGE:g} times as late as W_V (t50)",
    "staggered": f"key and query start at least {TWO_STAGE:g} times as late as W_V, but are half-way earlier than that",
    "at once": f"key and query are neither half-way nor start {TWO_STAGE:g} times as late as W_V",
    "first stage only": f"the norm of W_V rises, those of key and query by less than {RISEN - 1:.0%}",
    "never": f"the norm of W_V rises by less than {RISEN - 1:.0%}; the loss may still fall",
    "diverged": f"the loss ends more than {WORSE - 1:.0%} above its start, or is not finite",
}
"""The rules of `phase` in words, for tables and pages."""

READINGS: dict[Phase, str] = {
    "two-stage": "The value matrix has learnt topics before attention forms, as the paper's two stages say.",
    "staggered": "Key and query start later than value, but value keeps rising once attention has formed.",
    "at once": "Key and query are less than a factor of two later than value: this run does not show two stages.",
    "first stage only": "The value matrix rises; key and query have not, within these steps.",
    "never": "The norm of W_V has risen by less than 5%: the run is too short, or it starts at a large scale.",
    "diverged": "The loss ends above its start, or is not a number; try a smaller learning rate.",
}


@dataclass(frozen=True)
class Course:
    """The course of a run.

    Attributes:
        phase: Its name.
        halves: When half of each norm's rise was made (t50).
        starts: When a tenth of it was made.
        rising: Norms without a plateau.

    Example:
        See `course`.
    """

    phase: Phase
    halves: Stages | None = None
    starts: Stages | None = None
    rising: tuple[str, ...] = ()

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

    Args:
        status: 'done', 'stopped' or 'diverged'.
        losses: One per step (S).
        last_loss: Loss at the end.
        layers: Columns norm_value, norm_key and norm_query of each layer.

    Returns:
        The course.

    Example:
        >>> early, late = np.array([1.0, 9, 9, 9, 9, 9]), np.array([1.0, 1, 1, 1, 9, 9])
        >>> layer = {"norm_value": early, "norm_key": late, "norm_query": late}
        >>> course("done", np.linspace(4, 3, 6), 3.0, [layer]).phase
        'two-stage'
    """
    if status == "diverged" or last_loss is None or len(losses) < 2:
        return Course("diverged")
    halves = [stages(metrics) for metrics in layers]
    least = min(range(len(halves)), key=lambda i: np.nan_to_num(halves[i].separation, nan=np.inf))
    starts = stages(layers[least], START)
    rising = tuple(part for part in ("value", "key", "query") if still_rising(layers[least][f"norm_{part}"]))
    return Course(phase(halves[least], starts, float(losses[0]), last_loss), halves[least], starts, rising)
