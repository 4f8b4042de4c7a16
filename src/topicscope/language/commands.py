"""What `topicscope topics`, `probe`, `timeline` and `words` run: from the files that a config names to the result.

result = probe(ProbeConfig("bert-base-uncased", corpus="articles.jsonl.gz"), "runs/probe")
result = timeline(TimelineConfig("runs/pretrain", corpus="articles.txt"), "runs/timeline")
result.moments, result.order, result.answer

Input is checked before PyTorch and transformers are loaded: what needs them is taken from the room's lazy door.
"""

from __future__ import annotations

import functools
import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

import numpy as np
from jaxtyping import Float

from topicscope import language
from topicscope.ground import (
    Engine,
    Folder,
    InputError,
    Kind,
    Progress,
    Result,
    afford,
    arrow_table,
    one_thread,
    open_folder,
    read_about,
    read_finished,
    refuse,
    serial,
    usable_device,
    watched,
    write_csv,
    write_json,
)
from topicscope.language.assignment import (
    Assignment,
    LabelWords,
    Sampler,
    assignments_of,
    fit_each,
    label_words,
    load_topics,
)
from topicscope.language.configs import ProbeConfig, TimelineConfig, TopicsConfig, WordsConfig, topics_config
from topicscope.language.corpora import Corpus
from topicscope.language.inputs import check_inputs, corpus_of, cost_of, find_snapshots, settings_that_cost
from topicscope.language.probe_rows import short
from topicscope.language.probes import PROBE, Probe
from topicscope.language.topics import TOPICS, Topics, best_of
from topicscope.language.vocabulary import BEFORE, Vocabulary, read_stop_words, whole_words
from topicscope.measure import TIMELINE, Answer, Separation, Timeline, read_timeline as read_timeline, separation

if TYPE_CHECKING:
    import pyarrow

    from topicscope.language.models import LoadedModel

WORDS = Kind("words", 2, ("words.json", "figure3*"), ("words.json",))

MEANING: dict[Answer, str] = {
    "yes": "The groups separate: words of one group are more alike than words of different groups",
    "some": "Some groups separate, others do not",
    "no": "The groups do not separate: words of one group are no more alike than words put into groups at random",
    "undecided": "Whether the groups separate cannot be decided with so few words; give more words per group",
}


