"""An engine from outside, in one entry of `ENGINES`: sweeps and the command take it by its name."""

import contextlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import cast

import pytest
import yaml

from tests.calling import topicscope
from tests.sweeps.samples import BASE, files
from topicscope import InputError, sweep
from topicscope.ground import ENGINES, Common, Engine, EngineKind, Item, Name, Output, check_engine

GRID = {"base": BASE | {"steps": 5}, "axes": {"batch_size": [10, 20]}}


def last_first(
    work: Callable[[Common, Item], Output], common: Common, items: Iterable[Item]
) -> Iterator[tuple[int, Output]]:
    for number, item in reversed(list(enumerate(items))):
        yield number, work(common, item)


def test_an_engine_of_one_entry_takes_a_sweep_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It gets the number of workers, and its sweep has the bytes of the serial engine's."""
    workers_asked: list[int | None] = []

    @contextlib.contextmanager
    def opened(workers: int | None, address: str, gpus: float) -> Iterator[Engine]:
        workers_asked.append(workers)
        yield last_first

    name = cast("Name", "last-first")
    with pytest.raises(InputError, match="engine 'last-first'; expected serial, local, ray"):
        sweep(GRID, tmp_path / "unknown", engine=name)
    monkeypatch.setitem(ENGINES, name, EngineKind(opened, "this process, from the last item on"))
    check_engine(name, workers=3)
    assert sweep(GRID, tmp_path / "ours", engine=name, workers=3).counts == {"done": 2, "failed": 0, "missing": 0}
    (tmp_path / "grid.yaml").write_text(yaml.safe_dump(GRID))
    topicscope("sweep", str(tmp_path / "grid.yaml"), "--engine", name, "--out", str(tmp_path / "command"))
    assert workers_asked == [3, None]
    sweep(GRID, tmp_path / "serial")
    assert files(tmp_path / "serial") == files(tmp_path / "ours") == files(tmp_path / "command") != {}
