"""Does a model encode topics? Table 1 of the paper for any model and any text, with intervals, baselines and the heads that carry them.

found = probe(model, tokenizer, texts, topics)     # objects that you have; topics from fit_topics or a word-to-topic file
found.rows[0]["attention"]["ratio"], found.heads
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from jaxtyping import Float

from topicscope.ground import Engine, InputError, repeatable
from topicscope.language.assignment import Assignment, TopicsPerWord, assign, given_topics
from topicscope.language.attention import PartTally, Window, tally_attention, windows
from topicscope.language.effects import attention_effect
from topicscope.language.models import LoadedModel, checked, word_vectors
from topicscope.language.relations import PairRelation, Relation, TopicRelation
from topicscope.language.topics import Topics, word_documents
from topicscope.language.vocabulary import Vocabulary, read_stop_words, whole_words
from topicscope.measure import PairSums, embedding_effect, frequency_bins, interval, pair_sums, shuffled_means

THRESHOLDS = (0.0005, 0.001, 0.002)
RANDOM_MODELS = 5
"""Fresh initialisations whose embeddings are averaged: one alone has a chance contrast of its own."""

Step = Callable[[str, int, int], None]
"""Called with what is being done, how many windows are done, and their number."""


@dataclass(frozen=True)
class Settings:
    """What is measured, and against what."""

    thresholds: tuple[float, ...] = THRESHOLDS
    topics_per_word: tuple[TopicsPerWord, ...] = ("one",)
    embedding: Literal["matrix", "layer"] = "matrix"
    bootstrap: int = 1000
    shuffles: int = 1000  # of topics among words, for embeddings
    attention_shuffles: int = 100
    matched: bool = True
    random: bool = True
    cooccurrence: bool = True
    windows: int | None = 2  # of a document
    window_length: int | None = None
    seed: int = 0


@dataclass
class Probe:
    """Rows as in Table 1, the heads, the co-occurrence control (Table 2), and means by topic."""

    rows: list[dict[str, Any]] = field(default_factory=list)
    heads: list[dict[str, Any]] = field(default_factory=list)
    cooccurrence: list[dict[str, Any]] = field(default_factory=list)
    topics: list[dict[str, Any]] = field(default_factory=list)

    def extend(self, other: Probe) -> None:
        for name in ("rows", "heads", "cooccurrence", "topics"):
            getattr(self, name).extend(getattr(other, name))

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


def probe(
    model: Any,
    tokenizer: Any,
    texts: Sequence[str],
    topics: Topics | Assignment | str | Path,
    *,
    name: str = "model",
    stop_words: str = "english",
    settings: Settings | None = None,
    progress: Step | None = None,
) -> Probe:
    """Probe a model that the caller has on texts that the caller has."""
    vocabulary = whole_words(tokenizer, read_stop_words(stop_words))
    return probe_model(checked(name, model, tokenizer), vocabulary, texts, topics, settings or Settings(), progress)


def probe_model(
    loaded: LoadedModel,
    vocabulary: Vocabulary,
    texts: Sequence[str],
    topics: Topics | Assignment | str | Path,
    settings: Settings,
    progress: Step | None = None,
    engine: Engine | None = None,
) -> Probe:
    """The trained model, and the same architecture with fresh weights beside it. An engine's workers load the model from where it came from."""
    assignments = assignments_of(topics, vocabulary, texts, settings, engine)
    with repeatable():
        pieces = list(windows(loaded, vocabulary, texts, settings.windows, settings.window_length))
        if not any(len(piece.places) for piece in pieces):
            raise InputError("the texts hold no whole words of this model's vocabulary")
        pairs = pair_relations(topics, assignments, loaded, settings)
        found = Probe()
        for variant in [loaded, loaded.random(settings.seed)] if settings.random else [loaded]:
            found.extend(
                _probe_variant(
                    variant, assignments, pairs if variant is loaded else {}, pieces, settings, progress, engine
                )
            )
    return found


def assignments_of(
    topics: Topics | Assignment | str | Path,
    vocabulary: Vocabulary,
    texts: Sequence[str],
    settings: Settings,
    engine: Engine | None = None,
) -> list[Assignment]:
    """Topics at every threshold; or as the user gave them."""
    if isinstance(topics, Assignment):
        return [topics]
    if isinstance(topics, Topics):
        topics.check(vocabulary)
        return [
            assign(topics, threshold, kind) for kind in settings.topics_per_word for threshold in settings.thresholds
        ]
    return [read_given(topics, vocabulary, texts, engine)]


