"""How fast the explorer is, in a browser without a window: each figure beside its aim.

    python tools/explorer_speed.py                    # all parts; about ten minutes on idle cores
    python tools/explorer_speed.py slider live        # some of them

Wall times count only on an idle machine; processor times (of the server and of the browser's main thread) count on a
busy one too. The parts that need folders make them first, in a temporary one.
"""

import argparse
import itertools
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import psutil
from selenium import webdriver

sys.path.insert(0, str(Path(__file__).parents[1]))
from tests.browser import ONLY_HERE, browsing, script
from tests.explorer.in_browser import folder_id, go, until
from tests.explorer.serving import Served, explorer

from tools.explorer_memory import an_hour
from tools.explorer_samples import LIVE, long_run, probe_of_many_heads, sweep_of_many_points

MOVES, ROUNDS, WATCHED_STEPS = 20, 3, 30_000

MOVE = """
const [name, place, done] = arguments, slider = document.querySelector(`[data-name=${name}] [type=range]`);
performance.clearMarks();
const before = document.body.dataset.drawn, began = performance.now();
slider.value = place;
slider.dispatchEvent(new Event('input', { bubbles: true }));
const painted = () => new Promise((go) => requestAnimationFrame(() => setTimeout(() => go(performance.now() - began))));
const look = () => {
  if (document.body.dataset.drawn === before) { setTimeout(look, 1); return; }
  const seen = Math.max(0, ...performance.getEntriesByName('in-view').map((mark) => mark.startTime - began));
  painted().then((all) => done([seen, all]));
};
look();
"""
ALL_DRAWN = """
const plots = [...document.querySelectorAll('.plot')];
return document.body.dataset.drawn !== undefined && plots.length > 4 && plots.every((plot) => plot.data);
"""
DRAWN = """
const [id, done] = arguments, body = document.body, isThere = () => body.dataset.drawn === id;
if (isThere()) done(performance.now());
else new MutationObserver(() => { if (isThere()) done(performance.now()); }).observe(body, { attributes: true });
"""
CURVES = """
const run = document.querySelector('.run');
window.curves = [];
new MutationObserver(() => window.curves.push([Date.now(), Number(run.dataset.curves)]))
  .observe(run, { attributeFilter: ['data-curves'] });
"""


@dataclass(frozen=True)
class Row:
    """A figure beside its aim."""

    name: str
    aim: str
    measured: str
    met: bool | None = None


