"""Optional libraries: which extra of the package installs each, and the one line that is said where one is missing."""

import importlib
import sys
import warnings
from collections.abc import Iterable
from importlib.util import find_spec
from typing import Any

from topicscope.ground.checked import one_line
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
    "anywidget": "notebook",
    "ipywidgets": "notebook",
    "traitlets": "notebook",
}
"""Optional libraries by the name that is imported, and the extra that installs each; pyproject.toml says the same."""

PACKAGES = {"sklearn": "scikit-learn", "pyLDAvis": "pyldavis"}  # where the package has another name


def require(libraries: Iterable[str], user: str) -> None:
    """Check that optional libraries are installed. None of them is imported: this comes before any work.

    Args:
        libraries: Names that are imported.
        user: What needs them: 'the engine ray', 'pretraining'.

    Raises:
        InputError: One is missing; the message names the extra that installs it.

    Example:
        >>> print(require(["json"], "this example"))
        None
    """
    for library in libraries:
        if sys.modules.get(library) is None and find_spec(library) is None:
            raise _missing(library, user)


def needed(module: str, user: str) -> Any:
    """Import a module of an optional library.

    Args:
        module: Its name.
        user: What needs it, in words.

    Returns:
        The module.

    Raises:
        InputError: It is missing, or there but too old or damaged to be loaded; the message says what to install.

    Example:
        >>> needed("json", "this example").dumps([1])
        '[1]'
    """
    library = module.partition(".")[0]
    try:
        with warnings.catch_warnings(action="ignore"):  # what a library says about its own parts
            return importlib.import_module(module)
    except (ImportError, OSError, ValueError, AttributeError) as error:  # compiled for other versions
        raise _missing(library, user, None if find_spec(library) is None else error) from None


def _missing(library: str, user: str, damage: Exception | None = None) -> InputError:
    package, extra = PACKAGES.get(library, library), EXTRAS[library]
    if damage is None:
        return InputError(f"{user} needs {package}, which is not installed: pip install 'topicscope[{extra}]'")
    return InputError(
        f"{user} needs {package}, which is installed, but cannot be loaded ({one_line(damage)}): "
        f"pip install --upgrade 'topicscope[{extra}]', or pip install --force-reinstall --no-deps {package}"
    )
