"""Compiled kernels: they are announced, kept, and work where nothing can be kept."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from topicscope.ground import can_compile, compiled, compiling_announced, interruptible


def test_a_kernel_is_compiled_once_and_announced() -> None:
    said: list[str] = []

    def twice(x: float) -> float:
        return 2 * x

    kernel = compiled(twice)
    with compiling_announced(lambda phase, done=0, total=None, note="": said.append(f"{phase}: {note}")):
        assert [kernel(3.0), kernel(4.0)] == [6.0, 8.0]
    assert said in ([], ["compiling: once per installation"])  # it may have been kept


def test_a_kernel_that_cannot_be_kept_is_compiled_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """An installation that is read-only, for a user who has no folder of their own."""
    assert can_compile()
    source = "def halved(x):\n    return x / 2\n"
    names: dict[str, object] = {}
    exec(compile(source, "/nowhere/kernels.py", "exec"), names)
    function = names["halved"]
    assert callable(function)
    assert compiled(function)(3.0) == 1.5


def test_an_interrupt_in_a_kernel_is_an_interrupt() -> None:
    """As numba raises it: 'returned a result with an exception set'."""
    inner = SystemError("unpickling returned a result with an exception set")
    inner.__cause__ = KeyboardInterrupt()
    with pytest.raises(KeyboardInterrupt), interruptible():
        raise SystemError("a kernel returned a result with an exception set") from inner
    with pytest.raises(SystemError, match="another"), interruptible():
        raise SystemError("another")


READ_ONLY = """
from topicscope.training import RunConfig, train
run = train(RunConfig.of(steps=2, device="cpu", data={"documents": 50, "dev_documents": 5}), with_floors=False)
assert run.status == "done", run.status
"""


@pytest.mark.slow
def test_a_run_without_any_folder_to_keep_kernels_in(tmp_path: Path) -> None:
    """Every file and folder of the cache is refused by the system."""
    blocked = tmp_path / "file"
    blocked.write_text("")
    settings = {"NUMBA_CACHE_DIR": str(blocked / "cache")}
    result = subprocess.run(
        [sys.executable, "-c", READ_ONLY], capture_output=True, text=True, env=os.environ | settings, check=False
    )
    assert result.returncode == 0, result.stderr


DIGEST = """
import hashlib
from topicscope.training import RunConfig, train
run = train(RunConfig.of(steps=8, device="cpu", data={"documents": 80, "dev_documents": 5}), with_floors=False)
print(hashlib.sha256(b"".join(part.tobytes() for part in run.weights.values())).hexdigest())
"""


@pytest.mark.slow
def test_the_process_that_compiles_gets_the_bytes_of_those_that_load(tmp_path: Path) -> None:
    """They may have the kernels in other pieces: it must not matter which of them the linker takes."""
    settings = {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}
    command = [sys.executable, "-c", DIGEST]
    first, second = (
        subprocess.run(command, capture_output=True, text=True, env=os.environ | settings, check=True).stdout
        for _ in range(2)
    )
    assert len(first) == 65
    assert first == second
