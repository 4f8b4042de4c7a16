"""Topics of a corpus: fitted by LDA on its whole words, kept in a folder without pickle, read back as they were.

topics = fit_topics(texts, vocabulary, topics=100, seed=0); topics.save("runs/topics"); Topics.load("runs/topics")
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import Engine, InputError, files
from topicscope.language.cooccurrence import top_pairs
from topicscope.language.corpora import needed
from topicscope.language.sharding import document_shards, in_shards
from topicscope.language.vocabulary import Vocabulary, encode

FORMAT = 1
PAIRS = 5000
"""Co-occurring pairs that are kept."""
TOP = 10
"""Words of a topic whose coherence is measured."""

Progress = Callable[[int, int, float], None]
"""Called with the iterations done, their number, and the log-likelihood a word."""


@dataclass(frozen=True)
class Topics:
    """`probability[k, w]` is that of word w in topic k. Words are tokens of the tokenizer with this `fingerprint`."""

    words: tuple[str, ...]
    token: Int[np.ndarray, " W"]
    probability: Float[np.ndarray, "K W"]
    frequency: Float[np.ndarray, " W"]  # occurrences in the corpus
    document_topics: Float[np.ndarray, "D K"]
    document_lengths: Int[np.ndarray, " D"]
    cooccurring: Int[np.ndarray, "P 2"]  # pairs of words that stand together most often, the commonest first
    vocabulary_size: int  # V, of the tokenizer
    fingerprint: str
    about: dict[str, Any] = field(default_factory=dict)  # backend, seed, iterations, log_likelihood, coherence

    def __len__(self) -> int:
        return len(self.probability)

    def top_words(self, topic: int, count: int = TOP) -> list[str]:
        return [self.words[i] for i in best(self.probability[topic], count)]

    def check(self, vocabulary: Vocabulary) -> None:
        if self.fingerprint != vocabulary.fingerprint:
            raise InputError(
                "these topics were fitted with another tokenizer; fit them with this model's ('topicscope topics CORPUS --tokenizer MODEL')"
            )

    def save(self, folder: str | Path) -> Path:
        folder = Path(folder)
        folder.mkdir(parents=True, exist_ok=True)
        arrays = {name: getattr(self, name) for name in ARRAYS}
        files.write_tensors(folder / "topics.safetensors", arrays)
        head = {
            "made_by": "topicscope",
            "format": FORMAT,
            "vocabulary_size": self.vocabulary_size,
            "fingerprint": self.fingerprint,
            "about": self.about,
            "words": self.words,
        }
        files.write(
            folder / "topics.json", (json.dumps(head, indent=1, ensure_ascii=False, allow_nan=False) + "\n").encode()
        )  # last: with it the folder is whole
        return folder

    @classmethod
    def load(cls, folder: str | Path) -> Topics:
        folder, advice = Path(folder), "fit the topics again with 'topicscope topics'"
        try:
            head = json.loads((folder / "topics.json").read_text(encoding="utf-8"))
            if head["format"] != FORMAT:
                raise InputError(f"{folder} holds topics of format {head['format']}, expected {FORMAT}; {advice}")
            arrays: Any = files.read_tensors(folder / "topics.safetensors", advice)
            rest: Any = {key: head[key] for key in ("vocabulary_size", "fingerprint", "about")}
            return cls(words=tuple(head["words"]), **{name: arrays[name] for name in ARRAYS}, **rest)
        except InputError:
            raise
        except FileNotFoundError:
            raise InputError(
                f"{folder} holds no topics (no topics.json); fit some with 'topicscope topics CORPUS --tokenizer MODEL --out {folder}'"
            ) from None
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{folder / 'topics.json'} is damaged ({error}); {advice}") from None

    def to_pyldavis(self) -> Any:
        """Prepared data for pyLDAvis.display or pyLDAvis.save_html."""
        prepare = needed("pyLDAvis", "pyldavis", "for to_pyldavis()").prepare
        return prepare(
            self.probability, self.document_topics, self.document_lengths, list(self.words), self.frequency, n_jobs=1
        )


ARRAYS = ("token", "probability", "frequency", "document_topics", "document_lengths", "cooccurring")


def best(values: Float[np.ndarray, " W"], count: int) -> Int[np.ndarray, " n"]:
    """The places of the largest values, largest first; ties by place."""
    return np.argsort(-values, kind="stable")[:count]


def word_documents(
    texts: Sequence[str], vocabulary: Vocabulary, engine: Engine | None = None
) -> list[Int[np.ndarray, " N"]]:
    """The whole words of each text."""
    return [
        document
        for shard in in_shards(engine, whole_words_of, vocabulary, document_shards(texts))
        for document in shard
    ]


def whole_words_of(vocabulary: Vocabulary, texts: Sequence[str]) -> list[Int[np.ndarray, " N"]]:
    each = (vocabulary.words_at(tokens) for tokens in encode(vocabulary.tokenizer, texts))
    return [words[words >= 0] for words in each]


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
    progress: Progress | None = None,
    engine: Engine | None = None,
) -> Topics:
    """LDA on the whole words of the texts. Words in fewer than `min_documents` of them are left out; of `restarts` the likeliest fit is kept.

    Words and co-occurrence are counted on the engine; the sampling is one chain, and stays here.
    """
    if backend not in BACKENDS:
        raise InputError(f"no topic backend {backend!r}; known: {', '.join(BACKENDS)}")
    documents = word_documents(texts, vocabulary, engine)
    spread = np.zeros(len(vocabulary.words), dtype=np.int64)
    for document in documents:
        spread[np.unique(document)] += 1
    used = np.flatnonzero(spread >= min_documents)
    place = np.full(len(spread), -1)
    place[used] = np.arange(len(used))
    documents = [words[words >= 0] for document in documents for words in [place[document]]]
    documents = [document for document in documents if len(document)]
    if len(documents) < topics:
        raise InputError(
            f"{len(documents)} documents with words that {min_documents} documents share are fewer than {topics} topics; "
            "give more documents or ask for fewer topics"
        )
    if len(used) < topics:
        raise InputError(
            f"{len(used)} words that occur in at least {min_documents} documents are fewer than {topics} topics; give more text"
        )
    fits = [
        BACKENDS[backend](documents, len(used), topics, iterations, seed + 1000 * i, progress) for i in range(restarts)
    ]
    probability, mixture, trace = max(fits, key=lambda fit: fit[2][-1])
    order = np.argsort(-mixture.sum(0), kind="stable")  # the most common topic first
    probability, mixture = probability[order], mixture[:, order]
    lengths = np.array([len(document) for document in documents])
    frequency = np.bincount(np.concatenate(documents), minlength=len(used)).astype(float)
    about = {
        "backend": backend,
        "topics": topics,
        "iterations": iterations,
        "seed": seed,
        "min_documents": min_documents,
        "documents": len(documents),
    }
    about |= {"tokens": int(lengths.sum()), "log_likelihood": trace}
    about["coherence"] = coherence(documents, [best(row, TOP) for row in probability])
    return Topics(
        tuple(vocabulary.words[i] for i in used),
        vocabulary.token[used],
        probability,
        frequency,
        mixture.astype(np.float32),
        lengths,
        top_pairs(documents, len(used), PAIRS, engine)[0],
        vocabulary.size,
        vocabulary.fingerprint,
        about,
    )


Fit = tuple[Float[np.ndarray, "K W"], Float[np.ndarray, "D K"], list[float]]


def fit_tomotopy(
    documents: list[np.ndarray], words: int, topics: int, iterations: int, seed: int, progress: Progress | None
) -> Fit:
    """Collapsed Gibbs sampling. One worker: more are not repeatable. Words are numbers written out, since it wants strings."""
    tomotopy = needed("tomotopy", "tomotopy", "to fit topics")
    names = [str(i) for i in range(words)]
    model = tomotopy.LDAModel(k=topics, seed=seed, rm_top=0)
    for document in documents:
        model.add_doc([names[i] for i in document])
    trace, step = [], 10
    for start in range(0, iterations, step):
        model.train(min(step, iterations - start), workers=1)
        trace.append(round(float(model.ll_per_word), 6))
        if progress is not None:
            progress(min(start + step, iterations), iterations, trace[-1])
    place = [int(name) for name in model.used_vocabs]
    probability = np.zeros((topics, words))
    for k in range(topics):
        probability[k, place] = model.get_topic_word_dist(k)
    return probability, np.array([document.get_topic_dist() for document in model.docs]), trace


def fit_sklearn(
    documents: list[np.ndarray], words: int, topics: int, iterations: int, seed: int, progress: Progress | None
) -> Fit:
    decomposition = needed("sklearn.decomposition", "scikit-learn", "for the backend sklearn")
    counts = _counts(documents, words)
    passes = max(1, iterations // 10)
    model = decomposition.LatentDirichletAllocation(
        topics, max_iter=passes, random_state=seed, learning_method="online", batch_size=128
    )
    mixture = model.fit_transform(counts)
    trace = [round(float(model.score(counts)) / counts.sum(), 6)]
    if progress is not None:
        progress(iterations, iterations, trace[-1])
    return model.components_ / model.components_.sum(1, keepdims=True), mixture, trace


def fit_gensim(
    documents: list[np.ndarray], words: int, topics: int, iterations: int, seed: int, progress: Progress | None
) -> Fit:
    models = needed("gensim.models", "gensim", "for the backend gensim")
    bags = [
        list(zip(*(array.tolist() for array in np.unique(document, return_counts=True)), strict=True))
        for document in documents
    ]
    names = {i: str(i) for i in range(words)}
    model = models.LdaModel(
        bags,
        num_topics=topics,
        id2word=names,
        passes=max(1, iterations // 30),
        random_state=seed,
        eta="auto",
        alpha="auto",
    )
    trace = [round(float(model.log_perplexity(bags)), 6)]
    if progress is not None:
        progress(iterations, iterations, trace[-1])
    mixture, _ = model.inference(bags)
    return model.get_topics().astype(float), mixture / mixture.sum(1, keepdims=True), trace


BACKENDS: dict[str, Callable[..., Fit]] = {"tomotopy": fit_tomotopy, "sklearn": fit_sklearn, "gensim": fit_gensim}


def _counts(documents: list[np.ndarray], words: int) -> Any:
    from scipy import sparse

    row = np.repeat(np.arange(len(documents)), [len(document) for document in documents])
    column = np.concatenate(documents)
    return sparse.coo_array((np.ones(len(column)), (row, column)), shape=(len(documents), words)).tocsr()


def coherence(documents: list[np.ndarray], tops: list[np.ndarray]) -> list[float]:
    """c_npmi of each topic: how much likelier its top words stand near each other (windows of ten words) than chance has it."""
    tomotopy = needed("tomotopy", "tomotopy", "to measure coherence")
    needed("tomotopy.coherence", "tomotopy", "to measure coherence")
    corpus = tomotopy.utils.Corpus()
    for document in documents:
        corpus.add_doc([str(i) for i in document])
    targets = sorted({str(i) for top in tops for i in top})
    measure = tomotopy.coherence.Coherence(corpus, coherence="c_npmi", top_n=TOP, targets=targets)
    return [round(float(measure.get_score(words=[str(i) for i in top])), 6) for top in tops]
