"""Topics of a corpus: which words each has and how good the fit is; kept in a folder without pickle."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar

import numpy as np
import pydantic
from jaxtyping import Float, Int

from topicscope.ground import (
    Folder,
    InputError,
    Kind,
    Result,
    arrow_table,
    check_tensors,
    file_digest,
    files,
    finished_about,
    needed,
    open_folder,
    parse_json,
    read_bytes,
    read_tensors,
    refuse,
    refuse_if,
    shown,
)
from topicscope.language.corpora import unread
from topicscope.measure import diversity, nearest_topics
from topicscope.world import World

if TYPE_CHECKING:
    import pyarrow

# The rules of the warnings. Text whose words are shuffled over its documents has no topics. 50 topics fitted to such a
# text (617,000 words of WikiText-2) have coherence -.02, stability .18, and a perplexity above that of word
# frequencies; fitted to the text itself .11, .42, and 44% less. Diversity is .73 for the shuffled text and .79 for the
# text: it does not show whether topics are real, only whether they repeat each other.
POOR_COHERENCE = 0.0  # at or below it the top words co-occur no more often than by chance
POOR_SHARE = 0.25  # if a larger share of the topics has such a coherence, the rest is not trusted either
POOR_DIVERSITY = 0.5  # below it most of the top words are also those of another topic
POOR_STABILITY = 0.3  # below it less than 3 of 10 top words come again: halfway from shuffled text to text
POOR_GAIN = 0.05  # a smaller gain over word frequencies is near the 1% that shuffled text gives either way
ERRORS = 2.0  # standard errors by which two numbers of topics must differ to be told apart


@dataclass(frozen=True, kw_only=True)
class TopicQuality:
    topics: int
    coherence: float  # mean c_npmi
    coherence_error: float  # its standard error, over topics
    incoherent: int  # topics whose own c_npmi is poor
    diversity: float  # share of distinct words among the top words of all topics
    stability: float | None  # share of top words that come again in a second fit, mean over topics; None: no such fit
    perplexity: float | None  # held-out
    unigram_perplexity: float | None  # that of word frequencies alone
    held_out: int  # documents

    @property
    def score(self) -> float:
        """Coherence times diversity (Dieng, Ruiz and Blei 2020); a coherence below 0 is not made better by repeats."""
        return self.coherence * (self.diversity if self.coherence > 0 else 1.0)

    def warnings(self) -> list[str]:
        alone, poor = self.unigram_perplexity, self.coherence <= POOR_COHERENCE
        rules = [
            (
                poor,
                f"mean coherence {self.coherence:.3f} is not above {POOR_COHERENCE:g}: the top words co-occur no "
                "more often than by chance",
            ),
            (
                not poor and self.incoherent > POOR_SHARE * self.topics,
                f"{self.incoherent} of {self.topics} topics have a coherence of {POOR_COHERENCE:g} or less; ask for "
                "fewer topics, or give more text",
            ),
            (
                self.diversity < POOR_DIVERSITY,
                f"diversity {self.diversity:.2f} is below {POOR_DIVERSITY:g}: most top words belong to several topics; "
                "ask for fewer topics, or leave more stop words out",
            ),
            (
                self.stability is not None and self.stability < POOR_STABILITY,
                f"stability {self.stability or 0:.2f} is below {POOR_STABILITY:g}: another seed finds other topics; "
                "ask for fewer topics, give more text, or raise iterations",
            ),
            (
                self.perplexity is not None and alone is not None and self.perplexity > (1 - POOR_GAIN) * alone,
                f"held-out perplexity {self.perplexity or 0:,.0f} is not {100 * POOR_GAIN:g}% below that of word "
                f"frequencies alone ({alone or 0:,.0f}): knowing its topics does not help to predict a document's "
                "words",
            ),
        ]
        return [f"Poor topics: {reason}" for holds, reason in rules if holds]

    def sentences(self) -> list[str]:
        fit = [
            f"mean coherence (c_npmi) {self.coherence:.3f}: how much likelier than by chance two of a topic's top 10 "
            "words stand within ten words of each other (0: by chance, 1: only together)",
            f"diversity {self.diversity:.2f}: the share of distinct words among the top 10 of all topics (1: no word "
            "is in two topics)",
        ]
        if self.stability is None:
            return [*fit, "stability and held-out perplexity: not measured, which takes a second fit (--stability)"]
        return [
            *fit,
            f"stability {self.stability:.2f}: the share of a topic's top 10 words that reappear in the matching "
            "topic of a second fit, with another seed and without the held-out documents (1: all of them)",
            "held-out perplexity: not measured, since no held-out document has two known words"
            if self.perplexity is None or self.unigram_perplexity is None
            else f"held-out perplexity {self.perplexity:,.0f} (word frequencies alone: {self.unigram_perplexity:,.0f}):"
            f" the words of {self.held_out} documents that the second fit did not see are as hard to predict, from "
            "every other word of the document, as a choice among so many equally likely words (lower is better)",
        ]

    def notes(self) -> list[str]:
        return [
            f"{self.topics} topics: mean coherence (c_npmi) {self.coherence:.3f}, diversity {self.diversity:.2f}",
            *self.warnings(),
        ]


def quality_of(
    coherence: Sequence[float],
    diversity: float,
    stability: Sequence[float] | None = None,
    perplexity: float | None = None,
    unigram_perplexity: float | None = None,
    held_out: int = 0,
) -> TopicQuality:
    count = len(coherence)
    return TopicQuality(
        topics=count,
        coherence=float(np.mean(coherence)),
        coherence_error=float(np.std(coherence, ddof=1) / math.sqrt(count)) if count > 1 else 0.0,
        incoherent=sum(one <= POOR_COHERENCE for one in coherence),
        diversity=diversity,
        stability=None if stability is None else float(np.mean(stability)),
        perplexity=perplexity,
        unigram_perplexity=unigram_perplexity,
        held_out=held_out,
    )


def best_of(compared: Sequence[TopicQuality]) -> TopicQuality:
    return max([one for one in compared if not one.warnings()] or compared, key=lambda one: (one.score, -one.topics))


def choice(compared: Sequence[TopicQuality]) -> list[str]:
    best = best_of(compared)
    poor = [str(one.topics) for one in compared if one.warnings()]
    some_poor = f", without those that are poor ({', '.join(poor)})" if poor else ""
    rule = "; all of them are poor" if len(poor) == len(compared) else some_poor
    close = [
        str(other.topics)
        for other in compared
        if other is not best
        and str(other.topics) not in poor
        and abs(best.score - other.score)
        < ERRORS * math.hypot(*(one.coherence_error * one.diversity for one in (best, other)))
    ]
    return [
        f"best number of topics: {best.topics} (largest coherence x diversity{rule})",
        *(
            [
                f"{best.topics} cannot be told apart from {', '.join(close)}: coherence x diversity differs by less "
                f"than {ERRORS:g} standard errors over topics; choose by how fine the topics should be, or by stability"
            ]
            if close
            else []
        ),
    ]


ADVICE = "fit the topics again with 'topicscope topics'"


@dataclass(frozen=True, kw_only=True)
class TopicFit:
    backend: str
    topics: int
    iterations: int
    seed: int
    min_documents: int
    documents: int
    tokens: int  # words in the documents
    log_likelihood: list[float]  # per word, every ten sweeps
    coherence: list[float]  # c_npmi per topic
    corpus: str = ""  # what was read, in words
    stability: list[float] | None = None  # per topic; None: there was no second fit
    held_out: int = 0  # documents by which perplexity was measured
    perplexity: float | None = None
    unigram_perplexity: float | None = None


ARRAYS: dict[str, type[np.number]] = {  # what is stored, and as which type
    "token": np.int64,
    "probability": np.float64,
    "frequency": np.float64,
    "document_topics": np.float32,
    "document_lengths": np.int64,
    "cooccurring": np.int64,
}


@pydantic.dataclasses.dataclass(frozen=True, config=pydantic.ConfigDict(extra="forbid", strict=True))
class Head:
    vocabulary_size: Annotated[int, pydantic.Field(ge=1, le=2**31)]
    fingerprint: str
    digest: str  # digest of the file of tensors
    fit: TopicFit
    words: list[str]
    compared: list[TopicQuality]


def check_arrays(arrays: Mapping[str, np.ndarray], head: Head, path: Path) -> None:
    topics, words, size = head.fit.topics, len(head.words), head.vocabulary_size
    documents, pairs = (len(arrays.get(name, ())) for name in ("document_lengths", "cooccurring"))
    shapes = {
        "token": (words,),
        "probability": (topics, words),
        "frequency": (words,),
        "document_topics": (documents, topics),
        "document_lengths": (documents,),
        "cooccurring": (pairs, 2),
    }
    # the expected arrays take no memory: only names, types and sizes are compared
    check_tensors(arrays, {name: np.broadcast_to(ARRAYS[name](0), shapes[name]) for name in shapes}, path, ADVICE)
    coherence, frequency = head.fit.coherence, arrays["frequency"]
    rules = (
        (_outside(arrays["token"], size), f"a token is not one of {size}"),
        (_outside(arrays["cooccurring"], words), f"a pair has a word that is not one of {words}"),
        (not _distributions(arrays["probability"]), "the probabilities of a topic do not add up to 1"),
        (not _distributions(arrays["document_topics"]), "the topics of a document do not add up to 1"),
        (_outside(arrays["document_lengths"], 2**40), "the length of a document is negative"),
        (not (np.isfinite(frequency) & (frequency >= 0)).all(), "a frequency is not a count"),
        (len(coherence) != topics, f"it has the coherence of {len(coherence)} topics"),
        (len(head.fit.stability or coherence) != topics, "it has the stability of other topics"),
    )
    refuse(*((wrong, f"{shown(path)} is damaged: {reason}; {ADVICE}") for wrong, reason in rules))


def _outside(numbers: Int[np.ndarray, ...], end: int) -> bool:
    return bool(((numbers < 0) | (numbers >= end)).any())


def _distributions(rows: Float[np.ndarray, "R n"]) -> bool:
    # the sums are those of what was stored in half the digits
    return bool(np.isfinite(rows).all() and (rows >= 0).all() and (np.abs(rows.sum(1) - 1) < 1e-3).all())


HEAD, TENSORS = "topics.json", "topics.safetensors"
TOPICS = Kind("topics", 4, (HEAD, TENSORS, "*.csv", "topics-*"), (HEAD, TENSORS, "*.csv"))
TOP = 10  # words of a topic that are shown, and whose coherence is measured


@dataclass(frozen=True, kw_only=True, repr=False)
class CorpusWords:
    words: tuple[str, ...]
    token: Int[np.ndarray, " W"]
    frequency: Float[np.ndarray, " W"]  # occurrences in the corpus
    cooccurring: Int[np.ndarray, "P 2"]  # words that stand together most often, the commonest pair first
    vocabulary_size: int
    fingerprint: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Topics(CorpusWords, Result):
    """Topics of a corpus, from `fit_topics`.

    Attributes:
        words: The words.
        token: Token of each word (W).
        probability: Probability of each word in each topic (K x W).
        frequency: Occurrences of each word in the corpus (W).
        document_topics: Topic mixture of each document (D x K).
        document_lengths: Words per document (D).
        cooccurring: Pairs of words that stand together most often, the commonest first (P x 2).
        vocabulary_size: V, of the tokenizer.
        fingerprint: Fingerprint of the tokenizer.
        fit: How they were fitted, and how well.
        compared: All numbers of topics that were asked for, where there are several.

    Example:
        See `fit_topics`.
    """

    kind: ClassVar[str] = TOPICS.name
    probability: Float[np.ndarray, "K W"]
    document_topics: Float[np.ndarray, "D K"]
    document_lengths: Int[np.ndarray, " D"]
    fit: TopicFit
    compared: tuple[TopicQuality, ...] = ()

    def __len__(self) -> int:
        return len(self.probability)

    def top_words(self, topic: int, count: int = TOP) -> list[str]:
        return [self.words[i] for i in best(self.probability[topic], count)]

    @property
    def titles(self) -> tuple[str, ...]:
        return tuple(" ".join(self.top_words(k, 3)) for k in range(len(self)))

    def tops(self) -> list[Int[np.ndarray, " n"]]:
        return [best(row, TOP) for row in self.probability]

    @property
    def shares(self) -> Float[np.ndarray, " K"]:
        return self.document_topics.mean(0, dtype=float)

    @property
    def quality(self) -> TopicQuality:
        fit = self.fit
        return quality_of(
            fit.coherence, diversity(self.tops()), fit.stability, fit.perplexity, fit.unigram_perplexity, fit.held_out
        )

    def summary(self) -> list[str]:
        fit, quality = self.fit, self.quality
        return [
            *(choice(self.compared) if self.compared else []),
            f"{len(self)} topics, {fit.documents} documents, {fit.tokens:,} words",
            *quality.sentences(),
            *quality.warnings(),
            *(unread(fit.corpus) or ([f"corpus: {fit.corpus}"] if fit.corpus else [])),
        ]

    def records(self) -> list[dict[str, Any]]:
        nearest, distance = nearest_topics(self.probability)
        return [
            {
                "topic": k,
                "share": float(self.shares[k]),
                "coherence": self.fit.coherence[k],
                "stability": self.fit.stability[k] if self.fit.stability else None,
                "nearest": int(nearest[k]),
                "distance": round(float(distance[k]), 6),
                "words": self.top_words(k),
            }
            for k in range(len(self))
        ]

    def table(self) -> pyarrow.Table:
        return arrow_table([record | {"words": " ".join(record["words"])} for record in self.records()])

    def as_dict(self) -> dict[str, Any]:
        """The top words and how good the fit is, as `topicscope topics --json` prints them. `save` keeps everything."""
        left_out = ("coherence", "stability", "topics", *(() if self.fit.corpus else ("corpus",)))
        compared = [asdict(one) for one in self.compared]
        return {
            "topics": self.records(),
            **{key: value for key, value in asdict(self.fit).items() if key not in left_out},
            "quality": asdict(self.quality),
            "warnings": self.quality.warnings(),
            **({"compared": compared, "best": len(self), "choice": choice(self.compared)} if compared else {}),
        }

    def save(self, folder: str | os.PathLike[str], config: Mapping[str, Any] | None = None) -> Path:
        """A folder that `Topics.load` reads; one that holds topics is replaced."""
        with open_folder(folder, TOPICS, config, force=True) as opened:
            opened.begin()
            self.write(opened)
        return Path(folder)

    def write(self, folder: Folder) -> None:
        files.write_tensors(
            folder.file(TENSORS), {name: np.asarray(getattr(self, name), kind) for name, kind in ARRAYS.items()}
        )
        head = {
            "vocabulary_size": self.vocabulary_size,
            "fingerprint": self.fingerprint,
            "digest": file_digest(folder.file(TENSORS)),
            "fit": asdict(self.fit),
            "words": self.words,
            "compared": [asdict(one) for one in self.compared],
        }
        files.write_csv(folder.file("topics.csv"), self.table().to_pylist())
        files.write_csv(folder.file("quality.csv"), [asdict(one) for one in self.compared or (self.quality,)])
        files.write(folder.file(HEAD), f"{json.dumps(head, indent=1, ensure_ascii=False, allow_nan=False)}\n".encode())
        folder.finish(self.as_dict())

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Topics:
        path = Path(folder)
        try:
            finished_about(path, TOPICS)
            whole = read_bytes(path / HEAD)
            parse_json(whole, shown(path / HEAD))  # refuses what is too deep or too large
            head = pydantic.TypeAdapter(Head).validate_json(whole)
        except InputError as error:
            raise InputError(f"{error}; {ADVICE}") from None
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            field = ".".join(map(str, first["loc"]))
            raise InputError(f"{shown(path / HEAD)} is damaged ({field}: {first['msg']}); {ADVICE}") from None
        arrays, _ = read_tensors(path / TENSORS, ADVICE)
        refuse_if(
            head.digest != file_digest(path / TENSORS),
            f"{shown(path / TENSORS)} is not the file that was written with {HEAD}; {ADVICE}",
        )
        check_arrays(arrays, head, path / TENSORS)
        return cls(
            words=tuple(head.words),
            vocabulary_size=head.vocabulary_size,
            fingerprint=head.fingerprint,
            fit=head.fit,
            compared=tuple(head.compared),
            **{name: arrays[name] for name in ARRAYS},
        )

    def to_pyldavis(self) -> Any:
        return needed("pyLDAvis", "to_pyldavis()").prepare(
            self.probability, self.document_topics, self.document_lengths, list(self.words), self.frequency, n_jobs=1
        )

    def _about(self) -> str:
        return f"{len(self)} topics, {len(self.words)} words, {self.fit.documents} documents"


def best(values: Float[np.ndarray, " W"], count: int) -> Int[np.ndarray, " n"]:
    """The places of the largest values, largest first; ties by place."""
    return np.argsort(-values, kind="stable")[:count]


read_topics_folder = Topics.load

MOST_MIXTURES = 1000  # documents whose mixtures are the law of theta
MOST_NUMBERS = 400_000  # numbers of a configuration: config.yaml stays below 8 MB and is read in seconds


@dataclass(frozen=True)
class TopicWorld:
    settings: dict[str, dict[str, Any]]
    notes: tuple[str, ...]

    @property
    def world(self) -> World:
        return World.of(self.settings)


def topic_world(topics: Topics, words: int = 500) -> TopicWorld:
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
        (not with_words.any(), f"these topics have no document mixtures, so the law of theta is not known; {ADVICE}"),
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
    refuse_if(
        columns.size + rows.size > MOST_NUMBERS,
        f"{len(kept):,} words and {len(rows):,} mixtures of {len(columns):,} topics are more than {MOST_NUMBERS:,} "
        "numbers; keep fewer words, or fit fewer topics",
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
    return TopicWorld(
        settings,
        (
            f"The world is that of {len(kept):,} of {len(topics.words):,} words ({probability[kept].sum():.0%} of "
            f"the text under the fit), {len(columns):,} topics and the mixtures of {len(rows):,} of "
            f"{len(topics.document_topics):,} documents; documents have {low:,} to {high:,} words.",
            *([without] if lost.size else []),
        ),
    )


def six_decimals(rows: Float[np.ndarray, "D T"]) -> list[list[float]]:
    """Proportions to six decimals; what is missing of 1 goes to the largest."""
    shares = np.round(rows / rows.sum(1, keepdims=True), 6)
    shares[np.arange(len(shares)), shares.argmax(1)] += 1 - shares.sum(1)
    return [row.tolist() for row in np.round(shares, 6)]
