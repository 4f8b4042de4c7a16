"""The rooms of finished folders: models (probes, topics, words), time (one step of a run), maps (sweeps)."""

import itertools
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from topicscope import laws, pages, training
from topicscope.explorer.workspace import Place, View, place_of, read_again
from topicscope.ground import InputError, load_settings, one_line, refuse_if, shown

# How the names of figures begin whose sections come first; the others follow in the order of the page
FIRST = ("probe-forest", "probe-heads", "probe-states", "topic-map", "probe-documents")
MOST_TOPICS = 5  # of a word that are listed
LEAST_SHARE = 0.01  # of a word's occurrences that a topic has to have
LONGEST_WORD = 100  # characters


def models_view(place: Place, model: int | None = None) -> View:
    """What the page of the folder has, with the fitted topics of a probe; `model`: the number of one of its models."""
    probe = read_again(place)
    if place.kind != "probe":
        return View(f"topicscope {place.kind}: {shown(place.name)}", probe.sections(), probe.intro())
    name = model_of(place, model)
    mine = probe if name is None else probe.of_model(name)
    title = f"topicscope probe: {place.name}" + ("" if name is None else f", {probe.models[name]}")
    sections = sorted([*mine.sections(), *topic_sections(place, name)], key=rank)
    return View(title, sections, probe.intro() if name is None else mine.summary())


def model_of(place: Place, number: int | None) -> str | None:
    names = list(read_again(place).models) if place.kind == "probe" else []
    refuse_if(number is not None and not 0 <= number < len(names), "there is no such model in this folder")
    return None if number is None else names[number]


def rank(section: pages.Section) -> int:
    found = [FIRST.index(start) for figure in section.figures for start in FIRST if figure.name.startswith(start)]
    return min(found, default=len(FIRST))


def topic_sections(place: Place, model: str | None) -> list[pages.Section]:
    """The map and the words of topics that were fitted for the probe; where they cannot be read, the reason."""
    try:
        found = fitted(place, model)
    except InputError as error:
        return [pages.Section("Topic map", f"The topics of this probe cannot be read: {error}.")]
    several = len(read_again(place).models) > 1
    return [
        named(section, models, number) if several else section
        for number, (models, topics) in enumerate(found, start=1)
        for section in topics.sections()
    ]


def named(section: pages.Section, models: str, number: int) -> pages.Section:
    return replace(
        section,
        title=f"{models}: {section.title}",
        figures=[replace(one, name=f"{one.name}-{number}", title=f"{models}: {one.title}") for one in section.figures],
    )


def fitted(place: Place, model: str | None = None) -> list[tuple[str, Any]]:
    """The topics that a folder is, or that a probe has inside, for one model or all; before them the models they are
    for: those with one tokenizer, as tables call them. Links are not followed.
    """
    if place.kind == "topics":
        return [("", read_again(place))]
    if place.kind != "probe":
        return []
    paths = sorted(path for path in place.path.glob("topics-*") if path.is_dir() and not path.is_symlink())
    kept = [one for path in paths if (one := place_of(path, place.path)) is not None and one.kind == "topics"]
    probe, read = read_again(place), [read_again(one) for one in kept]
    tokenizers = [load_settings(one.path / "config.yaml", own=True).get("tokenizer") for one in kept]
    models: list[dict[str, str]] = [{} for _ in kept]
    for name, short in probe.models.items():
        own = (i for i, tokenizer in enumerate(tokenizers) if tokenizer == name)
        shared = (i for i, topics in enumerate(read) if uses(probe, name, topics))
        if (number := next(itertools.chain(own, shared), None)) is not None:
            models[number][name] = short
    return [
        (", ".join(of.values()), topics)
        for of, topics in zip(models, read, strict=True)
        if model is None or model in of
    ]


def uses(probe: Any, model: str, topics: Any) -> bool:
    """Whether a model that shares the tokenizer of another one was probed with these topics: by their names."""
    return all(
        row.topic < len(topics) and row.name == " ".join(topics.top_words(row.topic, 3))
        for row in probe.topics
        if row.model == model
    )


def model_names(place: Place) -> list[str]:
    return list(read_again(place).models.values()) if place.kind == "probe" else []


def topics_of_word(place: Place, word: str, model: int | None = None) -> dict[str, Any]:
    text, found = word.strip()[:LONGEST_WORD], fitted(place, model_of(place, model))
    return {"word": text, "answers": [{"models": models, **word_in(topics, text)} for models, topics in found]}


