"""Topics that are the labels of a corpus: their words, and the label of every document. Nothing is fitted.

words = label_words(texts, labels, whole_words(tokenizer)); words.top_words(0); assign(words, 0.001)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import Engine, InputError, Progress, serial, watched
from topicscope.language.corpora import usable_labels
from topicscope.language.counting import top_pairs, word_documents
from topicscope.language.topic_fits import PAIRS, shared_words
from topicscope.language.topics import best
from topicscope.language.vocabulary import Vocabulary
from topicscope.measure import log_odds_z

FEWEST_DOCUMENTS = 5  # of a label, and of a word
LEAST_Z = 1.96  # of a label's words: those that all labels share stay below it but for one in forty
NAMED = 5  # labels that a remark names
LONGEST = 40  # characters of a label in a title


@dataclass(frozen=True, kw_only=True)
class LabelWords:
    """The labels of a corpus as topics: how much likelier each word is in documents of each label than in others.

    Attributes:
        names: The labels, the most common first.
        documents: Number of documents of each label.
        words: The words.
        token: Token of each word (W).
        scores: z of each word in each label (K x W); see `log_odds_z`.
        frequency: Occurrences in the documents of these labels (W).
        cooccurring: Pairs of words that stand together most often, the commonest first (P x 2).
        vocabulary_size: V, of the tokenizer.
        fingerprint: Fingerprint of the tokenizer.
        remark: Which labels there are, and which were left out.

    Example:
        See `label_words`.
    """

    names: tuple[str, ...]
    documents: tuple[int, ...]
    words: tuple[str, ...]
    token: Int[np.ndarray, " W"]
    scores: Float[np.ndarray, "K W"]
    frequency: Float[np.ndarray, " W"]
    cooccurring: Int[np.ndarray, "P 2"]
    vocabulary_size: int
    fingerprint: str
    remark: str

    def __len__(self) -> int:
        return len(self.names)

    def top_words(self, label: int, count: int = 3) -> list[str]:
        """Those of highest z that are clearly likelier in this label than in others."""
        return [self.words[i] for i in best(self.scores[label], count) if self.scores[label, i] > LEAST_Z]

    def records(self) -> list[dict[str, str | float]]:
        """Every word that is clearly likelier in a label, the clearest first: columns topic, word and z."""
        return [
            {"topic": name, "word": self.words[i], "z": float(scores[i])}
            for name, scores in zip(self.names, self.scores, strict=True)
            for i in np.argsort(-scores, kind="stable")
            if scores[i] > LEAST_Z
        ]

    def mixture(self, label: str | None) -> Float[np.ndarray, " K"] | None:
        """All of a document is its label; None where that is none of these."""
        return np.eye(len(self))[self.names.index(label)] if label in self.names else None

    @property
    def titles(self) -> tuple[str, ...]:
        """'physics: quark boson field'."""
        return tuple(f"{cut(name, LONGEST)}: {' '.join(self.top_words(k))}" for k, name in enumerate(self.names))

    def check(self, vocabulary: Vocabulary) -> None:
        if self.fingerprint != vocabulary.fingerprint:
            raise InputError("the words of these labels were counted with another tokenizer; count them with this one")


def label_words(
    texts: Sequence[str],
    labels: Sequence[str | None],
    vocabulary: Vocabulary,
    *,
    name: str = "label",
    engine: Engine = serial,
    progress: Progress | None = None,
) -> LabelWords:
    """The words of labels; labels with too few documents are left out, and so are words of too few documents.

    Args:
        texts: The documents.
        labels: One per text; None where a text has none.
        vocabulary: Whole words of the tokenizer.
        name: Name of the field, for error messages.
        engine: Counts words.
        progress: Called as progress(phase, done, total, note); None: a bar in terminals and notebooks.

    Returns:
        The words of each label.

    Raises:
        InputError: Fewer than two labels have enough documents.

    Example:
        >>> from topicscope.pretraining import train_tokenizer
        >>> texts = ["frog toad newt pond", "mozart schubert opera violin"] * 10
        >>> tokenizer = train_tokenizer(texts, "wordpiece", vocab_size=100, length=16, exact=False)
        >>> from topicscope.language import whole_words
        >>> words = label_words(texts * 10, ["water", "music"] * 100, whole_words(tokenizer))
        >>> words.documents, sorted(words.top_words(words.names.index("water"), 4))
        ((100, 100), ['frog', 'newt', 'pond', 'toad'])
    """
    every = usable_labels(labels, name)
    counts = {label: count for label, count in every.items() if count >= FEWEST_DOCUMENTS}
    if len(counts) < 2:
        raise InputError(
            f"fewer than two labels of {name!r} have {FEWEST_DOCUMENTS} documents in the sample of {len(texts):,}; "
            "give more text with these labels, or raise --max-documents"
        )
    names = tuple(counts)
    with watched(progress) as shown:
        shown("counting words")
        mine = [i for i, label in enumerate(labels) if label in counts]
        documents = word_documents([texts[i] for i in mine], vocabulary, engine)
        shared, used = shared_words(documents, len(vocabulary.words), FEWEST_DOCUMENTS)
        if len(used) < 2:
            raise InputError(
                f"no two words occur in {FEWEST_DOCUMENTS} documents with a label of {name!r}; give more text"
            )
        table = np.zeros((len(names), len(used)))
        number = {label: k for k, label in enumerate(names)}
        for i, document in zip(mine, documents, strict=True):
            label = labels[i]
            if label is not None:
                table[number[label]] += np.bincount(document, minlength=len(vocabulary.words))[used]
        shown("counting pairs of words")
        pairs = top_pairs(shared, len(used), PAIRS, engine)[0]
    return LabelWords(
        names=names,
        documents=tuple(counts.values()),
        words=tuple(vocabulary.words[i] for i in used),
        token=vocabulary.token[used],
        scores=log_odds_z(table),
        frequency=table.sum(0),
        cooccurring=pairs,
        vocabulary_size=vocabulary.size,
        fingerprint=vocabulary.fingerprint,
        remark=_remark(name, counts, [label for label in every if label not in counts], len(texts) - every.total()),
    )


def cut(text: str, most: int) -> str:
    """At most so many characters; an ellipsis says that there are more."""
    return text if len(text) <= most else f"{text[: most - 1].rstrip()}…"


def _remark(name: str, counts: dict[str, int], rare: Sequence[str], without: int) -> str:
    """labels of 'subject': 3 (law 40, art 30, music 20 documents); left out: 1 with fewer than 5 documents (chess)."""

    def some(said: Sequence[str]) -> str:
        return ", ".join(said[:NAMED]) + (", ..." if len(said) > NAMED else "")

    largest = some([f"{cut(label, LONGEST)} {count}" for label, count in counts.items()])
    few = some([cut(label, LONGEST) for label in rare])
    left_out = f"; left out: {len(rare)} with fewer than {FEWEST_DOCUMENTS} documents ({few})" if rare else ""
    unlabelled = f"; {without} of the documents have no label" if without else ""
    return f"labels of {name!r}: {len(counts)} ({largest} documents){left_out}{unlabelled}"
