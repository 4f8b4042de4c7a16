"""Documents of a topic model: the priors of Sections 3.1 and 6.1, sampled without a Python loop, and the authors' text format.

>>> rng = np.random.default_rng(0)
>>> DocumentPrior(kind="fixed", topics_per_document=2, length=5).sample(TopicModel(3, 2), 4, rng).words.shape
(4, 5)
"""

from __future__ import annotations

import itertools
import math
import os
from dataclasses import dataclass as plain_dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import numpy as np
from jaxtyping import Float, Int
from pydantic import Field, PositiveInt, model_validator
from pydantic.dataclasses import dataclass

from topicscope.ground import STRICT, InputError
from topicscope.world.topics import TopicModel

PADDING = -1
"""Fills `Documents.words` behind the end of a document."""


@plain_dataclass(frozen=True)
class Documents:
    """`words` is padded with -1; for infinite documents (Assumption 1) it is None and the proportions say everything."""

    words: Int[np.ndarray, "D N"] | None
    lengths: Int[np.ndarray, " D"]
    proportions: Float[np.ndarray, "D T"] | None  # None where a file does not tell them

    def __len__(self) -> int:
        return len(self.lengths)

    @property
    def infinite(self) -> bool:
        return self.words is None


@dataclass(frozen=True, config=STRICT)
class DocumentPrior:
    """How topic proportions and lengths are drawn.

    kind 'dirichlet': theta ~ Dirichlet(alpha, ..., alpha) (Section 6.1). 'fixed': `topics_per_document` (tau) distinct topics with
    equal shares (Section 3.1). 'infinite': as 'fixed', with `length` 'infinite' (Assumption 1). 'given': rows of `proportions` (a
    matrix, or a .npy or .csv file of one), in turn. `length` is a number, an inclusive range, or 'infinite'.
    """

    kind: Literal["dirichlet", "fixed", "infinite", "given"] = "dirichlet"
    alpha: Annotated[float, Field(ge=1e-6)] = 0.1  # below that a draw underflows
    topics_per_document: PositiveInt = 3
    proportions: list[list[float]] | str | None = None
    length: int | tuple[int, int] | Literal["infinite"] = (100, 150)

    @model_validator(mode="after")
    def _check(self) -> DocumentPrior:
        if self.kind == "infinite":
            object.__setattr__(self, "length", "infinite")
        if self.length != "infinite":
            low, high = self.length_range
            if not 1 <= low <= high:
                raise ValueError(
                    f"length = {self.length}: expected a number of words >= 1, an increasing range, or 'infinite'"
                )
        if (self.kind == "given") != (self.proportions is not None):
            raise ValueError(
                "documents.proportions (a matrix or a .npy or .csv file) goes with kind 'given', and only with it"
            )
        return self

    @property
    def length_range(self) -> tuple[int, int]:
        """Shortest and longest document, both included."""
        if isinstance(self.length, str):
            raise InputError("an infinite document has no length; give documents.length a number or a range")
        return self.length if isinstance(self.length, tuple) else (self.length, self.length)

    def check(self, topics: int) -> None:
        """What can only be said once the number of topics is known."""
        if self.kind in ("fixed", "infinite") and self.topics_per_document > topics:
            raise InputError(
                f"topics_per_document = {self.topics_per_document} is more than topics = {topics}; choose at most {topics}"
            )
        if self.kind == "given":
            self.given(topics)

    def given(self, topics: int) -> Float[np.ndarray, "rows T"]:
        """The user's matrix of topic proportions, checked."""
        rows = (
            read_matrix(self.proportions, "documents.proportions")
            if isinstance(self.proportions, str)
            else as_matrix(self.proportions, "documents.proportions")
        )
        if rows.ndim != 2 or rows.shape[1] != topics or len(rows) == 0:
            raise InputError(
                f"documents.proportions has shape {rows.shape}; expected (documents, {topics}), a column a topic"
            )
        if not (rows >= 0).all() or not np.allclose(rows.sum(1), 1, atol=1e-6):
            raise InputError("documents.proportions: every row must be non-negative and sum to 1")
        return rows / rows.sum(1, keepdims=True)

    def sample_proportions(self, topics: int, count: int, rng: np.random.Generator) -> Float[np.ndarray, "D T"]:
        self.check(topics)
        if self.kind == "dirichlet":
            return rng.dirichlet(np.full(topics, self.alpha), size=count)
        if self.kind == "given":
            rows = self.given(topics)
            return rows[np.arange(count) % len(rows)]
        chosen = np.argpartition(rng.random((count, topics)), self.topics_per_document - 1, axis=1)[
            :, : self.topics_per_document
        ]
        proportions = np.zeros((count, topics))
        np.put_along_axis(proportions, chosen, 1 / self.topics_per_document, axis=1)
        return proportions

    def sample(self, topic_model: TopicModel, count: int, rng: np.random.Generator) -> Documents:
        """Draw `count` documents; the same generator state gives the same documents."""
        proportions = self.sample_proportions(topic_model.topics, count, rng)
        if self.length == "infinite":
            return Documents(None, np.zeros(count, dtype=np.int64), proportions)
        low, high = self.length_range
        lengths = rng.integers(low, high + 1, size=count)
        words = _sample_words(topic_model, proportions, high, rng)
        if low < high:
            words[np.arange(high) >= lengths[:, None]] = PADDING
        return Documents(words, lengths, proportions)


