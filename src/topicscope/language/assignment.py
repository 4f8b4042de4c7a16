"""Which words stand for a topic: the likeliest of fitted topics, those of a corpus's labels, or the user's own."""

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import (
    Engine,
    InputError,
    Progress,
    one_line,
    parse_json,
    plain,
    read_text,
    refuse,
    serial,
    shown,
    watched,
)
from topicscope.language.configs import TopicsPerWord
from topicscope.language.corpora import first_few, separator_hint, usable_labels
from topicscope.language.topic_fits import PAIRS, shared_words
from topicscope.language.topics import CorpusWords, Topics, best
from topicscope.language.vocabulary import Vocabulary, top_pairs, word_documents
from topicscope.measure import Membership, log_odds_z

FEWEST_DOCUMENTS = 5  # fewest documents of a label, and of a word
LEAST_Z = 1.96  # least z of a label's words: of words that all labels share one in forty exceeds it
NAMED_LABELS = 5  # labels that a remark names
LONGEST_LABEL = 40  # characters of a label in a title


@dataclass(frozen=True, kw_only=True)
class LabelWords(CorpusWords):
    """The labels of a corpus as topics: how much likelier each word is in documents of each label than in others."""

    names: tuple[str, ...]  # the labels, the most common first
    documents: tuple[int, ...]  # how many have each label
    scores: Float[np.ndarray, "K W"]  # z of each word in each label, from `log_odds_z`
    remark: str

    def __len__(self) -> int:
        return len(self.names)

    def top_words(self, label: int, count: int = 3) -> list[str]:
        return [self.words[i] for i in best(self.scores[label], count) if self.scores[label, i] > LEAST_Z]

    def records(self) -> list[dict[str, str | float]]:
        return [
            {"topic": name, "word": self.words[i], "z": float(scores[i])}
            for name, scores in zip(self.names, self.scores, strict=True)
            for i in np.argsort(-scores, kind="stable")
            if scores[i] > LEAST_Z
        ]

    def mixture(self, label: str | None) -> Float[np.ndarray, " K"] | None:
        return np.eye(len(self))[self.names.index(label)] if label in self.names else None

    @property
    def titles(self) -> tuple[str, ...]:
        return tuple(f"{cut(name)}: {' '.join(self.top_words(k))}" for k, name in enumerate(self.names))


