"""Ray as an engine: tasks of one core each, repeated where a worker or a node is lost, collected as they come."""

import logging
import os
import socket
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from typing import Any

from topicscope.ground.engines import RETRIES, Common, Engine, Item, Output, Queue
from topicscope.ground.errors import EngineError, InputError

PORT = 6379  # of a Ray head, where none is said
INLINE = 50_000  # bytes up to which what tasks have in common is sent with each of them
PATIENCE = 5  # seconds that an address has to answer

ENVIRONMENT = {
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",  # leave CUDA_VISIBLE_DEVICES of tasks without a GPU alone
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent anywhere
}
OWN = {"RAY_worker_niceness": "0"}  # its workers would let everything else on the machine go first
# something that answers but is no Ray, or wants another token, is reported within ten seconds, not in minutes
HURRY = {
    "RAY_NUM_REDIS_GET_RETRIES": "1",
    "RAY_py_gcs_connect_timeout_s": "3",
    "RAY_gcs_rpc_server_connect_timeout_s": "1",
}
# Ray takes 127.0.0.1 for another name of the machine and listens on the machine's address, unless it is told that
# clusters are off, as they are on macOS; then every part of it listens on loopback
ALONE = ("RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER", "0")


@contextmanager
def ray_engine(address: str, workers: int | None, gpus: float) -> Iterator[Engine]:
    """A Ray started here (`local`), one that runs (`auto`, HOST[:PORT]), or the one that this process has joined."""
    os.environ.update(ENVIRONMENT | (HURRY if address != "local" else OWN) | os.environ)  # what the user has set stays
    import ray

    joined = ray.is_initialized()
    if not joined:
        connect(ray, address, workers)
    try:
        yield partial(tasks, ray, gpus)
    finally:
        if not joined:
            ray.shutdown()


def connect(ray: Any, address: str, workers: int | None) -> None:
    quiet: dict[str, Any] = {"logging_level": logging.ERROR, "log_to_driver": False}
    if address == "local":
        quiet |= {"num_cpus": workers or os.cpu_count(), "include_dashboard": False, "_node_ip_address": "127.0.0.1"}
    elif address != "auto":
        address = answering(address)
    with tempfile.TemporaryFile() as said:
        try:
            with complaints_to(said.fileno()), on_loopback(ray) if address == "local" else nullcontext():
                ray.init(address=address, **quiet)
        except (ConnectionError, RuntimeError, ValueError, TimeoutError) as error:
            said.seek(0)
            reason = (
                "it requires a token: set RAY_AUTH_MODE=token and its RAY_AUTH_TOKEN"
                if b"InvalidAuthToken" in said.read()
                else " ".join(str(error).split())[:200]
            )
            raise InputError(
                f"address {address}: cannot connect to Ray ({reason}); "
                "start it with 'ray start --head', or use the address local"
            ) from None


@contextmanager
def on_loopback(ray: Any) -> Iterator[None]:
    """A Ray that starts here listens on loopback only; one that is joined afterwards is not affected.

    The processes that it starts read the environment. This process has read it where Ray was imported before.
    """
    constants, (name, value) = ray._private.ray_constants, ALONE
    before, clusters = os.environ.get(name), constants.ENABLE_RAY_CLUSTER
    os.environ[name], constants.ENABLE_RAY_CLUSTER = value, False
    try:
        yield
    finally:
        constants.ENABLE_RAY_CLUSTER = clusters
        del os.environ[name]
        if before is not None:
            os.environ[name] = before


@contextmanager
def complaints_to(file: int) -> Iterator[None]:
    """Ray's own lines on stderr, which come from outside Python; the one that counts is told by whoever asked."""
    sys.stderr.flush()
    kept = os.dup(2)
    os.dup2(file, 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def answering(address: str) -> str:
    """HOST:PORT, if something answers there: Ray itself would wait a minute for it."""
    host, _, port = (address if ":" in address else f"{address}:{PORT}").rpartition(":")
    try:
        with socket.create_connection((host, int(port)), timeout=PATIENCE):
            return f"{host}:{port}"
    except (OSError, ValueError):
        raise InputError(
            f"address {address}: nothing answers at {host}:{port}; "
            "expected local, auto, or HOST[:PORT] of a running Ray head"
        ) from None


def tasks(
    ray: Any, gpus: float, work: Callable[[Common, Item], Output], common: Common, items: Iterable[Item]
) -> Iterator[tuple[int, Output]]:
    """The engine hands out at most two tasks per core at a time, so that the driver never holds more results."""
    if gpus > ray.cluster_resources().get("GPU", 0):  # Ray would wait for one for ever
        raise InputError(
            "the device is cuda, but this Ray has no GPU; start its nodes with --num-gpus, or choose the device cpu"
        )
    remote = ray.remote(num_cpus=1, num_gpus=gpus, max_retries=RETRIES)(work)
    # what is small travels with the task: a task then needs nothing that another node holds
    shared = common if len(ray.cloudpickle.dumps(common)) < INLINE else ray.put(common)
    queue, running, losses = Queue(items), dict[Any, tuple[int, Item]](), Counter[int]()
    try:
        while queue or running:
            cores = max(1, int(ray.cluster_resources().get("CPU", 1)))  # nodes come and go
            while len(running) < 2 * cores and queue:
                number, item = queue.first.pop()
                running[remote.remote(shared, item)] = number, item
            [reference], _ = ray.wait(list(running), num_returns=1)
            number, item = running.pop(reference)
            try:
                result = ray.get(reference)
            except ray.exceptions.RayError as error:
                cause = error.cause if isinstance(error, ray.exceptions.RayTaskError) else error
                if not isinstance(cause, ray.exceptions.RayError):
                    raise cause from None  # the work's own
                losses[number] += 1  # Ray's trouble, also where a task met it: a node on its way out
                if losses[number] > RETRIES:
                    reason = " ".join(str(cause).split())[:200]
                    raise EngineError(
                        f"Ray gave up a task after {RETRIES} retries ({type(cause).__name__}: {reason})"
                    ) from None
                queue.put_back([(number, item)])
            else:
                yield number, result
    finally:
        for reference in running:  # an interruption: others' cluster is not to go on with what nobody waits for
            ray.cancel(reference, force=True)