def every_document(topic_model: TopicModel, topics_per_document: int) -> Documents:
    """All C(T, tau) infinite documents of Assumption 1, each once."""
    subsets = list(itertools.combinations(range(topic_model.topics), topics_per_document))
    proportions = np.zeros((len(subsets), topic_model.topics))
    np.put_along_axis(proportions, np.array(subsets), 1 / topics_per_document, axis=1)
    assert len(subsets) == math.comb(topic_model.topics, topics_per_document)
    return Documents(None, np.zeros(len(subsets), dtype=np.int64), proportions)


def _sample_words(
    topic_model: TopicModel, proportions: Float[np.ndarray, "D T"], length: int, rng: np.random.Generator
) -> Int[np.ndarray, "D N"]:
    """Topic by inversion of each document's cumulative proportions, then a word of the topic; all documents at once.

    Works through documents in slices so that the temporaries stay in cache.
    """
    dtype = np.int16 if topic_model.vocabulary < 2**15 else np.int32
    words = np.empty((len(proportions), length), dtype=dtype)
    v = topic_model.words_per_topic
    slice_size = max(1, 50_000 // length)
    cumulative = np.cumsum(proportions, axis=1)
    last = topic_model.topics - 1 - np.argmax(proportions[:, ::-1] > 0, axis=1)
    cumulative[np.arange(topic_model.topics) >= last[:, None]] = 1  # rounding may not lead past the last topic present
    within = np.cumsum(topic_model.word_given_topic, axis=1)
    within[:, -1] = 1
    for start in range(0, len(proportions), slice_size):
        rows = slice(start, start + slice_size)
        topic = _invert(cumulative[rows], rng.random((len(proportions[rows]), length)))
        if topic_model.uniform:
            word = rng.integers(1, v + 1, size=topic.shape, dtype=dtype)
        else:
            flat = topic.ravel()
            word = 1 + _invert(within[flat], rng.random((len(flat), 1))).reshape(topic.shape)
        words[rows] = np.multiply(topic, v, dtype=dtype, casting="unsafe") + word
    return words


def _invert(cumulative: Float[np.ndarray, "D K"], uniform: Float[np.ndarray, "D N"]) -> Int[np.ndarray, "D N"]:
    """For each number of a row, how many of the row's cumulative probabilities it has passed."""
    choices = cumulative.shape[1]
    if choices > 32:  # bisection; below that, one comparison with each threshold is several times faster
        import torch

        return torch.searchsorted(
            torch.from_numpy(cumulative), torch.from_numpy(uniform), right=True, out_int32=True
        ).numpy()
    passed = np.zeros(uniform.shape, dtype=np.int16)
    for choice in range(choices - 1):
        passed += uniform >= cumulative[:, choice, None]
    return passed


def read_documents(path: str | os.PathLike[str], topic_model: TopicModel) -> Documents:
    """Read the authors' text format: a document a line, word ids 0..Tv-1 separated by spaces, `END` last.

    Their ids have no [MASK], so id i is this project's word i + 1.
    """
    lines: list[Int[np.ndarray, " N"]] = []
    try:
        text = Path(path).read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"cannot read the data file {path}: {error}; expected a text file of word ids") from None
    for number, line in enumerate(text.splitlines(), start=1):
        tokens = line.split()
        if not tokens:
            continue
        if tokens[-1] != "END":
            raise InputError(
                f"{path}, line {number}: ends with {tokens[-1]!r}; expected 'END' last (is the file cut off?)"
            )
        for token in tokens[:-1]:
            if not token.isascii() or not token.isdigit() or int(token) >= topic_model.words:
                raise InputError(
                    f"{path}, line {number}: word {token!r} is outside the vocabulary; expected a word id from 0 to {topic_model.words - 1}"
                )
        if len(tokens) == 1:
            raise InputError(f"{path}, line {number}: the document has no words; expected at least one before 'END'")
        lines.append(np.array(tokens[:-1], dtype=np.int32) + 1)
    if not lines:
        raise InputError(f"{path} holds no documents; expected a document a line")
    lengths = np.array([len(line) for line in lines])
    words = np.full(
        (len(lines), lengths.max()), PADDING, dtype=np.int16 if topic_model.vocabulary < 2**15 else np.int32
    )
    words[np.arange(words.shape[1]) < lengths[:, None]] = np.concatenate(lines)
    return Documents(words, lengths, None)


