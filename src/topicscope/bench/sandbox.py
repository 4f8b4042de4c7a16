"""The speed of the sandbox: documents, steps (steps.py), a whole run; each against the plain way and its floor.

Ours and the plain way take turns, and medians of CPU time are compared, so that a machine that slows down slows both.
A floor is work that cannot be left out, at the rate that this machine shows in this run: random numbers for documents,
multiply-adds of matrix products for steps.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

from topicscope.bench.rows import Row, Say, Work, measured, medians
from topicscope.bench.steps import ensemble_rows, step_rows, vocabulary_rows
from topicscope.training import RunConfig
from topicscope.world import Dirichlet


def bench_sandbox(device: str = "cpu", *, quick: bool = False, say: Say = lambda _: None) -> list[Row]:
    """All rows. `quick` takes few repetitions: to see that it works, not to quote."""
    rounds = 3 if quick else 21
    config = RunConfig().changed({"steps": 10**6, "evaluate_every": None, "device": device, "data.dev_documents": 100})
    trained = config.changed({"model.embedding": "trained"})
    return measured(
        {
            "documents": lambda: [documents_row(rounds)],
            "one training step, dense pass, BertForMaskedLM": lambda: step_rows(
                "training step, one-hot embedding, batches of 40 documents", config, rounds, against_bert=True
            ),
            "one training step, trained embedding": lambda: step_rows(
                "training step, trained embedding, batches of 40 documents", trained, rounds, against_bert=False
            ),
            "ensemble of 32": lambda: ensemble_rows(config, 32, max(2, rounds // 3)),
            **({"ensemble of 512": lambda: ensemble_rows(config, 512, 3)} if device == "cuda" and not quick else {}),
            "large vocabularies": lambda: vocabulary_rows(config, quick=quick),
            "a whole run of 5,000 steps": lambda: whole_run_rows(device, 200 if quick else 5000),
        },
        say,
    )


def documents_row(rounds: int) -> Row:
    topic_model, prior, count = RunConfig().topic_model, Dirichlet(), 10_000

    def plain() -> int:
        """One token at a time, as the definition reads."""
        rng = np.random.default_rng(0)
        words = []
        for _ in range(20):
            theta = rng.dirichlet(np.full(topic_model.topics, prior.alpha))
            for _ in range(rng.integers(100, 151)):
                topic = rng.choice(topic_model.topics, p=theta)
                words.append(1 + topic * topic_model.block_size + rng.integers(topic_model.block_size))
        return len(words)

    def randoms() -> None:
        rng = np.random.default_rng(0)
        rng.random(count * 125)
        rng.integers(1, 11, size=count * 125, dtype=np.int16)

    works: dict[str, Work] = {
        "ours": lambda: prior.sample(topic_model, count, np.random.default_rng(0)),
        "token loop": plain,
        "randoms": randoms,
    }
    times = medians(works, rounds)
    loop = times["token loop"] / plain() * count * 125  # every round makes the same tokens
    return Row(
        "drawing 10,000 documents",
        "s",
        times["ours"],
        {"token loop": loop},
        floor=times["randoms"],
        floor_is="two random numbers per token",
        aim="500 times faster than the token loop",
        met=loop / times["ours"] >= 500,
    )


STARTER = """
import json, resource, subprocess, sys
ended = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode
usage = resource.getrusage(resource.RUSAGE_CHILDREN)
peak = usage.ru_maxrss * (1 if sys.platform == "darwin" else 1024) / 1e9
print(json.dumps([usage.ru_utime + usage.ru_stime, peak]))
sys.exit(ended)
"""
"""A small process between this one and the run: a process starts with the peak memory of the one that started it."""


def whole_run_rows(device: str, steps: int) -> list[Row]:
    """`topicscope train` in a process of its own: CPU seconds from start to end, and peak memory.

    Imports and floors are included.
    """
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "run"
        options = ["--steps", str(steps), "--device", device, "--out", str(out), "--json"]
        command = [sys.executable, "-m", "topicscope", "train", *options]
        starter = subprocess.run([sys.executable, "-c", STARTER, *command], capture_output=True, text=True, check=False)
        if starter.returncode != 0:
            raise RuntimeError(f"'topicscope train' ended with {starter.returncode}")
        cpu, peak = json.loads(starter.stdout)
        loss = json.loads((out / "results.json").read_text())["dev_loss"]
    return [
        Row(
            f"whole run of {steps:,} steps (dev loss {loss:.3f})",
            "CPU s",
            cpu,
            aim="at most 10 CPU s",
            met=cpu <= 10,
        ),
        Row("peak memory of that run", "GB", peak, aim="under 1 GB", met=peak < 1),
    ]
