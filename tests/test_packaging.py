"""What is shipped: the files of the wheel, its metadata, and that every library that is imported is declared."""

import ast
import importlib.metadata
import re
import sys
import tarfile
import tomllib
import zipfile
from email.message import Message
from email.parser import Parser
from pathlib import Path
from typing import Any

import pytest
import yaml
from tools.wheel_test import build, files_of

import topicscope
from topicscope.ground import EXTRAS

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "topicscope"
PROJECT: dict[str, Any] = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
SHIPPED = (".py", ".pyi", ".jinja", ".js", ".css", ".txt", ".csv", ".json", ".yaml", ".typed")


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A source distribution, and the wheel that was built from it."""
    return build(tmp_path_factory.mktemp("packages"))


@pytest.fixture(scope="module")
def metadata(made: tuple[Path, Path]) -> Message:
    with zipfile.ZipFile(made[1]) as wheel:
        [name] = [name for name in wheel.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(wheel.read(name).decode())


def test_the_wheel_has_every_file_of_the_package(made: tuple[Path, Path]) -> None:
    compiled = ("__pycache__", ".nbi", ".nbc")
    expected = {
        str(path.relative_to(ROOT / "src"))
        for path in SOURCE.rglob("*")
        if path.is_file() and not any(mark in str(path) for mark in compiled)
    }
    assert {Path(name).suffix or Path(name).name for name in expected} <= {*SHIPPED, "py.typed"}
    assert files_of(made[1]) == expected
    for needed in ("topicscope/py.typed", "topicscope/__init__.pyi", "topicscope/language/data/stop-words-english.txt"):
        assert needed in expected
    with zipfile.ZipFile(made[1]) as wheel:
        for name in expected:
            assert wheel.read(name) == (ROOT / "src" / name).read_bytes()


def test_the_wheel_holds_nothing_else(made: tuple[Path, Path]) -> None:
    tops = {name.split("/")[0] for name in zipfile.ZipFile(made[1]).namelist()}
    assert tops == {"topicscope", f"topicscope-{topicscope.__version__}.dist-info"}


def test_the_source_distribution_has_what_a_reader_needs(made: tuple[Path, Path]) -> None:
    top = f"topicscope-{topicscope.__version__}"
    with tarfile.open(made[0]) as archive:
        names = set(archive.getnames())
    assert {f"{top}/{name}" for name in ("pyproject.toml", "README.md", "LICENSE", "CITATION.cff")} <= names


def test_the_metadata(metadata: Message) -> None:
    assert (metadata["Name"], metadata["Version"]) == ("topicscope", topicscope.__version__)
    assert metadata["License-Expression"] == "MIT"
    extras = {"all", "backends", "cluster", "dev", "explorer", "hub", "language"}
    assert extras <= set(metadata.get_all("Provides-Extra", []))
    versions = [line for line in metadata.get_all("Classifier", []) if re.search(r":: 3\.\d+$", line)]
    assert min(versions).endswith(metadata["Requires-Python"].removeprefix(">="))
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])
    assert metadata.get_all("Project-URL") is None  # none is known: no placeholders


def test_all_is_every_extra_for_users() -> None:
    [everything] = PROJECT["optional-dependencies"]["all"]
    named = set(everything.removeprefix("topicscope[").removesuffix("]").split(","))
    assert named == set(PROJECT["optional-dependencies"]) - {"all", "dev", "docs"}
    assert set(EXTRAS.values()) <= named


def test_the_version_is_in_one_place() -> None:
    assert PROJECT["dynamic"] == ["version"]
    assert importlib.metadata.version("topicscope") == topicscope.__version__
    assert f"\n## {topicscope.__version__}" in (ROOT / "CHANGELOG.md").read_text()


def test_the_citation() -> None:
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert {"cff-version", "message", "title", "authors"} <= set(citation)
    assert str(citation["version"]) == topicscope.__version__
    [paper] = citation["references"]
    assert [author["family-names"] for author in paper["authors"]] == ["Li", "Li", "Risteski"]
    assert paper["title"] == "How Do Transformers Learn Topic Structure: Towards a Mechanistic Understanding"
    assert paper["identifiers"][0]["value"] == "arXiv:2303.04245"


def imported(path: Path) -> set[str]:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    modules = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    modules += [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom) and not node.level]
    return {module.split(".")[0] for module in modules}


def test_every_library_that_is_imported_is_declared() -> None:
    """An installation that has what the wheel asks for has all that the code imports."""
    names = {"yaml": "pyyaml", "PIL": "pillow", "pydantic_core": "pydantic-core"}
    base = {re.split("[^A-Za-z0-9_.-]", line)[0].lower() for line in PROJECT["dependencies"]}
    for path in SOURCE.rglob("*.py"):
        others = imported(path) - set(sys.stdlib_module_names) - {"topicscope"} - set(EXTRAS)
        undeclared = {name for name in others if names.get(name, name).lower() not in base}
        assert not undeclared, f"{path.relative_to(SOURCE)}: {undeclared}"
