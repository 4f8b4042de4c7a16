"""One base of all configurations: the same names and the same check from every side; errors in one line."""

import dataclasses
import itertools
import math
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal

import pytest
from pydantic import Field

from tests.refusals import refused
from topicscope import RunConfig
from topicscope.ground import (
    Config,
    InputError,
    assign,
    flat,
    gather,
    load_settings,
    log_steps,
    merged,
    nearest,
    section,
)


@section
class Pen:
    width: Annotated[float, Field(gt=0)] = 1.0
    colour: str = "black"


@section
class Drawing(Config):
    VERSION: ClassVar[int] = 3
    FILES: ClassVar[tuple[str, ...]] = ("paper", "sheets")
    version: Literal[3] = 3
    seed: int = 0
    pen: Pen = Pen()
    paper: str | None = None
    sheets: list[str] = Field(default_factory=list)


def test_settings_keywords_and_constructors_agree() -> None:
    wanted = Drawing(seed=2, pen=Pen(width=2.0, colour="red"))
    assert Drawing.of({"seed": 2, "pen": {"width": 2.0}}, pen={"colour": "red"}) == wanted
    assert Drawing.of(wanted.as_dict()) == wanted
    assert Drawing().changed({"pen.width": 2.0, "pen.colour": "red", "seed": 2}) == wanted
    assert [one.seed for one in wanted.with_seeds(3)] == [2, 3, 4]
    assert wanted.as_dict() == {
        "version": 3, "seed": 2, "pen": {"width": 2.0, "colour": "red"}, "paper": None, "sheets": [],
    }  # fmt: skip


def test_errors_are_ours_and_name_the_key() -> None:
    refused(r"^config: pen\.width = -1: input should be greater than 0$", Drawing.of, pen={"width": -1})
    refused(r"^Pen: width = -1: input should be greater than 0$", Pen, width=-1)
    with pytest.raises(InputError, match=r"^Pen: unknown key 'widht'; did you mean 'width'\?$"):
        Pen(widht=1)  # type: ignore[call-arg]
    refused("did you mean 'colour'", Drawing.of, pen={"color": "red"})
    refused("config version 2: this topicscope reads version 3", Drawing.of, version=2, whatever=1)
    with pytest.raises(InputError, match="'seed' is not a section"):
        Drawing().changed({"seed.x": 1})


def test_file_names_become_absolute_and_words_stay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("")
    config = Drawing(paper="a.txt", sheets=["a.txt", "hf:name"]).absolute()
    assert (config.paper, config.sheets) == (str(tmp_path / "a.txt"), [str(tmp_path / "a.txt"), "hf:name"])
    unchanged = Drawing(paper="nowhere", sheets=["", "*.none"])
    assert unchanged.absolute() is unchanged
    (tmp_path / "a[1].txt").write_text("")  # a name that no pattern matches
    mixed = Drawing(paper="a[1].txt", sheets=["*.txt", "hf:name"]).absolute()
    assert (mixed.paper, mixed.sheets) == (str(tmp_path / "a[1].txt"), [str(tmp_path / "*.txt"), "hf:name"])
    assert Drawing(paper="a.txt", sheets=["hf:name"]).absolute().paper == str(tmp_path / "a.txt")
    assert Drawing(paper="").absolute().paper == ""


def test_sections_are_frozen_and_hold_finite_numbers() -> None:
    with pytest.raises(dataclasses.FrozenInstanceError):
        Pen().width = 2.0  # type: ignore[misc]
    for width in (math.inf, math.nan):
        refused("finite number", Pen, width=width)


def test_a_config_without_a_version_of_its_own_is_of_version_1() -> None:
    @section
    class Plain(Config):
        seed: int = 0
        version: int = 1

    assert Plain.of() == Plain.of(None) == Plain.of({}, version=1) == Plain()
    refused("config version 2: this topicscope reads version 1", Plain.of, version=2)


def test_flags_win_over_files_and_assignments_over_flags(tmp_path: Path) -> None:
    (tmp_path / "c.yaml").write_text("steps: 5\noptimizer: {lr: 1.0e-2, eps: 1.0e-9}\n")
    settings = gather(tmp_path / "c.yaml", {"steps": 7, "optimizer.lr": 0.5, "seed": None}, ["optimizer.lr=1e-3"])
    assert settings == {"steps": 7, "optimizer": {"lr": 0.001, "eps": 1e-9}}
    config = RunConfig.of(settings)
    assert (config.steps, config.optimizer.lr, config.optimizer.eps, config.seed) == (7, 0.001, 1e-9, 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: [1, 2\n", "is not YAML: while parsing"),
        ("- 1\n- 2\n", "holds a list; expected keys and values"),
        ("a: &x [*x]\n", "is not YAML: found unconstructable recursive node"),
        ("a:\n- {b: 1, c: 2, b: 3}\n", "'b' is given more than once"),
    ],
)
def test_files_that_hold_no_settings_are_refused(tmp_path: Path, text: str, message: str) -> None:
    (tmp_path / "c.yaml").write_text(text)
    assert message in refused("", load_settings, tmp_path / "c.yaml", "grid")


