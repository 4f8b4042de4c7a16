"""The room of the paper: the verdicts of a reproduction, the claims that it lacks, and running one of them."""

from collections.abc import Mapping
from typing import Any

from topicscope import paper
from topicscope.explorer.runs import Runs
from topicscope.explorer.views import View
from topicscope.explorer.workspace import Place, identity
from topicscope.ground import refuse, shown

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
        running = self.runs.is_starting(place.id)
        return {"html": view.fragment(), "intro": view.intro, "missing": claims_of(lacking), "running": running}

    def run(self, name: str, place: Place | None) -> dict[str, str]:
        """Start one claim, in this folder or in a new one of the workspace."""
        (experiment,) = paper.chosen([name])
        options = ["--yes", "--engine", "serial"]  # one claim: no workers to start
        if place is not None:
            refuse(
                (place.kind != "reproduce", f"{place.name} holds no reproduction"),
                (
                    self.runs.is_starting(place.id) or place.state == "running",
                    f"an experiment is running in {place.name}; wait until it is done",
                ),
            )
            context = paper.outcomes_so_far(place.path).context
            options += ["--scale", context.scale, "--seed", str(context.seed)]
        with self.runs.lock:
            self.runs.check_room()
            folder = self.runs.new_folder(ANEW) if place is None else place.path
            self.runs.spawn(folder, experiment.id, *options, command="reproduce")
        return {"id": identity(folder), "name": folder.name}

    def state(self, folder: str) -> dict[str, Any]:
        """Of a process that this server started: whether it goes on, and the last line that it printed."""
        refuse((folder not in self.runs.names, "this server has not started anything there"))
        return {"running": self.runs.is_starting(folder), "said": self.runs.last_line(folder)}
