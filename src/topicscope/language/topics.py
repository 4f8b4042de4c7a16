"""Topics of a corpus: which words each has, kept in a folder without pickle, read back as they were.

topics = fit_topics(texts, vocabulary, topics=100, seed=0); topics.save("runs/topics"); Topics.load("runs/topics")
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pydantic
from jaxtyping import Float, Int

from topicscope.ground import (
    Folder,
    InputError,
    Kind,
    Result,
    arrow_table,
    file_digest,
    files,
    finished_about,
    needed,
    open_folder,
    parse_json,
    read_bytes,
    read_tensors,
    shown,
)
from topicscope.language.corpora import unread
from topicscope.language.topic_files import ADVICE, ARRAYS, Head, TopicFit, check_arrays
from topicscope.language.topic_quality import TopicQuality, choice, quality_of
from topicscope.language.vocabulary import Vocabulary
from topicscope.measure import diversity, nearest_topics

if TYPE_CHECKING:
    import pyarrow

HEAD, TENSORS = "topics.json", "topics.safetensors"
TOPICS = Kind("topics", 4, (HEAD, TENSORS, "*.csv", "topics-*"), (HEAD, TENSORS, "*.csv"))
TOP = 10  # words of a topic that are shown, and whose coherence is measured


@dataclass(frozen=True, kw_only=True, repr=False)
class Topics(Result):
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
    words: tuple[str, ...]
    token: Int[np.ndarray, " W"]
    probability: Float[np.ndarray, "K W"]
    frequency: Float[np.ndarray, " W"]
    document_topics: Float[np.ndarray, "D K"]
    document_lengths: Int[np.ndarray, " D"]
    cooccurring: Int[np.ndarray, "P 2"]
    vocabulary_size: int
    fingerprint: str
    fit: TopicFit
    compared: tuple[TopicQuality, ...] = ()

    def __len__(self) -> int:
        return len(self.probability)

    def top_words(self, topic: int, count: int = TOP) -> list[str]:
        return [self.words[i] for i in best(self.probability[topic], count)]

    def tops(self) -> list[Int[np.ndarray, " n"]]:
        return [best(row, TOP) for row in self.probability]

    @property
    def shares(self) -> Float[np.ndarray, " K"]:
        """Of each topic in a document, averaged over documents."""
        return self.document_topics.mean(0, dtype=float)

    @property
    def quality(self) -> TopicQuality:
        fit = self.fit
        measured = (fit.stability, fit.perplexity, fit.unigram_perplexity, fit.held_out)
        return quality_of(fit.coherence, diversity(self.tops()), *measured)

    def check(self, vocabulary: Vocabulary) -> None:
        if self.fingerprint != vocabulary.fingerprint:
            raise InputError(
                "these topics were fitted with another tokenizer; "
                "fit them with this model's ('topicscope topics CORPUS --tokenizer MODEL')"
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
        """One per topic, the most common first."""
        nearest, distance = nearest_topics(self.probability)
        stability: Sequence[float | None] = self.fit.stability or [None] * len(self)
        return [
            {
                "topic": k,
                "share": float(self.shares[k]),
                "coherence": self.fit.coherence[k],
                "stability": stability[k],
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
        except InputError as error:
            raise InputError(f"{error}; {ADVICE}") from None
        arrays, _ = read_tensors(path / TENSORS, ADVICE)
        try:
            whole = read_bytes(path / HEAD)
            parse_json(whole, shown(path / HEAD))  # bounded in depth and size
            head = pydantic.TypeAdapter(Head).validate_json(whole)
        except InputError as error:
            raise InputError(f"{error}; {ADVICE}") from None
        except pydantic.ValidationError as error:
            first = error.errors()[0]
            reason = f"{'.'.join(map(str, first['loc']))}: {first['msg']}"
            raise InputError(f"{shown(path / HEAD)} is damaged ({reason}); {ADVICE}") from None
        if head.digest != file_digest(path / TENSORS):
            raise InputError(f"{shown(path / TENSORS)} is not the file that was written with {HEAD}; {ADVICE}")
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
        """Prepared data for pyLDAvis.display or pyLDAvis.save_html."""
        return needed("pyLDAvis", "to_pyldavis()").prepare(
            self.probability, self.document_topics, self.document_lengths, list(self.words), self.frequency, n_jobs=1
        )

    def _about(self) -> str:
        return f"{len(self)} topics, {len(self.words)} words, {self.fit.documents} documents"


def best(values: Float[np.ndarray, " W"], count: int) -> Int[np.ndarray, " n"]:
    """The places of the largest values, largest first; ties by place.

    Args:
        values: Numbers (W).
        count: How many.

    Returns:
        Places.

    Example:
        >>> best(np.array([0.1, 0.7, 0.2]), 2).tolist()
        [1, 2]
    """
    return np.argsort(-values, kind="stable")[:count]


read_topics_folder = Topics.load
