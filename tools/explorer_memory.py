"""An hour of events in the explorer, without waiting for it: for `explorer_speed.py`."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import psutil

LOOKS = 7200  # two per second
RUNS = 4  # that go on at once, as many as a server starts
LINES = 100  # that a run writes from one look to the next
RISING = (
    "norm_key",
    "grad_key",
    "norm_query",
    "grad_query",
    "norm_value",
    "grad_value",
    "value_same",
    "value_diagonal",
)


def write_metrics(path: Path, start: int, end: int) -> None:
    """Lines of some steps, put at the end of a file; step 0 starts it anew."""
    at = np.arange(start, end)
    noise = np.random.default_rng(start).normal(size=(len(at), 2))
    rise = 1 / (1 + np.exp((20_000 - at) / 3000))
    with path.open("ab" if start else "wb") as stream:
        for step, up, (jitter, other) in zip(at.tolist(), rise.tolist(), noise.tolist(), strict=True):
            line = {"step": step, "loss": 0.75 + np.exp(-step / 5000) + 0.01 * jitter}
            line |= {name: round(0.1 + place + up + 0.001 * other, 9) for place, name in enumerate(RISING)}
            line |= {"dev_loss": 0.75 + np.exp(-step / 5000)} if step % 100 == 0 else {}
            stream.write(json.dumps(line).encode() + b"\n")


def an_hour(home: Path, make_run: Callable[[Path, int], object], looks: int = LOOKS) -> tuple[float, float, int]:
    """Memory in MB at first and at its most, in a process of its own that loads what a server loads."""
    for number in range(RUNS):
        make_run(home / "hour" / f"run-{number}", 100)
    line = [sys.executable, "-m", "tools.explorer_memory", str(home / "hour"), str(looks)]
    done = subprocess.run(line, check=True, capture_output=True, text=True, cwd=Path(__file__).parents[1])
    before, after = json.loads(done.stdout.splitlines()[-1])
    return before, after, looks


def simulate(home: Path, looks: int) -> tuple[float, float]:
    """Runs that grow under the eyes of two browsers, while settings of theory with large matrices are asked for."""
    from topicscope.explorer import theory_room
    from topicscope.explorer.app import Explorer
    from topicscope.explorer.workspace import Workspace

    room = Explorer(Workspace(home), lambda name, options: None).live
    places = room.workspace.places()
    known: list[dict[str, str]] = [{}, {}]
    first = 0.0
    for look in range(looks):
        place, at = places[look % RUNS], LINES * (look // RUNS)
        write_metrics(place.path / "metrics.jsonl", at, at + LINES)
        for browser in known:
            news = room.state(place.id, browser)
            browser |= {name: news[name] for name in ("curves", "matrices") if name in news}
        if look % 20 == 0:
            mask = f"{0.1 + 1e-4 * look:.4f}"
            asked = theory_room.question({"topics": "20", "words_per_topic": "20", "p_mask": mask})
            for part in theory_room.PARTS:
                theory_room.part_view(part, asked).fragment()
        if look == 40:
            first = psutil.Process().memory_info().rss / 1e6
    return first, most_memory()


def most_memory() -> float:
    """In MB. Not `ru_maxrss`, which starts with what the parent had."""
    (peak,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(peak.split()[1]) * 1024 / 1e6


if __name__ == "__main__":
    print(json.dumps(simulate(Path(sys.argv[1]), int(sys.argv[2]))))
