"""Python on the pages: a page's blocks run one after another, as a reader would type them, with smaller numbers."""

import ast
import doctest
import importlib
import re
from pathlib import Path
from typing import Any

import matplotlib
import pytest

from tests.docs.pages import ROOT, Block, blocks, pages
from tests.docs.quickly import SMALL, furnish, maker, missing
from tests.docs.test_commands import model, place, run  # noqa: F401  (fixtures)
from topicscope import Data
from topicscope.language import Measurement

PYTHON = {page: [block for block in blocks(page) if block.language in ("python", "py", "pycon")] for page in pages()}
PAGES = [page for page in pages() if PYTHON[page]]
NAMES = [str(page.relative_to(ROOT)) for page in PAGES]

FEWER = "documents=12, max_documents=60, iterations=5, bootstrap=20, topics=3"
SHORTER = {
    r"\bRunConfig\((?=steps)": "RunConfig(data=Data(documents=40, dev_documents=20), ",
    r"\bsteps=\d+": "steps=20",
    r'"steps": \d+': '"steps": 20',
    r"\bwith_seeds\(\d+\)": "with_seeds(4)",
    r"\bsample\(\d+\)": "sample(60)",
    r"\b(fit_topics\(.*), \d+\)": r"\1, 3)",
    r"\bProbeConfig\(([^()]*)\)": rf"ProbeConfig(\1, {FEWER}, shuffles=20, thresholds=(0.1,))",
    r"\bprobe_model\(([^()]*)\)": r"probe_model(\1, Measurement(thresholds=(0.1,), shuffles=20, bootstrap=20))",
    r"\bTimelineConfig\(([^()]*)\)": rf"TimelineConfig(\1, {FEWER}, threshold=0.1)",
    r"\bPretrainConfig\.of\(([^()]*)\)": r"PretrainConfig.of(\1).changed(SMALL)",
}
"""What is smaller here: patterns and what takes their place."""

READS = re.compile(r'\b(?:read|sandbox_timeline)\("(runs/[\w-]+)"\)')


def trees(page: Path) -> list[tuple[Block, ast.Module]]:
    return [(block, ast.parse(block.text, block.place)) for block in PYTHON[page] if ">>>" not in block.text]


@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_it_is_python_and_what_it_imports_is_there(page: Path) -> None:
    for block, tree in trees(page):
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom):
                module = importlib.import_module(str(node.module))
                missing = [alias.name for alias in node.names if not hasattr(module, alias.name)]
                assert not missing, f"{block.place}: {node.module} has no {missing}"
            elif isinstance(node, ast.Import):
                for alias in node.names:
                    importlib.import_module(alias.name)


@pytest.mark.slow
@pytest.mark.parametrize("page", PAGES, ids=NAMES)
def test_it_runs(page: Path, place: Path, model: Path, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: F811
    furnish(place, model)
    monkeypatch.setattr(matplotlib, "use", lambda *_: None)
    names: dict[str, Any] = {"__name__": "page", "Data": Data, "Measurement": Measurement, "SMALL": SMALL}
    for block in PYTHON[page]:
        if block.slow:
            continue
        for folder in missing(READS.findall(block.text)):
            first = maker(folder)
            assert first is None or run(first), f"{block.place}: no command of the documentation makes {folder}"
        if ">>>" in block.text:
            test = doctest.DocTestParser().get_doctest(block.text, names, block.place, block.place, block.line)
            runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE)
            runner.run(test, clear_globs=False)
            assert runner.summarize(verbose=False).failed == 0, block.place
            names |= test.globs
        else:
            text = block.text
            for pattern, smaller in SHORTER.items():
                text = re.sub(pattern, smaller, text)
            exec(compile(text, block.place, "exec"), names)
