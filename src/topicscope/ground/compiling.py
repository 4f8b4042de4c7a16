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
    return find_spec("numba") is not None


@contextmanager
def compiling_announced(progress: Progress) -> Iterator[None]:
    """Inside, `progress` is told when a kernel is compiled. One that is loaded takes no time worth mentioning."""
    _progress.append(progress)
    try:
        yield
    finally:
        _progress.pop()


@contextmanager
def interruptible() -> Iterator[None]:
    """Around calls of kernels: what a signal raises there numba wraps into a SystemError; here it is itself again."""
    try:
        yield
    except SystemError as error:
        raised: BaseException = error
        while isinstance(raised, SystemError) and raised.__cause__ is not None:
            raised = raised.__cause__
        raise raised from None


def compiled(function: F) -> F:
    """The function as machine code, made or loaded at its first call.

    Its arithmetic is done as it is written, sums in their order: the process that compiles a kernel and those that load
    it may have it in other pieces, and get the same bytes all the same. Divergence shows as NaN or infinity.
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