def processor_seconds(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def page_seconds(browser: webdriver.Chrome) -> float:
    """Processor time of the main threads of the browser's pages."""
    children = psutil.Process(browser.service.process.pid).children(recursive=True)
    pages = [child.pid for child in children if "--type=renderer" in child.cmdline()]
    return sum(int(Path(f"/proc/{pid}/task/{pid}/schedstat").read_text().split()[0]) for pid in pages) / 1e9


@dataclass
class Bench:
    """A server, a browser, and the parts: each yields its rows."""

    served: Served
    browser: webdriver.Chrome
    home: Path

    @property
    def runs(self) -> Path:
        return self.served.workspace

    def opened(self, path: str, identity: str) -> float:
        """Seconds from the request for a page to a folder that is shown in it."""
        self.browser.get("about:blank")
        go(self.browser, self.served, path)
        return float(self.browser.execute_async_script(DRAWN, identity)) / 1000

    def slider(self) -> Iterator[Row]:
        for query, aim in (("", 150), ("?topics=100&words_per_topic=300", 500)):
            go(self.browser, self.served, f"/theory{query}")
            until(self.browser, lambda: script(self.browser, ALL_DRAWN))
            server = psutil.Process(self.served.process.pid)
            times, before = [], (0.0, 0.0)
            for move in range(-3, MOVES):  # the first ones warm up
                if move == 0:
                    before = page_seconds(self.browser), processor_seconds(server)
                times.append(self.browser.execute_async_script(MOVE, "p_mask", 300 + 17 * move))
            used = page_seconds(self.browser) - before[0], processor_seconds(server) - before[1]
            seen, whole = (statistics.median(one) for one in zip(*times[3:], strict=True))
            what = "T = v = 10" if not query else "T = 100, v = 300"
            yield Row(f"slider to pictures in view, {what}", f"{aim} ms", f"{seen:.0f} ms", seen < aim)
            yield Row(f"slider to all pictures, painted, {what}", "", f"{whole:.0f} ms")
            each = [1000 * seconds / MOVES for seconds in used]
            yield Row("  of a move, processor time", "", f"page {each[0]:.0f} ms, server {each[1]:.0f} ms")

    def train(self, name: str, steps: int = LIVE["steps"]) -> subprocess.Popen[bytes]:
        config = self.home / f"{name}.json"
        config.write_text(json.dumps(LIVE | {"steps": steps}))
        line = [sys.executable, "-m", "topicscope", "train", "--config", str(config), "--out", str(self.runs / name)]
        process = subprocess.Popen([*line, "--json"], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        metrics = self.runs / name / "metrics.jsonl"
        while not metrics.exists() and process.poll() is None:
            time.sleep(0.01)
        return process

    def written(self, name: str) -> int:
        """Steps in the log of a run."""
        return (self.runs / name / "metrics.jsonl").read_bytes().count(b"\n")

    def watch(self, name: str) -> None:
        go(self.browser, self.served, f"/live?id={folder_id(self.served, name)}")
        until(self.browser, lambda: script(self.browser, "return document.querySelector('.run')?.dataset.curves"))

    def live(self) -> Iterator[Row]:
        """How old the first line is that a curve does not show, at the moment in which it comes to show it."""
        process = self.train("delay")
        self.watch("delay")
        script(self.browser, CURVES)
        metrics = self.runs / "delay" / "metrics.jsonl"
        sizes: dict[int, float] = {}  # when the file first had so many bytes
        while process.poll() is None:
            sizes.setdefault(metrics.stat().st_size, time.time())
            time.sleep(0.005)
        content = metrics.read_bytes()
        written = [(when, content[:size].count(b"\n") - 1) for size, when in sorted(sizes.items())]
        delays = []
        for (_, shown), (when, _) in itertools.pairwise(script(self.browser, "return window.curves")):
            missing = [at for at, step in written if step > shown]
            delays += [when / 1000 - missing[0]] if missing else []
        worst, middle = max(delays), statistics.median(delays)
        yield Row("live curve behind the run, median", "1 s", f"{middle:.2f} s ({len(delays)} drawings)", middle < 1)
        yield Row("live curve behind the run, most", "1 s", f"{worst:.2f} s", worst < 1)

    def watched(self) -> Iterator[Row]:
        """The same run, watched and not, in turns: time of a step, once the page of a watched one is drawn."""
        used: dict[bool, list[tuple[float, float]]] = {True: [], False: []}
        server = psutil.Process(self.served.process.pid)
        looking = []
        for turn in range(2 * ROUNDS):
            is_watched = turn % 2 == 1
            self.browser.get("about:blank")
            process = self.train(f"cost-{turn}", steps=WATCHED_STEPS)
            if is_watched:
                self.watch(f"cost-{turn}")
            while self.written(f"cost-{turn}") < WATCHED_STEPS / 4:
                time.sleep(0.05)
            steps = WATCHED_STEPS - self.written(f"cost-{turn}")
            began, asked = time.monotonic(), processor_seconds(server)
            start = processor_seconds(psutil.Process(process.pid))
            _, _, usage = os.wait4(process.pid, 0)
            process.returncode = 0
            wall = time.monotonic() - began
            used[is_watched].append(((usage.ru_utime + usage.ru_stime - start) / steps, wall / steps))
            looking += [(processor_seconds(server) - asked) / wall] if is_watched else []
        for place, what in enumerate(("processor", "wall")):
            alone, seen = (1e6 * statistics.median(one[place] for one in used[key]) for key in (False, True))
            more = seen / alone - 1
            shown = f"{more:+.1%} ({alone:.0f} us per step alone, {seen:.0f} watched)"
            yield Row(f"a watched run is slower, {what} time", "3%", shown, more < 0.03)
        yield Row("  server while it watches", "", f"{statistics.median(looking):.1%} of a core")

    def document(self) -> Iterator[Row]:
        name = probe_of_many_heads(self.home, self.runs)
        identity = folder_id(self.served, name)
        self.opened(f"/models?id={identity}", identity)  # the server has read it then
        seconds = statistics.median(self.opened(f"/models?id={identity}", identity) for _ in range(3))
        pieces, heads = script(
            self.browser,
            "const text = document.querySelector('.marked');"
            "return [text.querySelectorAll('.pieces > span').length,"
            " JSON.parse(text.querySelector('script').textContent).links.length]",
        )
        yield Row(f"document of {pieces} words, {heads} heads and means", "2 s", f"{seconds:.2f} s", seconds < 2)

    def sweep(self) -> Iterator[Row]:
        points = sweep_of_many_points(self.runs / "sweep")
        identity = folder_id(self.served, "sweep")
        seconds = statistics.median(self.opened(f"/maps?id={identity}", identity) for _ in range(3))
        yield Row(f"sweep of {points:,} points", "2 s", f"{seconds:.2f} s", seconds < 2)

    def steps(self) -> Iterator[Row]:
        """From the page's request to drawn curves; the server has seen other runs, but not this one."""
        steps = long_run(self.runs / "long")
        long_run(self.runs / "short", 200)
        self.watch("short")
        self.browser.get("about:blank")
        go(self.browser, self.served, f"/live?id={folder_id(self.served, 'long')}")
        until(self.browser, lambda: script(self.browser, "return document.querySelector('.run')"))
        found = self.browser.execute_async_script(
            "const done = arguments[0], run = document.querySelector('.run'), look = () => {"
            " if (run.dataset.curves && run.querySelector('.curves .main-svg')) done(performance.now());"
            " else setTimeout(look, 2); }; look();"
        )
        points = script(self.browser, "return document.querySelector('.curves .plot').data[0].x.length")
        met = float(found) < 1000
        yield Row(f"run of {steps:,} steps, first curve ({points} points)", "1 s", f"{found / 1000:.2f} s", met)

    def memory(self) -> Iterator[Row]:
        before, after, looks = an_hour(self.home, long_run)
        shown = f"{after:.0f} MB ({before:.0f} MB at first; {looks:,} looks)"
        yield Row("memory after an hour of events, simulated", "500 MB", shown, after < 500)


PARTS: dict[str, Callable[[Bench], Iterator[Row]]] = {
    name: getattr(Bench, name) for name in ("slider", "live", "watched", "document", "sweep", "steps", "memory")
}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", help=", ".join(PARTS), metavar="PART")
    asked = parser.parse_args().parts or list(PARTS)
    if unknown := set(asked) - set(PARTS):
        parser.error(f"no such part: {', '.join(sorted(unknown))}; expected some of {', '.join(PARTS)}")
    print(f"load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        home = Path(folder)
        with (
            explorer(home / "runs") as served,
            browsing(home / "profile", ONLY_HERE, "--window-size=1400,900") as browser,
        ):
            browser.set_script_timeout(120)
            browser.get(served.url)
            for name in asked:
                for row in PARTS[name](Bench(served, browser, home)):
                    met = {None: "", True: "met", False: "NOT MET"}[row.met]
                    print(f"{row.name:58} {row.aim:>8}  {row.measured:44} {met}", flush=True)
            served.process.send_signal(signal.SIGINT)
    print(f"load {os.getloadavg()[0]:.1f}")


if __name__ == "__main__":
    main()
