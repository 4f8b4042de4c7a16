"""The room of maps: what the laws of learning predict for the points of a sweep, and a map as it is kept."""

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

from topicscope import pages, training
from topicscope.explorer.folder_views import read_again
from topicscope.explorer.views import View
from topicscope.explorer.workspace import Place, Workspace, written
from topicscope.ground import one_line, refuse, shown

PATIENCE = 30.0  # seconds after which predictions are given up for which nobody asks any more
MOST_CHOSEN = 200  # points that an address names
MOST_CURVES = 8  # points whose curves are drawn at once, as in sweep.js
NO_AXIS = "-"
ONE_AT_A_TIME = threading.Semaphore()
ADAM = "Points of Adam are predicted for full batches; with small ones key and query take longer."
NONE = "the laws describe the training of the small transformer ('train'); this sweep is of another command"


class NobodyAsksError(Exception):
    """For a while nobody has asked how far it is."""


class Prediction:
    """Predicted phases of all points of a sweep, worked out beside the requests."""

    def __init__(self, configs: list[dict[str, Any]]) -> None:
        self.configs, self.done = configs, 0
        self.rows: list[dict[str, Any]] | None = None
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
                self.rows = [dict(one.as_dict()) for one in training.predicted_phases(configs, progress=progress)]
            except NobodyAsksError:
                self.given_up = True
            except Exception as error:  # whoever asks gets to know it
                self.trouble = f"it failed: {one_line(error)}"

    def as_dict(self) -> dict[str, Any]:
        """How far it is, and what is known. What was given up is begun anew."""
        refuse((self.trouble, self.trouble))
        with self.lock:
            self.asked = time.monotonic()
            if self.given_up:
                self.begin()
        known = {"rows": self.rows, "words": pages.PREDICTED_COLOURS, "note": self.note}
        return {"done": self.done, "of": len(self.configs), **known}


def prediction(place: Place) -> Prediction:
    """Begun when it is asked for first; kept until the folder is written anew, or others are asked for."""
    return _prediction(place, written(place.path))


@lru_cache(maxsize=4)
def _prediction(place: Place, _written: float) -> Prediction:
    sweep = read_again(place)
    refuse((sweep.grid.kind != "train", NONE))
    return Prediction([point.config for point in sweep.grid.points])


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
    chosen: dict[str, Any]

    def page(self) -> str:
        return pages.kept_map_html(self.title, "\n\n".join(self.intro), self.points, self.curves, self.chosen)


def map_view(workspace: Workspace, query: Mapping[str, str]) -> MapView:
    """The map that the reader has chosen, and the predicted one where it is known, with the curves of its points."""
    place = workspace.find(query.get("id", ""))
    refuse((place.kind != "sweep", f"{place.name} holds no sweep"))
    sweep = read_again(place)
    asked, points = chosen(sweep, query), pages.point_map(sweep)
    refuse((bool(asked["ignored"]), f"this sweep has no such {', '.join(asked['ignored'])}; reload the page"))
    found = prediction(place) if "predicted" in query else None
    laws = (found and found.rows) or [{} for _ in sweep.rows]
    points = replace(points, rows=[row | law for row, law in zip(sweep.rows, laws, strict=True)])
    measure = asked.get("measure") or points.first or "state"
    maps = [map_of(points, "map", measure, asked)] if points.axes else []
    if maps and laws and f"predicted_{measure}" in laws[0]:
        maps.append(map_of(points, "predicted-map", f"predicted_{measure}", asked))
    curves = pages.curves_of_rows(points, sweep.curves_of, asked.get("points", [])[:MOST_CURVES])
    return MapView(
        title=f"topicscope sweep: {shown(place.name)}",
        sections=[pages.Section("Map", found.note if found and len(maps) > 1 else "", figures=maps)],
        intro=sweep.intro(),
        points=points,
        curves=curves,
        chosen={name: value for name, value in asked.items() if name != "ignored"},
    )


def map_of(points: pages.PointMap, name: str, measure: str, asked: Mapping[str, Any]) -> pages.Figure:
    title = measure.removeprefix("predicted_").replace("_", " ") + (", predicted" * measure.startswith("predicted_"))
    axes = {key: asked.get(key, "") for key in ("across", "up")}
    return pages.map_figure(points.rows, points.axes, measure, name, title, **axes)
