"""Devices, threads, workers that end with their parent; optional libraries; compiled kernels; costs."""

import os
import re
import resource
import signal
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest
import torch
from threadpoolctl import threadpool_info

from tests.refusals import refused
from tests.waiting import wait_until
from topicscope import RunConfig
from topicscope.ground import (
    EXTRAS,
    Cost,
    InputError,
    afford,
    affordable,
    can_compile,
    check_gpu,
    compiled,
    compiling_announced,
    driving,
    interruptible,
    machine,
    machine_memory,
    needed,
    one_thread,
    repeatable,
    require,
    size,
    usable_device,
    worker_pool,
)
from topicscope.ground.machine import PACKAGES


def test_devices() -> None:
    assert usable_device("cpu") == "cpu"
    refused("expected auto, cpu or cuda", usable_device, "tpu")


@pytest.mark.parametrize(
    ("there", "worth_it", "chosen"), [(True, True, "cuda"), (True, False, "cpu"), (False, True, "cpu")]
)
def test_auto_takes_a_gpu_that_is_there_and_worth_it(
    monkeypatch: pytest.MonkeyPatch, there: bool, worth_it: bool, chosen: str
) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    assert usable_device("auto", worth_it=worth_it) == chosen
    assert ("CUBLAS_WORKSPACE_CONFIG" in os.environ) == (chosen == "cuda")
    if there:
        assert usable_device("auto") == "cuda"
        assert usable_device("cuda", worth_it=False) == "cuda"
    else:
        refused("no usable GPU", usable_device, "cuda")


def denormal() -> bool:
    """Whether numbers below 1e-38 count as zero."""
    return float(torch.tensor(1e-30) * torch.tensor(1e-15)) == 0


@pytest.mark.parametrize("context", [one_thread, repeatable])
def test_one_thread_inside_and_the_callers_afterwards(context: object) -> None:
    torch.set_num_threads(2)
    try:
        with context():  # type: ignore[operator]
            assert torch.get_num_threads() == 1
            assert denormal()
            assert all(pool["num_threads"] == 1 for pool in threadpool_info() if pool["user_api"] == "blas")
        assert torch.get_num_threads() == 2
        assert not denormal()
    finally:
        torch.set_num_threads(1)


@pytest.mark.parametrize("there", [True, False])
@pytest.mark.parametrize("before", [True, False])
def test_repeatable_sums_on_a_gpu(monkeypatch: pytest.MonkeyPatch, there: bool, before: bool) -> None:
    switched: list[bool] = []  # the switch itself would import the compiler
    monkeypatch.setattr(torch.cuda, "is_available", lambda: there)
    monkeypatch.setattr(torch, "are_deterministic_algorithms_enabled", lambda: before)
    monkeypatch.setattr(torch, "use_deterministic_algorithms", switched.append)
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    with repeatable():
        assert switched == ([True] if there else [])
        assert os.environ.get("CUBLAS_WORKSPACE_CONFIG") == (":4096:8" if there else None)
    assert switched == ([True, before] if there else [])


def ignores_interrupts() -> bool:
    return signal.getsignal(signal.SIGINT) is signal.SIG_IGN


def test_workers_leave_ctrl_c_to_the_parent_and_end_with_the_block(tmp_path: Path) -> None:
    with worker_pool(1) as pool:
        assert pool.submit(ignores_interrupts).result()
        number = pool.submit(os.getpid).result()
        assert number != os.getpid()
        running, *_, last = [pool.submit(wait_until, (tmp_path / "over").exists) for _ in range(5)]
    assert not running.done()  # the block does not wait for work that nobody will take
    (tmp_path / "over").touch()
    assert wait_until(lambda: not psutil.pid_exists(number))
    assert last.cancelled()


def test_an_error_ends_the_work_that_is_running(monkeypatch: pytest.MonkeyPatch) -> None:
    ended: list[str] = []

    class Pool:
        def __init__(self, *_: object, **__: object) -> None:
            self._processes = {1: SimpleNamespace(terminate=lambda: ended.append("worker"))}

        def shutdown(self, **_: object) -> None:
            ended.append("pool")

    monkeypatch.setattr(machine, "ProcessPoolExecutor", Pool)
    with pytest.raises(KeyboardInterrupt), worker_pool(1):
        raise KeyboardInterrupt
    with worker_pool(1):
        pass
    assert ended == ["worker", "pool", "pool"]


PARENT = """
import os, sys, time
from topicscope.ground import worker_pool
if __name__ == "__main__":
    with worker_pool(1) as pool:
        print(pool.submit(os.getpid).result(), flush=True)
        pool.submit(time.sleep, 600)
        time.sleep(600)
"""


