"""Fitting topics by LDA, on the whole words of texts.

fit_topics(texts, whole_words(tokenizer), topics=100, seed=0)
"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import Engine, InputError, Progress, serial, watched
from topicscope.language.counting import top_pairs, word_documents
from topicscope.language.readers import needed
from topicscope.language.topics import TOP, TopicFit, Topics, best
from topicscope.language.vocabulary import Vocabulary

PAIRS = 5000  # co-occurring pairs that are stored
FITTING = "fitting topics"


def fit_topics(
    texts: Sequence[str],
    vocabulary: Vocabulary,
    topics: int = 100,
    *,
    backend: str = "tomotopy",
    iterations: int = 120,
    min_documents: int = 5,
    restarts: int = 1,
    seed: int = 0,
    engine: Engine = serial,
    progress: Progress | None = None,
) -> Topics:
    """LDA on the whole words of the texts, without words that fewer than `min_documents` of them have.

    Of `restarts` fits the likeliest is taken. Words and co-occurrence are counted on the engine. The sampling is one
    chain, and stays in this process.
    """
    if backend not in BACKENDS:
        raise InputError(f"no topic backend {backend!r}; known: {', '.join(BACKENDS)}")
    with watched(progress) as shown:
        shown("counting words")
        documents, used = shared_words(word_documents(texts, vocabulary, engine), len(vocabulary.words), min_documents)
        if len(documents) < topics:
            raise InputError(
                f"{len(documents)} documents with words that {min_documents} documents share are fewer than "
                f"{topics} topics; give more documents or ask for fewer topics"
            )
        if len(used) < topics:
            raise InputError(
                f"{len(used)} words that occur in at least {min_documents} documents are fewer than {topics} topics; "
                "give more text"
            )
        fits = [
            BACKENDS[backend](documents, len(used), topics, iterations, seed + 1000 * i, shown) for i in range(restarts)
        ]
        probability, mixture, trace = max(fits, key=lambda fit: fit[2][-1])
        order = np.argsort(-mixture.sum(0), kind="stable")  # the most common topic first
        probability, mixture = probability[order], mixture[:, order]
        lengths = np.array([len(document) for document in documents])
        shown("counting pairs of words")
        return Topics(
            words=tuple(vocabulary.words[i] for i in used),
            token=vocabulary.token[used],
            probability=probability,
            frequency=np.bincount(np.concatenate(documents), minlength=len(used)).astype(float),
            document_topics=mixture.astype(np.float32),
            document_lengths=lengths,
            cooccurring=top_pairs(documents, len(used), PAIRS, engine)[0],
            vocabulary_size=vocabulary.size,
            fingerprint=vocabulary.fingerprint,
            fit=TopicFit(
                backend=backend,
                topics=topics,
                iterations=iterations,
                seed=seed,
                min_documents=min_documents,
                documents=len(documents),
                tokens=int(lengths.sum()),
                log_likelihood=trace,
                coherence=coherence(documents, [best(row, TOP) for row in probability]),
            ),
        )


def shared_words(
    documents: Sequence[Int[np.ndarray, " N"]], words: int, min_documents: int
) -> tuple[list[Int[np.ndarray, " N"]], Int[np.ndarray, " U"]]:
    """The documents that are not empty, with the words that enough of them have; and the numbers of those words."""
    there = np.concatenate([np.empty(0, dtype=np.int64), *map(np.unique, documents)])
    spread = np.bincount(there, minlength=words)
    used = np.flatnonzero(spread >= min_documents)
    place = np.full(len(spread), -1)
    place[used] = np.arange(len(used))
    renumbered = [numbers[numbers >= 0] for document in documents for numbers in [place[document]]]
    return [document for document in renumbered if len(document)], used


Fit = tuple[Float[np.ndarray, "K W"], Float[np.ndarray, "D K"], list[float]]


def fit_tomotopy(
    documents: list[np.ndarray], words: int, topics: int, iterations: int, seed: int, progress: Progress
) -> Fit:
    """Collapsed Gibbs sampling. One worker, since several are not repeatable. Words are numbers, written as strings."""
    tomotopy = needed("tomotopy", "tomotopy", "to fit topics")
    names = [str(i) for i in range(words)]
    model = tomotopy.LDAModel(k=topics, seed=seed, rm_top=0)
    for document in documents:
        model.add_doc([names[i] for i in document])
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

    decomposition = needed("sklearn.decomposition", "scikit-learn", "for the backend sklearn")
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
    models = needed("gensim.models", "gensim", "for the backend gensim")
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


def coherence(documents: list[np.ndarray], tops: list[np.ndarray]) -> list[float]:
    """c_npmi of each topic: how much likelier than by chance its top words stand near each other (within ten words)."""
    tomotopy = needed("tomotopy", "tomotopy", "to measure coherence")
    corpus = tomotopy.utils.Corpus()
    for document in documents:
        corpus.add_doc([str(i) for i in document])
    targets = sorted({str(i) for top in tops for i in top})
    measure = needed("tomotopy.coherence", "tomotopy", "to measure coherence").Coherence(
        corpus, coherence="c_npmi", top_n=TOP, targets=targets
    )
    return [round(float(measure.get_score(words=[str(i) for i in top])), 6) for top in tops]
