"""Which words stand for a topic: its theta * V most likely ones, each in one topic (Table 1) or several (Table 5)."""

import csv
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import Engine, InputError, one_line, parse_json, plain, read_text, serial, shown
from topicscope.language.configs import TopicsPerWord
from topicscope.language.counting import word_documents
from topicscope.language.labels import LEAST_Z, LabelWords
from topicscope.language.lines import separator_hint
from topicscope.language.topics import Topics
from topicscope.language.vocabulary import Vocabulary
from topicscope.measure import Membership

MOST_BYTES = 2**28  # of a file of words and topics
MOST_PAIRS, MOST_TOPICS = 5_000_000, 5_000  # words and topics in it


MANY = 1000  # words, of which no two topics hold all


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """Words (as tokens) and their topics.

    Attributes:
        token: Token of each word (W).
        words: The words.
        frequency: Occurrences of each word (W).
        membership: Which words are in which topics.
        threshold: theta, the share of the vocabulary that each topic keeps; None where the user gave the topics.
        topics_per_word: 'one' or 'many'.
        names: Names of the topics.
        remark: Which given words could not be used; which labels there are.

    Example:
        See `assign`.
    """

    token: Int[np.ndarray, " W"]
    words: tuple[str, ...]
    frequency: Float[np.ndarray, " W"]
    membership: Membership
    threshold: float | None
    topics_per_word: TopicsPerWord
    names: tuple[str, ...]
    remark: str = ""


def assign(
    topics: Topics | LabelWords,
    threshold: float,
    topics_per_word: TopicsPerWord = "one",
    names: tuple[str, ...] | None = None,
) -> Assignment:
    """The words that stand for each topic: its `threshold * V` most likely ones (Table 1).

    Of labels, those of the highest z, as far as they are clearly likelier there than in other labels.

    Args:
        topics: Fitted topics, or the words of labels.
        threshold: theta, between 0 and 1.
        topics_per_word: 'one': a word stays only in the topic in which it is likeliest. 'many': in all (Table 5).
        names: Names of the topics; None: their top words.

    Returns:
        Words and their topics.

    Raises:
        InputError: The threshold keeps no word, or all of them.

    Example:
        >>> from topicscope.pretraining import train_tokenizer
        >>> texts = ["frog toad newt pond", "mozart schubert opera violin"] * 10
        >>> tokenizer = train_tokenizer(texts, "wordpiece", vocab_size=100, length=16, exact=False)
        >>> from topicscope.language import fit_topics, whole_words
        >>> topics = fit_topics(texts, whole_words(tokenizer), topics=2, iterations=20, stability=False)
        >>> assignment = assign(topics, threshold=0.05)
        >>> len(assignment.words), assignment.membership.sizes.tolist()
        (6, [3, 3])
    """
    if not 0 < threshold < 1:
        raise InputError(
            f"threshold {threshold} is not between 0 and 1; "
            "it is the share of the vocabulary that each topic keeps, for example 0.001"
        )
    share = threshold * topics.vocabulary_size
    count = int(share)
    if count < 1:
        raise InputError(f"threshold {threshold:g} keeps no word (threshold * V = {share:.2g}); choose a larger one")
    if count >= len(topics.words):
        raise InputError(
            f"threshold {threshold:g} keeps all {len(topics.words)} words in every topic; choose a smaller one"
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
        names=names or titles_of(topics),
        remark=topics.remark if isinstance(topics, LabelWords) else "",
    )


def titles_of(topics: Topics | LabelWords) -> tuple[str, ...]:
    if isinstance(topics, LabelWords):
        return topics.titles
    return tuple(" ".join(topics.top_words(k, 3)) for k in range(len(topics)))


def assignments_of(
    topics: Topics | LabelWords | Assignment,
    vocabulary: Vocabulary,
    thresholds: Sequence[float],
    topics_per_word: Sequence[TopicsPerWord],
) -> list[Assignment]:
    """Fitted topics and labels at every threshold; given topics as they are."""
    if isinstance(topics, Assignment):
        return [with_pairs(topics)]
    topics.check(vocabulary)
    return [with_pairs(assign(topics, threshold, kind)) for kind in topics_per_word for threshold in thresholds]