def test_workers_do_not_outlive_a_killed_parent(tmp_path: object) -> None:
    script = f"{tmp_path}/parent.py"
    with open(script, "w", encoding="utf-8") as stream:
        stream.write(PARENT)
    parent = subprocess.Popen([sys.executable, script], stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    number = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    parent.stdout.close()
    assert wait_until(lambda: not psutil.pid_exists(number))


ROOT = Path(__file__).parents[2]


def test_the_table_says_what_the_package_declares() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    names = {
        extra: {re.split("[^A-Za-z0-9_.-]", line)[0].lower() for line in lines}
        for extra, lines in project["optional-dependencies"].items()
    }
    for library, extra in EXTRAS.items():
        assert PACKAGES.get(library, library).lower() in names[extra], library
    for extra in set(EXTRAS.values()):  # and none is left out of the table
        assert names[extra] == {PACKAGES.get(one, one).lower() for one, at in EXTRAS.items() if at == extra}


def test_a_library_that_is_there_is_imported(monkeypatch: pytest.MonkeyPatch) -> None:
    require(["json", "os"], "this test")
    assert needed("json", "this test") is sys.modules["json"]


def test_a_missing_library_is_named_with_its_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sklearn", None)
    said = r"^the backend sklearn needs scikit-learn, which is not installed: pip install 'topicscope\[backends\]'$"
    refused(said, require, ["json", "sklearn"], "the backend sklearn")
    refused(said, needed, "sklearn.decomposition", "the backend sklearn")


@pytest.mark.parametrize(
    "line",
    ["import tomotopy._gone", "import _a_part_that_is_gone"]
    + [f"raise {kind.__name__}('made for another numpy')" for kind in (ImportError, OSError, ValueError)],
)
def test_a_library_that_cannot_be_loaded_is_not_called_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, line: str
) -> None:
    (tmp_path / "tomotopy.py").write_text(line)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "tomotopy", raising=False)
    with pytest.raises(
        InputError, match=r"needs tomotopy, which is installed, but cannot be loaded \((No|made) .*\): "
    ):
        needed("tomotopy", "the backend tomotopy")


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


@pytest.fixture(autouse=True)
def a_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine, "machine_memory", lambda: 8 * 10**9)
    monkeypatch.setattr(machine, "free_disk", lambda _path: 10**9)


def test_what_fits_passes_in_silence(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    afford(Cost(1e9, 1e8, 599), "steps", tmp_path)
    assert capsys.readouterr() == ("", "")


def test_memory_that_is_not_there_is_refused_with_the_estimate_and_the_settings() -> None:
    assert refused("", afford, Cost(2e10, 0, 0), lambda: "attention_dim 65536") == (
        "this would take about 20.4 GB of memory, and the machine has 8 GB; make it smaller (attention_dim 65536), "
        "or go ahead anyway (--yes)"
    )
    afford(Cost(2e10, 0, 0), "attention_dim 65536", yes=True)
    afford(Cost(8e9 - machine.PROCESS, 0, 0), "just fits")


def test_disk_counts_where_something_is_written(tmp_path: Path) -> None:
    afford(Cost(0, 2e9, 0), "snapshots")
    afford(Cost(0, 2e9, 0), "snapshots", tmp_path, yes=True)
    with pytest.raises(InputError, match=r"would write about 2 GB, and .* has room for 1 GB; .*snapshots"):
        afford(Cost(0, 2e9, 0), "snapshots", tmp_path)


def test_long_work_is_announced_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    afford(Cost(1e9, 2e6, 7200), "steps")
    afford(Cost(seconds=7200), "experiments", yes=True)
    printed = capsys.readouterr()
    assert printed.out == ""
    assert printed.err.splitlines() == [
        "topicscope: this will take a long time: about 2.0 h, 1 GB of memory, 2 MB on disk",
        "topicscope: this will take a long time: about 2.0 h",
    ]


def test_a_part_of_what_was_checked_is_not_checked_again(capsys: pytest.CaptureFixture[str]) -> None:
    with affordable():
        afford(Cost(1e20, 1e20, 1e20), "everything")
    assert capsys.readouterr().err == ""
    with pytest.raises(InputError):
        afford(Cost(1e20, 1e20, 1e20), "everything")


def test_costs_add_up_to_the_larger_peak() -> None:
    assert Cost(5, 1, 2) + Cost(3, 1, 2) == Cost(5, 2, 4)
    assert [size(x) for x in (0, 1e6, 1e9)] == ["0 kB", "1 MB", "1 GB"]


def test_the_settings_that_drive_a_cost_are_found() -> None:
    config = RunConfig.of(steps=10**6, batch_size=400, data={"documents": 10**7}, snapshots=[1])
    assert driving(config, RunConfig(), lambda one: Cost(1e4 * one.data.documents)) == "data.documents 10000000"
    assert driving(config, RunConfig(), lambda one: Cost(1.0, one.total_steps)) == "steps 1000000"
    assert driving(config, RunConfig(), lambda one: Cost(1e12)) == "sizes"
    both = driving(config, RunConfig(), lambda one: Cost(1e4 * one.batch_size * one.data.documents))
    assert both == "data.documents 10000000, batch_size 400"


def test_a_limit_of_the_process_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = machine_memory()
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (10**9, 10**9))
    assert (machine_memory(), whole > 10**9) == (10**9, True)
    monkeypatch.setattr(resource, "getrlimit", lambda _which: (resource.RLIM_INFINITY, 0))
    assert 10**8 < machine_memory() < sys.maxsize


def test_a_gpu_with_too_little_memory_is_refused_unless_one_insists(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("torch.cuda.mem_get_info", lambda: (1e9, 12e9))
    check_gpu(Cost(memory=11e9), lambda: "runs 512")
    with pytest.raises(InputError, match=r"about 13 GB of memory on the GPU, which has 12 GB; .*\(runs 512\).*--yes"):
        check_gpu(Cost(memory=13e9), lambda: "runs 512")
    check_gpu(Cost(memory=13e9), lambda: "runs 512", yes=True)
    with affordable():
        check_gpu(Cost(memory=13e9), lambda: "runs 512")