def word_in(topics: Any, text: str) -> dict[str, object]:
    """P(topic | word) by the topics' shares, P(word | topic), and the word's place among the words of the topic."""
    spellings = {spelling: number for number, spelling in enumerate(topics.words)}
    number = spellings.get(text, spellings.get(text.lower()))
    if number is None:
        return {"word": text, "topics": []}
    inside = topics.probability[:, number]
    joint = topics.shares * inside
    found = [
        {
            "topic": int(k),
            "name": " ".join(topics.top_words(k, 3)),
            "share": float(joint[k] / joint.sum()),
            "probability": float(inside[k]),
            "place": 1 + int((topics.probability[k] > inside[k]).sum()),
        }
        for k in np.argsort(-joint, kind="stable")[:MOST_TOPICS]
        if joint[k] > LEAST_SHARE * joint.sum()
    ]
    return {"word": topics.words[number], "topics": found}


MOST_STEPS = 80  # of a run that has no snapshots
RESAMPLES = 200  # of the intervals that are computed here


@dataclass(frozen=True)
class SavedSteps:
    steps: list[int]
    moment: Callable[[int], list[pages.Section]]  # what is to be seen at a step
    note: str = ""


def saved_steps(place: Place) -> SavedSteps:
    """Kept until the folder is written anew, a snapshot is added, or other folders are asked for."""
    growing = place.kind == "train" and not place.several
    return _saved_steps(place, len(training.WatchedRun(place.path).snapshot_steps()) if growing else 0)


@lru_cache(maxsize=4)
def _saved_steps(place: Place, _snapshots: int) -> SavedSteps:
    if place.kind == "train":
        return saved_run_steps(place)
    refuse_if(place.kind not in ("timeline", "pretrain"), f"{place.name} has no saved steps to show")
    result = read_again(place)
    if place.kind == "timeline":
        return SavedSteps(sorted({row.step for row in result.rows}), partial(pages.timeline_moment, result))
    runs = result if isinstance(result, list) else [result]
    return SavedSteps(some_steps(min(len(run.metrics["step"]) for run in runs)), partial(pages.pretrain_moment, runs))


def saved_run_steps(place: Place) -> SavedSteps:
    refuse_if(place.several, f"{place.name} holds several runs; open the explorer with one of them, such as run-000")
    watched = training.WatchedRun(place.path)
    while watched.update():
        pass
    run = watched.run()
    refuse_if(not watched.rows, f"{place.name} has not written its first steps yet; come back in a moment")
    if len(watched.snapshot_steps()) < 2:
        return SavedSteps(
            some_steps(watched.rows),
            partial(pages.run_moment, run, None, None),
            "No weights of earlier steps were saved, so words cannot be followed: train with --snapshots log.",
        )
    config, snapshots = training.read_snapshots(place.path)
    try:
        timeline = training.snapshot_timeline(config, snapshots, RESAMPLES)
    except InputError:  # neither embedding, value matrix nor attention is trained
        timeline = None
    moment = partial(pages.run_moment, run, pages.word_plane(config, snapshots), timeline)
    return SavedSteps(sorted(snapshots), moment)


def some_steps(count: int) -> list[int]:
    if count < 2:
        return [0]
    return [0, *np.unique(np.geomspace(1, count - 1, MOST_STEPS).round().astype(int)).tolist()]


def time_view(place: Place, step: int | None = None) -> View:
    saved = saved_steps(place)
    first, last = saved.steps[0], saved.steps[-1]
    chosen = last if step is None else step
    refuse_if(chosen not in saved.steps, f"nothing was saved at step {chosen}; there are steps {first} to {last}")
    title = f"topicscope {place.kind}: {shown(place.name)}, step {chosen:,}"
    return View(title, saved.moment(chosen), [saved.note] if saved.note else [])


PATIENCE = 30.0  # seconds after which predictions are given up for which nobody asks any more
MOST_CHOSEN = 200  # points that an address names
MOST_CURVES = 8  # points whose curves are drawn at once, as in sweep.js
NO_AXIS = "-"
ONE_AT_A_TIME = threading.Semaphore()
ADAM = "Points of Adam are predicted for full batches; with small ones key and query take longer."


class NobodyAsksError(Exception):
    """For a while nobody has asked how far it is."""


