"""Does a model encode topics? Table 1 of the paper for any model and any text, with intervals, controls and heads.

probe_model(load_model("bert-base-uncased"), texts, topics)     # topics from fit_topics, or a folder or file of them

A measure on word vectors is one entry of MEASURES: it then is in the results, the tables and the page.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from jaxtyping import Float

from topicscope.ground import Engine, InputError, Progress, Stream, generator, repeatable, serial, watched
from topicscope.language.assignment import Assignment, assignments_of, load_topics
from topicscope.language.attention import PartSums, PartTally, tally_attention
from topicscope.language.configs import Measurement
from topicscope.language.effects import attention_effect
from topicscope.language.forward import word_vectors
from topicscope.language.models import LoadedModel
from topicscope.language.probes import CooccurrenceRow, HeadRow, MeasuredRow, PairContrast, Probe, ProbeRow, TopicRow
from topicscope.language.relations import PairRelation, Relation, TopicRelation
from topicscope.language.topics import Topics
from topicscope.language.vocabulary import Vocabulary, whole_words
from topicscope.language.windows import Window, windows
from topicscope.measure import (
    Effect,
    PairSums,
    embedding_effect,
    frequency_bins,
    interval,
    pair_sums,
    shuffled_means,
)

RANDOM_MODELS = 5
"""Random initialisations whose embeddings are averaged: the contrast of a single one is not quite zero."""

Vectors = Float[np.ndarray, "W d"]


def unit(vectors: Vectors) -> Vectors:
    """Vectors of length 1: their dot products are cosines."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def plain(vectors: Vectors) -> Vectors:
    return vectors


def centred(vectors: Vectors) -> Vectors:
    """Less the mean word."""
    return vectors - vectors.mean(0)


MEASURES: dict[str, Callable[[Vectors], Vectors]] = {
    "cosine": unit,
    "dot": plain,
    "cosine_centred": lambda vectors: unit(centred(vectors)),
    "dot_centred": centred,
}
"""By name: what is done to the word vectors before the dot products of pairs of words are averaged."""


def probe_model(
    loaded: LoadedModel,
    texts: Sequence[str],
    topics: Topics | Assignment | str | Path,
    measurement: Measurement | None = None,
    *,
    vocabulary: Vocabulary | None = None,
    engine: Engine = serial,
    progress: Progress | None = None,
) -> Probe:
    """Probe a model that the caller has, on texts and topics that the caller has.

    Without a vocabulary the whole words of the tokenizer are taken, less the English stop words. An engine's workers
    load the model again from where it came from.
    """
    measurement = measurement or Measurement()
    vocabulary = vocabulary or whole_words(loaded.tokenizer)
    topics = load_topics(topics, vocabulary, texts, engine) if isinstance(topics, str | Path) else topics
    assignments = assignments_of(topics, vocabulary, measurement.thresholds, measurement.topics_per_word)
    with repeatable(), watched(progress) as shown:
        pieces = list(windows(loaded, vocabulary, texts, measurement.windows))
        if not any(len(piece.places) for piece in pieces):
            raise InputError("the texts hold no whole words of this model's vocabulary")
        pairs = pair_relations(topics, assignments, loaded, measurement)
        variants = [(loaded, pairs), *([(loaded.random(measurement.seed), {})] if measurement.random else [])]
        probes = [
            Variant(model, assignments, cooccurring, measurement).probed(pieces, engine, shown)
            for model, cooccurring in variants
        ]
    return Probe.joined(probes, list(dict.fromkeys(a.remark for a in assignments if a.remark)), measurement)


