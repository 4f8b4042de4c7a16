"""Loops that numba compiles to machine code, where many small calls of PyTorch cost more than their arithmetic.

Numba is imported with the first module of kernels, not before. Compiled kernels are kept beside the sources, or in the
user's cache folder where the sources are read-only. So they are compiled once per installation, which takes seconds
and is announced.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import Any, TypeVar, cast

from topicscope.ground.progress import Progress, silent

F = TypeVar("F", bound=Callable[..., Any])

_progress: list[Progress] = [silent]  # the last one is told when a kernel is compiled
_listeners: list[Any] = []


def can_compile() -> bool:
    """Whether numba is installed.

    Returns:
        True or False.

    Example:
        >>> can_compile() == (find_spec("numba") is not None)
        True
    """
    return find_spec("numba") is not None


@contextmanager
def compiling_announced(progress: Progress) -> Iterator[None]:
    """Inside, `progress` hears when a kernel is compiled. One that is only loaded takes no time worth mentioning.

    Args:
        progress: Called as progress(phase, done, total, note).

    Returns:
        A context manager.

    Example:
        >>> from topicscope.ground import silent
        >>> with compiling_announced(silent):
        ...     print("training")
        training
    """
    _progress.append(progress)
    try:
        yield
    finally:
        _progress.pop()


@contextmanager
def interruptible() -> Iterator[None]:
    """Around calls of kernels: numba wraps what a signal raises into a SystemError; here it is itself again.

    Returns:
        A context manager.

    Example:
        >>> try:
        ...     with interruptible():
        ...         raise SystemError from KeyboardInterrupt()
        ... except KeyboardInterrupt:
        ...     print("interrupted")
        interrupted
    """
    try:
        yield
    except SystemError as error:
        raised: BaseException = error
        while isinstance(raised, SystemError) and raised.__cause__ is not None:
            raised = raised.__cause__
        raise raised from None


def compiled(function: F) -> F:
    """The function as machine code, made or loaded at its first call.

    Sums are taken in their order, as written, so that every process gets the same bytes. Divergence shows as NaN or
    infinity.

    Args:
        function: What numba can compile.

    Returns:
        The compiled function.

    Example:
        >>> def double(number):
        ...     return 2 * number
        >>> compiled(double).py_func(3)  # the function itself; nothing is compiled before the first call
        6
    """
    from numba import njit

    _listen()
    options: dict[str, Any] = {"error_model": "numpy"}  # division by zero gives inf or NaN
    try:
        return cast("F", njit(cache=True, **options)(function))
    except RuntimeError:  # there is no folder to keep it in: every process compiles it
        return cast("F", njit(**options)(function))


def _listen() -> None:
    from numba.core import event

    class Announcer(event.Listener):
        """Numba calls it when it begins to compile, and when it has done so."""

        def on_start(self, event: Any) -> None:
            _progress[-1]("compiling", note="once per installation")

        def on_end(self, event: Any) -> None:
            pass

    if not _listeners:
        _listeners.append(Announcer())
        event.register("numba:compile", _listeners[0])  # type: ignore[no-untyped-call]
