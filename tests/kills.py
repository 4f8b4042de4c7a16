"""Commands that die, or run out of disk, at a chosen file operation.

The server process of `tests.command`, which has imported everything, forks one child per command. In the child an
audit hook counts the operations that change files below the folder `out`, and ends the process at one of them, before
it happens.

Pictures are stubs here: drawing is most of the time of a small command, and no part of what is tested.
"""

import errno
import json
import os
import resource
import shutil
import signal
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from tests.command import as_a_program, redirect, server

KILLED = 137
OUT = "out"

Kind = Literal["none", "kill", "half", "full", "limit", "memory"]
"""kill: dies at the n-th change. half: dies in the n-th append, with half of it written. full: from the n-th change on
nothing can be written, though it can be removed. limit: files larger than n bytes cannot be written. memory: there is
none left when the work begins."""


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, what it printed, and how many changes it made below `out`."""

    code: int | None
    out: str
    err: str
    changes: int
    makes: int


@dataclass(frozen=True)
class Fault:
    kind: Kind = "none"
    at: int = 0


NO_FAULT = Fault()


def run(cwd: Path, arguments: list[str], fault: Fault = NO_FAULT) -> Ended:
    """`topicscope` with these arguments, in a process of its own."""
    process = server.Process(target=child, args=(str(cwd), arguments, fault))
    process.start()
    process.join(120)
    out, err = ((cwd / name).read_text(errors="replace") for name in ("stdout", "stderr"))
    changes, makes = json.loads((cwd / "counts").read_text()) if (cwd / "counts").exists() else (0, 0)
    return Ended(process.exitcode, out, err, changes, makes)


def child(cwd: str, arguments: list[str], fault: Fault) -> None:
    import torch

    from topicscope.cli.main import main

    torch.set_num_threads(1)  # as in tests/command.py
    os.chdir(cwd)
    (Path(cwd) / "counts").unlink(missing_ok=True)
    redirect("stdout", "stderr")
    draw_stubs()
    sys.argv = ["topicscope", *arguments]
    install(Path(cwd), fault)
    with as_a_program():
        main()


class Stub:
    """A picture."""

    def as_bytes(self, kind: str, dpi: int = 0) -> bytes:
        return f"{kind} {dpi}".encode()


def draw_stubs() -> None:
    from topicscope.pages import drawing, page

    drawing.canvas = lambda _figure: Stub()  # type: ignore[assignment, return-value]
    vars(page)["get_plotlyjs"] = lambda: "plotly"


def install(cwd: Path, fault: Fault) -> None:
    """The hook cannot be removed, so it belongs to a process that ends."""
    changes = makes = 0
    root = str(cwd / OUT)

    def below(path: Any) -> bool:
        if not isinstance(path, str | bytes | os.PathLike):
            return False
        text = os.path.join(cwd, os.fsdecode(path))
        return text == root or text.startswith(root + os.sep)

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal changes, makes
        if event == "open":
            path, mode, flags = arguments
            writing = any(sign in mode for sign in "wax+") if mode else flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT)
            if not writing:
                return
        elif event in ("os.rename", "os.remove", "os.mkdir", "os.rmdir", "shutil.rmtree"):
            path = arguments[0]
            # inside a tree that is removed names are relative to a descriptor
            if event in ("os.remove", "os.rmdir") and arguments[-1] != -1:
                path = root
        else:
            return
        if not below(path):
            return
        makes += event in ("open", "os.rename", "os.mkdir")
        changes += 1
        if fault.kind == "kill" and changes == fault.at:
            os._exit(KILLED)
        if fault.kind == "full" and makes >= fault.at and event in ("open", "os.rename", "os.mkdir"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), os.fsdecode(path))

    if fault.kind == "half":
        die_in_an_append(fault.at)
    if fault.kind == "memory":
        run_out_of_memory()
    if fault.kind == "limit":
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (fault.at, fault.at))
    if fault.kind == "none":
        import multiprocessing.util

        multiprocessing.util.Finalize(
            None, lambda: (cwd / "counts").write_text(json.dumps([changes, makes])), exitpriority=0
        )
    sys.addaudithook(hook)


def die_in_an_append(at: int) -> None:
    from topicscope.ground import files

    count = 0

    def append(path: Path, content: bytes) -> None:
        nonlocal count
        count += 1
        with path.open("ab") as stream:
            stream.write(content[: len(content) // 2] if count == at else content)
        if count == at:
            os._exit(KILLED)

    files.append = append


def run_out_of_memory() -> None:
    from topicscope import theory
    from topicscope.cli import results, runs, text
    from topicscope.training import timeline

    def fail(*_: Any, **__: Any) -> None:
        raise MemoryError

    for module in (results, runs, text):
        module.progress_shown = lambda: nullcontext(fail)  # type: ignore[attr-defined]
    theory.attention_landscape.__globals__["landscape"] = fail
    timeline.sandbox_effects = fail  # type: ignore[assignment]


def content(out: Path) -> dict[str, Any]:
    """What has to be the same after a fault: every file but report.html, whose text names the command.

    Of about.json all but the command counts, of environment.json that it is there, of reproductions all but seconds.
    """
    return dict(_content(out))


def _content(out: Path) -> Iterator[tuple[str, Any]]:
    for path in sorted(out.rglob("*")):
        name = str(path.relative_to(out))
        if path.name == ".lock":
            continue
        if path.is_dir():
            yield name, "folder"
        elif path.name in ("environment.json", "report.html"):
            yield name, "file"
        elif path.name == "about.json":
            about = json.loads(path.read_text())
            digests = {key: value for key, value in about.pop("digests").items() if timeless(key, about["kind"])}
            yield name, {**about, "command": "", "digests": digests}
        elif path.suffix == ".json" and '"seconds"' in (text := path.read_text()):
            yield name, without_seconds(json.loads(text))
        else:
            yield name, path.read_bytes()


def timeless(name: str, kind: str) -> bool:
    """Whether a file is the same whenever it is written."""
    return name != "environment.json" and not (kind == "reproduce" and name == "results.json")


def without_seconds(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_seconds(inner) for key, inner in value.items() if key != "seconds"}
    return [without_seconds(inner) for inner in value] if isinstance(value, list) else value


def differences(found: dict[str, Any], expected: dict[str, Any]) -> list[str]:
    """Names of files that are missing, left over, or other than they should be."""
    return sorted(name for name in {*found, *expected} if found.get(name) != expected.get(name))


def remove(cwd: Path) -> None:
    shutil.rmtree(cwd / OUT, ignore_errors=True)