def pair_relations(
    topics: object, assignments: Sequence[Assignment], loaded: LoadedModel, measurement: Measurement
) -> dict[int, PairRelation]:
    """By the number of an assignment: the top co-occurring pairs, as many as one of its topics has pairs of words."""
    relations: dict[int, PairRelation] = {}
    if measurement.cooccurrence and isinstance(topics, Topics):
        for number, assignment in enumerate(assignments):
            words = int((assignment.threshold or 0.0) * topics.vocabulary_size)
            pairs = topics.cooccurring[: words * (words - 1) // 2]
            if assignment.topics_per_word == "one" and len(pairs):
                relations[number] = PairRelation(topics.token, pairs, topics.vocabulary_size, loaded.device)
    return relations


@dataclass(frozen=True)
class Variant:
    """A model, trained or random, with what is measured on it."""

    loaded: LoadedModel
    assignments: Sequence[Assignment]
    pairs: dict[int, PairRelation]
    measurement: Measurement

    def probed(self, pieces: Sequence[Window], engine: Engine, progress: Progress) -> Probe:
        loaded, measurement = self.loaded, self.measurement
        relations: list[Relation] = [
            TopicRelation(
                assignment,
                len(loaded.tokenizer),
                measurement.attention_shuffles,
                measurement.seed,
                device=loaded.device,
            )
            for assignment in self.assignments
        ]
        parts = tally_attention(
            loaded,
            pieces,
            [*relations, *self.pairs.values()],
            bootstrap=measurement.bootstrap,
            seed=measurement.seed,
            engine=engine,
            progress=progress,
            phase=f"probing {loaded.name} ({loaded.variant})",
        )
        probe = Probe()
        for number, assignment in enumerate(self.assignments):
            progress(f"statistics of {loaded.name} ({loaded.variant})", number, len(self.assignments))
            self.add_rows(probe, number, assignment, parts)
        return probe

    def add_rows(self, probe: Probe, number: int, assignment: Assignment, parts: dict[str, PartSums]) -> None:
        """The rows of one assignment."""
        main = next(iter(parts.values()))  # the encoder's, or the only one
        effects, cosines = self.embedding_effects(assignment)
        row = ProbeRow(
            **self.measured(assignment).about(),
            embeddings=effects,
            attention=attention_effect(main.tallies[number], matched=self.measurement.matched),
            parts={
                name: attention_effect(part.tallies[number], matched=self.measurement.matched)
                for name, part in parts.items()
            },
        )
        probe.rows.append(row)
        if self.loaded.variant == "trained":
            probe.heads.extend(head_rows(parts, number, row))
            probe.topics.extend(topic_rows(cosines, assignment, row))
        if number in self.pairs:
            tally = main.tallies[len(self.assignments) + list(self.pairs).index(number)]
            probe.cooccurrence.append(self.cooccurrence_row(self.pairs[number], tally, row))

    def measured(self, assignment: Assignment) -> MeasuredRow:
        return MeasuredRow(
            model=self.loaded.name,
            variant=self.loaded.variant,
            threshold=assignment.threshold,
            topics_per_word=assignment.topics_per_word,
            words=len(assignment.words),
            topics=int((assignment.membership.sizes > 0).sum()),
            embedding=self.measurement.embedding,
            window=self.loaded.window,
        )

    def embedding_effects(self, assignment: Assignment) -> tuple[dict[str, Effect | None], PairSums]:
        """Of every measure on word vectors; and the sums of cosines, which the topics are read from.

        Of random weights the mean over several models.
        """
        measurement, models = self.measurement, [self.loaded]
        if self.loaded.variant == "random":
            models += [self.loaded.random(measurement.seed + i) for i in range(1, RANDOM_MODELS)]
        layer = measurement.embedding == "layer"
        raws = [word_vectors(model.model, assignment.token, layer=layer) for model in models]
        bins = frequency_bins(assignment.frequency) if measurement.matched else None
        effects: dict[str, Effect | None] = {}
        sums: dict[str, PairSums] = {}
        for name, measure in MEASURES.items():
            vectors = [measure(raw) for raw in raws]
            # side by side and scaled, the vectors of several models have the mean of their dot products
            u, null = np.concatenate(vectors, 1) / np.sqrt(len(vectors)), None
            if measurement.shuffles:
                shuffles = measurement.shuffles // len(vectors)
                null = shuffled_means(u, assignment.membership, shuffles, measurement.seed)
            each = [pair_sums(one, assignment.membership, bins) for one in vectors]
            sums[name] = each[0]
            effects[name] = embedding_effect(
                each,
                resamples=measurement.bootstrap,
                seed=measurement.seed,
                null=null,
                matched=measurement.matched,
            )
        return effects, sums["cosine"]

    def cooccurrence_row(self, relation: PairRelation, tally: PartTally, row: ProbeRow) -> CooccurrenceRow:
        """Table 2: pairs that stand together most often, against pairs of one topic."""
        used, places = np.unique(relation.pairs, return_inverse=True)
        layer = self.measurement.embedding == "layer"
        vectors = unit(word_vectors(self.loaded.model, relation.token[used], layer=layer))
        left, right = places.reshape(relation.pairs.shape).T
        cosines = np.einsum("pd,pd->p", vectors[left], vectors[right])
        times = generator(self.measurement.seed, Stream.BOOTSTRAP_PAIRS).multinomial(
            len(cosines), np.full(len(cosines), 1 / len(cosines)), self.measurement.bootstrap
        )
        number = float(tally.pairs.sum())
        resampled = (tally.boot_strata[:, 0] / tally.boot_pairs[:, 0]).cpu().numpy()
        attention = float(tally.sums.mean(1).sum()) / number if number else None
        return CooccurrenceRow(
            **row.about(),
            pairs=len(relation.pairs),
            cosine=PairContrast(same(row.cosine), float(cosines.mean()), interval(times @ cosines / len(cosines))),
            attention=PairContrast(same(row.attention), attention, interval(resampled)),
        )


def same(effect: Effect | None) -> float | None:
    return None if effect is None else effect.same


def head_rows(parts: dict[str, PartSums], number: int, row: ProbeRow) -> list[HeadRow]:
    """Every head of every part; heads without pairs are left out."""
    rows = []
    for name, part in parts.items():
        places = [(layer, head) for layer, count in enumerate(part.heads) for head in range(count)]
        for i, (layer, head) in enumerate(places):
            effect = attention_effect(part.tallies[number], [i])
            if effect is not None:
                rows.append(
                    HeadRow(
                        model=row.model,
                        threshold=row.threshold,
                        topics_per_word=row.topics_per_word,
                        part=name,
                        layer=layer,
                        head=head,
                        effect=effect,
                    )
                )
    return rows


def topic_rows(sums: PairSums, assignment: Assignment, row: ProbeRow) -> list[TopicRow]:
    """Mean cosine inside each topic, and its nearest and farthest other topic."""
    inside, between = sums.topic_means(), sums.topic_between()
    np.fill_diagonal(between, np.nan)
    rows = []
    for k in np.flatnonzero(np.isfinite(inside)):
        others = between[k]
        known = np.flatnonzero(np.isfinite(others))
        near, far = (known[others[known].argmax()], known[others[known].argmin()]) if len(known) else (None, None)
        rows.append(
            TopicRow(
                model=row.model,
                threshold=row.threshold,
                topics_per_word=row.topics_per_word,
                topic=int(k),
                name=assignment.names[k],
                words=int(assignment.membership.sizes[k]),
                cosine=float(inside[k]),
                nearest=None if near is None else assignment.names[near],
                nearest_cosine=None if near is None else float(others[near]),
                farthest=None if far is None else assignment.names[far],
                farthest_cosine=None if far is None else float(others[far]),
            )
        )
    return rows
