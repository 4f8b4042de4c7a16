"""The quick slice of the fuzz kit, every class of input and damage once; and tests of the kit itself.

`make fuzz` runs thousands of cases; this is about a minute of them.
"""

import multiprocessing
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from tests.fuzz import campaign, damages, oracle, planted
from tests.fuzz.__main__ import described
from tests.fuzz.cases import Case, Expect, Finding, Verdict
from tests.fuzz.runner import GIGABYTE, Raw

GROUPS = 4  # of inputs, and as many of files: so that several processes can share them
SLOW = ("probe", "timeline", "report", "reproduce", "pretrain", "topics")
LIMIT = 30.0

Servers = tuple[ProcessPoolExecutor, Path]


@pytest.fixture(scope="module")
def servers() -> Iterator[Servers]:
    with campaign.servers(1, multiprocessing.get_context("spawn")) as served:
        yield served


def cost(case: Case) -> int:
    """What is refused is refused at once; what loads a model or draws a page takes seconds."""
    return (case.argv[0] in SLOW) * (1 if case.expect is Expect.REFUSED else 2)


def quick(cases: list[Case], tries: int = 6) -> list[Case]:
    """Of each class the cheapest of its first cases; of damages, one that was not yet taken where there is one."""
    classes: dict[str, list[Case]] = {}
    for case in cases:
        classes.setdefault(case.id.rsplit("/", 1)[0], []).append(case)
    taken: set[str] = set()
    chosen = []
    for candidates in classes.values():
        best = min(candidates[:tries], key=lambda case: (case.note.rsplit(": ", 1)[-1] in taken, cost(case)))
        taken.add(best.note.rsplit(": ", 1)[-1])
        chosen.append(best)
    return [case for case in chosen if "as is" not in case.id or cost(case) == 0]


def input_slice() -> list[Case]:
    classes = len({case.id.rsplit("/", 1)[0] for case in campaign.input_cases(500, 0)})
    return quick([replace(case, note="") for case in campaign.input_cases(6 * classes, 0)])


def file_slice() -> list[Case]:
    classes = len({case.id.rsplit("/", 1)[0] for case in campaign.file_cases(500, 0)})
    return quick(campaign.file_cases(6 * classes, 0))


def check(served: Servers, cases: list[Case]) -> None:
    """All cases come out well; otherwise each that does not is described."""
    pool, folder = served
    findings = [pool.submit(campaign.serve, case, folder, LIMIT) for case in cases]
    results: list[Finding] = [future.result() for future in findings]
    failed = [described(finding) for finding in results if finding.verdict is not Verdict.OK]
    assert not failed, "\n".join([f"{len(failed)} of {len(cases)} cases failed (seed 0)", *failed])


@pytest.mark.parametrize("group", range(GROUPS))
def test_odd_inputs(servers: Servers, group: int) -> None:
    check(servers, input_slice()[group::GROUPS])


@pytest.mark.parametrize("group", range(GROUPS))
def test_damaged_files(servers: Servers, group: int) -> None:
    check(servers, file_slice()[group::GROUPS])


def test_same_seed_same_cases() -> None:
    assert campaign.input_cases(250, 3) == campaign.input_cases(250, 3)
    assert campaign.file_cases(250, 3) == campaign.file_cases(250, 3)
    assert campaign.input_cases(250, 3) != campaign.input_cases(250, 4)


def test_the_slice_has_every_damage() -> None:
    assert {case.note.rsplit(": ", 1)[-1] for case in file_slice()} >= {*damages.PLAIN, *damages.NODES, *damages.NESTED}
    assert {*damages.TENSORS, "swapped"} <= {case.note.rsplit(": ", 1)[-1] for case in campaign.file_cases(1000, 0)}


