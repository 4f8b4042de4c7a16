"""Optional libraries: the table says what pyproject.toml says, and a missing one is named with its extra."""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

import pytest

from topicscope.ground import EXTRAS, InputError, needed, require
from topicscope.ground.machine import PACKAGES

ROOT = Path(__file__).parents[2]


def test_the_table_says_what_the_package_declares() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {
        extra: {re.split("[^A-Za-z0-9_.-]", line)[0].lower() for line in lines}
        for extra, lines in project["optional-dependencies"].items()
    }
    for library, extra in EXTRAS.items():
        assert PACKAGES.get(library, library).lower() in names[extra], library
    for extra in set(EXTRAS.values()):  # and none is left out of the table
        assert names[extra] == {PACKAGES.get(one, one).lower() for one, at in EXTRAS.items() if at == extra}


def test_a_library_that_is_there_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    require(["json", "os"], "this test")
    assert needed("json", "this test") is sys.modules["json"]


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    said = r"^the backend sklearn needs scikit-learn, which is not installed: pip install 'topicscope\[backends\]'$"
    with pytest.raises(InputError, match=said):
        require(["json", "sklearn"], "the backend sklearn")
    with pytest.raises(InputError, match=said):
        needed("sklearn.decomposition", "the backend sklearn")


@pytest.mark.parametrize(
    "line",
    ["import tomotopy._gone", "import _a_part_that_is_gone"]
    + [f"raise {kind.__name__}('made for another numpy')" for kind in (ImportError, OSError, ValueError)],
)
def test_a_library_that_cannot_be_loaded_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    (tmp_path / "tomotopy.py").write_text(line)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tomotopy", raising=False)
    with pytest.raises(
        InputError, match=r"needs tomotopy, which is installed, but cannot be loaded \((No|made) .*\): "
    ):
        needed("tomotopy", "the backend tomotopy")
