"""A campaign: cases drawn from a seed, run on a few servers, judged, counted.

Each server is a process of its own that forks for every case (`runner`). Fixtures are made once, by the first server
that needs them.
"""

import math
import multiprocessing
import shutil
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager
from dataclasses import replace
from multiprocessing.context import BaseContext
from pathlib import Path

from tests.fuzz import fixtures, grids, inputs, oracle, places, readers, runner, tables, texts
from tests.fuzz.cases import Case, Expect, Finding, Verdict, drawn

LIMIT = 60.0  # seconds of a case
PERIOD = 10.0  # seconds between lines of progress

_references: dict[tuple[tuple[str, ...], tuple[str, ...]], runner.Raw] = {}  # in a server: by command and fixtures


def input_cases(count: int, seed: int) -> list[Case]:
    """Inputs of every command."""
    makers = inputs.makers() | places.makers() | grids.makers() | texts.makers() | tables.makers()
    return list(drawn("inputs", makers, count, seed))


def file_cases(count: int, seed: int) -> list[Case]:
    """Damaged files of every kind."""
    return list(drawn("files", readers.makers(seed), count, seed))


def serve(case: Case, folder: Path, limit: float, keep: Path | None = None) -> Finding:
    """In a server: run a case and judge it."""
    fixtures.ensure(folder, (*case.uses, *case.extra))
    reference = None
    if case.expect is Expect.SAME:
        key = (case.argv, case.uses)
        if key not in _references:
            _references[key] = runner.run_case(replace(case, places=(), extra=()), folder, runner_limit(limit))
        reference = _references[key]
    return oracle.judge(case, runner.run_case(case, folder, limit, keep), reference)


def runner_limit(limit: float) -> float:
    """Of a reference: what is not damaged does not hang, and a busy machine should not spoil it."""
    return max(LIMIT, limit)


@contextmanager
def servers(workers: int, context: BaseContext) -> Iterator[tuple[ProcessPoolExecutor, Path]]:
    """Processes that are ready to fork, and the folder of the fixtures."""
    folder = Path(tempfile.mkdtemp(prefix="fuzz-fixtures-"))
    pool = ProcessPoolExecutor(workers, context, runner.preload)
    try:
        fixtures.write_inputs(folder)
        yield pool, folder
    finally:
        pool.shutdown(cancel_futures=True)
        shutil.rmtree(folder, ignore_errors=True)


def run(
    cases: Iterable[Case], workers: int, limit: float, keep: Path | None = None, minutes: float = math.inf
) -> list[Finding]:
    """All cases, in their order, or those that were done after so many minutes; progress on stderr."""
    with servers(workers, multiprocessing.get_context("spawn")) as (pool, folder):
        futures: dict[Future[Finding], int] = {
            pool.submit(serve, case, folder, limit, keep): number for number, case in enumerate(cases)
        }
        findings: dict[int, Finding] = {}
        began = shown = time.monotonic()
        for future in as_completed(futures):
            findings[futures[future]] = future.result()
            if time.monotonic() - began > 60 * minutes:
                print(f"fuzz: the time is over; {len(futures) - len(findings)} cases were not run", file=sys.stderr)
                pool.shutdown(wait=False, cancel_futures=True)
                break
            if time.monotonic() - shown > PERIOD:
                shown = time.monotonic()
                failed = sum(finding.verdict is not Verdict.OK for finding in findings.values())
                done = f"{len(findings)} of {len(futures)} cases, {failed} failed, {shown - began:.0f} s"
                print(f"fuzz: {done}", file=sys.stderr, flush=True)
        return [findings[number] for number in sorted(findings)]


def table(findings: Iterable[Finding]) -> str:
    """One row per command or kind of file, one column per verdict."""
    rows: dict[str, Counter[Verdict]] = {}
    for finding in findings:
        rows.setdefault(finding.case.group, Counter())[finding.verdict] += 1
    total: Counter[Verdict] = sum(rows.values(), Counter())
    width = max((len(name) for name in rows), default=5) + 2
    lines = ["".ljust(width) + "cases".rjust(7) + "".join(str(verdict).rjust(14) for verdict in Verdict)]
    for name, counts in [*sorted(rows.items()), ("total", total)]:
        cells = "".join((str(counts[verdict]) if counts[verdict] else ".").rjust(14) for verdict in Verdict)
        lines.append(name.ljust(width) + str(counts.total()).rjust(7) + cells)
    return "\n".join(lines)
