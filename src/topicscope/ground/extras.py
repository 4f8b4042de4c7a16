"""Optional libraries: which extra of the package installs each, and the one line that is said where one is missing."""

import importlib
import sys
import warnings
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

from topicscope.ground.errors import InputError

EXTRAS = {
    "accelerate": "language",
    "tokenizers": "language",
    "tomotopy": "language",
    "transformers": "language",
    "zstandard": "language",
    "ray": "cluster",
    "gensim": "backends",
    "pyLDAvis": "backends",
    "sklearn": "backends",
    "datasets": "hub",
    "anyio": "explorer",
    "starlette": "explorer",
    "uvicorn": "explorer",
}
"""Optional libraries by the name that is imported, and the extra that installs each; pyproject.toml says the same."""

PACKAGES = {"sklearn": "scikit-learn", "pyLDAvis": "pyldavis"}  # where the package has another name


def require(libraries: Iterable[str], user: str) -> None:
    """Raise InputError unless all are installed. None of them is imported: this comes before any work.

    `user` says what needs them: 'the engine ray', 'pretraining'.
    """
    for library in libraries:
        if sys.modules.get(library) is None and find_spec(library) is None:
            raise _missing(library, user)


def needed(module: str, user: str) -> Any:
    """A module of an optional library; InputError where it cannot be imported."""
    try:
        with warnings.catch_warnings(action="ignore"):  # what a library says about its own parts
            return importlib.import_module(module)
    except ModuleNotFoundError:
        raise _missing(module.partition(".")[0], user) from None


def _missing(library: str, user: str) -> InputError:
    package, extra = PACKAGES.get(library, library), EXTRAS[library]
    return InputError(f"{user} needs {package}, which is not installed: pip install 'topicscope[{extra}]'")
