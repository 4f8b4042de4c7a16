"""The second stage: W_V is frozen at an optimum of the first, attention is trained.

The best attention against the theorem, and the loss over (alpha, beta), as in Figures 7 and 8: what
`topicscope theory landscape` makes and writes, and `read` reads.

>>> stage = second_stage(Setting.of(), "blocks")
>>> round(stage.optimum.alpha, 2), round(stage.optimum.loss, 6), stage.inside
(7.67, 0.96177, True)
>>> grid = landscape(Setting.of(100, 300, 20), "diagonal", "paper", cap=True)
>>> round(float(grid.loss.min()), 5)
0.58328
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float

from topicscope.ground import (
    FORCE_NEEDS_OUT,
    InputError,
    Kind,
    Result,
    files,
    folders,
    load_settings,
    open_folder,
    refuse,
)
from topicscope.theory.attention_loss import Convention, Optimum, attention_loss, best_attention
from topicscope.theory.setting import Setting
from topicscope.theory.theorem import AttentionTheorem, ValueMatrix, assumptions, strain
from topicscope.theory.theorem3 import theorem3
from topicscope.theory.theorem5 import theorem5

if TYPE_CHECKING:
    import pyarrow

THEOREMS: dict[ValueMatrix, Callable[[Setting], AttentionTheorem]] = {"blocks": theorem3, "diagonal": theorem5}
GRID, TABLE = "landscape.npz", "landscape.csv"
LANDSCAPE = Kind("landscape", 2, ("landscape.*",), (GRID, TABLE))
ONLY_GAMMA, UNDEFINED = (
    "Only gamma matters here (Remark 5): every pair with the same gamma has the same loss; alpha = beta is shown.",
    "Theorem 5's bounds are not defined for so small a v.",
)


@dataclass(frozen=True)
class SecondStage:
    """The best attention, the loss of uniform attention, and the theorem; None where v is too small for Theorem 5."""

    setting: Setting
    value_matrix: ValueMatrix
    convention: Convention
    cap: bool
    optimum: Optimum
    uniform_loss: float
    theorem: AttentionTheorem | None

    @property
    def inside(self) -> bool | None:
        """Whether the theorem's bounds contain the best attention."""
        return None if self.theorem is None else self.theorem.contains(self.optimum.alpha, self.optimum.beta)

    def as_dict(self) -> dict[str, Any]:
        best = self.optimum
        return {
            "value_matrix": self.value_matrix,
            "convention": self.convention,
            "cap": self.cap,
            "settings": self.setting.as_dict(),
            "minimum": {"alpha": best.alpha, "beta": best.beta, "gamma": best.gamma, "loss": best.loss},
            "edge": best.edge,
            "only_gamma": best.only_gamma,
            "uniform_loss": self.uniform_loss,
            "bounds": None if self.theorem is None else self.theorem.flat_bounds(),
            "inside_bounds": self.inside,
            "assumptions_strained": assumptions(self.setting),
        }

    def summary(self) -> list[str]:
        best = self.optimum
        return [
            *([f"Where the minimum lies: {best.edge}."] if best.edge else []),
            *([ONLY_GAMMA] if best.only_gamma else []),
            *([UNDEFINED] if self.theorem is None else self.theorem.says_of(best.alpha, best.beta)),
            *strain(self.setting),
        ]


def second_stage(
    setting: Setting,
    value_matrix: ValueMatrix,
    convention: Convention = "exact",
    *,
    cap: bool | None = None,
    theorem: Callable[[Setting], AttentionTheorem] | None = None,
) -> SecondStage:
    """`cap` predicts min(prediction, 1); by default only for the diagonal W_V in the paper's convention, as Figure 7
    does.

    `theorem` computes the bounds; by default Theorem 3's for the blocks and Theorem 5's for the diagonal.
    """
    capped = (value_matrix == "diagonal" and convention == "paper") if cap is None else cap
    optimum = best_attention(setting, value_matrix, convention, cap=capped)
    bounds: AttentionTheorem | None = None
    try:
        bounds = (theorem or THEOREMS[value_matrix])(setting)
    except InputError:
        if setting.v == 1:  # above that v may be too small for lambda4, but the loss is defined
            raise
    uniform = attention_loss(setting, value_matrix, 1.0, 1.0, convention, cap=capped)
    return SecondStage(setting, value_matrix, convention, capped, optimum, float(uniform), bounds)