PLANTED: tuple[tuple[Callable[[], None], Expect, Verdict], ...] = (
    (planted.raises, Expect.EITHER, Verdict.TRACEBACK), (planted.last_resort, Expect.EITHER, Verdict.TRACEBACK),
    (planted.takes_too_much, Expect.EITHER, Verdict.TRACEBACK), (planted.refuses, Expect.REFUSED, Verdict.OK),
    (planted.refuses, Expect.EITHER, Verdict.OK), (planted.refuses, Expect.WORKS, Verdict.WRONG_CODE),
    (planted.reports_progress, Expect.REFUSED, Verdict.OK),
    (planted.refuses_at_length, Expect.REFUSED, Verdict.WRONG_CODE),
    (planted.refuses_in_silence, Expect.REFUSED, Verdict.WRONG_CODE),
    (planted.fails_in_silence, Expect.EITHER, Verdict.WRONG_CODE),
    (planted.unknown_code, Expect.EITHER, Verdict.WRONG_CODE), (planted.works, Expect.WORKS, Verdict.OK),
    (planted.works, Expect.REFUSED, Verdict.WRONG_CODE),
    (planted.leaves_a_folder, Expect.REFUSED, Verdict.LEFT_BEHIND),
    (planted.leaves_a_temporary_file, Expect.WORKS, Verdict.LEFT_BEHIND),
)  # fmt: skip


@pytest.mark.parametrize(("plant", "expect", "verdict"), PLANTED)
def test_planted_faults_are_found(
    servers: Servers, plant: Callable[[], None], expect: Expect, verdict: Verdict
) -> None:
    assert servers[0].submit(planted.judged, plant, expect).result().verdict is verdict


def test_folders_on_the_way_to_out_may_stay(servers: Servers) -> None:
    judged = servers[0].submit(planted.judged, planted.leaves_a_parent, Expect.REFUSED, "a/b").result()
    assert judged.verdict is Verdict.OK


@pytest.mark.parametrize("plant", [planted.waits, planted.works_for_ever])
def test_a_planted_hang_is_found(servers: Servers, plant: Callable[[], None]) -> None:
    judged = servers[0].submit(planted.judged, plant, Expect.EITHER, "out", 1.0).result()
    assert judged.verdict is Verdict.HANG


def test_the_peak_of_memory_is_measured(servers: Servers) -> None:
    raw = servers[0].submit(planted.run, planted.takes_memory).result()
    assert 200 * planted.MEGABYTE < raw.peak < GIGABYTE  # 400, less what the fork does not share with its parent


def test_an_allocation_is_found() -> None:
    case = Case("x", "x", ("list",), Expect.EITHER)
    raw = Raw(2, b"", b"topicscope: not enough memory\n", 1.0, 5 * GIGABYTE)
    assert oracle.judge(case, raw).verdict is Verdict.ALLOCATION
    assert oracle.judge(case, replace(raw, peak=GIGABYTE)).verdict is Verdict.OK


def test_a_false_result_is_found() -> None:
    case = Case("x", "x", ("show", "x"), Expect.SAME, products=("results.json",), compares_stdout=True)
    same = Raw(0, b"loss 1.5\n", b"", 1.0, 0, products=(("results.json", b'{"loss": 1.5, "seconds": 1}'),))
    refused = Raw(2, b"", b"topicscope: x is damaged\n", 1.0, 0)
    for raw, verdict in (
        (same, Verdict.OK),
        (refused, Verdict.OK),
        (replace(same, products=(("results.json", b'{"loss": 1.5, "seconds": 2}'),)), Verdict.OK),
        (replace(same, stdout=b"loss 2.5\n"), Verdict.FALSE_RESULT),
        (replace(same, stdout=b"loss -, 1 damaged\n"), Verdict.FALSE_RESULT),
        (replace(same, products=()), Verdict.FALSE_RESULT),
        (replace(same, products=(("results.json", b'{"loss": 2.5}'),)), Verdict.FALSE_RESULT),
        (replace(same, code=1, stderr=b"topicscope: Is a directory\n"), Verdict.WRONG_CODE),
    ):
        assert oracle.judge(case, raw, same).verdict is verdict
    of_a_sweep = replace(case, argv=("show", "sweep"))  # which counts its damaged points
    assert oracle.judge(of_a_sweep, replace(same, stdout=b"loss -, 1 damaged\n"), same).verdict is Verdict.OK


def test_the_table_counts_verdicts() -> None:
    case = Case("x", "train", ("train",), Expect.EITHER)
    findings = [
        Finding(case, Verdict.OK),
        Finding(case, Verdict.HANG),
        Finding(replace(case, group="show"), Verdict.OK),
    ]
    rows = [line.split() for line in campaign.table(findings).splitlines()]
    assert rows[1] == ["show", "1", "1", *"......"]
    assert rows[2] == ["train", "2", "1", ".", ".", "1", *"..."]
    assert rows[-1] == ["total", "3", "2", ".", ".", "1", *"..."]