def write_documents(documents: Documents, path: str | os.PathLike[str]) -> None:
    """Write the authors' text format, which `read_documents` reads."""
    if documents.words is None:
        raise InputError("infinite documents have no words to write; give documents.length a number or a range")
    lines = (
        " ".join(map(str, row[:n] - 1)) + " END\n" for row, n in zip(documents.words, documents.lengths, strict=True)
    )
    temporary = Path(f"{path}.tmp")
    with temporary.open("w", encoding="utf-8") as stream:
        stream.writelines(lines)
    temporary.replace(path)


def read_matrix(path: str, name: str) -> Float[np.ndarray, "rows columns"]:
    """A matrix from a .npy or .csv file; nothing in the file is executed."""
    try:
        if path.endswith(".npy"):
            array = np.load(path, allow_pickle=False)
            if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiub":
                raise ValueError("it holds no array of real numbers")
            return finite(array.astype(float), f"{name}: {path}")
        rows = [
            [float(cell) for cell in line.split(",")]
            for line in Path(path).read_text(encoding="utf-8-sig").splitlines()
            if line.strip()
        ]
    except (OSError, ValueError, EOFError) as error:
        raise InputError(
            f"{name}: cannot read a matrix from {path}: {error}; expected a .npy or .csv file of numbers"
        ) from None
    return finite(as_matrix(rows, f"{name}: {path}"), f"{name}: {path}")


def finite(matrix: Float[np.ndarray, "rows columns"], name: str) -> Float[np.ndarray, "rows columns"]:
    if matrix.ndim != 2 or matrix.size == 0:
        raise InputError(f"{name}: has shape {matrix.shape}; expected a matrix with rows and columns")
    if not np.isfinite(matrix).all() or np.abs(matrix).max() > 1e100:
        raise InputError(f"{name}: holds numbers that are not finite, or beyond 1e100")
    return matrix


def as_matrix(rows: Any, name: str) -> Float[np.ndarray, "rows columns"]:
    """Rows of equal length as an array."""
    if not rows or len({len(row) for row in rows}) != 1:
        lengths = sorted({len(row) for row in rows})
        raise InputError(
            f"{name}: expected rows of equal length, at least one; found {f'rows of {lengths} numbers' if rows else 'none'}"
        )
    return np.array(rows, dtype=float)
