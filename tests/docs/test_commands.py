"""Every command of README and docs: its options exist, and it runs, on small models, texts and numbers.

Which are not run, and why: `.venv/bin/python -m pytest tests/docs/test_commands.py -k listed -s`.
"""

import re
from pathlib import Path
from typing import Any

import pytest
from tools.reference.commands import commands as all_commands, help_of

from tests.calling import topicscope
from tests.docs.pages import ROOT, Command, arguments_of, commands, pages, tokens
from tests.docs.quickly import SMALL, furnish, maker, missing, reads, shortened, texts, why_not, writes

PAGES = [page for page in pages() if commands(page)]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]
LARGEST_SHARE_NOT_RUN = 0.5


def parsed(arguments: tuple[str, ...]) -> Any:
    """The command's context, as if it were to be run; an error of usage where an option does not exist."""
    found = all_commands()
    if arguments[0].startswith("-"):  # of topicscope itself; they act as soon as they are read
        assert any(arguments[0] in option.opts for option in found[()].params), f"no option {arguments[0]}"
        return None
    path = arguments[:2] if arguments[:2] in found else arguments[:1]
    assert path in found, f"no command {arguments[0]!r}"
    return found[path].make_context(" ".join(path), list(arguments[len(path) :]))


@pytest.fixture(scope="session")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small BERT whose tokenizer knows the words of the pages."""
    from topicscope import PretrainConfig, pretrain

    place = tmp_path_factory.mktemp("model")
    (place / "articles.txt").write_text("\n".join(document["text"] for document in texts()))
    config = PretrainConfig.of({"text": {"corpus": [str(place / "articles.txt")]}}, steps=4, device="cpu", length=40)
    pretrain(config.changed(SMALL), place / "run")
    return place / "run" / "model"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_option_exists(page: Path, place: Path) -> None:
    furnish(place, None)
    for command in commands(page):
        try:
            parsed(command.arguments)
        except Exception as error:
            pytest.fail(f"{command.place}: topicscope {' '.join(command.arguments)}: {error}")


def test_the_examples_of_the_help_have_options_that_exist(place: Path) -> None:
    examples = [example for command in all_commands().values() if (example := help_of(command)[1])]
    assert len(examples) >= 20
    for example in examples:
        arguments = arguments_of(example)
        assert arguments is not None, example
        parsed(arguments)


def run(command: Command) -> bool:
    """Run a command, and before it those that make what it reads; False where one of them is not run."""
    for folder in missing(reads(command.arguments)):
        first = maker(folder)
        assert first is not None, f"{command.place}: no command of the documentation makes {folder}"
        run(first)
    if why_not(command) or missing(reads(command.arguments)):
        return False
    arguments = shortened(command.arguments)
    try:
        topicscope(*arguments)
    except BaseException as error:
        pytest.fail(f"{command.place}: topicscope {' '.join(arguments)}: {error}")
    assert "--dry-run" in arguments or not missing([writes(command.arguments) or "."]), command
    return True


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_every_command_runs(page: Path, place: Path, model: Path) -> None:
    furnish(place, model)
    for command in commands(page):
        before = [maker(folder) for folder in reads(command.arguments)]
        left_out = why_not(command) or any(first and why_not(first) for first in before)
        assert run(command) or left_out, command


def test_what_is_not_run_is_listed_with_its_reason() -> None:
    every = [command for page in PAGES for command in commands(page)]
    left_out = {command: why_not(command) for command in every if why_not(command)}
    for command, reason in left_out.items():
        print(f"{command.place}: topicscope {' '.join(command.arguments)}: {reason}")
    assert 0 < len(left_out) < LARGEST_SHARE_NOT_RUN * len(every)


def test_every_make_target_of_the_pages_exists() -> None:
    targets = set(re.findall(r"^(\w[\w-]*):", (ROOT / "Makefile").read_text(), re.M))
    named = {
        match
        for page in pages()
        for token in tokens(page)
        for inner in (token, *(token.children or ()))
        if inner.type in ("fence", "code_block", "code_inline")
        for match in re.findall(r"^\s*make ([a-z][a-z-]*)", inner.content, re.M)
    }
    assert {"reproduce", "test"} <= named <= targets
