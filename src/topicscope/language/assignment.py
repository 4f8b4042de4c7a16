"""Topics of words: fitted by LDA, from a corpus's labels, or the user's own; and which words stand for each."""

import csv
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from topicscope import measure
from topicscope.ground import (
    Engine,
    InputError,
    Progress,
    Stream,
    generator,
    needed,
    one_line,
    parse_json,
    plain,
    read_text,
    refuse,
    refuse_if,
    serial,
    shown,
    watched,
)
from topicscope.language.configs import TopicsPerWord
from topicscope.language.corpora import field_names, first_few, usable_labels
from topicscope.language.topics import TOP, CorpusWords, TopicFit, Topics, best
from topicscope.language.vocabulary import Document, Vocabulary, top_pairs, word_documents
from topicscope.measure import Membership, log_odds_z

PAIRS = 5000  # co-occurring pairs that are stored
FITTING = "fitting topics"
Fit = tuple[Float[np.ndarray, "K W"], Float[np.ndarray, "D K"], list[float]]  # topics, mixtures, log-likelihoods


def fit_topics(
    texts: Sequence[str],
    vocabulary: Vocabulary,
    topics: int = 100,
    *,
    backend: str = "tomotopy",
    iterations: int = 120,
    min_documents: int = 5,
    restarts: int = 1,
    stability: bool = True,
    seed: int = 0,
    engine: Engine = serial,
    progress: Progress | None = None,
) -> Topics:
    """Fit topics by LDA to the whole words of texts.

    Args:
        texts: The documents.
        vocabulary: Whole words of the tokenizer, from `whole_words`.
        topics: Number of topics.
        backend: Library that fits: 'tomotopy', 'sklearn' or 'gensim'.
        iterations: Sweeps of the sampler.
        min_documents: Words of fewer documents are left out.
        restarts: Number of fits of which the likeliest is taken.
        stability: Fit a second time, for stability over seeds and held-out perplexity.
        seed: Seed of the sampler.
        engine: Counts words and pairs; the sampling stays in this process.
        progress: Called as progress(phase, done, total, note); None: a bar in terminals and notebooks.

    Returns:
        The topics.

    Raises:
        InputError: There is too little text for so many topics.

    Example:
        >>> from topicscope import fit_topics
        >>> from topicscope.language import whole_words
        >>> from topicscope.pretraining import train_tokenizer
        >>> texts = ["frog toad newt pond", "mozart schubert opera violin"] * 10
        >>> tokenizer = train_tokenizer(texts, "wordpiece", vocab_size=100, length=16, exact=False)
        >>> topics = fit_topics(texts, whole_words(tokenizer), topics=2, iterations=20, stability=False)
        >>> sorted(sorted(topics.top_words(k, 4)) for k in range(2))
        [['frog', 'newt', 'pond', 'toad'], ['mozart', 'opera', 'schubert', 'violin']]
    """
    how = Sampler(backend, iterations, restarts, seed)
    return fit_each(texts, vocabulary, [topics], how, min_documents, stability, engine, progress)[0]


@dataclass(frozen=True)
class Sampler:
    backend: str
    iterations: int
    restarts: int
    seed: int

    def fit(self, documents: list[Document], words: int, topics: int, seed: int, progress: Progress) -> Fit:
        fits = [
            BACKENDS[self.backend](documents, words, topics, self.iterations, seed + 1000 * i, progress)
            for i in range(self.restarts)
        ]
        probability, mixture, trace = max(fits, key=lambda fit: fit[2][-1])
        order = np.argsort(-mixture.sum(0), kind="stable")
        return probability[order], mixture[:, order], trace


def fit_each(
    texts: Sequence[str],
    vocabulary: Vocabulary,
    counts: Sequence[int],
    how: Sampler,
    min_documents: int,
    stability: bool,
    engine: Engine,
    progress: Progress | None,
) -> list[Topics]:
    refuse_if(how.backend not in BACKENDS, f"no topic backend {how.backend!r}; known: {', '.join(BACKENDS)}")
    with watched(progress) as shown:
        shown("counting words")
        documents, used = shared_words(word_documents(texts, vocabulary, engine), len(vocabulary.words), min_documents)
        enough, most = f"that occur in at least {min_documents} documents", max(counts)
        refuse(
            (
                len(documents) < most,
                f"{len(documents)} documents have words {enough}; {most} topics need as many such documents: give more "
                "documents, or ask for fewer topics",
            ),
            (len(used) < most, f"{len(used)} words {enough} are fewer than {most} topics; give more text"),
        )
        shown("counting pairs of words")
        pairs = top_pairs(documents, len(used), PAIRS, engine)[0]
        lengths = np.array([len(document) for document in documents])
        fits = []
        for topics in counts:
            phase = f"fitting {topics} topics" if len(counts) > 1 else FITTING
            first, second = partial(renamed, shown, phase), partial(renamed, shown, f"{phase} again")
            probability, mixture, trace = how.fit(documents, len(used), topics, how.seed, first)
            fit = TopicFit(
                backend=how.backend,
                topics=topics,
                iterations=how.iterations,
                seed=how.seed,
                min_documents=min_documents,
                documents=len(documents),
                tokens=int(lengths.sum()),
                log_likelihood=trace,
                coherence=[],
            )
            fits.append(
                Topics(
                    words=tuple(vocabulary.words[i] for i in used),
                    token=vocabulary.token[used],
                    probability=probability,
                    frequency=np.bincount(np.concatenate(documents), minlength=len(used)).astype(float),
                    document_topics=mixture.astype(np.float32),
                    document_lengths=lengths,
                    cooccurring=pairs,
                    vocabulary_size=vocabulary.size,
                    fingerprint=vocabulary.fingerprint,
                    fit=judged(fit, probability, documents, how if stability else None, second),
                )
            )
        return fits


