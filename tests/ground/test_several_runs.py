"""Several runs as one result, and the configs of a folder that is to be resumed."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest

from topicscope import InputError
from topicscope.ground import Config, Kind, SeveralRuns, configs_to_resume, folders, section

KIND = Kind("made", 1, resumes="asked")


@section
class Settings(Config):
    seed: int = 0
    size: int = 3


@dataclass
class Run:
    config: Settings

    def summary(self) -> list[str]:
        return [f"Seed {self.config.seed}.", "It ended."]

    def facts(self) -> dict[str, Any]:
        return {"loss": self.config.seed / 2} | ({"late": True} if self.config.seed > 4 else {})


class Runs(SeveralRuns[Run]):
    kind: ClassVar[str] = KIND.name

    def _about(self) -> str:
        return f"{len(self)} runs"


def test_several_runs_are_a_list_with_their_sentences_and_a_row_each() -> None:
    runs = Runs((Run(Settings(seed)) for seed in (4, 5)), Path("out"))
    assert [run.config.seed for run in runs] == [4, 5]
    assert runs.folder == Path("out")
    assert Runs([]).folder is None
    assert runs.summary() == ["Seed 4.", "It ended.", "Seed 5.", "It ended."]
    assert runs.table().to_pylist() == [{"seed": 4, "loss": 2.0, "late": None}, {"seed": 5, "loss": 2.5, "late": True}]
    assert repr(runs) == "Runs(2 runs)"


def test_configs_to_resume_are_those_that_the_folder_was_opened_for(tmp_path: Path) -> None:
    one, two = Settings(size=7), Settings(seed=1)
    with folders.open_folder(tmp_path / "one", KIND, one.as_dict()) as folder:
        assert configs_to_resume(tmp_path / "one", KIND, Settings) == one
        folder.mark("starting")
        with pytest.raises(
            InputError, match=r"holds no run to resume; leave resume \(--resume\) out to start one there"
        ):
            configs_to_resume(tmp_path / "one", KIND, Settings)
        folder.finish({})
    assert configs_to_resume(str(tmp_path / "one"), KIND, Settings) == one
    with folders.open_folder(tmp_path / "two", KIND, {"runs": [one.as_dict(), two.as_dict()]}, runs=2):
        assert configs_to_resume(tmp_path / "two", KIND, Settings) == [one, two]
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(InputError, match="holds no made-up run to resume"):
            configs_to_resume(path, KIND, Settings, "made-up run")
    made = f"was made by 'topicscope {KIND.name}', not by 'topicscope other'; continue with 'topicscope {KIND.name}'"
    with pytest.raises(InputError, match=made):
        configs_to_resume(tmp_path / "one", Kind("other", 1), Settings)
