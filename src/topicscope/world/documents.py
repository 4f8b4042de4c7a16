"""Finite documents, which hold words; infinite ones (Assumption 1), which are topic proportions; drawing.

What differs between the two is a method of both: `masked`, `batches`, `take`, `finite`.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import InputError, files, read_text, refuse, refuse_if
from topicscope.world.batches import Masked, Masking, Positions, Rows, infinite_rows, masked_batches, word_counts
from topicscope.world.topics import TopicModel

if TYPE_CHECKING:
    from topicscope.world.batches import MaskKeys


PADDING = -1  # fills `Documents.words` behind the end of a document
AT_A_TIME = 50_000  # words drawn together, so that the temporaries stay in cache
COMPARED = 32  # choices up to which one comparison with each threshold is several times faster than bisection


@dataclass(frozen=True)
class Documents:
    """Finite documents.

    Attributes:
        words: Word ids (D x N); behind the end of a document PADDING (-1).
        lengths: Words per document (D).
        proportions: Topic proportions (D x T); None where a file does not give them.

    Example:
        >>> from topicscope import Documents
        >>> documents = Documents(np.array([[3, 1, 2], [4, 4, -1]]), lengths=np.array([3, 2]))
        >>> len(documents), documents.take(np.array([1])).words.tolist()
        (2, [[4, 4, -1]])
    """

    words: Int[np.ndarray, "D N"]
    lengths: Int[np.ndarray, " D"]
    proportions: Float[np.ndarray, "D T"] | None = None

    def __len__(self) -> int:
        return len(self.lengths)

    def finite(self) -> Documents:
        return self

    def take(self, rows: Int[np.ndarray, " B"] | slice) -> Documents:
        return Documents(
            self.words[rows], self.lengths[rows], None if self.proportions is None else self.proportions[rows]
        )

    def masked(self, masking: Masking, topic_model: TopicModel, keys: MaskKeys) -> MaskedDocuments:
        return MaskedDocuments(self, masking.draw(self, topic_model.words, keys))


@dataclass(frozen=True)
class MaskedDocuments:
    """Finite documents and the masks drawn for them: what `Documents.masked` returns.

    Attributes:
        documents: The documents.
        masks: Their masked positions.

    Example:
        >>> documents = Documents(np.array([[1, 2, 3]]), np.array([3]))
        >>> masked = MaskedDocuments(documents, Masked(3, np.array([0]), true=np.array([1]), shown=np.array([0])))
        >>> masked.shown_counts(vocabulary=4).tolist()  # [MASK] stands for word 1
        [[1.0, 0.0, 1.0, 1.0]]
    """

    documents: Documents
    masks: Masked

    def __len__(self) -> int:
        return len(self.documents)

    def first(self, count: int) -> MaskedDocuments:
        rows = np.arange(min(count, len(self)))
        return MaskedDocuments(self.documents.take(rows), self.masks.take(rows))

    def shown_counts(self, vocabulary: int) -> Float[np.ndarray, "D V"]:
        return word_counts(self.masks.shown_words(self.documents.words), vocabulary)

    def batches(
        self,
        topic_model: TopicModel,
        masking: Masking,
        real: np.dtype,
        *,
        uniform: bool = False,
        hide_masked: bool = False,
        size: int = 500,
    ) -> Iterator[Rows]:
        """Batches of `size` documents; see `masked_batches`. `masking` is not used: the masks are drawn already."""
        import torch

        for start in range(0, len(self), size):
            rows = np.arange(start, min(start + size, len(self)))
            masks = self.masks.take(rows)
            parts = (masks.flat, masks.document, masks.true, masks.shown, np.bincount(masks.document))
            counts = word_counts(self.documents.words[rows], topic_model.vocabulary).astype(np.int32)
            batches = masked_batches(
                torch.from_numpy(counts)[None, None],
                Positions(*map(torch.from_numpy, parts)),
                torch.from_numpy(np.empty(0, real)).dtype,
                uniform=uniform,
                hide_masked=hide_masked,
            )
            yield Rows(*(getattr(batches, name)[0, 0].numpy() for name in Rows._fields))


@dataclass(frozen=True)
class InfiniteDocuments:
    """Documents without end (Assumption 1): proportions and masking scheme say exactly what they show.

    Attributes:
        proportions: Topic proportions (D x T).

    Example:
        >>> documents = InfiniteDocuments(np.array([[0.5, 0.5]]))
        >>> [rows] = documents.batches(TopicModel(2, 1), Masking(), uniform=True)
        >>> rows.context.round(4).tolist()  # shares of [MASK] and of the two words
        [[0.12, 0.44, 0.44]]
    """

    proportions: Float[np.ndarray, "D T"]

    def __len__(self) -> int:
        return len(self.proportions)

    def finite(self) -> Documents:
        """Raise InputError, since there are no words."""
        raise InputError("infinite documents have no words; give documents.length a number or a range")

    def take(self, rows: Int[np.ndarray, " B"] | slice) -> InfiniteDocuments:
        return InfiniteDocuments(self.proportions[rows])

    def masked(self, masking: Masking, topic_model: TopicModel, keys: MaskKeys) -> InfiniteDocuments:
        """These documents: no mask is drawn, since `batches` takes the expectation over all of them."""
        return self

    def batches(
        self,
        topic_model: TopicModel,
        masking: Masking,
        real: np.dtype | None = None,
        *,
        uniform: bool = False,
        hide_masked: bool = False,
        size: int = 50,
    ) -> Iterator[Rows]:
        """Batches of `size` documents; see `infinite_rows`. `real` is not used: they are float64 until `stack`."""
        return (
            infinite_rows(
                topic_model, masking, self.proportions[start : start + size], uniform=uniform, hide_masked=hide_masked
            )
            for start in range(0, len(self), size)
        )


def every_document(topic_model: TopicModel, topics_per_document: int) -> InfiniteDocuments:
    subsets = itertools.combinations(np.eye(topic_model.topics), topics_per_document)
    return InfiniteDocuments(np.array([*map(sum, subsets)]) / topics_per_document)


def word_type(topic_model: TopicModel) -> type[np.signedinteger]:
    return np.int16 if topic_model.vocabulary < 2**15 else np.int32


def sample_words(
    topic_model: TopicModel, proportions: Float[np.ndarray, "D T"], length: int, rng: np.random.Generator
) -> Int[np.ndarray, "D N"]:
    words, draw = np.empty((len(proportions), length), dtype=word_type(topic_model)), words_of(topic_model)
    cumulative = np.cumsum(proportions, axis=1)
    last = topic_model.topics - 1 - np.argmax(proportions[:, ::-1] > 0, axis=1)
    cumulative[np.arange(topic_model.topics) >= last[:, None]] = 1  # rounding may not lead past the last topic present
    slice_size = max(1, AT_A_TIME // length)
    for start in range(0, len(proportions), slice_size):
        rows = slice(start, start + slice_size)
        words[rows] = draw(_invert(cumulative[rows], rng.random(words[rows].shape)), rng)
    return words


def words_of(topic_model: TopicModel) -> Callable[[np.ndarray, np.random.Generator], np.ndarray]:
    if not topic_model.blocks:
        entries = topic_model.entries
        end = np.cumsum(np.bincount(entries.topic, minlength=topic_model.topics))
        start = np.append(0, end[:-1])
        total = np.cumsum(entries.probability)
        steps = total - np.append(0.0, total)[start][entries.topic] + entries.topic  # topic t rises from t to t + 1

        def draw(topic: Int[np.ndarray, "D N"], rng: np.random.Generator) -> Int[np.ndarray, "D N"]:
            place = np.searchsorted(steps, topic + rng.random(topic.shape), side="right")
            # rounding may not lead into another topic
            return 1 + entries.word[np.clip(place, start[topic], end[topic] - 1)]

        return draw
    v, dtype = topic_model.block_size, word_type(topic_model)
    within = np.cumsum(topic_model.word_given_topic, axis=1)
    within[:, -1] = 1

    def draw_in_block(topic: Int[np.ndarray, "D N"], rng: np.random.Generator) -> Int[np.ndarray, "D N"]:
        if topic_model.uniform:
            word = rng.integers(1, v + 1, size=topic.shape, dtype=dtype)
        else:
            word = 1 + _invert(within[topic.ravel()], rng.random((topic.size, 1))).reshape(topic.shape)
        return np.multiply(topic, v, dtype=dtype, casting="unsafe") + word

    return draw_in_block


def _invert(cumulative: Float[np.ndarray, "D K"], uniform: Float[np.ndarray, "D N"]) -> Int[np.ndarray, "D N"]:
    """For each number of a row, how many of the row's cumulative probabilities it has passed."""
    choices = cumulative.shape[1]
    if choices > COMPARED:
        import torch

        rows, numbers = torch.from_numpy(cumulative), torch.from_numpy(uniform)
        return torch.searchsorted(rows, numbers, right=True, out_int32=True).numpy()
    passed = np.zeros(uniform.shape, dtype=np.int16)
    for choice in range(choices - 1):
        passed += uniform >= cumulative[:, choice, None]
    return passed


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
    lines = [
        _read_line(line.split(), f"{path}, line {number}", topic_model.words)
        for number, line in enumerate(read_text(path, "the data file", MOST_BYTES).splitlines(), start=1)
        if line.strip()
    ]
    refuse_if(not lines, f"{path} holds no documents; expected one document per line")
    lengths = np.array([len(line) for line in lines])
    words = np.full((len(lines), lengths.max()), PADDING, dtype=word_type(topic_model))
    words[np.arange(words.shape[1]) < lengths[:, None]] = np.concatenate(lines)
    return Documents(words, lengths)


def _read_line(tokens: list[str], where: str, words: int) -> Int[np.ndarray, " N"]:
    *ids, last = tokens
    refuse_if(last != "END", f"{where}: ends with {last[:40]!r}; expected 'END' last (is the file cut off?)")
    odd = next((token for token in ids if not (token.isascii() and token.isdigit() and int(token) < words)), None)
    refuse(
        (
            odd is not None,
            f"{where}: word {str(odd)[:40]!r} is outside the vocabulary; expected a word id from 0 to {words - 1}",
        ),
        (not ids, f"{where}: the document has no words; expected at least one before 'END'"),
    )
    return np.array(ids, dtype=np.int32) + 1


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