@dataclass(frozen=True, repr=False)
class WordMap(Result):
    kind: ClassVar[str] = WORDS.name
    model: str
    words: tuple[str, ...]
    groups: tuple[int, ...]
    pieces: tuple[int, ...]
    cosine: Float[np.ndarray, "n n"]

    @property
    def labels(self) -> list[str]:
        """Words that are not one token, and so a mean of pieces, have a star."""
        return [word if count == 1 else f"{word}*" for word, count in zip(self.words, self.pieces, strict=True)]

    @functools.cached_property
    def separation(self) -> Separation:
        return separation(self.cosine, np.array(self.groups))

    def means(self) -> tuple[float, float]:
        inside, between = self.separation.inside, self.separation.between
        return (math.nan if inside is None else inside, math.nan if between is None else between)

    def summary(self) -> list[str]:
        found, meaning = self.separation, MEANING[self.separation.answer]
        inside, between = ("-" if mean is None else f"{mean:.3f}" for mean in (found.inside, found.between))
        means = f"mean cosine inside groups {inside}, between groups {between}"
        if found.p_value is not None and found.answer != "undecided":
            means += f"; p = {found.p_value:.2g} over all ways to put the words into groups of these sizes"
        if found.answer == "some":
            mixed = [
                "/".join(word for word, of in zip(self.words, self.groups, strict=True) if of == group)
                for group, apart in found.apart.items()
                if not apart
            ]
            meaning += f": the words of {', '.join(mixed)} are no more alike than they are to words of other groups"
        return [*self.split_words(), f"{meaning} ({means})"]

    def split_words(self) -> list[str]:
        split = [f"{word} ({count})" for word, count in zip(self.words, self.pieces, strict=True) if count > 1]
        worth = (
            "at least half of the map is made of pieces, and says little about words"
            if 2 * len(split) >= len(self.words)
            else "the mean of its pieces stands for each"
        )
        sentence = f"* {len(split)} of {len(self.words)} words are several tokens: {', '.join(split)}; {worth}"
        return [sentence] if split else []

    def table(self) -> pyarrow.Table:
        return arrow_table(
            [
                {"word": word, "group": group} | dict(zip(self.words, row.tolist(), strict=True))
                for word, group, row in zip(self.words, self.groups, self.cosine, strict=True)
            ]
        )

    def as_dict(self) -> dict[str, object]:
        return {
            "model": self.model,
            "words": list(self.words),
            "groups": list(self.groups),
            "pieces": list(self.pieces),
            "cosine": self.cosine.tolist(),
            "same_group": self.separation.inside,
            "different_group": self.separation.between,
            "separated": self.separation.answer,
            "p_value": self.separation.p_value,
            "smallest_p_value": self.separation.smallest,
            "groups_apart": [self.separation.apart.get(group) for group in dict.fromkeys(self.groups)],
            "several_tokens": [word for word, count in zip(self.words, self.pieces, strict=True) if count > 1],
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        words, groups, pieces = (tuple(data[name]) for name in ("words", "groups", "pieces"))
        return cls(data["model"], words, groups, pieces, np.array(data["cosine"]))

    def write(self, folder: Folder) -> None:
        write_json(folder.file("words.json"), self.as_dict())
        folder.finish(self.as_dict())

    def _about(self) -> str:
        return f"{self.model}, {len(self.words)} words"


def read_words(path: str | os.PathLike[str]) -> WordMap:
    return read_finished(path, WORDS, WordMap.from_dict)


def word_map(loaded: LoadedModel, groups: Sequence[Sequence[str]], *, layer: bool = False) -> WordMap:
    """Cosines of the embeddings of words, groups side by side (Figure 3).

    Args:
        loaded: The model.
        groups: Groups of words.
        layer: Take the embedding layer's output, with position, type and norm.

    Returns:
        The cosines.

    Raises:
        InputError: The tokenizer does not know a word.

    Example:
        >>> from topicscope import word_map
        >>> from topicscope.language import checked
        >>> from topicscope.pretraining import PretrainConfig, build_model, train_tokenizer
        >>> texts = ["frog toad newt pond", "mozart schubert opera violin"] * 10
        >>> tokenizer = train_tokenizer(texts, "wordpiece", vocab_size=100, length=16, exact=False)
        >>> tiny = {"text": {"corpus": ["-"]}, "length": 16, "model": {"layers": 1, "heads": 2, "dim": 8}}
        >>> loaded = checked("tiny", build_model(PretrainConfig.of(tiny), tokenizer), tokenizer)
        >>> found = word_map(loaded, [["frog", "toad"], ["mozart", "opera"]])
        >>> found.labels, found.cosine.shape, round(float(found.cosine[0, 0]), 6)
        (['frog', 'toad', 'mozart', 'opera'], (4, 4), 1.0)
    """
    words = [word for group in groups for word in group]
    before = loaded.tokenizer(BEFORE, add_special_tokens=False)["input_ids"]
    tokens = [
        loaded.tokenizer(f"{BEFORE} {word}", add_special_tokens=False)["input_ids"][len(before) :] for word in words
    ]
    unknown = loaded.tokenizer.unk_token_id
    refuse(
        *(
            (not pieces or unknown in pieces, f"{loaded.name}: its tokenizer does not know {word!r}")
            for word, pieces in zip(words, tokens, strict=True)
        )
    )
    counts = tuple(map(len, tokens))
    vectors = language.word_vectors(loaded.model, np.concatenate(tokens), layer=layer)
    means = np.stack([part.mean(0) for part in np.split(vectors, np.cumsum(counts)[:-1])])
    means /= np.linalg.norm(means, axis=1, keepdims=True)
    return WordMap(
        loaded.name,
        tuple(words),
        tuple(number for number, group in enumerate(groups) for _ in group),
        counts,
        means @ means.T,
    )


Out = str | os.PathLike[str] | None
AnyResult = TypeVar("AnyResult", Topics, Probe, Timeline, WordMap)


def fit_corpus(
    config: TopicsConfig,
    out: Out = None,
    *,
    engine: Engine = serial,
    progress: Progress | None = None,
    yes: bool = False,
) -> Topics:
    with opened_folder(TOPICS, config, out, progress, yes) as (folder, shown):
        shown("loading the tokenizer")
        vocabulary = whole_words(language.load_tokenizer(config.tokenizer), read_stop_words(config.stop_words))
        fits = fit_sample(corpus_of(config), vocabulary, config, engine, shown)
        if len(fits) == 1:
            return stored(fits[0], folder)
        compared = tuple(one.quality for one in fits)
        return stored(
            replace(fits[compared.index(best_of(compared))], compared=compared),
            folder,
            {str(len(one)): (config.changed({"topics": len(one)}), one) for one in fits},
        )


def probe(
    config: ProbeConfig,
    out: Out = None,
    *,
    engine: Engine = serial,
    progress: Progress | None = None,
    yes: bool = False,
) -> Probe:
    r"""Probe models on a corpus: do they encode topics, and does that survive the controls? (Tables 1 and 2)

    The corpus is opened, the models are loaded, and topics are fitted or read once per tokenizer.

    Args:
        config: Models, corpus, topics, and what is measured.
        out: Folder for the results and the fitted topics; a probe that is there is replaced. None: nothing is written.
        engine: Runs the passes over the text.
        progress: Called as progress(phase, done, total, note); None: a bar in terminals and notebooks.
        yes: Run even if the estimate does not fit into memory or onto the disk.

    Returns:
        The probe: verdicts, effects, heads, layers and documents.

    Raises:
        InputError: A model, the corpus or the topics are missing or cannot be read.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from topicscope import ProbeConfig, probe
        >>> from topicscope.language import checked
        >>> from topicscope.pretraining import PretrainConfig, build_model, train_tokenizer
        >>> texts = ["frog toad newt pond", "mozart schubert opera violin"] * 10
        >>> tokenizer = train_tokenizer(texts, "wordpiece", vocab_size=100, length=16, exact=False)
        >>> tiny = {"text": {"corpus": ["-"]}, "length": 16, "model": {"layers": 1, "heads": 2, "dim": 8}}
        >>> loaded = checked("tiny", build_model(PretrainConfig.of(tiny), tokenizer), tokenizer)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = loaded.model.save_pretrained(f"{folder}/model"), tokenizer.save_pretrained(f"{folder}/model")
        ...     _ = Path(folder, "articles.txt").write_text("\n".join(texts))
        ...     own = "word,topic\nfrog,water\ntoad,water\nnewt,water\nmozart,music\nschubert,music\nopera,music\n"
        ...     _ = Path(folder, "topics.csv").write_text(own)
        ...     config = ProbeConfig(f"{folder}/model", f"{folder}/articles.txt", topics_from=f"{folder}/topics.csv")
        ...     found = probe(config.changed({"bootstrap": 20, "shuffles": 20}))
        >>> found.rows[0].words, found.verdicts[0].attention.answer  # too few words for a verdict
        (6, 'unsure')
    """
    with opened_folder(PROBE, config, out, progress, yes) as (folder, shown):
        device, models, probes = usable_device(config.device), [], []
        for name in config.models:  # all of them before the long work starts
            shown(f"loading {name}")
            models.append(language.load_model(name, device))
        source = TextSource(config, engine, shown)
        known: dict[str, Topics | LabelWords | Assignment] = {}
        with_tokenizer: dict[str, list[str]] = {}  # the models of each fingerprint
        for model in models:
            vocabulary = whole_words(model.tokenizer, source.stop_words)
            with_tokenizer.setdefault(vocabulary.fingerprint, []).append(short(model.name))
            if vocabulary.fingerprint not in known:
                known[vocabulary.fingerprint] = source.topics(model.name, vocabulary)
            probes.append(
                language.probe_model(
                    model,
                    source.texts,
                    known[vocabulary.fingerprint],
                    config,
                    labels=source.labels,
                    vocabulary=vocabulary,
                    places=source.places,
                    engine=engine,
                    progress=shown,
                )
            )
        notes = [f"{short(m.name)}: {note}" for m, one in zip(models, probes, strict=True) for note in one.notes]
        for fingerprint, topics in known.items():
            if isinstance(topics, Topics):
                start = f"{', '.join(with_tokenizer[fingerprint])}: " if len(models) > 1 else ""
                notes += [f"{start}{note}" for note in topics.quality.notes()]
        return stored(
            Probe.joined(probes, [*notes, f"corpus: {source.corpus.summary()}"], config),
            folder,
            source.fitted,
            (one for one in known.values() if isinstance(one, LabelWords)),
        )


def timeline(
    config: TimelineConfig,
    out: Out = None,
    *,
    engine: Engine = serial,
    progress: Progress | None = None,
    yes: bool = False,
) -> Timeline:
    r"""When topic structure appears in a model: probe its snapshots against the same topics.

    Args:
        config: Snapshots, corpus and topics.
        out: Folder for the results; a timeline that is there is replaced. None: nothing is written.
        engine: Runs the passes over the text.
        progress: Called as progress(phase, done, total, note); None: a bar in terminals and notebooks.
        yes: Run even if the estimate does not fit into memory or onto the disk.

    Returns:
        The timeline: same topic against different topic at every snapshot.

    Raises:
        InputError: There are fewer than two snapshots, or the corpus or topics cannot be read.

    Example:
        >>> import tempfile
        >>> from pathlib import Path
        >>> from topicscope import TimelineConfig, timeline
        >>> from topicscope.language import checked
        >>> from topicscope.pretraining import PretrainConfig, build_model, train_tokenizer
        >>> texts = ["frog toad newt pond", "mozart schubert opera violin"] * 10
        >>> tokenizer = train_tokenizer(texts, "wordpiece", vocab_size=100, length=16, exact=False)
        >>> tiny = {"text": {"corpus": ["-"]}, "length": 16, "model": {"layers": 1, "heads": 2, "dim": 8}}
        >>> loaded = checked("tiny", build_model(PretrainConfig.of(tiny), tokenizer), tokenizer)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     for step in (0, 100):
        ...         home = f"{folder}/snapshots/step-{step}"
        ...         _ = loaded.model.save_pretrained(home), tokenizer.save_pretrained(home)
        ...     _ = Path(folder, "articles.txt").write_text("\n".join(texts))
        ...     own = "word,topic\nfrog,water\ntoad,water\nnewt,water\nmozart,music\nschubert,music\nopera,music\n"
        ...     _ = Path(folder, "topics.csv").write_text(own)
        ...     given = {"topics_from": f"{folder}/topics.csv", "bootstrap": 20}
        ...     found = timeline(TimelineConfig(f"{folder}/snapshots", f"{folder}/articles.txt", **given))
        >>> sorted({row.step for row in found.rows}), sorted({row.measure for row in found.rows})
        ([0, 100], ['cosine', 'cosine_matched', 'dot'])
    """
    with opened_folder(TIMELINE, config, out, progress, yes) as (folder, shown):
        snapshots, source = find_snapshots(config.snapshots), TextSource(config, engine, shown)
        first = snapshots[0][1]
        vocabulary = whole_words(language.load_tokenizer(first), source.stop_words)
        (assignment,) = assignments_of(
            source.topics(first, vocabulary), vocabulary, [config.threshold], [config.topics_per_word]
        )
        notes = [
            *(f"{name}: its run diverged, so its last snapshots may be unusable" for name in diverged(config)),
            *([assignment.remark] if assignment.remark else []),
            f"{len(snapshots)} snapshots, {len(assignment.words)} words of "
            f"{int((assignment.membership.sizes > 0).sum())} topics, {len(source.texts)} documents; "
            "95%: bootstrap over topics (embeddings) or documents (attention)",
            f"corpus: {source.corpus.summary()}",
        ]
        result = language.timeline_of(
            snapshots,
            source.texts,
            assignment,
            vocabulary,
            config,
            notes=notes,
            device=usable_device(config.device),
            engine=engine,
            progress=shown,
        )
        return stored(result, folder, source.fitted)


def map_words(config: WordsConfig, out: Out = None, *, progress: Progress | None = None) -> WordMap:
    with opened_folder(WORDS, config, out, progress) as (folder, shown):
        shown(f"loading {config.model}")
        layer = config.embedding == "layer"
        return stored(word_map(language.load_model(config.model), config.groups, layer=layer), folder)


def diverged(config: TimelineConfig) -> Iterator[str]:
    """The folders of snapshots whose run diverged; another program may have an about.json of its own."""
    for name in config.snapshots:
        with suppress(InputError):
            if (about := read_about(name)) and about.status == "diverged":
                yield name


@contextmanager
def opened_folder(
    kind: Kind,
    config: TopicsConfig | ProbeConfig | TimelineConfig | WordsConfig,
    out: Out,
    progress: Progress | None,
    yes: bool = False,
) -> Iterator[tuple[Folder | None, Progress]]:
    """Folder and progress of a command. Before both, bad input and (unless `yes`) what is too large are refused."""
    check_inputs(config)
    if not isinstance(config, WordsConfig):
        # an estimate of ten seconds and more is printed
        afford(cost_of(config), lambda: settings_that_cost(config), out, yes=yes, announced=10.0)
    with (
        open_folder(out, kind, config.as_dict(), force=True) if out is not None else nullcontext() as folder,
        watched(progress) as shown,
    ):
        yield folder, shown


def stored(
    result: AnyResult,
    folder: Folder | None,
    fitted: Mapping[str, tuple[TopicsConfig, Topics]] = MappingProxyType({}),
    labelled: Iterable[LabelWords] = (),
) -> AnyResult:
    if folder is not None:
        folder.begin()
        for name, (fit, topics) in fitted.items():
            topics.save(folder.file(f"topics-{name}"), fit.as_dict())
        for number, words in enumerate(labelled, start=1):
            write_csv(folder.file(f"label-words-{number}.csv"), words.records())
        result.write(folder)
    return result


class TextSource:
    def __init__(self, config: ProbeConfig | TimelineConfig, engine: Engine, progress: Progress) -> None:
        self.config, self.engine, self.progress = config, engine, progress
        self.fitted: dict[str, tuple[TopicsConfig, Topics]] = {}  # by number, from 1
        self.stop_words = read_stop_words(config.stop_words)
        self.corpus = corpus_of(config)
        progress("reading the corpus")
        # the documents of the attention pass: another sample than that of the topics, so another seed
        drawn = self.corpus.numbered_sample(config.documents, config.seed + 1)
        self.places = [place for place, _ in drawn]
        self.texts = [document.text for _, document in drawn]
        self.labels = [document.label for _, document in drawn] if config.label_field is not None else []

    def topics(self, tokenizer: str, vocabulary: Vocabulary) -> Topics | LabelWords | Assignment:
        if self.config.label_field is not None:
            self.progress("reading the corpus")
            drawn = self.corpus.numbered_sample(self.config.max_documents, self.config.seed)
            texts, labels = zip(*(document for _, document in drawn), strict=True)
            with self.corpus.blamed():
                return label_words(
                    texts, labels, vocabulary, name=self.config.label_field, engine=self.engine, progress=self.progress
                )
        if self.config.topics_from is not None:
            self.progress("reading the topics")
            return load_topics(self.config.topics_from, vocabulary, self.texts, self.engine)
        fit = topics_config(self.config, tokenizer)
        [topics] = fit_sample(self.corpus, vocabulary, fit, self.engine, self.progress)
        self.fitted[str(len(self.fitted) + 1)] = fit, topics
        return topics


def fit_sample(
    corpus: Corpus, vocabulary: Vocabulary, config: TopicsConfig, engine: Engine, progress: Progress
) -> list[Topics]:
    progress("reading the corpus")
    texts = corpus.sample(config.max_documents, config.seed)
    with one_thread(), corpus.blamed():
        fits = fit_each(
            texts,
            vocabulary,
            sorted(config.topics),
            Sampler(config.backend, config.iterations, 1, config.seed),
            config.min_documents,
            config.stability,
            engine,
            progress,
        )
    return [replace(topics, fit=replace(topics.fit, corpus=corpus.summary())) for topics in fits]
