"""Fitting topics by LDA on the whole words of texts; and fitted topics as a world for `train`."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from topicscope import measure
from topicscope.ground import Engine, Progress, Stream, generator, needed, refuse, serial, shown, watched
from topicscope.language.topics import ADVICE, TOP, TopicFit, Topics, best
from topicscope.language.vocabulary import Document, Vocabulary, top_pairs, word_documents
from topicscope.world import World

PAIRS = 5000  # co-occurring pairs that are stored
HELD_OUT = 10  # every so many-th document is held out of the second fit
MOST_HELD_OUT = 1000  # documents; so many measure perplexity to about a percent
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
    refuse((how.backend not in BACKENDS, f"no topic backend {how.backend!r}; known: {', '.join(BACKENDS)}"))
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
    count, words = min(MOST_HELD_OUT, max(1, len(documents) // HELD_OUT)), probability.shape[1]
    drawn = {*generator(how.seed, Stream.HELD_OUT_DOCUMENTS).permutation(len(documents))[:count].tolist()}
    held = [document for i, document in enumerate(documents) if i in drawn]
    rest = [document for i, document in enumerate(documents) if i not in drawn]
    second, mixture, _ = how.fit(rest, words, fit.topics, (how.seed + 1) % 2**63, progress)
    frequency = np.bincount(np.concatenate(rest), minlength=words).astype(float)
    completion = measure.completion_perplexity(held, second, mixture.mean(0), frequency)
    overlap = measure.matched_overlap(tops, [best(row, TOP) for row in second])
    fit = replace(fit, stability=[round(value, 6) for value in overlap])
    if completion is None:
        return fit
    return replace(
        fit,
        held_out=completion.documents,
        perplexity=round(completion.perplexity, 6),
        unigram_perplexity=round(completion.unigram, 6),
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
    """Fit LDA by collapsed Gibbs sampling with tomotopy, on one worker, so that it can be repeated."""
    tomotopy = needed("tomotopy", "the backend tomotopy")
    model = tomotopy.LDAModel(k=topics, seed=seed, rm_top=0)
    for document in documents:
        model.add_doc(list(map(str, document.tolist())))
    trace, step = [], 10
    progress(FITTING, 0, iterations)
    for start in range(0, iterations, step):
        model.train(min(step, iterations - start), workers=1)
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

    decomposition = needed("sklearn.decomposition", "the backend sklearn")
    row = np.repeat(np.arange(len(documents)), [len(document) for document in documents])
    column = np.concatenate(documents)
    counts: Any = sparse.coo_array((np.ones(len(column)), (row, column)), shape=(len(documents), words)).tocsr()
    model = decomposition.LatentDirichletAllocation(
        topics, max_iter=max(1, iterations // 10), random_state=seed % 2**32, learning_method="online", batch_size=128
    )
    progress(FITTING)
    mixture = model.fit_transform(counts)
    trace = [round(float(model.score(counts)) / counts.sum(), 6)]
    return model.components_ / model.components_.sum(1, keepdims=True), mixture, trace


def fit_gensim(
    documents: list[np.ndarray], words: int, topics: int, iterations: int, seed: int, progress: Progress
) -> Fit:
    models = needed("gensim.models", "the backend gensim")
    bags = [
        list(zip(*(array.tolist() for array in np.unique(document, return_counts=True)), strict=True))
        for document in documents
    ]
    progress(FITTING)
    model = models.LdaModel(
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


WORDS = 500
MOST_MIXTURES = 1000  # documents whose mixtures are the law of theta
MOST_NUMBERS = 400_000  # numbers of a configuration: config.yaml stays below 8 MB and is read in seconds


@dataclass(frozen=True)
class TopicWorld:
    settings: dict[str, dict[str, Any]]
    notes: tuple[str, ...]

    @property
    def world(self) -> World:
        """Topics, mixtures and lengths, masked as usual: what `theory.optimum` takes."""
        return World.of(self.settings)


def topic_world(topics: Topics, words: int = WORDS) -> TopicWorld:
    """Make a world for `train` of fitted topics: A and the law of theta from a corpus.

    The law of theta is the mixtures of up to 1,000 documents, evenly spread over the corpus, in turn. The length of
    documents is the middle half of the lengths that the documents have in these words.

    Args:
        topics: Fitted topics.
        words: The most probable words of the corpus that are kept.

    Returns:
        Settings for `RunConfig.of`, and what was kept.

    Raises:
        InputError: The topics have no document mixtures, or the world is too large.

    Example:
        >>> from topicscope import RunConfig, topic_world
        >>> from topicscope.language import fit_topics, whole_words
        >>> from topicscope.pretraining import train_tokenizer
        >>> texts = ["frog toad newt pond", "mozart schubert opera violin"] * 10
        >>> tokenizer = train_tokenizer(texts, "wordpiece", vocab_size=100, length=16, exact=False)
        >>> topics = fit_topics(texts, whole_words(tokenizer), topics=2, iterations=20, stability=False)
        >>> config = RunConfig.of(topic_world(topics, words=6).settings, steps=100)
        >>> config.topic_model.topics, config.topic_model.words, config.documents.kind
        (2, 6, 'given')
    """
    with_words = topics.document_lengths > 0
    refuse(
        (words < 1, f"words = {words}: expected at least 1"),
        (
            not with_words.any(),
            f"these topics have no document mixtures, so the law of theta is not known; {ADVICE}",
        ),
    )
    theta, lengths = topics.document_topics[with_words].astype(float), topics.document_lengths[with_words]
    probability = lengths @ theta / lengths.sum() @ topics.probability
    kept = np.sort(best(probability, min(words, int(np.count_nonzero(probability)))))
    share = topics.probability[:, kept].sum(1)  # c, the share of each topic that the kept words have
    lost = np.flatnonzero(share <= 0)
    stays, mass = share > 0, theta @ share
    theta, lengths, mass = theta[mass > 0], lengths[mass > 0], mass[mass > 0]
    spread = np.unique(np.linspace(0, len(theta) - 1, min(len(theta), MOST_MIXTURES)).round().astype(int))
    columns, rows = topics.probability[stays][:, kept] / share[stays, None], (theta * share)[spread][:, stays]
    refuse(
        (
            columns.size + rows.size > MOST_NUMBERS,
            f"{len(kept):,} words and {len(rows):,} mixtures of {len(columns):,} topics are more than {MOST_NUMBERS:,} "
            "numbers; keep fewer words, or fit fewer topics",
        )
    )
    low, high = (max(1, round(float(length))) for length in np.quantile(lengths * mass, [0.25, 0.75]))
    settings: dict[str, dict[str, Any]] = {
        "topic_model": {
            # nine digits keep the file small; columns sum to 1 within 1e-9
            "matrix": [[float(f"{value:.9g}") for value in row] for row in columns.T.tolist()],
            "word_names": [shown(topics.words[word])[:60] for word in kept],
        },
        "documents": {"kind": "given", "proportions": six_decimals(rows), "length": [low, high]},
    }
    without = f"{lost.size} topics have none of these words and are left out: {', '.join(map(str, lost[:10]))}."
    notes = (
        f"The world is that of {len(kept):,} of {len(topics.words):,} words ({probability[kept].sum():.0%} of "
        f"the text under the fit), {len(columns):,} topics and the mixtures of {len(rows):,} of "
        f"{len(topics.document_topics):,} documents; documents have {low:,} to {high:,} words.",
        *([without] if lost.size else []),
    )
    return TopicWorld(settings, notes)


def six_decimals(rows: Float[np.ndarray, "D T"]) -> list[list[float]]:
    """Proportions to six decimals; what is missing of 1 goes to the largest."""
    shares = np.round(rows / rows.sum(1, keepdims=True), 6)
    shares[np.arange(len(shares)), shares.argmax(1)] += 1 - shares.sum(1)
    return [row.tolist() for row in np.round(shares, 6)]
