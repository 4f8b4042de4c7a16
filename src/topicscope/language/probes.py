"""What a probe measures, as data: rows as in Table 1, the heads, the co-occurrence control (Table 2), and the topics.

And the verdicts: does a model encode topics, and does that survive the controls?

result.verdicts[0].attention.answer, result.rows[0].attention.ratio, result.heads[0].corrected_p, result.summary()
"""

from __future__ import annotations

import io
import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from topicscope.ground import (
    Folder,
    Kind,
    Result,
    arrow_table,
    folders,
    load_settings,
    read_finished,
    write,
    write_csv,
    write_json,
)
from topicscope.language.configs import Measurement, ProbeConfig
from topicscope.language.probe_rows import (
    AblationRow,
    CooccurrenceRow,
    DocumentRow,
    HeadRow,
    LabelRow,
    ProbeRow,
    ShownDocument,
    StateRow,
    TopicRow,
    ablation_sentences,
    label_answer,
    label_sentences,
    place,
    short,
    topical_heads,
)
from topicscope.language.verdicts import ModelVerdict
from topicscope.measure import columns

if TYPE_CHECKING:
    import pyarrow


def standing_heads(heads: Sequence[HeadRow]) -> list[tuple[HeadRow, bool]]:
    """Heads of one model at its first threshold, by p and then by difference; those that were not judged come last.

    Args:
        heads: Of one model, at all thresholds.

    Returns:
        Each head, and whether it is topical: stands out at every threshold.

    Example:
        >>> from topicscope.measure import Effect
        >>> effect = Effect(same=0.02, different=0.01, difference=0.01, ratio=2.0, interval=(0.005, 0.015))
        >>> about = {"model": "bert", "threshold": 0.001, "topics_per_word": "one", "part": "encoder", "effect": effect}
        >>> heads = [HeadRow(**about, layer=0, head=head, corrected_p=p) for head, p in enumerate((0.6, 0.04))]
        >>> [(head.head, topical) for head, topical in standing_heads(heads)]
        [(1, True), (0, False)]
    """
    first = [
        one for one in heads if (one.threshold, one.topics_per_word) == (heads[0].threshold, heads[0].topics_per_word)
    ]
    topical = topical_places(heads)
    return [(head, place(head) in topical) for head in sorted(first, key=by_p)]


def topical_places(heads: Sequence[HeadRow]) -> set[tuple[str, int, int]]:
    """Part, layer and head of one model's topical heads."""
    return {place(head) for part in {head.part for head in heads} for head in topical_heads(heads, part)}


def heads_sentence(heads: Sequence[HeadRow], part: str) -> str:
    """Which heads of one model's part stand out among all of them; '' where none was compared with chance."""
    judged = [head for head in heads if head.part == part and head.corrected_p is not None]
    if not judged:
        return ""
    count = len({place(head) for head in heads if head.part == part})
    names = ", ".join(f"{head.layer}.{head.head}" for head in sorted(topical_heads(heads, part), key=by_p))
    if not names:
        return f"{short(heads[0].model)}: no head stands out from chance (of {count})."
    return f"{short(heads[0].model)}: heads that stand out from chance: {names} (of {count}, as layer.head). {ASKS}"


ASKS = "The answer on attention asks for more: a size that matters, and all four controls."


def by_p(head: HeadRow) -> tuple[bool, float, float]:
    """Order of heads: those that were judged, then the smallest p, then the largest difference."""
    return bool(head.remark), 2.0 if head.corrected_p is None else head.corrected_p, -head.effect.difference


MANY_SHUFFLES = 99  # with which p can be as small as .01
SHOWN, PARQUET = "shown.json", "documents.parquet"
PROBE = Kind("probe", 5, ("*.csv", "topics-*", SHOWN, PARQUET), ("*.csv", SHOWN, PARQUET))


