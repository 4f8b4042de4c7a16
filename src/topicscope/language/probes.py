"""The result of `probe`: typed rows, the verdicts made of them, tables, sentences, and its folder.

probe.verdicts[0].attention.answer, probe.rows[0].attention.ratio, probe.heads[0].corrected_p, probe.summary()
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Self

from topicscope.ground import (
    Folder,
    Kind,
    Result,
    adapter_of,
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
    interval_text,
    place,
    short,
    topical_heads,
)
from topicscope.language.verdicts import ModelVerdict
from topicscope.measure import FOLDS, Interval, columns

if TYPE_CHECKING:
    import pyarrow

MANY_SHUFFLES = 99  # with which p can be as small as .01
SHOWN, PARQUET = "shown.json", "documents.parquet"
PROBE = Kind("probe", 5, ("*.csv", "topics-*", SHOWN, PARQUET), ("*.csv", SHOWN, PARQUET))

# the lists of results.json, in its order
ROWS = ("rows", "heads", "cooccurrence", "topics", "states", "ablation", "labels", "verdicts", "documents")
LISTS = (*ROWS, "shown")


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
        lists = {name: [row for one in probes for row in getattr(one, name)] for name in LISTS}
        return cls(**lists, notes=notes, config=config)

    @property
    def models(self) -> dict[str, str]:
        return {row.model: short(row.model) for row in self.rows}

    def of_model(self, model: str) -> Self:
        """The part of one model, without notes that begin with the names of others."""
        lists = {name: [row for row in getattr(self, name) if row.model == model] for name in LISTS}
        others = set(self.models.values()) - {short(model)}
        notes = [note for note in self.notes if not others.issuperset(note.partition(": ")[0].split(", "))]
        return type(self)(**lists, notes=notes, config=self.config)

    def summary(self) -> list[str]:
        parts = {row.model: next(iter(row.parts), "") for row in self.rows}
        heads = {model: [head for head in self.heads if head.model == model] for model in parts}
        shuffles = self.config.attention_shuffles  # p of so few looks like a close call
        least = f"With {shuffles} shuffles p of heads, layers and attention is at least {1 / (1 + shuffles):.2g}."
        return [
            *(sentence for verdict in self.verdicts for sentence in verdict.sentences),
            *(verdict.reading for verdict in self.verdicts if verdict.sentences),
            *filter(None, (heads_sentence(heads[model], part) for model, part in parts.items())),
            *ablation_sentences(self.ablation),
            *label_sentences(self.labels),
            *([least] if 0 < shuffles < MANY_SHUFFLES else []),
            *self.notes,
        ]

    def as_dict(self) -> dict[str, Any]:
        stored = self._stored()
        return stored | {"labels": label_answer(self.labels, stored["labels"]), "notes": self.notes}

    def _stored(self) -> dict[str, list[dict[str, object]]]:
        """Every list as results.json has it; labels stand there below an answer."""
        lists = adapter_of(type(self)).dump_python(self, include=set(ROWS), warnings=False)
        return {name: lists[name] for name in ROWS}

    def records(self) -> dict[str, list[dict[str, object]]]:
        """The numbers as flat tables: effects (one row per measure), then one for each of the lists, and checks."""
        stored = self._stored()
        tables: dict[str, list[dict[str, object]]] = {}
        tables["effects"] = [
            row.about() | {"measure": measure} | effect.columns()
            for row in self.rows
            for measure, effect in row.effects.items()
            if effect is not None
        ]
        for name in ("heads", "cooccurrence", "topics", "states", "ablation", "labels"):
            tables[name] = [columns(record) for record in stored[name]]
        for record, row in zip(tables["cooccurrence"], self.cooccurrence, strict=True):
            record["commonest"] = "; ".join(map(" ".join, row.commonest))
        models = {head.model for head in self.heads}
        mine = {model: [head for head in self.heads if head.model == model] for model in models}
        topical = {model: set(map(place, topical_heads(heads))) for model, heads in mine.items()}
        for record, head in zip(tables["heads"], self.heads, strict=True):
            record["topical"] = place(head) in topical[head.model]
        tables["checks"] = [columns(record) for verdict in self.verdicts for record in verdict.records()]
        tables["documents"] = [row.columns() for row in self.documents]
        return {name: table for name, table in tables.items() if table}

    def table(self) -> pyarrow.Table:
        """One row per model, threshold and measure; `records` has the other tables."""
        return arrow_table(self.records()["effects"])

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], config: Measurement, shown: object = ()) -> Self:
        listed = {name: data[name] for name in (*ROWS, "notes")}  # a row of lists that is missing is a damage
        stored = listed | {"labels": data["labels"].get("rows", []), "config": config, "shown": shown}
        probe: Self = adapter_of(cls).validate_python(stored)
        return probe

    def write(self, folder: Folder) -> None:
        tables = self.records()
        for name, records in tables.items():
            write_csv(folder.file(f"{name}.csv"), records)
        if self.documents:
            import pyarrow.parquet

            stream = io.BytesIO()
            pyarrow.parquet.write_table(arrow_table(tables["documents"]), stream)
            write(folder.file(PARQUET), stream.getvalue())
        write_json(folder.file(SHOWN), [document.as_dict() for document in self.shown])
        folder.finish(self.as_dict())

    def _about(self) -> str:
        return f"{', '.join(dict.fromkeys(short(row.model) for row in self.rows))}, {len(self.rows)} rows"


def read_probe(path: str | os.PathLike[str]) -> Probe:
    def parse(data: Mapping[str, Any]) -> Probe:
        config = ProbeConfig.of(load_settings(Path(path) / folders.CONFIG))
        return Probe.from_dict(data, config, folders.read_json(Path(path) / SHOWN))

    return read_finished(path, PROBE, parse)


# Sentences of the summary


def standing_heads(heads: Sequence[HeadRow]) -> list[tuple[HeadRow, bool]]:
    first = [one for one in heads if one.setting == heads[0].setting]
    topical = {place(head) for head in topical_heads(heads)}
    return [(head, place(head) in topical) for head in sorted(first, key=by_p)]


def heads_sentence(heads: Sequence[HeadRow], part: str) -> str:
    """Which heads of one model's part stand out; '' if none was compared with chance."""
    judged = [head for head in heads if head.part == part and head.corrected_p is not None]
    if not judged:
        return ""
    count = len({place(head) for head in heads if head.part == part})
    names = ", ".join(f"{head.layer}.{head.head}" for head in sorted(topical_heads(heads, part), key=by_p))
    if not names:
        return f"{short(heads[0].model)}: no head stands out from chance (of {count})."
    asks = "The answer on attention asks for more: a size that matters, and all four controls."
    return f"{short(heads[0].model)}: heads that stand out from chance: {names} (of {count}, as layer.head). {asks}"


