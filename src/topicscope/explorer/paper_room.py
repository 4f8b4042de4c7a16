"""The room of the paper: the verdicts of a reproduction, the claims that it lacks, and running one of them."""

from collections.abc import Mapping
from typing import Any

from topicscope import paper
from topicscope.explorer.runs import Runs
from topicscope.explorer.views import View
from topicscope.explorer.workspace import Place, identity
from topicscope.ground import InputError, refuse, shown

ANEW = "reproduce"  # how new folders begin


def paper_view(place: Place) -> View:
    """What a folder holds by now, also while it is written."""
    found = paper.outcomes_so_far(place.path)
    return View(f"topicscope reproduce: {shown(place.name)}", found.sections(), found.intro(), place.path / "figures")


def claims_of(seconds: Mapping[str, float]) -> list[dict[str, Any]]:
    """By id: what is claimed, and about how long it takes to measure."""
    return [{"id": name, "claim": paper.EXPERIMENTS[name].claim, "seconds": took} for name, took in seconds.items()]


class PaperRoom:
    """Claims are run by processes of their own, one at a time per folder."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs

    def claims(self, place: Place | None) -> dict[str, Any]:
        """The sections of a folder, and the claims that it lacks; of no folder all claims."""
        if place is None:
            every = {name: one.seconds for name, one in paper.EXPERIMENTS.items()}
            return {"html": "", "intro": [], "missing": claims_of(every), "running": False}
        found, view = paper.outcomes_so_far(place.path), paper_view(place)
        lacking = {name: found.expected_seconds(name) for name in paper.EXPERIMENTS if name not in found.outcomes}
        running = self.is_running(place)
        return {"html": view.fragment(), "intro": view.intro, "missing": claims_of(lacking), "running": running}

    def run(self, name: str, place: Place | None) -> dict[str, str]:
        """Start one claim, in this folder or in a new one of the workspace."""
        (experiment,) = paper.chosen([name])
        options = ["--yes", "--engine", "serial"]  # one claim: no workers to start
        if place is not None:
            refuse(
                (place.kind != "reproduce", f"{place.name} holds no reproduction"),
                (self.is_running(place), f"an experiment is running in {place.name}; wait until it is done"),
            )
            context = paper.outcomes_so_far(place.path).context
            options += ["--scale", context.scale, "--seed", str(context.seed)]
        with self.runs.lock:
            self.runs.check_room()
            folder = self.runs.new_folder(ANEW) if place is None else place.path
            self.runs.spawn(folder, experiment.id, *options, command="reproduce")
        return {"id": identity(folder), "name": folder.name}

    def is_running(self, place: Place) -> bool:
        """Also what another server has started, or a command."""
        return self.runs.is_starting(place.id) or place.state == "running"

    def state(self, name: str) -> dict[str, Any]:
        """Of what runs in a folder: whether it goes on, and the last line that it printed."""
        if self.runs.is_starting(name):  # it may have no folder yet
            return {"running": True, "said": self.runs.last_line(self.runs.started[name])}
        try:
            place = self.runs.workspace.find(name)
        except InputError:
            if name not in self.runs.started:
                raise
            return {"running": False, "said": self.runs.last_words_of(name) or "Its folder is no longer there."}
        return {"running": self.is_running(place), "said": self.runs.last_line(place.path)}
