"""What all results share: figures on demand, a short repr, reading back, tables."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar

import pytest

from topicscope.ground import InputError, Kind, Result, arrow_table, open_folder, read_finished
from topicscope.pages import Figure, Lines, Section, Series

NOTE = Kind("note", 1, resumes="always")


@dataclass(frozen=True, repr=False)
class Note(Result):
    kind: ClassVar[str] = "note"
    parts: list[Any]

    def summary(self) -> list[str]:
        return ["A note."]

    def table(self) -> Any:
        return arrow_table([{"a": 1}, {"b": 2.5, "a": 3}])

    def sections(self) -> list[Any]:
        return self.parts

    def _about(self) -> str:
        return f"{len(self.parts)} parts"


def section(*titles: str) -> Section:
    panels = [Lines("", [Series("curve", [0, 1], [1, 2])])]
    return Section("Part", figures=[Figure("name", title, "", panels) for title in titles])


def test_plot_draws_the_first_figure_of_all_sections() -> None:
    drawn = Note([section(), section("first", "second")]).plot()
    assert drawn.get_suptitle() == "first"
    with pytest.raises(InputError, match=r"Note\(1 parts\) has no figure; \.table\(\) has its numbers"):
        Note([section()]).plot()


def test_a_table_has_all_keys_in_the_order_in_which_they_turn_up() -> None:
    assert Note([]).table().to_pydict() == {"a": [1, 3], "b": [None, 2.5]}


def test_damaged_results_are_refused_in_one_line(tmp_path: Path) -> None:
    with open_folder(tmp_path / "x", NOTE) as folder:
        with pytest.raises(InputError, match="is not finished; to continue: "):
            read_finished(tmp_path / "x", NOTE, len)
        with pytest.raises(InputError, match=f"to continue: topicscope note --resume --out {tmp_path / 'x'}"):
            read_finished(tmp_path / "x", replace(NOTE, resumes="asked"), len)
        folder.finish({"words": [1, 2]})
    assert read_finished(tmp_path / "x", NOTE, lambda stored: stored["words"]) == [1, 2]
    with pytest.raises(InputError, match=r"^results\.json in .* is damaged \(KeyError: 'lines'\); run the command"):
        read_finished(tmp_path / "x", NOTE, lambda stored: stored["lines"])
    with pytest.raises(InputError, match=r"holds a note folder, not a poem folder$"):
        read_finished(tmp_path / "x", Kind("poem", 1), len)
    with pytest.raises(InputError, match=r"holds a note folder of format 1, this topicscope reads 2; make"):
        read_finished(tmp_path / "x", Kind("note", 2), len)
    (tmp_path / "x" / "results.json").write_text("{")
    with pytest.raises(InputError, match=r"results\.json is damaged: it is not what topicscope wrote; make"):
        read_finished(tmp_path / "x", NOTE, len)
    (tmp_path / "x" / "results.json").unlink()
    with pytest.raises(InputError, match=r"results\.json is missing; make "):
        read_finished(tmp_path / "x", NOTE, len)