def with_pairs(assignment: Assignment) -> Assignment:
    """The assignment, if some two words have no topic in common: else there is nothing to compare with."""
    members = assignment.membership.matrix()
    if len(assignment.words) <= MANY and ((members @ members.T).toarray() > 0).all():
        raise InputError(
            "every two words of these topics have a topic in common, so no pairs of different topics are left to "
            "compare with; give topics of different words"
        )
    return assignment


def read_topics(path: str | Path) -> Topics | list[tuple[str, str]]:
    """Fitted topics of a folder, or the words and topics that a file lists."""
    if not Path(path).exists():
        raise InputError(
            f"topics: {path} does not exist; expected a folder of 'topicscope topics' or a CSV or JSON file of words "
            "and topics"
        )
    return Topics.load(path) if Path(path).is_dir() else read_pairs(path)


def load_topics(
    path: str | Path, vocabulary: Vocabulary, texts: Sequence[str], engine: Engine = serial
) -> Topics | Assignment:
    r"""Fitted topics from their folder, or your own topics from a file.

    Args:
        path: A folder of `topicscope topics`, or a CSV or JSON file of words and topics.
        vocabulary: Whole words of the tokenizer.
        texts: Texts in which the words of your own topics are counted.
        engine: Counts the words.

    Returns:
        `Topics` from a folder, an `Assignment` from a file.

    Raises:
        InputError: The file cannot be read, or too few of its words are whole words.

    Example:
        >>> from topicscope.pretraining import train_tokenizer
        >>> texts = ["frog toad newt pond", "mozart schubert opera violin"] * 10
        >>> tokenizer = train_tokenizer(texts, "wordpiece", vocab_size=100, length=16, exact=False)
        >>> import tempfile
        >>> from topicscope.language import whole_words
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "topics.csv"
        ...     _ = path.write_text("word,topic\nfrog,water\ntoad,water\nmozart,music\nopera,music\n")
        ...     load_topics(path, whole_words(tokenizer), texts).frequency.tolist()
        [10, 10, 10, 10]
    """
    given = read_topics(path)
    if isinstance(given, Topics):
        return given
    words = np.concatenate([np.empty(0, dtype=np.int64), *word_documents(texts, vocabulary, engine)])
    return given_topics(path, vocabulary, np.bincount(words, minlength=len(vocabulary.words)))


