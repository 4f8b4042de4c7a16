"""Reads of what others may have written, cut off or tampered with: everything that comes from a file passes here.

A file is read whole only if it is a plain file of bounded size. What JSON and YAML hold is plain: mappings with words
as keys, lists, text that can be printed, numbers of 64 bits; of bounded depth and size. Anything else is an InputError
of one line, so that no other module has to expect it.
"""

import hashlib
import os
import stat
from pathlib import Path

from topicscope.ground.errors import InputError

AnyPath = str | os.PathLike[str]

MOST_BYTES = 2**30  # of a file that is read whole
MOST_SETTINGS = 8 * 2**20  # bytes of a YAML file, which is read at 300 kB a second
MOST_OWN = 64 * MOST_BYTES  # bytes, and values, of what the project wrote itself: as much as it may write


def one_line(error: BaseException) -> str:
    r"""What an error says, in one line; its name where it says nothing.

    Args:
        error: The error.

    Returns:
        At most 300 letters.

    Example:
        >>> one_line(ValueError("two\nlines")), one_line(ValueError())
        ('two lines', 'ValueError')
    """
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return " ".join(text.split())[:300] or type(error).__name__


def checked_file(path: AnyPath, what: str, most: int = MOST_BYTES) -> Path:
    """Check that a path is a plain file of bounded size. A FIFO would be waited for, /dev/zero would never end.

    Args:
        path: The file.
        what: What it is, for error messages.
        most: Most bytes.

    Returns:
        The path.

    Raises:
        InputError: It is missing, not an ordinary file, or too large.

    Example:
        >>> checked_file("no-such-file", "the config")
        Traceback (most recent call last):
        topicscope.ground.errors.InputError: the config no-such-file cannot be read: No such file or directory
    """
    path = Path(path)
    try:
        status = path.stat()
    except (OSError, ValueError) as error:  # ValueError: a null character in the name
        raise InputError(f"{what} {shown(path)} cannot be read: {one_line(error)}") from None
    if not stat.S_ISREG(status.st_mode):
        kind = "a folder" if stat.S_ISDIR(status.st_mode) else "not an ordinary file"
        raise InputError(f"{what} {shown(path)} cannot be read: it is {kind}; expected an ordinary file")
    if status.st_size > most:
        raise InputError(
            f"{what} {shown(path)} has {status.st_size / 1e6:,.0f} MB; at most {most / 1e6:,.0f} MB are read"
        )
    return path


def shown(path: AnyPath) -> str:
    r"""A path that can be printed: bytes that are no text, and signs that no one sees, as escapes.

    Args:
        path: The path.

    Returns:
        The text.

    Example:
        >>> shown("a\tb")
        'a\\tb'
    """
    text = os.fspath(path).encode("utf-8", "backslashreplace").decode()
    return "".join(sign if sign.isprintable() else repr(sign)[1:-1] for sign in text)


def read_bytes(path: AnyPath, what: str = "the file", most: int = MOST_BYTES) -> bytes:
    """Read a plain file of bounded size.

    Args:
        path: The file.
        what: What it is, for error messages.
        most: Most bytes.

    Returns:
        Its content.

    Raises:
        InputError: It cannot be read.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "a").write_bytes(b"abc")
        ...     read_bytes(Path(folder, "a"))
        b'abc'
    """
    checked = checked_file(path, what, most)
    try:
        return checked.read_bytes()
    except OSError as error:
        raise InputError(f"{what} {shown(path)} cannot be read: {one_line(error)}") from None


def read_text(path: AnyPath, what: str = "the file", most: int = MOST_BYTES, encoding: str = "utf-8") -> str:
    """Read a plain text file of bounded size.

    Args:
        path: The file.
        what: What it is, for error messages.
        most: Most bytes.
        encoding: Encoding of the text.

    Returns:
        Its text.

    Raises:
        InputError: It cannot be read, or is no text.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "a").write_bytes(b"abc")
        ...     read_text(Path(folder, "a"))
        'abc'
    """
    try:
        return read_bytes(path, what, most).decode(encoding)
    except UnicodeDecodeError as error:
        raise InputError(f"{what} {shown(path)} is not text: {one_line(error)}; expected UTF-8") from None


def file_digest(path: Path) -> str:
    """The SHA-256 of a file.

    Args:
        path: The file.

    Returns:
        64 hexadecimal digits.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = Path(folder, "a").write_bytes(b"abc")
        ...     file_digest(Path(folder, "a"))[:8]
        'ba7816bf'
    """
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
