"""The fuzz kit: odd inputs for every command, and damages to every kind of file.

python -m tests.fuzz --inputs 2000 --files 1000 --seed 0 --workers 2
python -m tests.fuzz --list --only 'sweep'                            # the cases, without running them
python -m tests.fuzz --seed 0 --only 'files/train: about.json/3$' --keep /tmp/case   # one case, its folder kept

Prints a table of verdicts and every failure with its command; the file of --failures holds them too. Exit code 1 if
any failed.
"""

import argparse
import json
import math
import re
import sys
from pathlib import Path
from typing import Any

from tests.fuzz import campaign
from tests.fuzz.cases import Case, Finding, Verdict


def main() -> int:
    options = parsed()
    cases = [
        case
        for case in (
            *campaign.input_cases(options.inputs, options.seed),
            *campaign.file_cases(options.files, options.seed),
        )
        if re.search(options.only, case.id)
    ]
    if options.list:
        for case in cases:
            print(f"{case.id}  [{case.expect}]  {case.note}  {case.command[:300]}")
        return 0
    if options.keep is not None and len(cases) != 1:
        print(f"--keep is for one case; {len(cases)} match: narrow --only", file=sys.stderr)
        return 2
    findings = campaign.run(cases, options.workers, options.limit, options.keep, options.minutes)
    failures = [finding for finding in findings if finding.verdict is not Verdict.OK]
    for finding in failures:
        print(described(finding))
    print(campaign.table(findings))
    options.failures.parent.mkdir(parents=True, exist_ok=True)
    options.failures.write_text(json.dumps([record(one, options.seed) for one in failures], indent=1))
    print(f"{len(failures)} of {len(findings)} cases failed; in full: {options.failures}")
    return 1 if failures else 0


def described(finding: Finding) -> str:
    case = finding.case
    lines = [f"{finding.verdict}: {case.id}", f"    {case.command[:400]}"]
    lines += [
        f"    {text}" for text in (case.note, ascii(finding.reason)[1:-1], ascii(finding.last_line)[1:-1]) if text
    ]
    return "\n".join(lines)


def record(finding: Finding, seed: int) -> dict[str, Any]:
    """A failure as JSON: enough to run it again."""
    case: Case = finding.case
    return {
        "id": case.id,
        "seed": seed,
        "group": case.group,
        "verdict": str(finding.verdict),
        "reason": finding.reason,
        "expected": str(case.expect),
        "exit_code": finding.code,
        "last_line": finding.last_line,
        "command": case.command[:5000],
        "places": [repr(place)[:1000] for place in case.places],
        "note": case.note,
        "seconds": finding.seconds,
        "again": f"python -m tests.fuzz --seed {seed} --only '^{re.escape(case.id)}$'",
    }


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--inputs", type=int, default=2000, help="cases of odd inputs")
    parser.add_argument("--files", type=int, default=1000, help="cases of damaged files")
    parser.add_argument("--seed", type=int, default=0, help="the same seed draws the same cases")
    parser.add_argument("--workers", type=int, default=2, help="servers that run side by side")
    parser.add_argument("--limit", type=float, default=campaign.LIMIT, help="seconds after which a case hangs")
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after so many minutes, and report")
    parser.add_argument("--only", default="", metavar="PATTERN", help="cases whose id matches the regular expression")
    parser.add_argument("--list", action="store_true", help="print the cases and run none")
    parser.add_argument("--keep", type=Path, default=None, help="folder in which a single case is run and left")
    parser.add_argument(
        "--failures", type=Path, default=Path("runs/fuzz-failures.json"), help="file for the failures in full"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
