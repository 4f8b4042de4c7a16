"""The generated pages: every command and option, every public name, every claim is there."""

import json
import re

import pytest
from tools.gallery import LARGEST, LARGEST_OF_ALL
from tools.reference import api, commands, paper_map
from tools.reference.docstrings import as_rst
from tools.reference.notebooks import NOTEBOOKS, notebook_pages
from tools.reference.paper_sources import SOURCES, WITHOUT_EXPERIMENT

from tests.docs.pages import DOCS, ROOT
from topicscope.paper import EXPERIMENTS

STORED = paper_map.stored()


def test_every_command_and_option_is_in_the_reference() -> None:
    pages = commands.command_pages()
    found = {path: command for path, command in commands.commands().items() if path}
    assert len(found) >= 20
    for path, command in found.items():
        page = pages[f"{path[0]}.md"]
        text = page if len(path) == 1 else page.split(f"\n## {path[1]}\n")[1].split("\n## ")[0]
        assert f"topicscope {' '.join(path)}" in text
        for parameter in [one for one in command.params if not getattr(one, "hidden", False)]:
            for name in (*parameter.opts, *parameter.secondary_opts) if not commands.is_argument(parameter) else ():
                assert f"`{name}`" in text, (path, name)
        if not hasattr(command, "commands"):
            assert "For example:" in text, path


def test_options_have_the_defaults_of_the_commands() -> None:
    pages = commands.command_pages()
    assert (
        "| `--documents` | `NUMBER` | Documents to measure attention on, sampled. Default: `250`. |"
        in pages["probe.md"]
    )
    assert "| `optimizer.lr` | `0.01` |" in pages["train.md"]
    assert "| `corpus` | none: yours to give |" in pages["probe.md"]
    theorem2 = pages["theory.md"].split("## theorem2")[1]
    assert "| `--p-mask` | `NUMBER` | p_m, share of positions that are masked. Default: `0.15`. |" in theorem2


@pytest.mark.parametrize("door", api.DOORS)
def test_every_public_name_is_in_the_reference(door: str) -> None:
    page = api.door_page(door)
    lines = set(page.splitlines())
    for name in api.public_names(door):
        directives = (f".. autoclass:: {door}::{name}", f".. autofunction:: {door}::{name}")
        assert {*directives, f".. py:data:: {name}", f".. py:attribute:: {name}"} & lines, name


def test_every_package_has_a_page() -> None:
    packages = {f"topicscope.{path.parent.name}" for path in (ROOT / "src" / "topicscope").glob("*/__init__.py")}
    assert set(api.DOORS) == (packages | {"topicscope"}) - {"topicscope.cli"}


def test_a_name_of_the_first_door_is_described_there_alone() -> None:
    assert ".. autofunction:: topicscope::train" in api.door_page("topicscope")
    page = api.door_page("topicscope.training")
    assert "The same as :py:obj:`topicscope.train`." in page
    assert "autofunction:: topicscope.training::train\n" not in page


def test_the_docstring_of_a_constant_is_the_string_below_it() -> None:
    assert api.constant_docstring("topicscope.world", "MASK") == "The word that stands for a hidden one."
    assert api.constant_docstring("topicscope.laws", "LAWS").startswith("The laws of whole runs")


def test_every_claim_has_its_equation_formula_files_command_and_verdict() -> None:
    pages = paper_map.paper_pages()
    both = pages["paper.md"] + pages["beyond.md"]
    assert set(SOURCES) == set(EXPERIMENTS) == set(STORED["outcomes"])
    for name, experiment in EXPERIMENTS.items():
        section = both.split(f"({name})=\n")[1].split("\n(")[0]
        assert f"`topicscope reproduce {name}`" in section
        assert f":formula: `{SOURCES[name].formula}`" in section
        assert commands.escaped(experiment.claim) in section
        assert commands.escaped(experiment.rule) in section
        assert f":verdict: **{paper_map.verdict_of(name)}**" in section
        [row] = [line for line in both.splitlines() if line.startswith(f"| [{name}](#{name})")]
        assert (r"reproduced\* |" in row) == (":sizes:" in section), name
    for statement in WITHOUT_EXPERIMENT:
        assert f"### {statement}" in pages["paper.md"]


def test_files_and_pages_that_the_map_names_exist() -> None:
    for source in (*SOURCES.values(), *WITHOUT_EXPERIMENT.values()):
        for file in source.files:
            assert (ROOT / "src" / "topicscope" / file).is_file(), file
        assert not source.page or (DOCS / source.page).is_file(), source.page


def test_the_stored_verdicts_are_those_of_the_reference_runs() -> None:
    assert STORED["scale"] == "quick"
    refuted = {name for name, outcome in STORED["outcomes"].items() if outcome["verdict"] != "reproduced"}
    assert refuted == {name for name, experiment in EXPERIMENTS.items() if "quick" in experiment.lost_at}


def test_every_figure_has_a_small_thumbnail_and_no_other_is_kept() -> None:
    gallery = paper_map.paper_pages()["gallery.md"]
    files = {figure["file"] for outcome in STORED["outcomes"].values() for figure in outcome["figures"]}
    assert {path.stem for path in paper_map.GALLERY.glob("*.png")} == files
    sizes = [path.stat().st_size for path in paper_map.GALLERY.glob("*.png")]
    assert max(sizes) <= LARGEST
    assert sum(sizes) <= LARGEST_OF_ALL
    for file in files:
        assert f"(picture-{file})=" in gallery
    assert json.loads(paper_map.OUTCOMES.read_text()) == STORED


def test_docstrings_become_what_sphinx_accepts() -> None:
    text = """What |W_V| is for `Run`s.

    Arguments:
        run: A run, with *all*
            its steps.
        steps, seed: Numbers.

    Example:
        >>> 1 + 1
        2

    - one
      item
    - two
    """.replace("\n    ", "\n")
    assert as_rst(text.splitlines()) == [
        r"What \|W_V\| is for ``Run``\ s.",
        "",
        "**Arguments**",
        "",
        "- ``run``: A run, with \\*all\\* its steps.",
        "- ``steps, seed``: Numbers.",
        "",
        "**Example**",
        "",
        ">>> 1 + 1",
        "2",
        "",
        "- one item",
        "- two",
        "",
    ]


@pytest.mark.parametrize("name", [path.stem for path in sorted(NOTEBOOKS.glob("*.py"))])
def test_the_page_of_a_notebook_has_its_code_and_its_text(name: str) -> None:
    """The lines of code, in order, are those of the file; the others are its comments."""
    page = notebook_pages()[f"{name}.md"]
    code = "".join(re.findall(r"```python\n(.*?)```", page, flags=re.DOTALL))
    lines = (NOTEBOOKS / f"{name}.py").read_text().splitlines()
    assert [line for line in code.splitlines() if line] == [line for line in lines if line and not line.startswith("#")]
    assert page.startswith("# ")
    assert f"({name}.md)" in notebook_pages()["index.md"]