def by_p(head: HeadRow) -> tuple[bool, float, float]:
    return bool(head.remark), 2.0 if head.corrected_p is None else head.corrected_p, -head.effect.difference


def ablation_sentences(rows: Sequence[AblationRow]) -> Iterator[str]:
    """One for each model: the answer at topic words, with the rise at other words beside it."""
    for model in dict.fromkeys(row.model for row in rows):
        at = {row.at: row for row in rows if row.model == model}
        row, other = at["topic words"], at["other words"]
        name = f"{short(model)}: use of topical heads: {row.answer}."
        if row.topical_rise is None:
            yield f"{name} {row.why[:1].upper()}{row.why[1:]}."
            continue
        heads = f"{'the topical head' if row.heads == 1 else f'{row.heads} topical heads'} ({row.which} as layer.head)"
        beside = "" if other.topical_rise is None else f" At other words: {rises_text(other)}."
        why = f" Reason: {row.why}." if row.why else " They matter more than random heads."
        yield (
            f"{name} Rise of the loss at topic words ({row.loss:.3g} nats, {row.positions} words in {row.documents} "
            f"documents) without {heads}, and without as many random ones of the same layers ({sets_text(row.draws)}): "
            f"{rises_text(row)}.{beside}{why}{f' Note: {row.remark}.' if row.remark else ''}"
        )


def sets_text(count: int) -> str:
    return "1 set" if count == 1 else f"{count} sets"


def rises_text(row: AblationRow) -> str:
    topical = f"{row.topical_rise:.2g} {interval_text(row.topical_interval)}"
    return f"{topical} and {row.random_rise:.2g} {interval_text(row.random_interval)}"


def label_answer(rows: Sequence[LabelRow], stored: list[dict[str, object]]) -> dict[str, object]:
    """The answer for the first model, with the layer that most folds choose; and all `rows` as they are stored."""
    mine = [row for row in rows if (row.model, row.variant) == (rows[0].model, "trained")]
    if not mine:
        return {}
    first, most = mine[0], max(mine, key=lambda row: row.chosen_folds)
    return {
        "model": first.model,
        "part": most.part,
        "layer": most.layer,
        "accuracy": first.chosen_accuracy,
        "interval": first.chosen_interval,
        "macro_f1": first.chosen_macro_f1,
        "majority": first.majority,
        "bag_of_words": first.bag_of_words,
        "rows": stored,
    }


def label_sentences(rows: Sequence[LabelRow]) -> Iterator[str]:
    for model in dict.fromkeys(row.model for row in rows if row.variant == "trained"):
        mine = [row for row in rows if (row.model, row.variant) == (model, "trained")]
        fresh = next((row for row in rows if (row.model, row.variant) == (model, "random")), None)
        first, most = mine[0], max(mine, key=lambda row: row.chosen_folds)
        untrained = f"; fresh weights {accuracy_text(fresh.chosen_accuracy, fresh.chosen_interval)}" if fresh else ""
        yield (
            f"{short(model)}, labels from hidden states: accuracy "
            f"{accuracy_text(first.chosen_accuracy, first.chosen_interval)}, macro F1 {first.chosen_macro_f1:.2f}; "
            f"bag of words {accuracy_text(first.bag_of_words, first.bag_of_words_interval)}; "
            f"most common label {first.majority:.2f}{untrained} ({first.classes} labels, {first.documents} documents; "
            f"the layer is chosen on the training folds, {most.part} {most.layer} in {most.chosen_folds} of "
            f"{FOLDS}). {what_it_shows(first, fresh)}"
        )


def what_it_shows(ours: LabelRow, fresh: LabelRow | None) -> str:
    compared = {"the most common label": ours.majority, "words alone": ours.bag_of_words}
    if fresh is not None:
        compared["fresh weights"] = fresh.chosen_accuracy
    low = -1.0 if ours.chosen_interval is None else ours.chosen_interval[0]
    below = [name for name, accuracy in compared.items() if low <= accuracy]
    return f"Not clearly more than {' or '.join(below)}." if below else f"More than {' and '.join(compared)}."


def accuracy_text(accuracy: float, interval: Interval | None) -> str:
    return f"{accuracy:.2f} " + ("-" if interval is None else f"[{interval[0]:.2f}, {interval[1]:.2f}]")
