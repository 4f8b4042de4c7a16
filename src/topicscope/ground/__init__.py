"""What every room stands on: errors, configurations, files and folders, progress, random streams, threads, engines."""

from topicscope.ground import files, folders, old_folders
from topicscope.ground.config import STRICT, Config, section
from topicscope.ground.devices import Device, usable_device
from topicscope.ground.engines import (
    NAMES,
    Common,
    Engine,
    Item,
    Name,
    Output,
    check_engine,
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
from topicscope.ground.folders import Folder, Kind, check_folder, finished_about, open_folder, read_about
from topicscope.ground.metrics import METRICS, metric_lines, read_metrics, truncate_metrics
from topicscope.ground.old_folders import ENSEMBLE, MEMBERS, StoredRun, read_run
from topicscope.ground.progress import Progress, duration, progress_shown, silent, watched
from topicscope.ground.results import Result, arrow_table, read_finished
from topicscope.ground.settings import apply_settings, assign, flat, gather, load_settings, log_steps, merged, number
from topicscope.ground.streams import Stream, generator, torch_seed
from topicscope.ground.threads import one_thread, repeatable, worker_pool

__all__ = [
    "ENSEMBLE",
    "MEMBERS",
    "METRICS",
    "NAMES",
    "STRICT",
    "Common",
    "Config",
    "Device",
    "Engine",
    "EngineError",
    "Folder",
    "InputError",
    "Interrupted",
    "Item",
    "Kind",
    "Name",
    "Output",
    "Progress",
    "Result",
    "StoredRun",
    "Stream",
    "append_lines",
    "apply_settings",
    "arrow_table",
    "assign",
    "check_engine",
    "check_folder",
    "duration",
    "files",
    "finished_about",
    "flat",
    "folders",
    "gather",
    "generator",
    "in_order",
    "load_settings",
    "log_steps",
    "merged",
    "metric_lines",
    "nearest",
    "number",
    "old_folders",
    "one_thread",
    "open_engine",
    "open_folder",
    "progress_shown",
    "read_about",
    "read_finished",
    "read_metrics",
    "read_run",
    "read_tensors",
    "repeatable",
    "section",
    "serial",
    "silent",
    "torch_seed",
    "truncate_metrics",
    "usable_device",
    "validated",
    "watched",
    "worker_pool",
    "write",
    "write_csv",
    "write_json",
    "write_npz",
    "write_tensors",
    "write_yaml",
]
