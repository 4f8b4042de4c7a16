"""What every room stands on: errors, settings, files and folders, random streams, threads, engines."""

from topicscope.ground.engines import (
    NAMES,
    Common,
    Engine,
    Item,
    Name,
    Result as Output,
    in_order,
    open_engine,
    serial,
)
from topicscope.ground.errors import EngineError, InputError, Interrupted, nearest, validated
from topicscope.ground.files import (
    append_lines,
    read_tensors,
    write,
    write_csv,
    write_json,
    write_npz,
    write_tensors,
    write_yaml,
)
from topicscope.ground.folders import ENSEMBLE, MEMBERS, StoredRun, read_run
from topicscope.ground.results import Result
from topicscope.ground.settings import STRICT, apply_settings, load_settings, log_steps, number
from topicscope.ground.streams import Stream, generator
from topicscope.ground.threads import one_thread, repeatable, worker_pool

__all__ = [
    "ENSEMBLE",
    "MEMBERS",
    "NAMES",
    "STRICT",
    "Common",
    "Engine",
    "EngineError",
    "InputError",
    "Interrupted",
    "Item",
    "Name",
    "Output",
    "Result",
    "StoredRun",
    "Stream",
    "append_lines",
    "apply_settings",
    "generator",
    "in_order",
    "load_settings",
    "log_steps",
    "nearest",
    "number",
    "one_thread",
    "open_engine",
    "read_run",
    "read_tensors",
    "repeatable",
    "serial",
    "validated",
    "worker_pool",
    "write",
    "write_csv",
    "write_json",
    "write_npz",
    "write_tensors",
    "write_yaml",
]
