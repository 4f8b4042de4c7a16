"""The second stage with W_V frozen: the best attention, the theorem's bounds, and the loss over (alpha, beta).

`topicscope theory landscape` writes it, as in Figures 7 and 8, and `read` reads it.
"""

from __future__ import annotations

import os
import zipfile
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, ClassVar

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
ONLY_GAMMA, UNDEFINED = (
    "Only gamma matters here (Remark 5): every pair with the same gamma has the same loss; alpha = beta is shown.",
    "Theorem 5's bounds are not defined for so small a v.",
)


@dataclass(frozen=True)
class SecondStage:
    """The second stage: the best attention where W_V is frozen, and what the theorem says of it.

    Attributes:
        setting: T, v, tau and masking.
        value_matrix: W_V: 'blocks' or 'diagonal'.
        convention: 'exact' or 'paper'.
        cap: Whether predictions are capped at 1.
        optimum: The best attention.
        uniform_loss: Loss of uniform attention.
        theorem: The bounds; None where v is too small for Theorem 5.

    Example:
        See `second_stage`.
    """

    setting: Setting
    value_matrix: ValueMatrix
    convention: Convention
    cap: bool
    optimum: Optimum
    uniform_loss: float
    theorem: AttentionTheorem | None

    @property
    def inside(self) -> bool | None:
        return None if self.theorem is None else self.theorem.contains(self.optimum.alpha, self.optimum.beta)

    def as_dict(self) -> dict[str, object]:
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
    """The best attention where W_V is frozen at an optimum of the first stage, against the theorem.

    Args:
        setting: T, v, tau and masking.
        value_matrix: W_V: 'blocks' (Theorem 2) or 'diagonal' (Definition 2).
        convention: 'exact' or 'paper'; see `attention_loss`.
        cap: Predict min(prediction, 1); None: only for the diagonal W_V in the paper's convention, as Figure 7 does.
        theorem: Computes the bounds; None: Theorem 3 for the blocks, Theorem 5 for the diagonal.

    Returns:
        The best attention, its loss, and whether the bounds contain it.

    Example:
        >>> stage = second_stage(Setting.of(), "blocks")
        >>> round(stage.optimum.alpha, 2), round(stage.uniform_loss, 6), stage.inside
        (7.67, 0.966667, True)
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


GRID, TABLE = "landscape.npz", "landscape.csv"
LANDSCAPE = Kind("landscape", 2, ("landscape.*",), (GRID, TABLE))


@dataclass(frozen=True)
class Landscape:
    """The loss on a grid: loss[i, j] at alpha[i] and beta[j].

    Attributes:
        alpha: Values of alpha (n).
        beta: Values of beta (n).
        loss: The losses (n x n).

    Example:
        >>> Landscape(np.array([1.0, 2.0]), np.array([3.0, 4.0]), np.array([[0.5, 0.9], [0.4, 0.8]])).minimum
        (2.0, 3.0, 0.4)
    """

    alpha: Float[np.ndarray, " n"]
    beta: Float[np.ndarray, " n"]
    loss: Float[np.ndarray, "n n"]

    @property
    def minimum(self) -> tuple[float, float, float]:
        i, j = np.unravel_index(np.argmin(self.loss), self.loss.shape)
        return float(self.alpha[i]), float(self.beta[j]), float(self.loss[i, j])

    def points(self) -> dict[str, Float[np.ndarray, " n*n"]]:
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
    """The loss of topic-wise attention on a grid; by default on the paper's axes, 10^-4 to 10^6.9 (Figures 7 and 8).

    Args:
        setting: T, v, tau and masking.
        kind: W_V: 'blocks' or 'diagonal'.
        convention: 'exact' or 'paper'.
        cap: Predict min(prediction, 1).
        low: Smallest exponent of 10.
        high: Largest exponent of 10.
        per_decade: Points per factor of ten.

    Returns:
        The grid.

    Example:
        >>> grid = landscape(Setting.of(), "blocks", low=0.0, high=2.0, per_decade=2)
        >>> grid.loss.shape, [round(number, 4) for number in grid.minimum]
        ((5, 5), [10.0, 1.0, 0.9618])
    """
    axis = 10 ** (low + np.arange(round((high - low) * per_decade) + 1) / per_decade)
    return Landscape(axis, axis, attention_loss(setting, kind, axis[:, None], axis, convention, cap=cap))


@dataclass(frozen=True, repr=False)
class AttentionLandscape(Result):
    """The loss on a grid of attentions, and the second stage that it shows.

    Attributes:
        stage: The best attention, against the theorem.
        grid: The losses.
        folder: Where it was written, or None.

    Example:
        See `attention_landscape`.
    """

    kind: ClassVar[str] = LANDSCAPE.name

    stage: SecondStage
    grid: Landscape
    folder: Path | None = None

    def as_dict(self) -> dict[str, object]:
        alpha, beta, loss = self.grid.minimum
        place = {"alpha": alpha, "beta": beta, "gamma": self.stage.setting.gamma(alpha, beta), "loss": loss}
        return self.stage.as_dict() | {"grid_minimum": place}

    def summary(self) -> list[str]:
        return self.stage.summary()

    def table(self) -> pyarrow.Table:
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
    """The landscape on the paper's grid, written to a folder where `out` names one.

    Args:
        setting: T, v, tau and masking.
        value_matrix: W_V: 'blocks' or 'diagonal'.
        convention: 'exact' or 'paper'.
        cap: As in `second_stage`.
        out: Folder for the results; None: nothing is written.
        force: Replace what topicscope wrote there.
        draw: Adds pictures to the folder before it is finished.

    Returns:
        The landscape.

    Raises:
        InputError: The folder is in use, or `force` is given without a folder.

    Example:
        >>> found = attention_landscape(Setting.of(), "blocks")
        >>> found.table().num_rows, round(found.grid.minimum[2], 5), round(found.stage.optimum.loss, 5)
        (12100, 0.96177, 0.96177)
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
    """Read the landscape in a folder. The minimum is computed again, from the settings stored there.

    Args:
        folder: The folder.

    Returns:
        The landscape.

    Raises:
        InputError: The folder holds no landscape, or is damaged.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = attention_landscape(Setting.of(), "blocks", out=f"{folder}/blocks")
        ...     read_landscape(f"{folder}/blocks").stage.setting.letters
        'T = 10, v = 10, tau = 3'
    """
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
