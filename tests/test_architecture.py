"""The rooms: who may import whom, and only through the front door. A room never reaches back."""

import ast
import importlib
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import topicscope

SOURCE = Path(topicscope.__file__).parent
LONGEST_LINE = 120

KNOWS: dict[str, set[str]] = {
    "ground": set(),
    "world": {"ground"},
    "measure": {"ground"},
    "theory": {"ground", "world"},
    "model": {"ground", "world", "theory"},
    "laws": {"ground", "world", "theory", "model", "measure"},
    "training": {"ground", "world", "theory", "model", "laws", "measure"},
    "language": {"ground", "world", "measure"},
    "pretraining": {"ground", "measure", "language"},
    "sweeps": {"ground", "training", "measure", "language", "pretraining"},
    "pages": {"ground", "theory", "model", "measure", "laws", "training", "language", "pretraining", "sweeps"},
    "paper": {
        "ground",
        "world",
        "theory",
        "model",
        "measure",
        "laws",
        "training",
        "language",
        "pretraining",
        "sweeps",
        "pages",
    },
    "exporting": {"ground", "training", "pretraining", "language", "sweeps", "reading"},
    "explorer": {"ground", "world", "theory", "laws", "training", "pages", "paper", "reading"},
    "cli": {
        "ground",
        "world",
        "laws",
        "measure",
        "training",
        "theory",
        "language",
        "pretraining",
        "sweeps",
        "pages",
        "paper",
        "explorer",
        "exporting",
        "reading",
    },
    "reading": {"ground"},
}
"""What each room, and each module beside the rooms, may import. `topicscope` itself is for users."""

BY_NAME = {"ground/results.py", "reading.py", "pages/panels.py"}
"""Files that import rooms by name, at the time of the call: results that show themselves, and registries."""

EAGER = {"ground", "world", "theory"}
ROOMS = sorted(path.name for path in SOURCE.iterdir() if (path / "__init__.py").exists())


def imports(tree: ast.AST) -> Iterator[tuple[str, str | None]]:
    """Modules and, where one is taken from them, names: every form of import that Python has."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, None) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                yield "." * node.level, None
            yield from ((node.module or "", alias.name) for alias in node.names)
        elif (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.match(rf"topicscope\.({'|'.join(ROOMS)})\b", node.value)
        ):
            yield f"'{node.value}'", None


def wrongs(path: Path, text: str) -> list[str]:
    """What a file of the package imports that it may not."""
    relative = path.relative_to(SOURCE)
    room = relative.parts[0].removesuffix(".py")
    found = []
    for module, name in imports(ast.parse(text)):
        if module.startswith("'"):
            if str(relative) not in BY_NAME and module.split(".")[1].strip("'") != room:
                found.append(f"{relative} names {module}")
            continue
        if module.startswith("."):
            found.append(f"{relative} has a relative import")
            continue
        parts = module.split(".")
        if parts[0] != "topicscope":
            continue
        if len(parts) == 1:  # from topicscope import x: a room as a namespace, never a name for users
            if name in ROOMS or name == "__version__":
                parts = [*parts, str(name)] if name in ROOMS else []
            else:
                found.append(f"{relative} takes {name} from topicscope itself")
                continue
        if len(parts) < 2 or parts[1] == room:
            continue
        if parts[1] not in KNOWS[room]:
            found.append(f"{relative} imports {parts[1]}")
        if len(parts) > 2:
            found.append(f"{relative} reaches into {module}")
    return found


def test_every_room_is_listed() -> None:
    assert set(ROOMS) | {"reading"} == set(KNOWS)
    for room, known in KNOWS.items():
        assert known <= set(KNOWS), room


def test_no_room_reaches_back_or_inside_another() -> None:
    files = [
        path for path in SOURCE.rglob("*.py") if path.name not in ("__main__.py",) and path != SOURCE / "__init__.py"
    ]
    assert len(files) > 100
    assert [wrong for path in files for wrong in wrongs(path, path.read_text())] == []


@pytest.mark.parametrize(
    ("file", "line"),
    [
        ("world/x.py", "from topicscope import training"),
        ("world/x.py", "from topicscope import train"),
        ("world/x.py", "import topicscope.training as t"),
        ("world/x.py", "def f():\n    from topicscope.model import Weights"),
        ("ground/engines.py", "from topicscope.language import Corpus"),
        ("sweeps/x.py", "from topicscope.training.run import train"),
        ("sweeps/x.py", "import topicscope.training.run"),
        ("sweeps/x.py", "from .grid import Grid"),
        ("sweeps/x.py", "import importlib\nimportlib.import_module('topicscope.paper')"),
        ("pages/x.py", "from topicscope.paper import reproduce"),
    ],
)
def test_every_form_of_import_is_seen(file: str, line: str) -> None:
    assert wrongs(SOURCE / file, line)
    assert not wrongs(SOURCE / "paper/x.py", "from topicscope import training\nfrom topicscope.world import MASK")


@pytest.mark.parametrize("room", [room for room in ROOMS if room != "cli"])
def test_front_doors_open(room: str) -> None:
    """Every name that a room exports is there, once, and is not hidden by a module of the same name."""
    door = importlib.import_module(f"topicscope.{room}")
    modules = {path.stem for path in (SOURCE / room).glob("*.py")} if room not in EAGER else set()
    names = getattr(door, "__all__", None) or [name for name in vars(door) if not name.startswith("_")]
    assert len(names) == len(set(names)) > 0
    for name in names:
        assert name not in modules, f"{room}.{name} is also a module"
        assert getattr(door, name) is not None


def test_the_whole_product_comes_from_topicscope() -> None:
    wanted = {"train", "pretrain", "probe", "fit_topics", "load_model", "sweep", "read", "theory", "Corpus"}
    names = dir(topicscope)
    assert wanted <= set(names)
    for name in names:
        assert getattr(topicscope, name) is not None
    assert callable(topicscope.sweep)
    assert (SOURCE / "py.typed").exists()


LIGHT = """
import sys
import topicscope.ground, topicscope.world, topicscope.theory, topicscope.reading
from topicscope.pages import Figure, Section
from topicscope.language import ProbeConfig
from topicscope.paper import EXPERIMENTS
from topicscope.pretraining import PretrainConfig
from topicscope.sweeps import read_grid
from topicscope.training import RunConfig
RunConfig.of(steps=5)
heavy = [name for name in ("torch", "numba", "transformers", "matplotlib", "plotly") if name in sys.modules]
assert not heavy, heavy
"""


def test_configs_and_registries_come_without_heavy_libraries() -> None:
    """Bad input is refused, and lists are printed, before PyTorch is imported."""
    result = subprocess.run([sys.executable, "-c", LIGHT], capture_output=True, text=True)
    assert result.returncode == 0, result.stderr


def test_lines_of_scripts_styles_and_templates_fit() -> None:
    files = [path for ending in ("js", "css", "jinja") for path in SOURCE.rglob(f"*.{ending}")]
    assert len(files) > 30
    long = [
        f"{path.relative_to(SOURCE)}:{number}"
        for path in files
        for number, line in enumerate(path.read_text().splitlines(), start=1)
        if len(line) > LONGEST_LINE
    ]
    assert long == []


@pytest.mark.parametrize("room", ["measure", "sweeps"])
def test_records_cannot_be_changed(room: str) -> None:
    files = (Path(topicscope.__file__).parent / room).glob("*.py")
    lines = [line for file in files for line in file.read_text().splitlines() if line.startswith("@dataclass")]
    assert lines
    assert all("frozen=True" in line for line in lines)