@dataclass(frozen=True, repr=False)
class Probe(Result):
    """The result of `probe`: verdicts, and the rows that they are made of, of one model after another.

    Attributes:
        rows: Effects by model and threshold (Table 1).
        heads: Effects by head.
        cooccurrence: Pairs that stand together most often (Table 2).
        topics: Cosines by topic.
        notes: What was read, and what of it could not be used.
        config: What was measured; of a whole probe a `ProbeConfig`.
        verdicts: Three answers per model.
        states: Effects in hidden states, by layer.
        ablation: Rise of the loss without topical heads.
        labels: Labels from hidden states, where the corpus has labels.
        documents: One row per document.
        shown: Documents to look at.

    Example:
        See `probe`.
    """

    kind: ClassVar[str] = PROBE.name
    rows: list[ProbeRow] = field(default_factory=list)
    heads: list[HeadRow] = field(default_factory=list)
    cooccurrence: list[CooccurrenceRow] = field(default_factory=list)
    topics: list[TopicRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    config: Measurement = field(default_factory=Measurement)
    verdicts: list[ModelVerdict] = field(default_factory=list)
    states: list[StateRow] = field(default_factory=list)
    ablation: list[AblationRow] = field(default_factory=list)
    labels: list[LabelRow] = field(default_factory=list)
    documents: list[DocumentRow] = field(default_factory=list)
    shown: list[ShownDocument] = field(default_factory=list)

    @classmethod
    def joined(cls, probes: Sequence[Probe], notes: list[str], config: Measurement) -> Self:
        lists = {name: [row for one in probes for row in getattr(one, name)] for name in (*LISTS, "shown")}
        return cls(**lists, notes=notes, config=config)

    @property
    def models(self) -> dict[str, str]:
        """By name: the models of the probe, and how tables call them."""
        return {row.model: short(row.model) for row in self.rows}

    def of_model(self, model: str) -> Self:
        """The part of one model, without the notes that begin with the names of others."""
        names = (*LISTS, "shown")
        lists: dict[str, Any] = {name: [row for row in getattr(self, name) if row.model == model] for name in names}
        others = set(self.models.values()) - {short(model)}
        notes = [note for note in self.notes if not others.issuperset(note.partition(": ")[0].split(", "))]
        return replace(self, **lists, notes=notes)

    def summary(self) -> list[str]:
        """Of each model three answers, whether it uses its topical heads, how well states tell labels; the notes."""
        answers = [sentence for verdict in self.verdicts for sentence in verdict.sentences]
        answers += [verdict.reading for verdict in self.verdicts if any(one.checks for one in verdict.answers.values())]
        answers += filter(None, map(self._standing_out, self.models))
        further = [*ablation_sentences(self.ablation), *label_sentences(self.labels)]
        return [*answers, *further, *self._smallest_p(), *self.notes]

    def _standing_out(self, model: str) -> str:
        parts = next(row.parts for row in self.rows if row.model == model)
        return heads_sentence([head for head in self.heads if head.model == model], next(iter(parts), ""))

    def _smallest_p(self) -> list[str]:
        """Said where shuffles are so few that p looks like a close call."""
        shuffles = self.config.attention_shuffles
        if not 0 < shuffles < MANY_SHUFFLES:
            return []
        return [f"With {shuffles} shuffles p of heads, layers and attention is at least {1 / (1 + shuffles):.2g}."]

    def records(self) -> dict[str, list[dict[str, Any]]]:
        """The numbers as flat tables: effects (one row per measure), then one for each of the lists, and checks."""
        effects = [
            row.about() | {"measure": measure} | effect.columns()
            for row in self.rows
            for measure, effect in row.effects.items()
            if effect is not None
        ]
        others = {name: [columns(record) for record in self.as_dict()[name]] for name in FLAT}
        for row in others["cooccurrence"]:
            row["commonest"] = "; ".join(map(" ".join, row["commonest"]))
        models = {head.model for head in self.heads}
        topical = {model: topical_places([head for head in self.heads if head.model == model]) for model in models}
        for record, head in zip(others["heads"], self.heads, strict=True):
            record["topical"] = place(head) in topical[head.model]
        checks = [columns(record) for verdict in self.verdicts for record in verdict.records()]
        documents = [row.columns() for row in self.documents]
        labels = [columns(row.as_dict()) for row in self.labels]
        tables = {"effects": effects} | others | {"labels": labels, "checks": checks, "documents": documents}
        return {name: table for name, table in tables.items() if table}

    def table(self) -> pyarrow.Table:
        """One row per model, threshold and measure; `records` has the other tables."""
        return arrow_table(self.records()["effects"])

    def as_dict(self) -> dict[str, Any]:
        return {
            "rows": [row.as_dict() for row in self.rows],
            "heads": [row.as_dict() for row in self.heads],
            "cooccurrence": [asdict(row) for row in self.cooccurrence],
            "topics": [asdict(row) for row in self.topics],
            "states": [row.as_dict() for row in self.states],
            "ablation": [row.as_dict() for row in self.ablation],
            "labels": label_answer(self.labels),
            "verdicts": [verdict.as_dict() for verdict in self.verdicts],
            "documents": [asdict(row) for row in self.documents],
            "notes": self.notes,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], config: Measurement, shown: Sequence[ShownDocument] = ()) -> Self:
        return cls(
            [ProbeRow.from_dict(row) for row in data["rows"]],
            [HeadRow.from_dict(row) for row in data["heads"]],
            [CooccurrenceRow.from_dict(row) for row in data["cooccurrence"]],
            [TopicRow(**row) for row in data["topics"]],
            data["notes"],
            config,
            [ModelVerdict.from_dict(verdict) for verdict in data["verdicts"]],
            [StateRow.from_dict(row) for row in data["states"]],
            [AblationRow.from_dict(row) for row in data["ablation"]],
            [LabelRow.from_dict(row) for row in data["labels"].get("rows", ())],
            [DocumentRow.from_dict(row) for row in data["documents"]],
            list(shown),
        )

    def write(self, folder: Folder) -> None:
        for name, records in self.records().items():
            write_csv(folder.file(f"{name}.csv"), records)
        if self.documents:
            write_parquet(folder.file(PARQUET), arrow_table([row.columns() for row in self.documents]))
        write_json(folder.file(SHOWN), [document.as_dict() for document in self.shown])
        folder.finish(self.as_dict())

    def _about(self) -> str:
        return f"{', '.join(dict.fromkeys(short(row.model) for row in self.rows))}, {len(self.rows)} rows"


