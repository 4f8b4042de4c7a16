"""Places to write to: whether a folder can be made there, the lock that one process at a time holds, and their end."""

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import filelock

from topicscope.ground.checked import AnyPath, one_line, shown
from topicscope.ground.errors import InputError
from topicscope.ground.files import FULL, named

LOCK = ".lock"
ATTEMPTS = 100  # at a folder that others make and remove meanwhile
PATIENCE = 0.3  # seconds: who only looks whether a folder is held (`is_held`) keeps its lock for an instant


def check_out(path: Path) -> Path:
    """Check that a folder is there that can be written to, or can be made there.

    Args:
        path: The folder.

    Returns:
        The path.

    Raises:
        InputError: It cannot.

    Example:
        >>> check_out(Path("new-folder")).name
        'new-folder'
    """
    try:
        str(path).encode()  # a name that is not UTF-8 can be stored in no config
        path.exists()  # raises where the name is too long, which lexists does not
        place = next(place for place in (path.absolute(), *path.absolute().parents) if os.path.lexists(place))
        if place == path.absolute() and not path.is_dir():
            raise InputError(f"{shown(path)} is a file, or a broken link; give a folder that is new or empty")
        if not place.is_dir():
            raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR))
        if not os.access(place, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    except InputError:
        raise
    except UnicodeEncodeError:
        raise InputError(f"{shown(path)}: its name is not UTF-8; choose another folder") from None
    except (OSError, ValueError) as error:  # also a name that is too long, or has a null character
        raise _unusable(path, error) from None
    return path


@contextmanager
def lock(path: Path) -> Iterator[None]:
    """One process at a time writes to a folder, which is made where there is none. The lock file stays with it."""
    for attempt in range(ATTEMPTS):
        make_folder(path)
        try:
            held = filelock.FileLock(path / LOCK, timeout=PATIENCE).acquire(poll_interval=0.02)
            break
        except filelock.Timeout:
            raise InputError(
                f"another process is writing to {shown(path)}; wait for it or choose another folder"
            ) from None
        except OSError as error:
            # a process that had made the folder, and failed, has just removed it
            if not isinstance(error, FileNotFoundError) or attempt == ATTEMPTS - 1:
                raise _unusable(path, error) from None
    with held:
        yield


def is_held(path: Path) -> bool:
    """Whether a process writes to the folder now.

    Args:
        path: The folder.

    Returns:
        True or False.

    Example:
        >>> is_held(Path("no/such/folder"))
        False
    """
    if not (path / LOCK).exists():
        return False
    try:
        with filelock.FileLock(path / LOCK, timeout=0, is_singleton=False):
            return False
    except (filelock.Timeout, OSError):
        return True


def make_folder(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise _unusable(path, error) from None


def _unusable(path: Path, error: Exception) -> Exception:
    if isinstance(error, OSError) and error.errno in FULL:
        return named(error, path)  # nothing is wrong with the folder
    return InputError(f"{shown(path)} cannot be made or written to: {one_line(error)}; choose another folder")


def remove_empty(path: Path, first: Path) -> None:
    """Remove a folder and those above it that were made with it, as far as they are empty."""
    for place in (path, *path.parents):
        try:
            place.rmdir()
        except OSError:  # not empty: another process has begun to write there
            return
        if place == first:
            return


def member_paths(path: AnyPath, runs: int) -> list[Path]:
    return [Path(path) / f"run-{number:03d}" for number in range(runs)]
