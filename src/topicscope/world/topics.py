"""Topic models: which word has which probability in which topic, word 0 being [MASK]; and matrices from files.

The paper's (Section 3.1) has T disjoint topics of v words. Others have topics of unequal sizes, words of unequal
probability, words that several topics share, or any word-by-topic matrix.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Annotated, NamedTuple

import numpy as np
from jaxtyping import Bool, Float, Int
from pydantic import BeforeValidator, Field, model_validator
from pydantic_core import ArgsKwargs

from topicscope.ground import (
    LONGEST_LIST,
    Count,
    InputError,
    Matrix,
    Row,
    Text,
    checked_file,
    folders,
    number_only,
    read_tensors,
    read_text,
    refuse,
    refuse_if,
    refusing,
    section,
)

WEIGHTS = "weights.safetensors"  # the file of a run folder that holds the trained weights
LARGEST = 1e100  # entries beyond this are refused: their squares overflow
Numbers = Float[np.ndarray, "rows columns"]


def read_matrix(path: str, name: str, tensor: str = "value") -> Numbers:
    """Read a matrix from a .npy, .csv or .safetensors file, or from the folder of a training run; it runs no code."""
    where, damage = f"{name}: {path}", (OSError, ValueError, EOFError, SyntaxError, MemoryError, TypeError)
    kinds = "; expected a .npy, .csv or .safetensors file of numbers, or the folder of a training run"
    with refusing(damage, f"{name}: cannot read a matrix from {path}: ", kinds):  # numpy parses the header
        stored = _stored(path, name, where, tensor)
        if not isinstance(stored, np.ndarray) or stored.dtype.kind not in "fiub":
            raise ValueError("it holds no array of real numbers")
        matrix: Numbers = stored.astype(float)
    refuse(
        (
            matrix.ndim != 2 or matrix.size == 0,
            f"{where}: has shape {matrix.shape}; expected a matrix with rows and columns",
        ),
        (
            not np.isfinite(matrix).all() or np.abs(matrix).max(initial=0) > LARGEST,
            f"{where}: holds numbers that are not finite, or beyond {LARGEST:g}",
        ),
    )
    return matrix


def matrix_of(given: Sequence[Sequence[float]] | str, name: str) -> Numbers:
    if isinstance(given, str):
        return read_matrix(given, name)
    lengths = sorted({len(row) for row in given})
    described = f"rows of {lengths} numbers" if given else "no row"
    refuse_if(len(lengths) != 1, f"{name}: expected rows of equal length, at least one; got {described}")
    return np.array(given, dtype=float)


def _from_lines(lines: Sequence[str], where: str) -> Numbers:
    rows: list[list[float]] = []
    for number, line in enumerate(lines, start=1):
        if line.strip():
            row = f"{where}, row {number}"
            with refusing((ValueError,), f"{row}: ", "; expected numbers separated by commas, without a head"):
                rows.append([float(cell) for cell in line.split(",")])
            count, first = len(rows[-1]), len(rows[0])
            refuse_if(count != first, f"{row}: has {count} numbers; expected {first}, as many as the first row")
    return matrix_of(rows, where)


def _stored(path: str, name: str, where: str, tensor: str) -> object:
    file, folder = Path(path), Path(path).is_dir()
    if path.endswith(".npy") and not folder:
        return np.load(checked_file(path, name), allow_pickle=False)
    if not path.endswith(".safetensors") and not folder:
        return _from_lines(read_text(file, name, encoding="utf-8-sig").splitlines(), where)
    refuse_if(
        folder and not (file / WEIGHTS).is_file(),
        f"{where} has no {WEIGHTS}; give the folder of one finished training run, or a matrix file",
    )
    about = folders.read_about(file) if folder else None
    if about is not None:  # the folder of a run; without one it is somebody's own
        folders.check_digest(file, about, WEIGHTS)
    tensors, _ = read_tensors(
        file / WEIGHTS if folder else file, "give a .safetensors file that is whole", own=about is not None
    )
    refuse_if(
        tensor not in tensors and (folder or len(tensors) != 1),
        f"{where} holds {', '.join(sorted(tensors)) or 'nothing'}; expected a matrix named {tensor!r}",
    )
    return tensors[tensor] if tensor in tensors else next(iter(tensors.values()))


MASK = 0
"""The word that stands for a hidden one."""

USUAL_SIZE = 10  # v of the paper's experiments
MATRIX = "topic_model.matrix"
ROUNDING = 1e-6  # by which given probabilities may miss their sum


def plain(value: object) -> object:
    return value.tolist() if isinstance(value, np.ndarray) else value


def left_out(value: object) -> bool:
    """A setting that is not given is not written either: what older runs wrote stays as it was."""
    return value is None


Sizes = Annotated[list[Count], Field(min_length=1, max_length=LONGEST_LIST)]
Exponent = Annotated[float, Field(ge=0, le=10), number_only]
HalfAtMost = Annotated[float, Field(gt=0, le=0.5), number_only]
Names = Annotated[list[Text], Field(max_length=LONGEST_LIST)]
Share = Annotated[float, Field(ge=1e-9, le=1 - 1e-9), number_only]


@section
class TopicModel:
    """Which word has which probability in which topic (Section 3.1): T disjoint topics of v equal words by default.

    Word 0 is [MASK]; words 1 to `words` follow topic by topic.

    Attributes:
        topics: T. It may be left out where sizes or a matrix say it.
        words_per_topic: v, or a list with the size of each topic.
        word_probabilities: Probabilities inside a topic (the paper's footnote 2): v numbers that all topics share, or
            one list per topic. None: equal.
        zipf: The n-th word of a topic has a probability proportional to n^-zipf.
        overlap: Topics form a ring; each shares the last floor(overlap * v) of its words with the next topic.
        common_words: So many further words, behind all others, belong to every topic.
        common_share: Their share of every topic's probability.
        matrix: The whole word-by-topic matrix A (words x T, columns sum to 1), or the path of one.
        word_names: One name per word, for figures only.

    Raises:
        InputError: A setting is out of range, or two settings contradict each other.

    Example:
        >>> from topicscope import TopicModel
        >>> TopicModel(topics=3, words_per_topic=2).topic_of_word.tolist()
        [0, 1, 1, 2, 2, 3, 3]
        >>> TopicModel(words_per_topic=[1, 2]).word_topics.tolist()
        [[1.0, 0.0], [0.0, 0.5], [0.0, 0.5]]
    """

    topics: Count = 10
    words_per_topic: Count | Sizes = USUAL_SIZE
    word_probabilities: Row | Matrix | None = None
    zipf: Annotated[Exponent | None, Field(exclude_if=left_out)] = None
    overlap: Annotated[HalfAtMost | None, Field(exclude_if=left_out)] = None
    common_words: Annotated[Count | None, Field(exclude_if=left_out)] = None
    common_share: Annotated[Share | None, Field(exclude_if=left_out)] = None
    matrix: Annotated[Matrix | Text | None, BeforeValidator(plain), Field(exclude_if=left_out)] = None

    word_names: Annotated[Names | None, Field(exclude_if=left_out)] = None

    @model_validator(mode="before")
    @classmethod
    def _count_topics(cls, given: object) -> object:
        """Sizes and a matrix say how many topics there are."""
        settings = (given.kwargs or {}) if isinstance(given, ArgsKwargs) else given
        if not isinstance(settings, Mapping) or "topics" in settings:
            return given
        sizes, matrix = settings.get("words_per_topic"), plain(settings.get("matrix"))
        rows = read_word_topics(matrix)[:1].tolist() if isinstance(matrix, str) else matrix
        first = rows[0] if isinstance(rows, list) and rows else None
        counted = sizes if isinstance(sizes, list) else first
        return dict(settings) | {"topics": len(counted)} if isinstance(counted, list) and counted else given

    @model_validator(mode="after")
    def _check(self) -> TopicModel:
        sizes, given = self.words_per_topic, self.word_probabilities
        described: dict[str, object] = {"word_probabilities": given, "zipf": self.zipf, "overlap": self.overlap}
        described |= {"common_words": self.common_words, "words_per_topic": None if sizes == USUAL_SIZE else sizes}
        others = [name for name, value in described.items() if value is not None]
        refuse(
            (
                self.matrix is not None and others,
                f"topic_model.matrix says everything about the words; leave topic_model.{(others or [''])[0]} out",
            ),
            (
                self.zipf is not None and given is not None,
                "topic_model.zipf and topic_model.word_probabilities both give the words of a topic their "
                "probability; give one of them",
            ),
            (
                (self.common_words is None) != (self.common_share is None),
                "topic_model.common_words and topic_model.common_share belong together; give both or neither",
            ),
            (
                isinstance(sizes, list) and len(sizes) != self.topics,
                f"topic_model.words_per_topic has {np.size(sizes)} numbers, but there are {self.topics} topics; "
                "give one number per topic",
            ),
            (self.overlap is not None and self.topics < 3, "topic_model.overlap needs at least 3 topics on its ring"),
        )
        columns = self.topics if self.matrix is None else self.word_topics.shape[1]
        names = self.words if self.word_names is None else len(self.word_names)
        refuse(
            (
                columns != self.topics,
                f"topic_model.matrix has {columns} columns, but there are {self.topics} topics; "
                "give one column per topic, or leave topic_model.topics out",
            ),
            (names != self.words, f"topic_model.word_names has {names} names; expected one per word ({self.words})"),
        )
        one_each = sizes if isinstance(sizes, list) else [sizes]
        if self.overlap is not None:
            check_overlap(self.overlap, one_each, [self.shared_of(size) for size in one_each])
        if given is not None:
            check_each(given, sizes) if isinstance(sizes, list) else check_alike(given, self.topics, sizes)
        return self

    @property
    def sizes(self) -> Int[np.ndarray, " T"]:
        return np.broadcast_to(np.asarray(self.words_per_topic), self.topics)

    def shared_of(self, size: int) -> int:
        """Words that a topic of this size has in common with the next; .3 * 10 may be a little below 3."""
        return math.floor((self.overlap or 0.0) * size + 1e-9)

    @cached_property
    def words(self) -> int:
        """The number of words without [MASK]: Tv in the paper."""
        if self.matrix is not None:
            return len(self.word_topics)
        size = self.words_per_topic
        sizes, times = (size, 1) if isinstance(size, list) else ([size], self.topics)
        return times * sum(one - self.shared_of(one) for one in sizes) + (self.common_words or 0)

    @property
    def vocabulary(self) -> int:
        return self.words + 1

    @property
    def blocks(self) -> bool:
        """Whether the words lie topic by topic, as many in each topic, and each in one topic."""
        size = self.words_per_topic
        several = self.matrix is not None or self.overlap is not None or self.common_words is not None
        return not several and (not isinstance(size, list) or len(set(size)) == 1)

    @property
    def block_size(self) -> int:
        refuse_if(
            not self.blocks, "this needs disjoint topics of equally many words; give topic_model.words_per_topic alone"
        )
        return self.words // self.topics

    @property
    def uniform(self) -> bool:
        """Whether the topics are blocks of equally probable words, as the theorems assume."""
        return self.blocks and self.word_probabilities is None and self.zipf is None

    @cached_property
    def disjoint(self) -> bool:
        if self.matrix is None:
            return self.topics == 1 or (self.overlap is None and self.common_words is None)
        return bool((np.count_nonzero(self.word_topics, axis=1) == 1).all())

    @cached_property
    def entries(self) -> Entries:
        """What is not zero in `word_topics`, topic by topic; without a matrix, topics on a ring and common words."""
        if self.matrix is not None:
            topic, word = np.nonzero(self.word_topics.T)
            return Entries(topic, word, self.word_topics[word, topic])
        sizes, given, zipf = self.sizes, self.word_probabilities, self.zipf or 0.0
        own = sizes - np.array([self.shared_of(size) for size in sizes.tolist()])  # words not of the next topic too
        first, ring = np.cumsum(own) - own, int(own.sum())
        topic = np.repeat(np.arange(self.topics), sizes)
        rank = np.arange(len(topic)) - (np.cumsum(sizes) - sizes)[topic]  # place of a word in its topic, from 0
        weight = (rank + 1.0) ** -zipf
        if given is not None:
            weight = np.concatenate(given if isinstance(given[0], list) else [given] * self.topics)
        probability = (1 - (self.common_share or 0.0)) * weight / np.bincount(topic, weight)[topic]
        entries = Entries(topic, (first[topic] + rank) % ring, probability)
        if self.common_words is None:
            return entries
        common = np.arange(self.common_words)
        share = (common + 1.0) ** -zipf
        share = np.tile((self.common_share or 0.0) * share / share.sum(), self.topics)
        word = np.tile(ring + common, self.topics)
        shared = Entries(np.repeat(np.arange(self.topics), len(common)), word, share)
        both = [np.concatenate(parts) for parts in zip(entries, shared, strict=True)]
        return Entries(*(part[np.argsort(both[0], kind="stable")] for part in both))

    @cached_property
    def word_topics(self) -> Float[np.ndarray, "words T"]:
        """A: probability of each word (rows, without [MASK]) in each topic (columns, which sum to 1)."""
        if self.matrix is not None:
            return read_word_topics(self.matrix)
        matrix = np.zeros((self.words, self.topics))
        matrix[self.entries.word, self.entries.topic] = self.entries.probability
        return matrix

    @cached_property
    def topic_of_word(self) -> Int[np.ndarray, " V"]:
        """topic(i) = ceil(i / v) (Definition 1); 0 for [MASK]. Refused where a word may have several topics."""
        if self.blocks:
            return -(-np.arange(self.vocabulary) // self.block_size)
        refuse_if(not self.disjoint, "this needs disjoint topics, but here words have several; see topic_model")
        return self.main_topic

    @cached_property
    def main_topic(self) -> Int[np.ndarray, " V"]:
        """The topic in which a word is most probable, from 1 on; the first of equals. 0 for [MASK].

        Where topics are disjoint, this is the word's topic.
        """
        main = np.zeros(self.vocabulary, dtype=int)
        order = np.lexsort((-self.entries.topic, self.entries.probability))
        main[self.entries.word[order] + 1] = self.entries.topic[order] + 1  # the last one stays
        return main

    @cached_property
    def word_given_topic(self) -> Float[np.ndarray, "T v"]:
        """Probability of each word inside its topic, where topics are blocks; rows sum to 1."""
        given = self.word_probabilities or np.arange(1.0, self.block_size + 1) ** -(self.zipf or 0.0)
        p = np.broadcast_to(np.asarray(given, dtype=float), (self.topics, self.block_size))
        return p / p.sum(1, keepdims=True)

    @cached_property
    def word_in_topic(self) -> Float[np.ndarray, " V"]:
        """The same by word, where topics are disjoint: probability of each word inside its topic; 0 for [MASK]."""
        if self.blocks:
            return np.concatenate([[0.0], self.word_given_topic.ravel()])
        return np.where(self.topic_of_word > 0, np.concatenate([[0.0], self.word_topics.sum(1)]), 0.0)

    @property
    def same_topic(self) -> Bool[np.ndarray, "V V"]:
        """Whether two words have a topic in common; [MASK] is alone in its own."""
        if self.disjoint:
            return self.topic_of_word[:, None] == self.topic_of_word
        kind, related = self.word_kinds
        same = np.zeros((self.vocabulary, self.vocabulary), dtype=bool)
        same[1:, 1:] = related[np.ix_(kind, kind)]
        same[MASK, MASK] = True
        return same

    @cached_property
    def word_kinds(self) -> tuple[Int[np.ndarray, " words"], Bool[np.ndarray, "K K"]]:
        """Words that are in the same topics are of one kind: the kind of each word, and which kinds share a topic."""
        patterns, kind = np.unique(self.word_topics > 0, axis=0, return_inverse=True)
        counts = patterns.astype(float)
        return kind.reshape(-1), counts @ counts.T > 0

    def by_topic(self, values: Float[np.ndarray, "*D words"], fill: float = 0.0) -> Float[np.ndarray, "*D T w"]:
        """Values of the words (the last axis), split into disjoint topics; smaller topics are filled up."""
        if self.blocks:
            return values.reshape(*values.shape[:-1], self.topics, self.block_size)
        topic = self.topic_of_word[1:] - 1
        order, sizes = np.argsort(topic, kind="stable"), np.bincount(topic, minlength=self.topics)
        place = np.arange(self.words) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        split = np.full((*values.shape[:-1], self.topics, int(sizes.max())), fill)
        split[..., topic[order], place] = values[..., order]
        return split

    def word_distribution(self, proportions: Float[np.ndarray, "D T"]) -> Float[np.ndarray, "D words"]:
        """P(word | document) for all words but [MASK], from the documents' topic proportions."""
        if not self.blocks:
            return proportions @ self.word_topics.T
        return (proportions[:, :, None] * self.word_given_topic).reshape(len(proportions), self.words)


def check_overlap(overlap: float, sizes: list[int], shared: list[int]) -> None:
    for t, size in enumerate(sizes):
        refuse_if(
            not shared[t] or shared[t] + shared[t - 1] > size,
            f"topic_model.overlap = {overlap:g}: topic {t + 1} has too few words ({size}) to have "
            f"{shared[t]} in common with the next topic and {shared[t - 1]} with the one before; "
            "each number has to be 1 or more, and both together no more than its words",
        )


def check_alike(given: list[float] | list[list[float]], topics: int, v: int) -> None:
    """The words of all topics have the same probabilities, or there is a row per topic; topics are of equal size."""
    p = np.asarray(given, dtype=float)
    if p.shape not in {(v,), (topics, v)}:
        raise ValueError(f"word_probabilities has shape {p.shape}; expected ({v},) for all topics, or ({topics}, {v})")
    refuse_if(
        not (p > 0).all() or not np.allclose(p.sum(-1), 1, atol=ROUNDING),
        "word_probabilities must be positive and sum to 1 in each topic",
    )


def check_each(given: list[float] | list[list[float]], sizes: list[int]) -> None:
    rows = [row if isinstance(row, list) else [] for row in given]
    refuse(
        (
            [len(row) for row in rows] != sizes,
            "word_probabilities: expected one list per topic, each as long as its words_per_topic",
        ),
        (
            not all(min(row, default=1) > 0 and abs(sum(row) - 1) <= ROUNDING for row in rows),
            "word_probabilities must be positive and sum to 1 in each topic",
        ),
    )


class Entries(NamedTuple):
    """Topic by topic; topics and words count from 0, without [MASK]."""

    topic: Int[np.ndarray, " n"]
    word: Int[np.ndarray, " n"]
    probability: Float[np.ndarray, " n"]


def read_word_topics(given: Sequence[Sequence[float]] | str) -> Float[np.ndarray, "words T"]:
    """A matrix with one row per word and one column per topic, checked; columns are made to sum to 1 exactly."""
    return checked_word_topics(matrix_of(given, MATRIX), f"{MATRIX}: {given}" if isinstance(given, str) else MATRIX)


def checked_word_topics(matrix: Float[np.ndarray, "words T"], name: str) -> Float[np.ndarray, "words T"]:
    if matrix.ndim != 2 or not matrix.size:
        raise InputError(f"{name} has shape {matrix.shape}; expected one row per word and one column per topic")
    for row, column in np.argwhere(~((matrix >= 0) & (matrix < np.inf)))[:1]:
        raise InputError(
            f"{name}: row {row + 1}, column {column + 1} is {matrix[row, column]:g}; expected a probability"
        )
    totals = matrix.sum(0)
    for column in np.flatnonzero(np.abs(totals - 1) > ROUNDING)[:1]:
        raise InputError(
            f"{name}: column {column + 1} of {matrix.shape[1]} sums to {totals[column]:.6g}; expected 1: "
            "one row per word, one column per topic"
        )
    for word in np.flatnonzero((matrix == 0).all(1))[:1]:
        raise InputError(f"{name}: word {word + 1} has probability 0 in every topic; leave its row out")
    return matrix / totals