class Prediction:
    """Predicted phases of all points of a sweep, worked out beside the requests."""

    def __init__(self, configs: list[dict[str, Any]]) -> None:
        self.configs, self.done = configs, 0
        self.rows: list[dict[str, object]] | None = None
        self.note = self.trouble = ""
        self.lock = threading.Lock()
        self.begin()

    def begin(self) -> None:
        self.asked, self.given_up = time.monotonic(), False
        threading.Thread(target=self.work, daemon=True).start()

    def work(self) -> None:
        def progress(phase: str, done: float = 0, total: float | None = None, note: str = "") -> None:
            self.done = int(done)
            if time.monotonic() - self.asked > PATIENCE:
                raise NobodyAsksError

        with ONE_AT_A_TIME:
            try:
                configs = list(map(training.RunConfig.of, self.configs))
                self.note = ADAM if any(config.optimizer.name == "adam" for config in configs) else ""
                self.rows = [dict(one.as_dict()) for one in laws.predicted_phases(configs, progress=progress)]
            except NobodyAsksError:
                self.given_up = True
            except Exception as error:  # whoever asks gets to know it
                self.trouble = f"it failed: {one_line(error)}"

    def as_dict(self) -> dict[str, object]:
        refuse_if(self.trouble, self.trouble)
        with self.lock:
            self.asked = time.monotonic()
            if self.given_up:
                self.begin()
        known = {"rows": self.rows, "words": pages.PREDICTED_COLOURS, "note": self.note}
        return {"done": self.done, "of": len(self.configs), **known}


@lru_cache(maxsize=4)
def prediction(place: Place) -> Prediction:
    """Begun at the first request; kept until the folder is written anew, or other folders are asked for."""
    grid = sweep_of(place).grid
    other = "the laws describe the training of the small transformer ('train'); this sweep is of another command"
    refuse_if(grid.kind != "train", other)
    return Prediction([point.config for point in grid.points])


def sweep_of(place: Place) -> Any:
    refuse_if(place.kind != "sweep", f"{place.name} holds no sweep")
    return read_again(place)


def chosen(sweep: Any, query: Mapping[str, str]) -> dict[str, Any]:
    """What a reader has chosen of a sweep: measure, axes, points; and what of it the sweep does not have."""
    axes, rows = list(sweep.grid.axes), sweep.rows
    measures = [name for name in sweep.measures if any(row.get(name) is not None for row in rows)]
    laws = [f"predicted_{name}" for name in measures] if sweep.grid.kind == "train" else []
    known = {"measure": [*measures, "state", *laws], "across": axes or [NO_AXIS], "up": [NO_AXIS, *axes]}
    found: dict[str, Any] = {name: query[name] for name, words in known.items() if query.get(name) in words}
    ignored = [name for name in known if query.get(name) and name not in found]
    if texts := list(filter(None, query.get("points", "").split(",")))[:MOST_CHOSEN]:
        found["points"] = [int(text) for text in texts if text.isdecimal() and len(text) < 9 and int(text) < len(rows)]
        ignored += ["points"] if len(found["points"]) < len(texts) else []
    return found | {"ignored": ignored}


@dataclass(frozen=True, kw_only=True)
class MapView(View):
    """A map as it is on the screen: its page draws it with the same script, its files have the same cells."""

    points: pages.PointMap
    curves: dict[str, dict[str, str]]
    chosen: dict[str, object]

    def page(self) -> str:
        return pages.kept_map_html(self.title, "\n\n".join(self.intro), self.points, self.curves, self.chosen)


def map_view(place: Place, query: Mapping[str, str]) -> MapView:
    """The map that the reader has chosen, and the predicted one where it is known, with the curves of its points."""
    sweep = sweep_of(place)
    asked, points = chosen(sweep, query), pages.point_map(sweep)
    ignored = asked.pop("ignored")
    refuse_if(ignored, f"this sweep has no such {', '.join(ignored)}; reload the page")
    found = prediction(place) if "predicted" in query else None
    laws = (found and found.rows) or [{} for _ in sweep.rows]
    points = replace(points, rows=[row | law for row, law in zip(sweep.rows, laws, strict=True)])
    measure = asked.get("measure") or points.first or "state"
    maps = [map_of(points, "map", measure, asked)] if points.axes else []
    if maps and laws and f"predicted_{measure}" in laws[0]:
        maps.append(map_of(points, "predicted-map", f"predicted_{measure}", asked))
    return MapView(
        title=f"topicscope sweep: {shown(place.name)}",
        sections=[pages.Section("Map", found.note if found and len(maps) > 1 else "", figures=maps)],
        intro=sweep.intro(),
        points=points,
        curves=pages.curves_of_rows(points, sweep.curves_of, asked.get("points", [])[:MOST_CURVES]),
        chosen=asked,
    )


def map_of(points: pages.PointMap, name: str, measure: str, asked: Mapping[str, Any]) -> pages.Figure:
    title = measure.removeprefix("predicted_").replace("_", " ") + (", predicted" * measure.startswith("predicted_"))
    return pages.map_figure(
        points.rows, points.axes, measure, name, title, across=asked.get("across", ""), up=asked.get("up", "")
    )