def read_given(
    path: str | Path, vocabulary: Vocabulary, texts: Sequence[str], engine: Engine | None = None
) -> Assignment:
    """A word-to-topic file, with the words' frequencies in the texts."""
    words = np.concatenate([np.empty(0, dtype=np.int64), *word_documents(texts, vocabulary, engine)])
    frequency = np.bincount(words, minlength=len(vocabulary.words))
    return given_topics(path, vocabulary, dict(zip(vocabulary.token.tolist(), frequency.tolist(), strict=True)))


def pair_relations(
    topics: Any, assignments: list[Assignment], loaded: LoadedModel, settings: Settings
) -> dict[int, PairRelation]:
    """The top co-occurring pairs, as many as a topic of a threshold has pairs of words; by the assignment that they stand beside."""
    if not settings.cooccurrence or not isinstance(topics, Topics):
        return {}
    found = {}
    for number, assignment in enumerate(assignments):
        assert assignment.threshold is not None
        words = int(assignment.threshold * topics.vocabulary_size)
        pairs = topics.cooccurring[: words * (words - 1) // 2]
        if assignment.topics_per_word == "one" and len(pairs):
            found[number] = PairRelation(topics.token, pairs, topics.vocabulary_size, loaded.device)
    return found


def _probe_variant(
    loaded: LoadedModel,
    assignments: list[Assignment],
    pairs: dict[int, PairRelation],
    pieces: list[Window],
    settings: Settings,
    progress: Step | None,
    engine: Engine | None,
) -> Probe:
    found, size = Probe(), len(loaded.tokenizer)
    relations: list[Relation] = [
        TopicRelation(a, size, settings.attention_shuffles, settings.seed, device=loaded.device) for a in assignments
    ]
    done = 0

    def step(windows_done: int) -> None:
        nonlocal done
        done += windows_done
        if progress is not None:
            progress(f"{loaded.name} ({loaded.variant})", done, len(pieces))

    parts = tally_attention(
        loaded,
        pieces,
        [*relations, *pairs.values()],
        bootstrap=settings.bootstrap,
        seed=settings.seed,
        progress=step,
        engine=engine,
    )
    place = dict(zip(pairs, range(len(assignments), len(assignments) + len(pairs)), strict=True))
    for number, assignment in enumerate(assignments):
        about = {
            "model": loaded.name,
            "variant": loaded.variant,
            "threshold": assignment.threshold,
            "topics_per_word": assignment.topics_per_word,
            "words": len(assignment.words),
            "topics": int((assignment.membership.sizes > 0).sum()),
            "embedding": settings.embedding,
            "window": min(settings.window_length or loaded.window, loaded.window),
        }
        row, sums = embedding_row(loaded, assignment, settings)
        main = next(iter(parts))  # the encoder's, or the only one
        row["attention"] = _dict(attention_effect(parts[main][1][number], matched=settings.matched))
        row["parts"] = {
            part: _dict(attention_effect(tallies[number], matched=settings.matched))
            for part, (_, tallies) in parts.items()
        }
        found.rows.append(about | row)
        if loaded.variant == "trained":
            found.heads += head_rows(parts, number, about)
            found.topics += topic_rows(sums["cosine"], assignment, about)
        if number in place:
            found.cooccurrence.append(
                about | cooccurrence_row(loaded, pairs[number], parts[main][1][place[number]], row, settings)
            )
    return found


def embedding_row(
    loaded: LoadedModel, assignment: Assignment, settings: Settings
) -> tuple[dict[str, Any], dict[str, PairSums]]:
    """Cosine and dot product, as they are and with the mean word taken off."""
    layer = settings.embedding == "layer"
    several = (
        [loaded, *(loaded.random(settings.seed + i) for i in range(1, RANDOM_MODELS))]
        if loaded.variant == "random"
        else [loaded]
    )
    raws = [word_vectors(model, assignment.token, layer=layer) for model in several]
    bins = frequency_bins(assignment.frequency) if settings.matched else None
    row: dict[str, Any] = {}
    sums: dict[str, PairSums] = {}
    for suffix, vectors in (("", raws), ("_centred", [raw - raw.mean(0) for raw in raws])):
        for name, parts in (("cosine", [unit(v) for v in vectors]), ("dot", vectors)):
            # side by side and scaled, the vectors of several models have the mean of their dot products
            u = np.concatenate(parts, 1) / np.sqrt(len(parts))
            null = (
                shuffled_means(u, assignment.membership, settings.shuffles // len(parts), settings.seed)
                if settings.shuffles
                else None
            )
            each = [pair_sums(part, assignment.membership, bins) for part in parts]
            sums[name + suffix] = each[0]
            row[name + suffix] = _dict(
                embedding_effect(each, settings.bootstrap, settings.seed, null, matched=settings.matched)
            )
    return row, sums


def unit(vectors: Float[np.ndarray, "W d"]) -> Float[np.ndarray, "W d"]:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def head_rows(
    parts: dict[str, tuple[list[int], list[PartTally]]], number: int, about: dict[str, Any]
) -> list[dict[str, Any]]:
    rows = []
    for part, (heads, tallies) in parts.items():
        places = [(layer, head) for layer, count in enumerate(heads) for head in range(count)]
        for i, (layer, head) in enumerate(places):
            one = attention_effect(tallies[number], [i])
            if one is not None:
                kept = {
                    key: value
                    for key, value in one.as_dict().items()
                    if key not in ("null_interval", "p_value", "matched")
                }
                rows.append(
                    {key: about[key] for key in ("model", "threshold", "topics_per_word")}
                    | {"part": part, "layer": layer, "head": head}
                    | kept
                )
    return rows


def topic_rows(sums: PairSums, assignment: Assignment, about: dict[str, Any]) -> list[dict[str, Any]]:
    """Mean cosine inside each topic, and its nearest and farthest other topic."""
    inside, between = sums.topic_means(), sums.topic_between()
    np.fill_diagonal(between, np.nan)
    rows = []
    for k in np.flatnonzero(np.isfinite(inside)):
        others = between[k]
        known = np.flatnonzero(np.isfinite(others))
        near, far = (known[others[known].argmax()], known[others[known].argmin()]) if len(known) else (None, None)
        rows.append(
            {key: about[key] for key in ("model", "threshold", "topics_per_word")}
            | {
                "topic": int(k),
                "name": assignment.names[k],
                "words": int(assignment.membership.sizes[k]),
                "cosine": float(inside[k]),
            }
            | {
                "nearest": None if near is None else assignment.names[near],
                "nearest_cosine": None if near is None else float(others[near]),
            }
            | {
                "farthest": None if far is None else assignment.names[far],
                "farthest_cosine": None if far is None else float(others[far]),
            }
        )
    return rows


def cooccurrence_row(
    loaded: LoadedModel, relation: PairRelation, tally: PartTally, row: dict[str, Any], settings: Settings
) -> dict[str, Any]:
    """Table 2: pairs that stand together most often, against pairs of one topic."""
    used, places = np.unique(relation.pairs, return_inverse=True)
    vectors = unit(word_vectors(loaded, relation.token[used], layer=settings.embedding == "layer"))
    left, right = places.reshape(relation.pairs.shape).T
    cosines = np.einsum("pd,pd->p", vectors[left], vectors[right])
    times = np.random.default_rng([settings.seed, 0xC00C]).multinomial(
        len(cosines), np.full(len(cosines), 1 / len(cosines)), settings.bootstrap
    )
    number = float(tally.pairs.sum())
    resampled = (tally.boot_strata[:, 0] / tally.boot_pairs[:, 0]).cpu().numpy()
    return {
        "pairs": len(relation.pairs),
        "cosine": {
            "same_topic": row["cosine"] and row["cosine"]["same"],
            "cooccurring": float(cosines.mean()),
            "interval": interval(times @ cosines / len(cosines)),
        },
        "attention": {
            "same_topic": row["attention"] and row["attention"]["same"],
            "cooccurring": float(tally.sums.mean(1).sum()) / number if number else None,
            "interval": interval(resampled),
        },
    }


def _dict(found: Any) -> dict[str, Any] | None:
    return None if found is None else found.as_dict()
