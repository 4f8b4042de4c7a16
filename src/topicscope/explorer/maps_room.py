"""The room of maps: what the laws of learning predict for the points of a sweep, and a map as it is kept."""

import threading
import time
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from topicscope import figures, training
from topicscope.explorer.folder_views import read_again
from topicscope.explorer.views import View
from topicscope.explorer.workspace import Place, Workspace, written
from topicscope.ground import one_line, refuse, shown

PATIENCE = 30.0  # seconds after which predictions are given up for which nobody asks any more
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
        known = {"rows": self.rows, "words": figures.PREDICTED_COLOURS, "note": self.note}
        return {"done": self.done, "of": len(self.configs), **known}


def prediction(place: Place) -> Prediction:
    """Begun when it is asked for first; kept until the folder is written anew, or others are asked for."""
    return _prediction(place, written(place.path))


@lru_cache(maxsize=4)
def _prediction(place: Place, _written: float) -> Prediction:
    sweep = read_again(place)
    refuse((sweep.grid.kind != "train", NONE))
    return Prediction([point.config for point in sweep.grid.points])


def map_view(workspace: Workspace, query: Mapping[str, str]) -> View:
    """The map that the reader has chosen, and the predicted one where it is known; then the points."""
    place = workspace.find(query.get("id", ""))
    refuse((place.kind != "sweep", f"{place.name} holds no sweep"))
    sweep = read_again(place)
    axes, measure = sweep.grid.axes, query.get("measure") or next(iter(sweep.main_measures), "state")
    across, up = (name if name in axes else "" for name in (query.get("across", ""), query.get("up", "")))
    refuse((measure not in (*sweep.measures, "state"), "this sweep has no such measure; reload the page"))
    title = measure.replace("_", " ")
    maps = [figures.map_figure(sweep.rows, axes, measure, "map", title, across=across, up=up)] if axes else []
    found = prediction(place) if "predicted" in query else None
    rows, note = (found.rows, found.note) if found is not None else (None, "")
    if maps and rows and f"predicted_{measure}" in rows[0]:
        both = [row | more for row, more in zip(sweep.rows, rows, strict=True)]
        name = f"predicted_{measure}"
        maps.append(figures.map_figure(both, axes, name, "predicted-map", f"{title}, predicted", across=across, up=up))
    sections: list[figures.Section] = [
        figures.Section("Map", note if len(maps) > 1 else "", figures=maps),
        *sweep.sections(),
    ]
    return View(f"topicscope sweep: {shown(place.name)}", sections, sweep.intro())
