"""Does a model encode topics? Table 1 of the paper for any model and any text, with intervals, controls and heads.

probe_model(load_model("bert-base-uncased"), texts, topics)     # topics from fit_topics, or a folder or file of them

A measure on word vectors is one entry of MEASURES: it then is in the results, the tables and the page.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from operator import itemgetter
from pathlib import Path

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import (
    Engine,
    InputError,
    Progress,
    Stream,
    generator,
    refuse_if,
    repeatable,
    serial,
    silent,
    watched,
)
from topicscope.language.assignment import Assignment, LabelWords, assignments_of, load_topics
from topicscope.language.attention import (
    DocumentSums,
    PairRelation,
    Parts,
    PartTally,
    TopicRelation,
    attention_effect,
    head_rows,
    matched_attention,
    tally_attention,
)
from topicscope.language.configs import Measurement, ModelPass
from topicscope.language.documents import (
    chosen_documents,
    document_losses,
    document_rows,
    large_text_note,
    shown_documents,
)
from topicscope.language.forward import word_vectors
from topicscope.language.losses import ablate, predictor_of
from topicscope.language.models import LoadedModel, load_model
from topicscope.language.probe_rows import CooccurrenceRow, PairContrast, ProbeRow, TopicRow, place, topical_heads
from topicscope.language.probes import Probe
from topicscope.language.states import StateProbe, mixture_of, originals
from topicscope.language.topics import Topics
from topicscope.language.verdicts import verdict_of
from topicscope.language.vocabulary import Vocabulary, Window, top_pairs, whole_words, windows, word_documents
from topicscope.measure import (
    Effect,
    PairSums,
    Timeline,
    draws,
    effect,
    embedding_effect,
    frequency_bins,
    matched_effect,
    pair_sums,
    shuffled_means,
)

MOST_PAIRS = 100_000  # that are counted for given topics
LISTED = 10  # pairs that are named
Pairs = Int[np.ndarray, "P 2"]


def pair_relations(
    topics: Topics | LabelWords | Assignment,
    assignments: Sequence[Assignment],
    loaded: LoadedModel,
    measurement: Measurement,
    vocabulary: Vocabulary,
    texts: Sequence[str],
    engine: Engine,
) -> dict[int, PairRelation]:
    """By the number of an assignment: the top co-occurring pairs, as many as one of its topics has pairs of words.

    Fitted topics and labels know them. For given topics they are counted in the texts.
    """
    relations: dict[int, PairRelation] = {}
    known = None if isinstance(topics, Assignment) else (topics.cooccurring, topics.token)
    for number, assignment in enumerate(assignments if measurement.cooccurrence else ()):
        if assignment.topics_per_word != "one":
            continue
        words = max(2, round(float(assignment.membership.sizes.mean())))
        if isinstance(topics, Topics):
            words = int((assignment.threshold or 0.0) * topics.vocabulary_size)
        if known is None:
            documents = [words for words in word_documents(texts, vocabulary, engine) if len(words)]
            known = top_pairs(documents, len(vocabulary.words), MOST_PAIRS, engine)[0], vocabulary.token
        pairs, token = known
        if count := min(len(pairs), words * (words - 1) // 2):
            relations[number] = PairRelation(token, pairs[:count], len(loaded.tokenizer), loaded.device)
    return relations


@np.errstate(invalid="ignore", divide="ignore")
def listed_attention(
    tally: PartTally, effect: Effect | None, listed: int, heads: Sequence[int] | None = None
) -> PairContrast:
    """Attention between listed pairs beside that between pairs of a topic: the mean over all heads, or some of them."""
    chosen = slice(None) if heads is None else list(heads)
    number = float(tally.pairs.sum())
    resampled = tally.boot_sums.numpy()[:, 0, chosen].mean(1) / tally.boot_pairs.numpy()[:, 0]
    mean = float(tally.sums.numpy()[:, chosen].mean(1).sum()) / number if number else None
    return PairContrast.of(effect, mean, resampled, listed)  # the same documents are drawn for both


def of_one_topic(relation: PairRelation, assignment: Assignment) -> int:
    topic = np.full(relation.vocabulary_size, -1)
    topic[assignment.token[assignment.membership.word]] = assignment.membership.topic
    left, right = topic[relation.token[relation.pairs]].T
    return int(((left == right) & (left >= 0)).sum())


Vectors = Float[np.ndarray, "W d"]


def unit(vectors: Vectors) -> Vectors:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return vectors / np.where(lengths > 0, lengths, 1)


def centred(vectors: Vectors) -> Vectors:
    return vectors - vectors.mean(0)


# by name: what is done to the word vectors before the dot products of pairs of words are averaged
MEASURES: dict[str, Callable[[Vectors], Vectors]] = {
    "cosine": unit,
    "dot": lambda vectors: vectors,
    "cosine_centred": lambda vectors: unit(centred(vectors)),
    "dot_centred": centred,
}


RANDOM_MODELS = 5  # initialisations whose embeddings are averaged: the contrast of a single one is not quite zero


def probe_model(
    loaded: LoadedModel,
    texts: Sequence[str],
    topics: Topics | LabelWords | Assignment | str | Path,
    measurement: Measurement | None = None,
    *,
    labels: Sequence[str | None] = (),
    vocabulary: Vocabulary | None = None,
    places: Sequence[int] | None = None,
    engine: Engine = serial,
    progress: Progress | None = None,
) -> Probe:
    """Probe a model that you have, on texts and topics that you have."""
    if isinstance(topics, LabelWords) or labels:
        refuse_if(len(labels) != len(texts), f"{len(labels)} labels of {len(texts)} texts; give one for each, or None")
    measurement = measurement or Measurement()
    vocabulary = vocabulary or whole_words(loaded.tokenizer)
    topics = load_topics(topics, vocabulary, texts, engine) if isinstance(topics, str | Path) else topics
    assignments = assignments_of(topics, vocabulary, measurement.thresholds, measurement.topics_per_word)
    with repeatable(), watched(progress) as shown:
        cut = partial(windows, loaded, vocabulary, texts, measurement.windows)  # anew each time, never all at once
        if not any(len(piece.places) for piece in cut()):
            raise InputError("the texts hold no whole words of this model's vocabulary")
        pairs = pair_relations(topics, assignments, loaded, measurement, vocabulary, texts, engine)
        states, of = None, originals(texts)
        if measurement.states:
            states = StateProbe(assignments, pairs, topics, measurement, of, labels=labels)
        # the assignment with most words: the others show few pairs in a single document
        sums = DocumentSums(max(range(len(assignments)), key=lambda number: len(assignments[number].words)))
        trained = Variant(loaded, vocabulary, assignments, pairs, measurement, states=states, documents=sums)
        probes = [trained.probed(cut, len(texts), engine, shown)]
        topical = [place(head) for head in topical_heads(probes[0].heads, next(iter(probes[0].rows[0].parts)))]
        if measurement.random:
            # of fresh weights the same heads are looked at
            fresh = Variant(loaded.random(measurement.seed), vocabulary, assignments, {}, measurement, topical, states)
            probes.append(fresh.probed(cut, len(texts), engine, shown))
        probe = Probe.joined(probes, [], measurement)
        predictor = predictor_of(loaded)  # once: it may be the model loaded again
        if measurement.ablation:
            probe.ablation.extend(
                ablate(loaded, predictor, texts, vocabulary, topical, assignments, measurement, shown)
            )
        assignment, infer = assignments[sums.relation], mixture_of(topics, labels)
        targets = states.targets if states else None
        known = dict(zip(targets.documents, targets.shares, strict=True)) if targets else {}
        losses, unknown = document_losses(predictor, vocabulary, texts, measurement.seed, shown)
        probe.documents.extend(
            document_rows(
                loaded,
                cut(),
                texts,
                assignment,
                lambda number, words: known[number] if number in known else infer(number, words),
                sums,
                places=places,
                losses=losses,
                progress=shown,
            )
        )
        chosen = chosen_documents(probe.documents, measurement.show_documents, measurement.seed)
        probe.shown.extend(shown_documents(loaded, vocabulary, texts, chosen, assignment, probe.heads, shown))
        probe.verdicts.append(
            verdict_of(
                probe.rows,
                probe.heads,
                probe.cooccurrence,
                measurement,
                probe.states,
                sum(row.same_pairs > 0 for row in probe.documents),
                labels=isinstance(topics, LabelWords),
            )
        )
    notes = [
        large_text_note(probe.documents, of),  # first: it may turn an answer
        *loaded.notes,
        *(a.remark for a in assignments),
        *(states.notes if states else ()),
        unknown,
        "labels are not guessed: that takes hidden states, which are off (--no-states)"
        if labels and not states
        else "",
    ]
    return replace(probe, notes=list(dict.fromkeys(filter(None, notes))))


@dataclass(frozen=True)
class Variant:
    loaded: LoadedModel
    vocabulary: Vocabulary
    assignments: Sequence[Assignment]
    pairs: dict[int, PairRelation]
    measurement: Measurement
    topical: Sequence[tuple[str, int, int]] = ()  # of fresh weights: the heads that carry topics in the trained ones
    states: StateProbe | None = None
    documents: DocumentSums | None = None

    def probed(self, cut: Callable[[], Iterable[Window]], documents: int, engine: Engine, progress: Progress) -> Probe:
        loaded, seed, shuffles = self.loaded, self.measurement.seed, self.measurement.attention_shuffles
        size, device = len(loaded.tokenizer), loaded.device
        states = self.states.started(loaded, cut()) if self.states else None
        parts = tally_attention(
            loaded,
            cut(),
            [*(TopicRelation(a, size, shuffles, seed, device) for a in self.assignments), *self.pairs.values()],
            bootstrap=self.measurement.bootstrap,
            seed=seed,
            engine=engine,
            progress=progress,
            phase=f"probing {loaded.name} ({loaded.variant})",
            documents=documents,
            states=states,
            by_document=self.documents,
        )
        probe, main = Probe(), next(iter(parts))  # the encoder, or the only one
        if self.states and states:
            probe.states.extend(self.states.rows(loaded, states, progress))
            probe.labels.extend(self.states.label_rows(loaded, states, progress))
        topical = self.topical
        if loaded.variant == "trained":
            for number, a in enumerate(self.assignments):
                tallies = {name: of[number] for name, of in parts.items()}
                probe.heads.extend(head_rows(tallies, loaded.name, a.threshold, a.topics_per_word))
            topical = [place(head) for head in topical_heads(probe.heads, main)]
        chosen = [sum(parts[main][0].heads[:layer]) + head for _, layer, head in topical]
        for number, assignment in enumerate(self.assignments):
            progress(f"statistics of {loaded.name} ({loaded.variant})", number, len(self.assignments))
            self.add_rows(probe, number, assignment, parts, chosen)
        return probe

    def add_rows(self, probe: Probe, number: int, assignment: Assignment, parts: Parts, topical: Sequence[int]) -> None:
        """`topical`: the numbers of heads of the main part that carry topics."""
        effects, cosines = self.embedding_effects(assignment)
        matched, main = self.measurement.matched, next(iter(parts))
        attention = {name: attention_effect(tallies[number], matched=matched) for name, tallies in parts.items()}
        row = ProbeRow(
            model=self.loaded.name,
            variant=self.loaded.variant,
            threshold=assignment.threshold,
            topics_per_word=assignment.topics_per_word,
            words=len(assignment.words),
            topics=int((assignment.membership.sizes > 0).sum()),
            embedding=self.measurement.embedding,
            window=self.loaded.window,
            embeddings=effects,
            attention=attention[main],
            parts=attention,
            topical=attention_effect(parts[main][number], topical, matched=matched) if topical else None,
        )
        probe.rows.append(row)
        if self.loaded.variant == "trained":
            probe.topics.extend(topic_rows(cosines, assignment, row))
        if number in self.pairs:
            tally = parts[main][len(self.assignments) + list(self.pairs).index(number)]
            probe.cooccurrence.append(self.cooccurrence_row(self.pairs[number], assignment, tally, row, topical))

    def cooccurrence_row(
        self, relation: PairRelation, assignment: Assignment, tally: PartTally, row: ProbeRow, topical: Sequence[int]
    ) -> CooccurrenceRow:
        words, place = np.unique(relation.pairs, return_inverse=True)
        left, right = unit(self.vectors(self.loaded, relation.token[words]))[place.reshape(relation.pairs.shape).T]
        cosines = np.einsum("pd,pd->p", left, right)
        count = len(cosines)
        rng = generator(self.measurement.seed, Stream.BOOTSTRAP_PAIRS)
        resampled = draws(rng, count, self.measurement.bootstrap) @ cosines / count
        named = self.vocabulary.index[relation.token[relation.pairs[:LISTED]]]
        return CooccurrenceRow(
            **row.about(),
            pairs=count,
            of_one_topic=of_one_topic(relation, assignment),
            commonest=[[self.vocabulary.words[word] for word in pair] for pair in named],
            cosine=PairContrast.of(row.cosine, float(cosines.mean()), resampled, count),
            attention=listed_attention(tally, row.attention, count),
            topical=listed_attention(tally, row.topical, count, topical) if topical else None,
        )

    def vectors(self, loaded: LoadedModel, token: np.ndarray) -> Vectors:
        return word_vectors(loaded.model, token, layer=self.measurement.embedding == "layer")

    def embedding_effects(self, assignment: Assignment) -> tuple[dict[str, Effect | None], PairSums]:
        """Of every measure on word vectors; and the sums of cosines, which the topics are read from.

        Of random weights the mean over several models.
        """
        settings, models = self.measurement, [self.loaded]
        if self.loaded.variant == "random":
            models += [self.loaded.random(settings.seed + i) for i in range(1, RANDOM_MODELS)]
        raws = [self.vectors(model, assignment.token) for model in models]
        bins = frequency_bins(assignment.frequency) if settings.matched else None
        effects: dict[str, Effect | None] = {}
        sums: dict[str, list[PairSums]] = {}
        for name, measure in MEASURES.items():
            vectors, null = [measure(raw) for raw in raws], None
            if settings.shuffles:
                # side by side and scaled, the vectors of several models have the mean of their dot products
                u = np.concatenate(vectors, 1) / np.sqrt(len(vectors))
                null = shuffled_means(u, assignment.membership, settings.shuffles // len(vectors), settings.seed)
            sums[name] = [pair_sums(one, assignment.membership, bins) for one in vectors]
            effects[name] = embedding_effect(
                sums[name], resamples=settings.bootstrap, seed=settings.seed, null=null, matched=settings.matched
            )
        return effects, sums["cosine"][0]


def topic_rows(sums: PairSums, assignment: Assignment, row: ProbeRow) -> Iterator[TopicRow]:
    inside, between = sums.by_topic()
    np.fill_diagonal(between, np.nan)
    for k in np.flatnonzero(np.isfinite(inside)):
        others = [(float(between[k, j]), assignment.names[j]) for j in np.flatnonzero(np.isfinite(between[k]))]
        nearest_cosine, nearest = max(others, key=itemgetter(0), default=(None, None))
        farthest_cosine, farthest = min(others, key=itemgetter(0), default=(None, None))
        yield TopicRow(
            model=row.model,
            threshold=row.threshold,
            topics_per_word=row.topics_per_word,
            topic=int(k),
            name=assignment.names[k],
            words=int(assignment.membership.sizes[k]),
            cosine=float(inside[k]),
            nearest=nearest,
            nearest_cosine=nearest_cosine,
            farthest=farthest,
            farthest_cosine=farthest_cosine,
        )


def timeline_of(
    snapshots: Sequence[tuple[int, str]],
    texts: Sequence[str],
    assignment: Assignment,
    vocabulary: Vocabulary,
    measured: ModelPass | None = None,
    *,
    notes: Sequence[str] = (),
    device: str = "cpu",
    engine: Engine = serial,
    progress: Progress = silent,
) -> Timeline:
    """The timeline of snapshots that you have. The same topics and documents are resampled at all of them."""
    measured = measured or ModelPass()
    effects: dict[str, dict[int, Effect | None]] = {}
    with repeatable():
        for number, (step, name) in enumerate(snapshots):
            progress("probing snapshots", number, len(snapshots), f"step {step}")
            loaded = load_model(name, device)
            if number and whole_words(loaded.tokenizer, ()).fingerprint != vocabulary.fingerprint:
                raise InputError(
                    f"{name} has a different tokenizer from the first snapshot; a timeline is of one model"
                )
            for measure, found in effects_of(loaded, texts, assignment, vocabulary, measured, engine):
                effects.setdefault(measure, {})[step] = found
    return Timeline.of(effects, notes)


def effects_of(
    loaded: LoadedModel,
    texts: Sequence[str],
    assignment: Assignment,
    vocabulary: Vocabulary,
    measured: ModelPass,
    engine: Engine = serial,
) -> Iterator[tuple[str, Effect | None]]:
    resamples, seed = measured.bootstrap, measured.seed
    raw = word_vectors(loaded.model, assignment.token, layer=measured.embedding == "layer")
    bins = frequency_bins(assignment.frequency) if measured.matched else None
    for name in ("cosine", "dot"):
        sums = pair_sums(MEASURES[name](raw), assignment.membership, bins)
        yield name, embedding_effect([sums], resamples=resamples, seed=seed)
        if measured.matched and name == "cosine":
            yield "cosine_matched", matched_effect(sums, resamples=resamples, seed=seed)
    parts = tally_attention(
        loaded,
        windows(loaded, vocabulary, texts, measured.windows),
        [TopicRelation(assignment, len(loaded.tokenizer), 0, seed, loaded.device)],
        bootstrap=resamples,
        seed=seed,
        engine=engine,
    )
    for name, (tally,) in parts.items():
        prefix = "attention" if name in ("encoder", next(iter(parts))) else f"attention ({name})"
        yield prefix, attention_effect(tally)
        if measured.matched and prefix == "attention":
            yield "attention_matched", effect(*matched_attention(tally))
        for layer, count in enumerate(tally.heads):
            start = sum(tally.heads[:layer])
            yield f"{prefix}.{layer}", attention_effect(tally, range(start, start + count))
