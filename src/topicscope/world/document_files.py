"""Documents in files: the text format of the authors' code."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from jaxtyping import Int

from topicscope.ground import InputError, files, read_text
from topicscope.world.documents import PADDING, Documents, InfiniteDocuments, word_type
from topicscope.world.topics import TopicModel

MOST_BYTES = 2**28  # of a data file: half a million documents; reading takes a few times as much memory


def read_documents(path: str | os.PathLike[str], topic_model: TopicModel) -> Documents:
    r"""Read documents from the authors' text format.

    The file has one document per line: word ids 0..Tv-1 separated by spaces, `END` last. These ids have no [MASK], so
    id i is word i + 1 here.

    Args:
        path: The file, at most 256 MB.
        topic_model: Says how many words there are.

    Returns:
        The documents, without topic proportions.

    Raises:
        InputError: The file is missing or empty, a line has no `END`, or a word is outside the vocabulary.

    Example:
        >>> import tempfile
        >>> from topicscope import TopicModel, read_documents
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "documents.txt"
        ...     _ = path.write_text("0 3 1 END\n2 END\n")
        ...     read_documents(path, TopicModel(2, 2)).words.tolist()
        [[1, 4, 2], [3, -1, -1]]
    """
    text = read_text(path, "the data file", MOST_BYTES)
    lines = [
        _read_line(line.split(), f"{path}, line {number}", topic_model.words)
        for number, line in enumerate(text.splitlines(), start=1)
        if line.strip()
    ]
    if not lines:
        raise InputError(f"{path} holds no documents; expected one document per line")
    lengths = np.array([len(line) for line in lines])
    words = np.full((len(lines), lengths.max()), PADDING, dtype=word_type(topic_model))
    words[np.arange(words.shape[1]) < lengths[:, None]] = np.concatenate(lines)
    return Documents(words, lengths)


def _read_line(tokens: list[str], where: str, words: int) -> Int[np.ndarray, " N"]:
    if tokens[-1] != "END":
        raise InputError(f"{where}: ends with {tokens[-1][:40]!r}; expected 'END' last (is the file cut off?)")
    for token in tokens[:-1]:
        if not token.isascii() or not token.isdigit() or int(token) >= words:
            raise InputError(
                f"{where}: word {token[:40]!r} is outside the vocabulary; expected a word id from 0 to {words - 1}"
            )
    if len(tokens) == 1:
        raise InputError(f"{where}: the document has no words; expected at least one before 'END'")
    return np.array(tokens[:-1], dtype=np.int32) + 1


def write_documents(documents: Documents | InfiniteDocuments, path: str | os.PathLike[str]) -> None:
    r"""Write documents in the authors' text format, which `read_documents` reads.

    Args:
        documents: Finite documents.
        path: The file.

    Raises:
        InputError: The documents are infinite.

    Example:
        >>> import tempfile
        >>> from topicscope import Documents, write_documents
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "documents.txt"
        ...     write_documents(Documents(np.array([[1, 4, -1]]), np.array([2])), path)
        ...     path.read_text()
        '0 3 END\n'
    """
    finite = documents.finite()
    lines = (" ".join(map(str, row[:n] - 1)) + " END\n" for row, n in zip(finite.words, finite.lengths, strict=True))
    files.write(Path(path), "".join(lines).encode())
