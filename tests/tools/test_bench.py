"""The benchmarks: their rows, what is printed of them, and the command that needs a checkout."""

import json
from pathlib import Path
from typing import Any

import pytest
from tools.bench.rows import Row

from tests.cli.test_shell import Capture, cells
from tests.command import topicscope
from tools import bench
from topicscope.cli import results
from topicscope.ground import InputError


@pytest.mark.parametrize(
    ("value", "text"),
    [(12.345, "12.3 s"), (1, "1 s"), (0.9994, "999 ms"), (1e-3, "1 ms"), (0.00099, "990 us"), (2e-5, "20 us")],
)
def test_times(value: float, text: str) -> None:
    assert bench.seconds(value) == text


def test_bench_shows_its_rows(capsys: Capture, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []

    def measuring(name: str, *rows: Row) -> None:
        def measure(device: str, *, quick: bool, say: Any) -> list[Row]:
            say(name)
            asked.append((name, device, quick))
            return list(rows)

        monkeypatch.setitem(bench.PARTS, name, measure)

    step = Row("a step", "s per step", 0.002, {"dense": 0.04, "Bert": 3.0}, 0.001, "matrices", aim="fast", met=True)
    measuring("sandbox", step, Row("memory", "GB", 0.5, aim="little", met=False))
    measuring("language", Row("fit", "CPU s", 3.14159))
    measuring("pretraining")
    measuring("sweep")
    assert results.bench() == 0
    assert asked == [(name, "cpu", False) for name in ("sandbox", "language", "pretraining", "sweep")]
    shown = capsys.readouterr().out
    assert shown.startswith("topicscope bench (cpu, one thread per process)")
    heading, first, second, memory, fit = cells(shown)
    assert heading == ["what", "ours", "plain way", "times faster", "floor", "over floor", "aim", "met"]
    assert first == ["a step", "2 ms per step", "dense: 40 ms", "20.0", "1 ms (matrices)", "2", "fast", "yes"]
    assert second == ["", "", "Bert: 3 s", "1,500.0", "", "", "", ""]
    assert memory == ["memory", "0.50 GB", "", "", "", "", "little", "no"]
    assert fit == ["fit", "3.14 CPU s", "", "", "", "", "", ""]
    lines = [line for line in shown.splitlines() if line.startswith("│")]
    assert "│ a step │ " in lines[0]  # texts stand left, numbers right
    assert " 2 ms per step │ dense: 40 ms │" in lines[0]
    asked.clear()
    assert results.bench(part="language", quick=True, as_json=True) == 0
    assert asked == [("language", "cpu", True)]
    printed = json.loads(capsys.readouterr().out)
    assert (printed["device"], printed["quick"]) == ("cpu", True)
    assert [row["name"] for row in printed["rows"]] == ["fit"]


def test_the_command_needs_a_checkout(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(results, "CHECKOUT", tmp_path)
    with pytest.raises(InputError, match="make bench"):
        results.bench(quick=True)


def test_bench_prints_rows_with_floors() -> None:
    report = json.loads(topicscope("bench", "--quick", "--json").stdout)
    names = [row["name"] for row in report["rows"]]
    assert any("10,000 documents" in name for name in names)
    assert any("ensemble of 32" in name for name in names)
    for row in report["rows"]:
        assert row["ours"] >= 0
        assert row["floor"] is None or row["over_floor"] > 0
    (step,) = (row for row in report["rows"] if row["name"].startswith("pretraining step, 2 layers, 4 heads, width 32"))
    ratio = step["ours"] / step["plain"]["bare loop"]
    assert f"(here {ratio:.3f};" in step["aim"]
    assert step["met"] == (ratio <= 1.1)
    # 6 x 2048 tokens x (2 layers of 16,384, and of the head of 257,024 the masked 15%)
    assert step["floor_is"].startswith("0.876 GFLOP, 46% in the layers, the rest in the head, at ")
    assert [name.startswith("  of which") for name in names[names.index(step["name"]) + 1 :]][:5] == [True] * 4 + [
        False
    ]
    alone = next(row for row in report["rows"] if row["name"].startswith("training step, one-hot embedding, batches"))
    assert "at most 3 times the floor" in alone["aim"]
