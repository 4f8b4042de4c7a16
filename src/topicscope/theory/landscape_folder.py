"""A landscape with its minimum and its theorem: what `topicscope theory landscape` makes and writes, and `read` reads.

landscape = attention_landscape(Setting.of(), "blocks", out="runs/blocks")
landscape.stage.optimum.gamma, landscape.grid.loss.min()
"""

from __future__ import annotations

import os
import zipfile
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from topicscope.ground import Folder, InputError, Kind, Result, files, folders, load_settings, open_folder
from topicscope.theory.attention_loss import Convention
from topicscope.theory.landscape import Landscape, landscape
from topicscope.theory.second_stage import SecondStage, second_stage
from topicscope.theory.setting import Setting
from topicscope.theory.theorem import ValueMatrix

if TYPE_CHECKING:
    import pyarrow

LANDSCAPE = Kind("landscape", 1, ("landscape.*",))
GRID, TABLE = "landscape.npz", "landscape.csv"


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

        return pyarrow.table(dict(zip(("alpha", "beta", "loss"), self._columns(), strict=True)))

    def _columns(self) -> list[np.ndarray]:
        alpha, beta = np.meshgrid(self.grid.alpha, self.grid.beta, indexing="ij")
        return [alpha.ravel(), beta.ravel(), self.grid.loss.ravel()]

    def _about(self) -> str:
        return f"{self.stage.value_matrix} W_V, {self.stage.setting.letters}, {self.stage.convention} convention"

    def write(self, folder: Folder) -> None:
        grid = self.grid
        files.write_npz(folder.file(GRID), {"alpha": grid.alpha, "beta": grid.beta, "loss": grid.loss})
        rows = [f"{a:.10g},{b:.10g},{x:.17g}\n" for a, b, x in zip(*self._columns(), strict=True)]
        files.write(folder.file(TABLE), "".join(["alpha,beta,loss\n", *rows]).encode())
        folder.finish(self.as_dict())


def attention_landscape(
    setting: Setting,
    value_matrix: ValueMatrix,
    convention: Convention = "exact",
    *,
    cap: bool | None = None,
    out: str | os.PathLike[str] | None = None,
    force: bool = False,
) -> AttentionLandscape:
    """The landscape on the paper's grid, in a folder where `out` names one; `cap` as in `second_stage`."""
    config = {"value_matrix": value_matrix, "convention": convention, "cap": cap, **setting.as_dict()}
    with nullcontext() if out is None else open_folder(out, LANDSCAPE, config, force=force) as folder:
        stage = second_stage(setting, value_matrix, convention, cap=cap)
        grid = landscape(setting, value_matrix, convention, cap=stage.cap)
        result = AttentionLandscape(stage, grid, None if folder is None else folder.path)
        if folder is not None:
            result.write(folder)
        return result


def read_landscape(folder: str | os.PathLike[str]) -> AttentionLandscape:
    """The landscape in a folder. The minimum is computed again, from the settings stored there."""
    path = Path(folder)
    folders.finished_about(path, LANDSCAPE)
    config = load_settings(path / folders.CONFIG)
    try:
        with np.load(path / GRID, allow_pickle=False) as stored:
            grid = Landscape(stored["alpha"], stored["beta"], stored["loss"])
        how: dict[str, Any] = {key: config.pop(key) for key in ("value_matrix", "convention", "cap")}
        stage = second_stage(Setting.of(**config), how["value_matrix"], how["convention"], cap=how["cap"])
    except (OSError, ValueError, KeyError, TypeError, EOFError, zipfile.BadZipFile) as error:
        raise InputError(f"{path} is damaged ({' '.join(str(error).split())}); make it again (--force)") from None
    return AttentionLandscape(stage, grid, path)