FLAT = ("heads", "cooccurrence", "topics", "states", "ablation")
LISTS = ("rows", *FLAT, "labels", "verdicts", "documents")


def read_probe(path: str | os.PathLike[str]) -> Probe:
    """Read the probe of a finished folder.

    Args:
        path: The folder.

    Returns:
        The probe.

    Raises:
        InputError: The folder holds no finished probe, or is damaged.

    Example:
        >>> read_probe("no/such/folder")
        Traceback (most recent call last):
        topicscope.ground.errors.InputError: no/such/folder is not a folder that topicscope wrote (no about.json)
    """
    settings = Path(path) / folders.CONFIG
    return read_finished(
        path,
        PROBE,
        lambda data: Probe.from_dict(
            data, ProbeConfig.of(load_settings(settings)), read_shown(folders.read_json(Path(path) / SHOWN))
        ),
    )


def read_shown(stored: Any) -> list[ShownDocument]:
    if not isinstance(stored, list):
        raise ValueError(f"{SHOWN}: expected a list of documents")
    return [ShownDocument.from_dict(document) for document in stored]


def write_parquet(path: Path, table: pyarrow.Table) -> None:
    import pyarrow.parquet

    stream = io.BytesIO()
    pyarrow.parquet.write_table(table, stream)
    write(path, stream.getvalue())