@dataclass(frozen=True)
class Landscape:
    """loss[i, j] at alpha[i], beta[j]."""

    alpha: Float[np.ndarray, " n"]
    beta: Float[np.ndarray, " n"]
    loss: Float[np.ndarray, "n n"]

    @property
    def minimum(self) -> tuple[float, float, float]:
        """alpha, beta and loss of the lowest point of the grid."""
        i, j = np.unravel_index(np.argmin(self.loss), self.loss.shape)
        return float(self.alpha[i]), float(self.beta[j]), float(self.loss[i, j])

    def points(self) -> dict[str, Float[np.ndarray, " n*n"]]:
        """alpha, beta and loss of every point."""
        alpha, beta = np.meshgrid(self.alpha, self.beta, indexing="ij")
        return {"alpha": alpha.ravel(), "beta": beta.ravel(), "loss": self.loss.ravel()}


def landscape(
    setting: Setting,
    kind: ValueMatrix,
    convention: Convention = "exact",
    *,
    cap: bool = False,
    low: float = -4.0,
    high: float = 6.9,
    per_decade: int = 10,
) -> Landscape:
    """The loss on the whole grid; by default the paper's axes, 10^-4 to 10^6.9 in steps of 0.1 in the exponent."""
    axis = 10 ** (low + np.arange(round((high - low) * per_decade) + 1) / per_decade)
    return Landscape(axis, axis, attention_loss(setting, kind, axis[:, None], axis, convention, cap=cap))


@dataclass(frozen=True, repr=False)
class AttentionLandscape(Result):
    """The loss on a grid of attentions, and the second stage that it shows."""

    kind: ClassVar[str] = LANDSCAPE.name

    stage: SecondStage
    grid: Landscape
    folder: Path | None = None

    def as_dict(self) -> dict[str, Any]:
        """results.json."""
        alpha, beta, loss = self.grid.minimum
        gamma = self.stage.setting.gamma(alpha, beta)
        return self.stage.as_dict() | {"grid_minimum": {"alpha": alpha, "beta": beta, "gamma": gamma, "loss": loss}}

    def summary(self) -> list[str]:
        return self.stage.summary()

    def table(self) -> pyarrow.Table:
        """One row per point of the grid."""
        import pyarrow

        return pyarrow.table(self.grid.points())

    def _about(self) -> str:
        return f"{self.stage.value_matrix} W_V, {self.stage.setting.letters}, {self.stage.convention} convention"


def attention_landscape(
    setting: Setting,
    value_matrix: ValueMatrix,
    convention: Convention = "exact",
    *,
    cap: bool | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
    draw: Callable[[AttentionLandscape, Path], object] | None = None,
) -> AttentionLandscape:
    """The landscape on the paper's grid, in a folder where `out` names one; `cap` as in `second_stage`.

    `draw` adds pictures to the folder before it is whole: a folder that lacks them is not taken for a finished one.

    landscape = attention_landscape(Setting.of(), "blocks", out="runs/blocks")
    landscape.stage.optimum.gamma, landscape.grid.loss.min()
    """
    refuse((force and out is None, FORCE_NEEDS_OUT))
    config = {"value_matrix": value_matrix, "convention": convention, "cap": cap, **setting.as_dict()}
    with nullcontext() if out is None else open_folder(out, LANDSCAPE, config, force=force) as folder:
        stage = second_stage(setting, value_matrix, convention, cap=cap)
        grid = landscape(setting, value_matrix, convention, cap=stage.cap)
        result = AttentionLandscape(stage, grid, None if folder is None else folder.path)
        if folder is not None:
            folder.begin()
            files.write_npz(folder.file(GRID), vars(grid))
            rows = [f"{a:.10g},{b:.10g},{x:.17g}\n" for a, b, x in zip(*grid.points().values(), strict=True)]
            files.write(folder.file(TABLE), "".join(["alpha,beta,loss\n", *rows]).encode())
            if draw is not None:
                draw(result, folder.place)
            folder.finish(result.as_dict())
        return result


def read_landscape(folder: str | os.PathLike[str]) -> AttentionLandscape:
    """The landscape in a folder. The minimum is computed again, from the settings stored there."""
    path = Path(folder)
    folders.finished_about(path, LANDSCAPE)
    config = load_settings(path / folders.CONFIG, own=True)
    try:
        with np.load(path / GRID, allow_pickle=False) as stored:
            grid = Landscape(stored["alpha"], stored["beta"], stored["loss"])
        kind, convention, cap = (config.pop(key) for key in ("value_matrix", "convention", "cap"))
        stage = second_stage(Setting.of(**config), kind, convention, cap=cap)
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} is damaged ({' '.join(str(error).split())}); make it again (--force)") from None
    return AttentionLandscape(stage, grid, path)
