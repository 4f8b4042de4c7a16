"""Judges how a case ended. The rules of the command line, in one place.

Exit code 2: bad input, in one line that starts with 'topicscope: ', and nothing is left behind. Exit code 1: the run
failed, and stderr says why. Exit code 0: done. A damaged folder is refused, or the damage changes nothing.
"""

import json
import re
from pathlib import PurePath
from typing import Any

from tests.fuzz.cases import Case, Expect, Finding, Verdict
from tests.fuzz.runner import GIGABYTE, Raw

MOST_MEMORY = 4 * GIGABYTE
PREFIX = "topicscope: "
FAULT = "this is a bug in topicscope"  # how the command's last resort reports what it did not foresee
RAISED = re.compile(r"[A-Za-z_][\w.]*(Error|Exception)\b")
TIMES = {"seconds", "wall_seconds", "cpu_seconds"}  # of results: they differ from run to run


def judge(case: Case, raw: Raw, reference: Raw | None = None) -> Finding:
    """The verdict; `reference` is how the same command ended on the undamaged files."""
    lines = raw.stderr.decode("utf-8", "replace").splitlines()
    named = [line for line in lines if RAISED.match(line)]  # an exception may print more lines after its name
    last = next((line for line in reversed(named or lines) if line.strip()), "")

    def found(verdict: Verdict, reason: str = "") -> Finding:
        return Finding(case, verdict, reason, raw.code, last[:400], round(raw.seconds, 2))

    if raw.peak > MOST_MEMORY:
        return found(Verdict.ALLOCATION, f"{raw.peak / GIGABYTE:.1f} GB")
    if raw.code is None:
        return found(Verdict.HANG, f"stopped after {raw.seconds:.0f} s")
    if any("Traceback (most recent call last)" in line or FAULT in line for line in lines):
        return found(Verdict.TRACEBACK)
    if wrong := wrong_code(case, raw.code, lines, reference):
        return found(Verdict.WRONG_CODE, wrong)
    if left := left_behind(case, raw):
        return found(Verdict.LEFT_BEHIND, ", ".join(left[:5]))
    compared = case.expect is Expect.SAME and raw.code != 2 and not admits(case, raw, reference)
    if compared and (differing := differences(case, raw, reference)):
        return found(Verdict.FALSE_RESULT, differing)
    return found(Verdict.OK)


def wrong_code(case: Case, code: int, lines: list[str], reference: Raw | None) -> str:
    """What is wrong with the exit code, or with what goes with it; empty where nothing is."""
    if code < 0:
        return f"ended by signal {-code}"
    if code not in (0, 1, 2):
        return f"exit code {code}"
    if code == 2 and (not lines or not all(line.startswith(PREFIX) for line in lines)):
        stray = next((line for line in lines if not line.startswith(PREFIX)), "nothing")
        return f"exit code 2 with stray lines on stderr: {stray[:200]}"
    if code == 1 and not any(line.strip() for line in lines):
        return "exit code 1 without a line on stderr"
    if case.expect is Expect.REFUSED and code != 2:
        return f"exit code {code}, expected a refusal (2)"
    if case.expect is Expect.WORKS and code == 2:
        return "exit code 2, expected it to work"
    if case.expect is Expect.SAME and code != 2 and reference is not None and code != reference.code:
        return f"exit code {code}; the undamaged folder gives {reference.code}"
    return ""


def left_behind(case: Case, raw: Raw) -> list[str]:
    """Temporary files; and after a refusal whatever is new, but for the folders on the way to --out."""
    temporary = [path for path in raw.new if path.endswith(".tmp")]
    if temporary or raw.code != 2:
        return temporary
    parents = {str(parent) for parent in PurePath(case.out or "runs").parents} | {"runs"}
    return [path for path in raw.new if path not in parents]


def admits(case: Case, raw: Raw, reference: Raw | None) -> bool:
    """Whether what is printed or written says that something is damaged or missing: a sweep counts such points."""
    if reference is None or "sweep" not in case.argv:
        return False
    ours, theirs = (b"\n".join((one.stdout, *(content for _, content in one.products))) for one in (raw, reference))
    return any(ours.count(word) > theirs.count(word) for word in (b"damaged", b"missing"))


def differences(case: Case, raw: Raw, reference: Raw | None) -> str:
    """Which product, or stdout, is not that of the undamaged folder."""
    if reference is None:
        return ""
    ours, theirs = dict(raw.products), dict(reference.products)
    for name in sorted(ours.keys() | theirs.keys()):
        if canonical(name, ours.get(name)) != canonical(name, theirs.get(name)):
            return f"{name} differs from that of the undamaged folder"
    printed, expected = (timeless(case, one.stdout) for one in (raw, reference))
    if case.compares_stdout and printed != expected:
        pairs = zip(printed.splitlines(), expected.splitlines(), strict=False)
        pair = next(((a, b) for a, b in pairs if a != b), (printed[-200:], expected[-200:]))
        ours_text, theirs_text = (cut_to_difference(*pair), cut_to_difference(*reversed(pair)))
        return f"stdout differs from that of the undamaged folder: {ours_text!r} instead of {theirs_text!r}"
    return ""


def timeless(case: Case, printed: bytes) -> bytes:
    """Without the last column of a reproduction's table: its seconds are no part of the result, and may be unknown."""
    if case.argv[:2] != ("show", "reproduce"):
        return printed
    return re.sub(" +(-|\\d+) │$".encode(), b"", printed, flags=re.MULTILINE)


def cut_to_difference(one: bytes, other: bytes) -> str:
    """The part of a line that differs from another line, with a little before it."""
    at = next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
    return one[max(0, at - 40) : at + 60].decode("utf-8", "replace")


def canonical(name: str, content: bytes | None) -> Any:
    """A file's meaning: of JSON the values without times, of others the bytes."""
    if content is None or not name.endswith(".json"):
        return content
    try:
        return _without_times(json.loads(content))
    except ValueError:
        return content


def _without_times(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _without_times(one) for key, one in value.items() if key not in TIMES}
    return [_without_times(one) for one in value] if isinstance(value, list) else value
