"""The text that all tests here train on, and a run that was never stopped."""

from pathlib import Path

import pytest

from tests.pretraining import small
from topicscope.pretraining import pretrain


@pytest.fixture(scope="session")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("corpus") / "texts.txt"
    path.write_text("\n".join(small.texts()))
    return str(path)


@pytest.fixture(scope="session")
def whole(corpus: str, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was never stopped."""
    out = tmp_path_factory.mktemp("whole") / "run"
    pretrain(small.config(corpus), out)
    return out