def label_words(
    texts: Sequence[str],
    labels: Sequence[str | None],
    vocabulary: Vocabulary,
    *,
    name: str = "label",
    engine: Engine = serial,
    progress: Progress | None = None,
) -> LabelWords:
    every = usable_labels(labels, name)
    counts = {label: count for label, count in every.items() if count >= FEWEST_DOCUMENTS}
    refuse(
        (
            len(counts) < 2,
            f"fewer than two labels of {name!r} have {FEWEST_DOCUMENTS} documents in the sample of {len(texts):,}; "
            "give more text with these labels, or raise --max-documents",
        )
    )
    number = {label: k for k, label in enumerate(counts)}
    mine = [(number[label], text) for label, text in zip(labels, texts, strict=True) if label and label in number]
    with watched(progress) as shown:
        shown("counting words")
        documents = word_documents([text for _, text in mine], vocabulary, engine)
        shared, used = shared_words(documents, len(vocabulary.words), FEWEST_DOCUMENTS)
        refuse(
            (
                len(used) < 2,
                f"no two words occur in {FEWEST_DOCUMENTS} documents with a label of {name!r}; give more text",
            )
        )
        table = np.zeros((len(counts), len(used)))
        for (k, _), document in zip(mine, documents, strict=True):
            table[k] += np.bincount(document, minlength=len(vocabulary.words))[used]
        shown("counting pairs of words")
        pairs = top_pairs(shared, len(used), PAIRS, engine)[0]
    return LabelWords(
        names=tuple(counts),
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


def cut(label: str) -> str:
    return label if len(label) <= LONGEST_LABEL else f"{label[: LONGEST_LABEL - 1].rstrip()}…"


def _remark(name: str, counts: dict[str, int], rare: Sequence[str], without: int) -> str:
    """labels of 'subject': 3 (law 40, art 30, music 20 documents); left out: 1 with fewer than 5 documents (chess)."""
    largest = first_few([f"{cut(label)} {count}" for label, count in counts.items()], NAMED_LABELS)
    few = first_few([cut(label) for label in rare], NAMED_LABELS)
    parts = [
        f"labels of {name!r}: {len(counts)} ({largest} documents)",
        *([f"left out: {len(rare)} with fewer than {FEWEST_DOCUMENTS} documents ({few})"] if rare else []),
        *([f"{without} of the documents have no label"] if without else []),
    ]
    return "; ".join(parts)


MOST_BYTES = 2**28  # most bytes of a file of words and topics
MOST_PAIRS, MOST_TOPICS = 5_000_000, 5_000  # most words and topics in such a file
MANY = 1000  # two topics never hold all of more words than these


@dataclass(frozen=True, kw_only=True)
class Assignment:
    token: Int[np.ndarray, " W"]
    words: tuple[str, ...]
    frequency: Float[np.ndarray, " W"]  # occurrences in the corpus
    membership: Membership  # which words are in which topics
    threshold: float | None  # theta, the share of the vocabulary that each topic keeps; None: the user gave the topics
    topics_per_word: TopicsPerWord
    names: tuple[str, ...]  # of the topics
    remark: str = ""  # which given words could not be used, or which labels there are


def assign(
    topics: Topics | LabelWords,
    threshold: float,
    topics_per_word: TopicsPerWord = "one",
    names: tuple[str, ...] | None = None,
) -> Assignment:
    """The `threshold * V` likeliest words of each topic (Table 1); of labels only those that are clearly likelier."""
    meaning = "it is the share of the vocabulary that each topic keeps, for example 0.001"
    refuse((not 0 < threshold < 1, f"threshold {threshold} is not between 0 and 1; {meaning}"))
    share, known = threshold * topics.vocabulary_size, len(topics.words)
    count = int(share)
    refuse(
        (count < 1, f"threshold {threshold:g} keeps no word (threshold * V = {share:.2g}); choose a larger one"),
        (count >= known, f"threshold {threshold:g} keeps all {known} words in every topic; choose a smaller one"),
    )
    scores = topics.scores if isinstance(topics, LabelWords) else topics.probability
    chosen = np.zeros(scores.shape, dtype=bool)
    np.put_along_axis(chosen, np.argsort(-scores, 1, kind="stable")[:, :count], True, 1)
    if isinstance(topics, LabelWords):
        chosen &= scores > LEAST_Z
    if topics_per_word == "one":
        chosen &= np.where(chosen, scores, -1).argmax(0) == np.arange(len(topics))[:, None]
    used = np.flatnonzero(chosen.any(0))
    topic, word = np.nonzero(chosen[:, used])
    return Assignment(
        token=topics.token[used],
        words=tuple(topics.words[i] for i in used),
        frequency=topics.frequency[used],
        membership=Membership(word, topic, len(used), len(topics)),
        threshold=threshold,
        topics_per_word=topics_per_word,
        names=names or topics.titles,
        remark=topics.remark if isinstance(topics, LabelWords) else "",
    )


def assignments_of(
    topics: Topics | LabelWords | Assignment,
    vocabulary: Vocabulary,
    thresholds: Sequence[float],
    topics_per_word: Sequence[TopicsPerWord],
) -> list[Assignment]:
    if isinstance(topics, Assignment):
        return [with_pairs(topics)]
    other = (
        "the words of these labels were counted with another tokenizer; count them with this one"
        if isinstance(topics, LabelWords)
        else "these topics were fitted with another tokenizer; fit them with this model's ('topicscope topics CORPUS "
        "--tokenizer MODEL')"
    )
    refuse((topics.fingerprint != vocabulary.fingerprint, other))
    return [with_pairs(assign(topics, threshold, kind)) for kind in topics_per_word for threshold in thresholds]


def with_pairs(assignment: Assignment) -> Assignment:
    members = assignment.membership.matrix()
    refuse(
        (
            len(assignment.words) <= MANY and ((members @ members.T).toarray() > 0).all(),
            "every two words of these topics have a topic in common, so no pairs of different topics are left to "
            "compare with; give topics of different words",
        )
    )
    return assignment


def read_topics(path: str | Path) -> Topics | list[tuple[str, str]]:
    refuse(
        (
            not Path(path).exists(),
            f"topics: {path} does not exist; expected a folder of 'topicscope topics' or a CSV or JSON file of words "
            "and topics",
        )
    )
    return Topics.load(path) if Path(path).is_dir() else read_pairs(path)


def load_topics(
    path: str | Path, vocabulary: Vocabulary, texts: Sequence[str], engine: Engine = serial
) -> Topics | Assignment:
    given = read_topics(path)
    if isinstance(given, Topics):
        return given
    words = np.concatenate([np.empty(0, dtype=np.int64), *word_documents(texts, vocabulary, engine)])
    return given_topics(path, vocabulary, np.bincount(words, minlength=len(vocabulary.words)))


def given_topics(
    path: str | Path, vocabulary: Vocabulary, frequency: Float[np.ndarray, " W"] | None = None
) -> Assignment:
    pairs = read_pairs(path)
    known = [(vocabulary.number[word], topic) for word, topic in dict.fromkeys(pairs) if word in vocabulary.number]
    unknown = [repr(word) for word, _ in dict.fromkeys(pairs) if word not in vocabulary.number]
    some, sizes = first_few(unknown, 5), Counter(topic for _, topic in known)
    refuse(
        (
            len(sizes) < 2 or max(sizes.values()) < 2,
            f"{shown(path)}: {len(known)} of its {len(pairs)} words can be used, in {len(sizes)} topics; expected "
            "at least two topics, one of them with two words or more. A word can be used if it is one token of this "
            f"model and no stop word (not used: {some or 'none'}; check upper and lower case)",
        ),
        (
            len(sizes) > MOST_TOPICS,
            f"{shown(path)} has {len(sizes)} topics; at most {MOST_TOPICS} are compared with each other",
        ),
    )
    order = {name: place for place, name in enumerate(sizes)}
    numbers, places = np.unique([word for word, _ in known], return_inverse=True)
    listed = sorted((order[topic], place) for (_, topic), place in zip(known, places, strict=True))
    topic, word = np.array(listed).T
    remark = f"{len(unknown)} of {len(pairs)} given words are not one token of this model, or are stop words: {some}"
    return Assignment(
        token=vocabulary.token[numbers],
        words=tuple(vocabulary.words[i] for i in numbers),
        frequency=np.ones(len(numbers)) if frequency is None else frequency[numbers],
        membership=Membership(word, topic, len(numbers), len(sizes)),
        threshold=None,
        topics_per_word="many" if len(listed) > len(numbers) else "one",
        names=tuple(sizes),
        remark=remark if unknown else "",
    )


def read_pairs(path: str | Path) -> list[tuple[str, str]]:
    """Words and topics of a CSV file with the columns word and topic, or JSON {word: topic} or {topic: [words]}."""
    path = Path(path)
    text = read_text(path, "the topics", MOST_BYTES, "utf-8-sig")
    pairs = _json_pairs(path, text) if path.suffix.lower() == ".json" else _table_pairs(path, text)
    refuse(
        (len(pairs) > MOST_PAIRS, f"{shown(path)} has more than {MOST_PAIRS:,} words; no vocabulary has as many"),
        (
            not pairs,
            f"{path} names no words; expected lines 'word,topic' under such a header, or JSON {{word: topic}}",
        ),
    )
    return pairs


def _json_pairs(path: Path, text: str) -> list[tuple[str, str]]:
    data = parse_json(text, shown(path))
    refuse((not isinstance(data, dict) or not data, f"{shown(path)}: expected {{word: topic}} or {{topic: [words]}}"))
    if all(isinstance(value, list) and all(isinstance(word, str) for word in value) for value in data.values()):
        return [(word, str(topic)) for topic, words in data.items() for word in words]
    refuse(
        (
            not all(isinstance(value, str | int) and not isinstance(value, bool) for value in data.values()),
            f"{shown(path)}: expected {{word: topic}} throughout, or {{topic: [words]}} throughout",
        )
    )
    return [(str(word), str(topic)) for word, topic in data.items()]


def _table_pairs(path: Path, text: str) -> list[tuple[str, str]]:
    plain(text.splitlines(), shown(path))  # refuses null characters
    try:
        rows = list(csv.DictReader(text.splitlines(), delimiter="\t" if path.suffix.lower() == ".tsv" else ","))
    except csv.Error as error:
        raise InputError(f"{shown(path)} is not a table ({one_line(error)}); expected lines 'word,topic'") from None
    if rows and not {"word", "topic"} <= set(rows[0]):
        there = ", ".join(f"{name!r:.60}" for name in list(rows[0])[:20]) + separator_hint(list(rows[0]))
        raise InputError(f"{shown(path)}: expected the columns word and topic; it has {there}")
    return [(row["word"].strip(), row["topic"].strip()) for row in rows if row["word"] and row["topic"]]