def given_topics(
    path: str | Path, vocabulary: Vocabulary, frequency: Float[np.ndarray, " W"] | None = None
) -> Assignment:
    r"""Your own topics from a file.

    Args:
        path: A CSV or JSON file of words and topics.
        vocabulary: Whole words of the tokenizer.
        frequency: Occurrences of the vocabulary's words; None: not known.

    Returns:
        Words and their topics.

    Raises:
        InputError: The file cannot be read, or too few of its words are whole words.

    Example:
        >>> from topicscope.pretraining import train_tokenizer
        >>> texts = ["frog toad newt pond", "mozart schubert opera violin"] * 10
        >>> tokenizer = train_tokenizer(texts, "wordpiece", vocab_size=100, length=16, exact=False)
        >>> import tempfile
        >>> from topicscope.language import whole_words
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     path = Path(folder) / "topics.csv"
        ...     _ = path.write_text("word,topic\nfrog,water\ntoad,water\nmozart,music\nopera,music\nxylophone,music\n")
        ...     found = given_topics(path, whole_words(tokenizer))
        >>> found.names, sorted(found.words)  # the tokenizer has no token 'xylophone'
        (('water', 'music'), ['frog', 'mozart', 'opera', 'toad'])
    """
    pairs = read_pairs(path)
    known = [(vocabulary.number[word], topic) for word, topic in dict.fromkeys(pairs) if word in vocabulary.number]
    unknown = [word for word, _ in dict.fromkeys(pairs) if word not in vocabulary.number]
    some = ", ".join(repr(word) for word in unknown[:5]) + (", ..." if len(unknown) > 5 else "")
    sizes = Counter(topic for _, topic in known)
    if len(sizes) < 2 or max(sizes.values()) < 2:
        raise InputError(
            f"{shown(path)}: {len(known)} of its {len(pairs)} words can be used, in {len(sizes)} topics; expected "
            "at least two topics, one of them with two words or more. A word can be used if it is one token of this "
            f"model and no stop word (not used: {some or 'none'}; check upper and lower case)"
        )
    if len(sizes) > MOST_TOPICS:
        raise InputError(f"{shown(path)} has {len(sizes)} topics; at most {MOST_TOPICS} are compared with each other")
    names = tuple(sizes)
    order = {name: place for place, name in enumerate(names)}
    numbers, places = np.unique([word for word, _ in known], return_inverse=True)
    listed = sorted((order[topic], place) for (_, topic), place in zip(known, places, strict=True))
    topic, word = (np.array(side) for side in zip(*listed, strict=True))
    return Assignment(
        token=vocabulary.token[numbers],
        words=tuple(vocabulary.words[i] for i in numbers),
        frequency=np.ones(len(numbers)) if frequency is None else frequency[numbers],
        membership=Membership(word, topic, len(numbers), len(names)),
        threshold=None,
        topics_per_word="many" if len(listed) > len(numbers) else "one",
        names=names,
        remark=f"{len(unknown)} of {len(pairs)} given words are not one token of this model, or are stop words: {some}"
        if unknown
        else "",
    )


def read_pairs(path: str | Path) -> list[tuple[str, str]]:
    """Words and topics of a CSV file with the columns word and topic, or JSON {word: topic} or {topic: [words]}."""
    path = Path(path)
    text = read_text(path, "the topics", MOST_BYTES, "utf-8-sig")
    pairs = _json_pairs(path, text) if path.suffix.lower() == ".json" else _table_pairs(path, text)
    if len(pairs) > MOST_PAIRS:
        raise InputError(f"{shown(path)} has more than {MOST_PAIRS:,} words; no vocabulary has as many")
    if not pairs:
        raise InputError(
            f"{path} names no words; expected lines 'word,topic' under such a header, or JSON {{word: topic}}"
        )
    return pairs


def _json_pairs(path: Path, text: str) -> list[tuple[str, str]]:
    data = parse_json(text, shown(path))
    if not isinstance(data, dict) or not data:
        raise InputError(f"{shown(path)}: expected {{word: topic}} or {{topic: [words]}}")
    if all(isinstance(value, list) and all(isinstance(word, str) for word in value) for value in data.values()):
        return [(word, str(topic)) for topic, words in data.items() for word in words]
    if not all(isinstance(value, str | int) and not isinstance(value, bool) for value in data.values()):
        raise InputError(f"{shown(path)}: expected {{word: topic}} throughout, or {{topic: [words]}} throughout")
    return [(str(word), str(topic)) for word, topic in data.items()]


def _table_pairs(path: Path, text: str) -> list[tuple[str, str]]:
    plain(text.splitlines(), shown(path))  # no null characters
    try:
        rows = list(csv.DictReader(text.splitlines(), delimiter="\t" if path.suffix.lower() == ".tsv" else ","))
    except csv.Error as error:
        raise InputError(f"{shown(path)} is not a table ({one_line(error)}); expected lines 'word,topic'") from None
    if rows and not {"word", "topic"} <= set(rows[0]):
        columns = ", ".join(f"{name!r:.60}" for name in list(rows[0])[:20])
        hint = separator_hint(list(rows[0]))
        raise InputError(f"{shown(path)}: expected the columns word and topic; it has {columns}{hint}")
    return [(row["word"].strip(), row["topic"].strip()) for row in rows if row["word"] and row["topic"]]
