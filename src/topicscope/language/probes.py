"""What a probe measures, as data: rows as in Table 1, the heads, the co-occurrence control (Table 2), and the topics.

And in words: does a model encode topics, and does that survive the controls?

result.rows[0].attention.ratio, result.heads[0].effect.interval, result.summary()
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self

from topicscope.ground import (
    Folder,
    InputError,
    Kind,
    Result,
    arrow_table,
    folders,
    load_settings,
    read_finished,
    write_csv,
)
from topicscope.language.configs import Measurement, ProbeConfig
from topicscope.language.state_rows import StateRow
from topicscope.measure import Effect, Interval, columns, with_intervals

if TYPE_CHECKING:
    import pyarrow

PROBE = Kind("probe", 3, ("*.csv", "topics-*"), ("*.csv",))
SIGNIFICANT = 0.05
Verdict = Literal["yes", "unsure", "no", "too few pairs"]


@dataclass(frozen=True, kw_only=True)
class MeasuredRow:
    """Which model was measured, and on which words. `threshold` is None where the topics were given word by word."""

    model: str
    variant: str  # trained, or random weights
    threshold: float | None
    topics_per_word: str
    words: int
    topics: int
    embedding: str
    window: int

    def about(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in ABOUT}


ABOUT = tuple(MeasuredRow.__dataclass_fields__)


@dataclass(frozen=True, kw_only=True)
class ProbeRow(MeasuredRow):
    """The effects of a model at one threshold. An effect is None where there are too few pairs of words.

    `embeddings` has one effect per measure on word vectors ('cosine', 'dot', ...); `attention` is that of the encoder
    where there is one, else of the only part; `parts` has every part.
    """

    embeddings: dict[str, Effect | None]
    attention: Effect | None
    parts: dict[str, Effect | None]

    @property
    def cosine(self) -> Effect | None:
        return self.embeddings["cosine"]

    @property
    def dot(self) -> Effect | None:
        return self.embeddings["dot"]

    @property
    def effects(self) -> dict[str, Effect | None]:
        """By measure: cosine, dot, attention, then the others."""
        return {"cosine": self.cosine, "dot": self.dot, "attention": self.attention} | self.embeddings

    def as_dict(self) -> dict[str, Any]:
        return self.about() | _dicts({**self.embeddings, "attention": self.attention}) | {"parts": _dicts(self.parts)}

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        effects = _effects({name: data[name] for name in data if name not in (*ABOUT, "parts")})
        attention, about = effects.pop("attention"), {name: data[name] for name in ABOUT}
        return cls(**about, embeddings=effects, attention=attention, parts=_effects(data["parts"]))


@dataclass(frozen=True, kw_only=True)
class HeadRow:
    """One head of the trained model, counted from 0."""

    model: str
    threshold: float | None
    topics_per_word: str
    part: str
    layer: int
    head: int
    effect: Effect

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in HEAD} | self.effect.as_dict(controls=False)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        return cls(**{name: data[name] for name in HEAD}, effect=Effect.from_dict(data))


HEAD = tuple(name for name in HeadRow.__dataclass_fields__ if name != "effect")


@dataclass(frozen=True, kw_only=True)
class TopicRow:
    """One topic of the trained model: its mean cosine, and the nearest and the farthest other topic."""

    model: str
    threshold: float | None
    topics_per_word: str
    topic: int
    name: str
    words: int
    cosine: float
    nearest: str | None
    nearest_cosine: float | None
    farthest: str | None
    farthest_cosine: float | None


@dataclass(frozen=True)
class PairContrast:
    """Mean over pairs of one topic, and over the pairs that stand together most often, with its 95% interval."""

    same_topic: float | None
    cooccurring: float | None
    interval: Interval | None


@dataclass(frozen=True, kw_only=True)
class CooccurrenceRow(MeasuredRow):
    """Table 2: pairs of one topic against as many pairs that stand together most often."""

    pairs: int
    cosine: PairContrast
    attention: PairContrast

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        contrasts = {name: PairContrast(**with_intervals(data[name])) for name in ("cosine", "attention")}
        return cls(**{**data, **contrasts})


@dataclass(frozen=True, repr=False)
class Probe(Result):
    """The rows of a probe, of one model after another. `notes`: what was read, and what of it could not be used."""

    kind: ClassVar[str] = PROBE.name
    rows: list[ProbeRow] = field(default_factory=list)
    heads: list[HeadRow] = field(default_factory=list)
    cooccurrence: list[CooccurrenceRow] = field(default_factory=list)
    topics: list[TopicRow] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    config: Measurement = field(default_factory=Measurement)  # of a whole probe a ProbeConfig
    states: list[StateRow] = field(default_factory=list)

    @classmethod
    def joined(cls, probes: Sequence[Probe], notes: list[str], config: Measurement) -> Self:
        lists = {name: [row for one in probes for row in getattr(one, name)] for name in LISTS}
        return cls(**lists, notes=notes, config=config)

    def summary(self) -> list[str]:
        """One sentence per model, and the notes."""
        models = dict.fromkeys(row.model for row in self.rows)
        return [answer(self.rows, self.heads, model) for model in models] + self.notes

    def records(self) -> dict[str, list[dict[str, Any]]]:
        """The numbers as flat tables: effects (one row per measure), heads, topics, co-occurrence, states."""
        effects = [
            row.about() | {"measure": measure} | effect.columns()
            for row in self.rows
            for measure, effect in row.effects.items()
            if effect is not None
        ]
        others = {name: [columns(record) for record in self.as_dict()[name]] for name in LISTS[1:]}
        return {name: table for name, table in ({"effects": effects} | others).items() if table}

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
            "notes": self.notes,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], config: Measurement) -> Self:
        return cls(
            [ProbeRow.from_dict(row) for row in data["rows"]],
            [HeadRow.from_dict(row) for row in data["heads"]],
            [CooccurrenceRow.from_dict(row) for row in data["cooccurrence"]],
            [TopicRow(**row) for row in data["topics"]],
            data["notes"],
            config,
            [StateRow.from_dict(row) for row in data["states"]],
        )

    def write(self, folder: Folder) -> None:
        for name, records in self.records().items():
            write_csv(folder.file(f"{name}.csv"), records)
        folder.finish(self.as_dict())

    def _about(self) -> str:
        return f"{', '.join(dict.fromkeys(short(row.model) for row in self.rows))}, {len(self.rows)} rows"


LISTS = ("rows", "heads", "cooccurrence", "topics", "states")


def read_probe(path: str | os.PathLike[str]) -> Probe:
    """The probe of a finished folder."""
    settings = Path(path) / folders.CONFIG
    return read_finished(path, PROBE, lambda data: Probe.from_dict(data, ProbeConfig.of(load_settings(settings))))


def _dicts(effects: Mapping[str, Effect | None]) -> dict[str, dict[str, Any] | None]:
    return {name: None if effect is None else effect.as_dict() for name, effect in effects.items()}


def _effects(data: Mapping[str, Any]) -> dict[str, Effect | None]:
    return {name: None if effect is None else Effect.from_dict(effect) for name, effect in data.items()}


def verdict(effect: Effect | None) -> tuple[Verdict, list[str]]:
    """Whether an effect is seen, and in which of the controls that were on.

    'yes': above zero, and in all of them. 'no': not above zero. 'unsure': above zero, but not in all of them.
    """
    if effect is None or effect.interval is None:
        return "too few pairs", []
    checks = {"above zero": effect.interval[0] > 0}
    if effect.p_value is not None:
        checks["beyond shuffled topics"] = effect.p_value <= SIGNIFICANT
    if effect.matched is not None and effect.matched.interval is not None:
        checks["at equal frequencies"] = effect.matched.interval[0] > 0
    passed, failed = ([text for text, holds in checks.items() if holds is wanted] for wanted in (True, False))
    seen: Verdict = "yes" if not failed else "unsure" if checks["above zero"] else "no"
    return seen, [*passed, *(f"not {text}" for text in failed)]


def answer(rows: Sequence[ProbeRow], heads: Sequence[HeadRow], model: str) -> str:
    """What a model shows at the first threshold, and its strongest head."""
    row = next((row for row in rows if row.model == model and row.variant == "trained"), None)
    if row is None:
        raise InputError(f"no row of {model} with its trained weights")
    parts = []
    for name, effect in (("embeddings", row.cosine), ("attention", row.attention)):
        seen, reasons = verdict(effect)
        parts.append(f"{name}: {seen}" + (f" ({', '.join(reasons)})" if reasons else ""))
    ratios = [
        (head.effect.ratio, head)
        for head in heads
        if head.model == model and head.threshold == row.threshold and head.effect.ratio is not None
    ]
    if ratios:
        _, best = max(ratios, key=lambda pair: pair[0])
        parts.append(
            f"strongest head: {best.part} layer {best.layer}, head {best.head} (ratio {ratio_text(best.effect)})"
        )
    return f"{short(model)} encodes topics? {'; '.join(parts)}."


def short(model: str) -> str:
    """The last part of a model's name."""
    return model.rstrip("/").rsplit("/", 1)[-1]


def interval_text(interval: Interval | None) -> str:
    return "-" if interval is None else f"[{interval[0]:.4g}, {interval[1]:.4g}]"


def ratio_text(effect: Effect | None) -> str:
    """The ratio with its interval; 'undefined' where its denominator may be zero."""
    if effect is None:
        return "-"
    return "undefined" if effect.ratio is None else f"{effect.ratio:.4g} {interval_text(effect.ratio_interval)}"