def renamed(
    progress: Progress, phase: str, _phase: str, done: float = 0, total: float | None = None, note: str = ""
) -> None:
    progress(phase, done, total, note)


def judged(
    fit: TopicFit,
    probability: Float[np.ndarray, "K W"],
    documents: list[Document],
    how: Sampler | None,
    progress: Progress,
) -> TopicFit:
    """With coherence; where `how` is given, a second fit without a tenth of the documents gives the other measures."""
    tops = [best(row, TOP) for row in probability]
    fit = replace(fit, coherence=[round(value, 6) for value in measure.coherence(documents, tops)])
    if how is None or len(documents) < 2:
        return fit
    # a tenth, but no more than measure perplexity to about a percent
    count, words = min(1000, max(1, len(documents) // 10)), probability.shape[1]
    drawn = {*generator(how.seed, Stream.HELD_OUT_DOCUMENTS).permutation(len(documents))[:count].tolist()}
    rest = [document for i, document in enumerate(documents) if i not in drawn]
    second, mixture, _ = how.fit(rest, words, fit.topics, (how.seed + 1) % 2**63, progress)
    completion = measure.completion_perplexity(
        [document for i, document in enumerate(documents) if i in drawn],
        second,
        mixture.mean(0),
        np.bincount(np.concatenate(rest), minlength=words).astype(float),
    )
    overlap = measure.matched_overlap(tops, [best(row, TOP) for row in second])
    return replace(
        fit,
        stability=[round(value, 6) for value in overlap],
        held_out=completion.documents if completion else 0,
        perplexity=round(completion.perplexity, 6) if completion else None,
        unigram_perplexity=round(completion.unigram, 6) if completion else None,
    )


def shared_words(
    documents: Sequence[Int[np.ndarray, " N"]], words: int, min_documents: int
) -> tuple[list[Int[np.ndarray, " N"]], Int[np.ndarray, " U"]]:
    """The documents that are not empty, with the words that enough of them have; and the numbers of those words."""
    there = np.concatenate([np.empty(0, dtype=np.int64), *map(np.unique, documents)])
    used = np.bincount(there, minlength=words) >= min_documents
    place = np.cumsum(used) - 1  # of each word among those that are used
    shared = (place[document[used[document]]] for document in documents)
    return [document for document in shared if len(document)], np.flatnonzero(used)


def fit_tomotopy(
    documents: list[np.ndarray], words: int, topics: int, iterations: int, seed: int, progress: Progress
) -> Fit:
    model = needed("tomotopy", "the backend tomotopy").LDAModel(k=topics, seed=seed, rm_top=0)
    for document in documents:
        model.add_doc(list(map(str, document.tolist())))
    trace, step = [], 10
    progress(FITTING, 0, iterations)
    for start in range(0, iterations, step):
        model.train(min(step, iterations - start), workers=1)  # more of them could not be repeated
        trace.append(round(float(model.ll_per_word), 6))
        progress(FITTING, min(start + step, iterations), iterations, f"log-likelihood {trace[-1]:.3f}")
    place = [int(name) for name in model.used_vocabs]
    probability = np.zeros((topics, words))
    probability[:, place] = [model.get_topic_word_dist(k) for k in range(topics)]
    return probability, np.array([document.get_topic_dist() for document in model.docs]), trace


def fit_sklearn(
    documents: list[np.ndarray], words: int, topics: int, iterations: int, seed: int, progress: Progress
) -> Fit:
    from scipy import sparse

    row = np.repeat(np.arange(len(documents)), [len(document) for document in documents])
    column = np.concatenate(documents)
    counts: Any = sparse.coo_array((np.ones(len(column)), (row, column)), shape=(len(documents), words)).tocsr()
    model = needed("sklearn.decomposition", "the backend sklearn").LatentDirichletAllocation(
        topics, max_iter=max(1, iterations // 10), random_state=seed % 2**32, learning_method="online", batch_size=128
    )
    progress(FITTING)
    mixture, components = model.fit_transform(counts), model.components_
    trace = [round(float(model.score(counts)) / counts.sum(), 6)]
    return components / components.sum(1, keepdims=True), mixture, trace


def fit_gensim(
    documents: list[np.ndarray], words: int, topics: int, iterations: int, seed: int, progress: Progress
) -> Fit:
    bags = [
        list(zip(*(array.tolist() for array in np.unique(document, return_counts=True)), strict=True))
        for document in documents
    ]
    progress(FITTING)
    model = needed("gensim.models", "the backend gensim").LdaModel(
        bags,
        num_topics=topics,
        id2word={i: str(i) for i in range(words)},
        passes=max(1, iterations // 30),
        random_state=seed % 2**32,
        eta="auto",
        alpha="auto",
    )
    trace = [round(float(model.log_perplexity(bags)), 6)]
    mixture, _ = model.inference(bags)
    return model.get_topics().astype(float), mixture / mixture.sum(1, keepdims=True), trace


BACKENDS: dict[str, Callable[..., Fit]] = {"tomotopy": fit_tomotopy, "sklearn": fit_sklearn, "gensim": fit_gensim}


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
    refuse_if(
        len(counts) < 2,
        f"fewer than two labels of {name!r} have {FEWEST_DOCUMENTS} documents in the sample of {len(texts):,}; "
        "give more text with these labels, or raise --max-documents",
    )
    number = {label: k for k, label in enumerate(counts)}
    mine = [(number[label], text) for label, text in zip(labels, texts, strict=False) if label in number]
    with watched(progress) as shown:
        shown("counting words")
        documents = word_documents([text for _, text in mine], vocabulary, engine)
        shared, used = shared_words(documents, len(vocabulary.words), FEWEST_DOCUMENTS)
        refuse_if(
            len(used) < 2,
            f"no two words occur in {FEWEST_DOCUMENTS} documents with a label of {name!r}; give more text",
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
    largest = first_few([f"{cut(label)} {count}" for label, count in counts.items()], NAMED_LABELS)
    few = first_few([cut(label) for label in rare], NAMED_LABELS)
    return "; ".join(
        [
            f"labels of {name!r}: {len(counts)} ({largest} documents)",
            *([f"left out: {len(rare)} with fewer than {FEWEST_DOCUMENTS} documents ({few})"] if rare else []),
            *([f"{without} of the documents have no label"] if without else []),
        ]
    )


MOST_BYTES = 2**28  # most bytes of a file of words and topics
MOST_PAIRS, MOST_TOPICS = 5_000_000, 5_000  # most words and topics in such a file


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
    refuse_if(
        not 0 < threshold < 1,
        f"threshold {threshold} is not between 0 and 1; it is the share of the vocabulary that each topic keeps, "
        "for example 0.001",
    )
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
    refuse_if(
        topics.fingerprint != vocabulary.fingerprint,
        "the words of these labels were counted with another tokenizer; count them with this one"
        if isinstance(topics, LabelWords)
        else "these topics were fitted with another tokenizer; fit them with this model's ('topicscope topics "
        "CORPUS --tokenizer MODEL')",
    )
    return [with_pairs(assign(topics, threshold, kind)) for kind in topics_per_word for threshold in thresholds]


def with_pairs(assignment: Assignment) -> Assignment:
    members = assignment.membership.matrix()
    refuse_if(
        len(assignment.words) <= 1000 and ((members @ members.T).toarray() > 0).all(),
        "every two words of these topics have a topic in common, so no pairs of different topics are left to "
        "compare with; give topics of different words",
    )
    return assignment


def read_topics(path: str | Path) -> Topics | list[tuple[str, str]]:
    refuse_if(
        not Path(path).exists(),
        f"topics: {path} does not exist; expected a folder of 'topicscope topics' or a CSV or JSON file of words "
        "and topics",
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
        (not pairs, f"{path} names no words; expected lines 'word,topic' under such a header, or JSON {{word: topic}}"),
    )
    return pairs


def _json_pairs(path: Path, text: str) -> list[tuple[str, str]]:
    data = parse_json(text, shown(path))
    refuse_if(not isinstance(data, dict) or not data, f"{shown(path)}: expected {{word: topic}} or {{topic: [words]}}")
    if all(isinstance(value, list) and all(isinstance(word, str) for word in value) for value in data.values()):
        return [(word, str(topic)) for topic, words in data.items() for word in words]
    refuse_if(
        not all(isinstance(value, str | int) and not isinstance(value, bool) for value in data.values()),
        f"{shown(path)}: expected {{word: topic}} throughout, or {{topic: [words]}} throughout",
    )
    return [(str(word), str(topic)) for word, topic in data.items()]


def _table_pairs(path: Path, text: str) -> list[tuple[str, str]]:
    plain(text.splitlines(), shown(path))  # refuses null characters
    try:
        rows = list(csv.DictReader(text.splitlines(), delimiter="\t" if path.suffix.lower() == ".tsv" else ","))
    except csv.Error as error:
        raise InputError(f"{shown(path)} is not a table ({one_line(error)}); expected lines 'word,topic'") from None
    columns = rows[0] if rows else ("word", "topic")
    refuse_if(
        not {"word", "topic"} <= set(columns),
        f"{shown(path)}: expected the columns word and topic; it has {field_names(columns)}",
    )
    return [(row["word"].strip(), row["topic"].strip()) for row in rows if row["word"] and row["topic"]]
