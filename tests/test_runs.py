from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from topicscope import InputError, build_config, read_run, train
from topicscope.ground.files import write
from topicscope.ground.old_folders import check, prepare, truncate_metrics

TINY = {
    "steps": 20,
    "batch_size": 4,
    "topic_model": {"topics": 3, "words_per_topic": 2},
    "data": {"documents": 20, "dev_documents": 10},
    "device": "cpu",
}


def test_a_run_folder_reads_back(tmp_path: Path) -> None:
    run = train(build_config(TINY), tmp_path / "run")
    assert sorted(path.name for path in (tmp_path / "run").iterdir()) == [
        "config.yaml",
        "environment.json",
        "metrics.jsonl",
        "results.json",
        "weights.safetensors",
    ]
    stored = read_run(tmp_path / "run")
    assert stored.config == run.config.as_dict()
    assert stored.results == json.loads(json.dumps(run.results))
    assert np.array_equal(stored.weights["value"], run.weights["value"])
    assert stored.metrics["loss"] == pytest.approx(run.metrics["loss"], rel=1e-8, nan_ok=True)
    assert len(stored.metrics["step"]) == 21


def test_damaged_and_foreign_folders_are_refused(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="is not a run folder"):
        read_run(tmp_path)
    train(build_config(TINY), tmp_path / "run")
    weights = tmp_path / "run" / "weights.safetensors"
    weights.write_bytes(weights.read_bytes()[:-40])
    with pytest.raises(InputError, match=r"weights\.safetensors is damaged or cut off"):
        read_run(tmp_path / "run")
    (tmp_path / "run" / "results.json").unlink()
    with pytest.raises(InputError, match="is not finished"):
        read_run(tmp_path / "run")


def test_force_removes_only_what_a_run_wrote(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    (tmp_path / "results.json").write_text("{}")
    with pytest.raises(InputError, match="not empty"):
        check(tmp_path, resume=False, force=False)
    assert (tmp_path / "results.json").exists()
    prepare(tmp_path, force=True)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_a_failed_write_leaves_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    write(path, b"old")
    with pytest.raises(TypeError):
        write(path, "not bytes")  # type: ignore[arg-type]
    assert path.read_bytes() == b"old"


def test_lines_after_the_checkpoint_and_half_lines_go(tmp_path: Path) -> None:
    path = tmp_path / "m"
    path.write_text('{"step": 0}\n{"step": 1}\n{"step": 2}\n{"st')
    truncate_metrics(path, 2)
    assert path.read_text() == '{"step": 0}\n{"step": 1}\n'
    with pytest.raises(InputError, match="has 2 whole lines of the 5 steps"):
        truncate_metrics(path, 5)
