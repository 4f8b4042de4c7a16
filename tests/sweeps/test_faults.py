"""Whatever is killed, removed or full: nothing is lost, and the points are the same bytes in the end."""

import os
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
import yaml

from tests.command import error_line, started, topicscope
from tests.sweeps.samples import BASE, LONG, count, files
from tests.waiting import LIMIT, wait_until
from topicscope.sweeps import build_grid, sweep

TOPICSCOPE = (sys.executable, "-m", "topicscope")


@contextmanager
def one_killed() -> Iterator[list[int]]:
    """Kills the first worker that is past its imports and at work in the block; its process's number."""
    killed: list[int] = []
    over = threading.Event()

    def watch() -> None:
        while not over.wait(0.02):
            for child in psutil.Process().children(recursive=True):
                try:
                    if is_worker(child) and sum(child.cpu_times()[:2]) > 1.5:
                        os.kill(child.pid, signal.SIGKILL)
                        killed.append(child.pid)
                        return
                except psutil.Error:
                    continue

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield killed
    finally:
        over.set()
        thread.join()


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """What an undisturbed sweep in one process gives."""
    folder = tmp_path_factory.mktemp("whole")
    assert sweep(build_grid(LONG), folder).counts == {"done": 16, "failed": 0, "missing": 0}
    return files(folder)


@pytest.fixture
def grid_file(tmp_path: Path) -> Path:
    path = tmp_path / "grid.yaml"
    path.write_text(yaml.safe_dump(LONG, sort_keys=False))
    return path


def test_a_killed_worker_loses_nothing(tmp_path: Path, whole: dict[str, bytes]) -> None:
    with one_killed() as killed:
        found = sweep(build_grid(LONG), tmp_path / "killed", "local", workers=2)
    assert killed
    assert found.counts == {"done": 16, "failed": 0, "missing": 0}
    assert files(tmp_path / "killed") == whole


def is_worker(process: psutil.Process) -> bool:
    """Of either engine."""
    return process.name().startswith("ray::compute") or "spawn_main" in " ".join(process.cmdline())


@pytest.mark.parametrize("engine", ["local", "ray"])
def test_a_killed_driver_is_gone_on_with(tmp_path: Path, grid_file: Path, whole: dict[str, bytes], engine: str) -> None:
    if engine == "ray":
        pytest.importorskip("ray", reason="needs ray")
    options = ["--engine", engine, "--workers", "1", "--out", str(tmp_path / "sweep"), "--json"]
    driver = started("sweep", str(grid_file), *options, stdout=subprocess.DEVNULL)
    assert wait_until(lambda: count(tmp_path / "sweep") >= 4 or driver.poll() is not None)
    assert driver.poll() is None
    workers = [child for child in psutil.Process(driver.pid).children(recursive=True) if is_worker(child)]
    assert workers
    driver.kill()
    driver.wait()
    psutil.wait_procs(workers, timeout=LIMIT)
    assert not [
        worker for worker in workers if worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE
    ]  # none goes on by itself
    assert len(files(tmp_path / "sweep")) < len(whole)
    topicscope("sweep", str(grid_file), *options)
    assert files(tmp_path / "sweep") == whole


@pytest.fixture(scope="module")
def cluster() -> Iterator[Any]:
    """A head and a second node, on this machine."""
    ray = pytest.importorskip("ray", reason="needs ray")
    from ray.cluster_utils import Cluster

    found: Any = Cluster(initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False})
    ray.init(address=found.address, logging_level="error", log_to_driver=False)
    yield found
    ray.shutdown()
    found.shutdown()


@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::FutureWarning")
def test_a_ray_node_that_goes_and_a_ray_worker_that_dies_lose_nothing(
    tmp_path: Path, whole: dict[str, bytes], cluster: Any
) -> None:
    node = cluster.add_node(num_cpus=1)
    cluster.wait_for_nodes()
    removed: list[int] = []

    def remove(phase: str, done: float = 0, total: float | None = None, note: str = "") -> None:
        if phase == "running points" and done >= 4 and not removed:
            removed.append(round(done))
            cluster.remove_node(node)

    with one_killed() as killed:
        found = sweep(build_grid(LONG), tmp_path / "ray", "ray", progress=remove)
    assert killed
    assert removed
    assert removed[0] < 16
    assert found.counts == {"done": 16, "failed": 0, "missing": 0}
    assert files(tmp_path / "ray") == whole


def test_a_full_disk_is_no_fault_of_a_point(tmp_path: Path) -> None:
    """On a file system of 150 kB, which is made larger afterwards."""
    alone = shutil.which("unshare")
    if alone is None or subprocess.run([alone, "-rm", "true"], capture_output=True).returncode != 0:
        pytest.skip("needs unshare -rm, to mount a small tmpfs")
    grid: dict[str, Any] = {
        "base": BASE,
        "axes": {"optimizer.lr": {"log": [0.001, 0.1], "points": 10}, "seed": {"seeds": 2}},
    }
    (tmp_path / "grid.yaml").write_text(yaml.safe_dump(grid, sort_keys=False))
    (tmp_path / "small").mkdir()
    run = f"{' '.join(TOPICSCOPE)} sweep grid.yaml --engine serial --out small/sweep --json --yes"
    script = f"""
mount -t tmpfs -o size=150k tmpfs small || exit 99
{run} > first.json 2> first.err; echo $? > first.rc
ls small/sweep/points | wc -l > kept
mount -o remount,size=20m small
{run} > second.json 2> second.err; echo $? > second.rc
cp -r small/sweep result
"""
    code = subprocess.run([alone, "-rm", "sh", "-c", script], cwd=tmp_path, check=False).returncode
    if code == 99:
        pytest.skip("mounting a tmpfs is not allowed here")
    assert (tmp_path / "first.rc").read_text().strip() == "1"
    said = (tmp_path / "first.err").read_text()
    assert "No space left on device" in error_line(said)
    assert (tmp_path / "first.json").read_text() == ""
    assert 0 < int((tmp_path / "kept").read_text()) < 20
    assert (tmp_path / "second.rc").read_text().strip() == "0"
    sweep(build_grid(grid), tmp_path / "whole")
    assert files(tmp_path / "result") == files(tmp_path / "whole")