def test_files_that_cannot_be_read_are_refused_and_empty_ones_hold_nothing(tmp_path: Path) -> None:
    said = refused("", load_settings, tmp_path / "none.yaml", "grid")
    where = f"the grid {tmp_path / 'none.yaml'} cannot be read"
    assert said == f"{where}: No such file or directory; give the path of a YAML file"
    (tmp_path / "c.yaml").write_bytes(b"\xff\xfe")
    refused(r"the config .*c\.yaml is not text: 'utf-8' codec can't decode", load_settings, tmp_path / "c.yaml")
    for text in ("", "# nothing\n"):
        (tmp_path / "c.yaml").write_text(text)
        assert load_settings(tmp_path / "c.yaml") == {}


@pytest.mark.parametrize(
    ("assignment", "message"),
    [
        ("lr", "expected key=value"),
        ("=5", "expected key=value"),
        ("a=[1", "the value is not YAML: while parsing"),
        ("seed.x=1", "'seed' is not a section"),
    ],
)
def test_assignments_that_cannot_be_are_refused(assignment: str, message: str) -> None:
    assert refused("", gather, None, {"seed": 3}, [assignment]).startswith(f"--set {assignment!r}: {message}")


def test_assignments_are_yaml() -> None:
    texts = {"a": "1e-3", "b": "[1, x]", "c": "word", "d": "", "e": "a=b", "f": "2"}
    values: dict[str, Any] = {"a": 0.001, "b": [1, "x"], "c": "word", "d": None, "e": "a=b", "f": 2}
    assert gather(None, {}, [f"{key}={text}" for key, text in texts.items()]) == values


def test_nested_settings() -> None:
    settings: dict[str, object] = {"a": {"b": 1}}
    assign(settings, "a.c.d", 2)
    assert settings == {"a": {"b": 1, "c": {"d": 2}}}
    assert flat(settings) == {"a.b": 1, "a.c.d": 2}
    assert merged({"a": {"b": 1}, "x": 1}, {"a": {"c": 2}, "x": {"y": 3}}) == {"a": {"b": 1, "c": 2}, "x": {"y": 3}}


@pytest.mark.parametrize(("steps", "count"), [(1, 24), (10, 24), (400, 24), (3000, 24), (100, 5)])
def test_log_steps_start_at_zero_end_at_the_last_and_grow_evenly(steps: int, count: int) -> None:
    found = log_steps(steps, count)
    assert found[0] == 0
    assert found[-1] == steps
    assert found == sorted(set(found))
    assert len(found) <= count + 1
    ratio = steps ** (1 / max(1, count - 1))
    for before, after in itertools.pairwise(found[1:]):
        assert after <= max(before + 1, (before + 0.5) * ratio + 0.5)  # no gap is wider than rounding makes it
    assert len(log_steps(10**12)) == 25


def test_a_link_keeps_its_name(tmp_path: Path) -> None:
    """Its kind is in the name, which the file that it leads to may lack."""

    @section
    class Reads(Config):
        FILES: ClassVar[tuple[str, ...]] = ("text",)
        text: str = ""
        seed: int = 0

    (tmp_path / "0123abcd").write_text("x")
    (tmp_path / "a.txt").symlink_to("0123abcd")
    assert Reads(str(tmp_path / "a.txt")).absolute().text == str(tmp_path / "a.txt")


@section
class Box:
    size: int
    pen: Pen | None = None
    pens: list[Pen] = Field(default_factory=list)
    edge: int | Literal["none"] = "none"

    def __post_init__(self) -> None:
        if self.size > 9:
            raise InputError("size = 10: too large for a box")


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({}, "Box: size is missing; it has no default, so give it a value"),
        ({"size": 10}, "Box: size = 10: too large for a box"),
        ({"size": 1, "pen": {"color": "red"}}, "Box: unknown key 'pen.color'; did you mean 'colour'?"),
        ({"size": 1, "pens": [{}, {"color": "red"}]}, "Box: unknown key 'pens.1.color'; did you mean 'colour'?"),
        ({"size": 1, "width": 2}, "Box: unknown key 'width'; did you mean 'pen.width'?"),
        ({"size": 1, "pen": {"xyz": 1}}, "Box: unknown key 'pen.xyz'; known: colour, width"),
        ({"size": [], "seize": 1}, "Box: unknown key 'seize'; did you mean 'size'?"),  # before the wrong value
        ({"size": 1, "pens": [{}, {"width": -1}]}, "Box: pens.1.width = -1: input should be greater than 0"),
        ({"size": 1, "edge": "x", "pens": [{"width": 0}]}, "Box: pens.0.width = 0: input should be greater than 0"),
        ({"size": 1, "edge": "x"}, "Box: edge = 'x': input should be a whole number, or 'none'"),
    ],
)
def test_a_wrong_setting_is_named_in_one_line(settings: dict[str, Any], message: str) -> None:
    assert refused("", Box, **settings) == message


def test_a_mistyped_key_of_a_phase_is_named_with_the_nearest_one() -> None:
    with pytest.raises(InputError, match=r"unknown key 'schedule\.phases\.0\.part'; did you mean 'parts'"):
        RunConfig.of(schedule={"phases": [{"part": ["value"]}]})


def test_the_nearest_name_or_all_names() -> None:
    assert nearest("optimzer", ["optimizer", "seed"]) == "did you mean 'optimizer'?"
    assert nearest("xyz", ["seed", "optimizer"]) == "known: optimizer, seed"
    assert nearest("abcd", ["abxy", "wxyz"]) == "did you mean 'abxy'?"  # half of the letters are enough
    assert nearest("abcde", ["abxyz"]) == "known: abxyz"
