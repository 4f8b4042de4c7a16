"""Topics of a corpus: which words each has, kept in a folder without pickle, read back as they were.

topics = fit_topics(texts, vocabulary, topics=100, seed=0); topics.save("runs/topics"); Topics.load("runs/topics")
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import (
    Folder,
    InputError,
    Kind,
    Result,
    arrow_table,
    files,
    finished_about,
    open_folder,
    read_tensors,
)
from topicscope.language.readers import needed
from topicscope.language.vocabulary import Vocabulary

if TYPE_CHECKING:
    import pyarrow

HEAD, TENSORS = "topics.json", "topics.safetensors"
TOPICS = Kind("topics", 3, (HEAD, TENSORS), (HEAD, TENSORS))
TOP = 10  # words of a topic that are shown, and whose coherence is measured
ADVICE = "fit the topics again with 'topicscope topics'"


@dataclass(frozen=True, kw_only=True)
class TopicFit:
    """How topics were fitted, and how well: log-likelihood per word every ten sweeps, coherence (c_npmi) per topic."""

    backend: str
    topics: int
    iterations: int
    seed: int
    min_documents: int
    documents: int
    tokens: int
    log_likelihood: list[float]
    coherence: list[float]
    corpus: str = ""  # what was read, in words


@dataclass(frozen=True, kw_only=True, repr=False)
class Topics(Result):
    """`probability[k, w]` is that of word w in topic k. Words are tokens of the tokenizer with this `fingerprint`."""

    kind: ClassVar[str] = TOPICS.name
    words: tuple[str, ...]
    token: Int[np.ndarray, " W"]
    probability: Float[np.ndarray, "K W"]
    frequency: Float[np.ndarray, " W"]  # occurrences in the corpus
    document_topics: Float[np.ndarray, "D K"]
    document_lengths: Int[np.ndarray, " D"]
    cooccurring: Int[np.ndarray, "P 2"]  # pairs of words that stand together most often, the commonest first
    vocabulary_size: int  # V, of the tokenizer
    fingerprint: str
    fit: TopicFit

    def __len__(self) -> int:
        return len(self.probability)

    def top_words(self, topic: int, count: int = TOP) -> list[str]:
        return [self.words[i] for i in best(self.probability[topic], count)]

    def check(self, vocabulary: Vocabulary) -> None:
        if self.fingerprint != vocabulary.fingerprint:
            raise InputError(
                "these topics were fitted with another tokenizer; "
                "fit them with this model's ('topicscope topics CORPUS --tokenizer MODEL')"
            )

    def summary(self) -> list[str]:
        fit, mean = self.fit, sum(self.fit.coherence) / len(self.fit.coherence)
        sentence = f"mean coherence (c_npmi) {mean:.3f}, {fit.documents} documents, {fit.tokens:,} words"
        return [sentence, f"corpus: {fit.corpus}"] if fit.corpus else [sentence]

    def table(self) -> pyarrow.Table:
        shares = self.document_topics.mean(0)
        return arrow_table(
            [
                {
                    "topic": k,
                    "share": float(shares[k]),
                    "coherence": self.fit.coherence[k],
                    "words": " ".join(self.top_words(k)),
                }
                for k in range(len(self))
            ]
        )

    def as_dict(self) -> dict[str, Any]:
        """The top words and how the fit went, as `topicscope topics --json` prints them. `save` keeps everything."""
        left_out = ("coherence", "topics", *(() if self.fit.corpus else ("corpus",)))
        return {
            "topics": [
                {"topic": k, "words": self.top_words(k), "coherence": self.fit.coherence[k]} for k in range(len(self))
            ],
            **{key: value for key, value in asdict(self.fit).items() if key not in left_out},
        }

    def save(self, folder: str | os.PathLike[str], config: Mapping[str, Any] | None = None) -> Path:
        """A folder that `Topics.load` reads; one that holds topics is replaced."""
        with open_folder(folder, TOPICS, config, force=True) as opened:
            opened.begin()
            self.write(opened)
        return Path(folder)

    def write(self, folder: Folder) -> None:
        files.write_tensors(folder.file(TENSORS), {name: getattr(self, name) for name in ARRAYS})
        head = {
            "vocabulary_size": self.vocabulary_size,
            "fingerprint": self.fingerprint,
            "digest": _digest(folder.file(TENSORS)),
            "fit": asdict(self.fit),
            "words": self.words,
        }
        files.write(folder.file(HEAD), f"{json.dumps(head, indent=1, ensure_ascii=False, allow_nan=False)}\n".encode())
        folder.finish(self.as_dict())

    @classmethod
    def load(cls, folder: str | os.PathLike[str]) -> Topics:
        path = Path(folder)
        try:
            finished_about(path, TOPICS)
        except InputError as error:
            raise InputError(f"{error}; {ADVICE}") from None
        try:
            head = json.loads((path / HEAD).read_text(encoding="utf-8"))
            arrays, _ = read_tensors(path / TENSORS, ADVICE)
            if head["digest"] != _digest(path / TENSORS):
                raise InputError(f"{path / TENSORS} is not the file that was written with {HEAD}; {ADVICE}")
            return cls(
                words=tuple(head["words"]),
                vocabulary_size=head["vocabulary_size"],
                fingerprint=head["fingerprint"],
                fit=TopicFit(**head["fit"]),
                **{name: arrays[name] for name in ARRAYS},
            )
        except InputError:
            raise
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise InputError(f"{path / HEAD} is missing or damaged ({error}); {ADVICE}") from None

    def to_pyldavis(self) -> Any:
        """Prepared data for pyLDAvis.display or pyLDAvis.save_html."""
        return needed("pyLDAvis", "pyldavis", "for to_pyldavis()").prepare(
            self.probability, self.document_topics, self.document_lengths, list(self.words), self.frequency, n_jobs=1
        )

    def _about(self) -> str:
        return f"{len(self)} topics, {len(self.words)} words, {self.fit.documents} documents"


ARRAYS = ("token", "probability", "frequency", "document_topics", "document_lengths", "cooccurring")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def best(values: Float[np.ndarray, " W"], count: int) -> Int[np.ndarray, " n"]:
    """The places of the largest values, largest first; ties by place."""
    return np.argsort(-values, kind="stable")[:count]


read_topics_folder = Topics.load
