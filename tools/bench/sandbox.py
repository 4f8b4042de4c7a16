"""The speed of the sandbox: documents, steps, a whole run; each against the plain way and its floor.

Ours and the plain way take turns, and medians of CPU time are compared, so that a machine that slows down slows both.
A floor is work that cannot be left out, at the rate that this machine shows in this run: random numbers for documents,
multiply-adds of matrix products for steps.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import torch

from tools.bench.rows import Row, Say, Work, matrix_products, matrix_rate, measured, medians, seconds
from topicscope.ground import Stream
from topicscope.model import dense_loss
from topicscope.training import BLOCK, TOGETHER, Ensemble, RunConfig
from topicscope.world import Dirichlet, mask_keys

FLOOR_AIMS = {1: 3.0, 32: 2.3}  # on a CPU: times the floor that a joint step of so many one-hot models may take
GPU_AIMS = {1: 250e-6, 32: 10e-6, 512: 5e-6}  # on a GPU: seconds a model
LARGE = {"topics": 40, "words_per_topic": 40}
LARGE_AIM = 0.06  # seconds of a step with 1,601 words, on a CPU


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


def step_floor(config: RunConfig, ensemble: Ensemble, rate: float) -> tuple[float, str]:
    """Seconds for the matrix products that one joint step needs: forward, and twice that backward."""
    batches = [place.batch() for place in ensemble.feed.steps(0, 10)]
    rows = statistics.mean(int((batch.row_weight[0] > 0).sum()) for batch in batches)
    v = config.topic_model.vocabulary
    d, queries = config.model.width(v), v if batches[0].queries is None else batches[0].queries.shape[1]
    products = d * queries * v + rows * v * v
    if config.model.embedding == "trained":
        products += 2 * d * v * v + d * d * v + v * d * v  # W_K Z, W_Q Z have d_a = d; then the value's
    flops = 3 * 2 * products
    return flops / rate, f"{flops / 1e6:.0f} MFLOP at {rate / 1e9:.0f} GFLOP/s"


def aimed(device: str, models: int, mine: float, floor: float) -> tuple[str, bool]:
    """The aim of a joint step of one-hot models, in words, and whether it is met."""
    if device == "cpu":
        return f"at most {FLOOR_AIMS[models]:g} times the floor", mine <= FLOOR_AIMS[models] * floor
    return f"at most {GPU_AIMS[models] * 1e6:g} us per model", mine <= GPU_AIMS[models]


def step_rows(name: str, config: RunConfig, rounds: int, *, against_bert: bool) -> list[Row]:
    ensemble = Ensemble([config])
    products, flops = matrix_products(config.device)  # they take turns with the steps, as the plain ways do
    works: dict[str, Work] = {
        "products": products,
        "ours": partial(ensemble.block, BLOCK),
        "dense pass": dense_trainer(config, ensemble),
    }
    if against_bert and find_spec("transformers") is not None:
        works["BertForMaskedLM"] = bert_trainer(config, ensemble)
    for work in works.values():
        work()
    plain = medians(works, rounds, config.device)
    ours, rate = plain.pop("ours") / BLOCK, flops / plain.pop("products")
    times = {"dense pass": 15, "BertForMaskedLM": 30} if config.device == "cpu" else {}
    floor, floor_is = step_floor(config, ensemble, rate)
    aims = [f"{times[way]} times faster than {way}" for way in plain if way in times]
    met = [plain[way] / ours >= times[way] for way in plain if way in times]
    if against_bert:
        text, reached = aimed(config.device, 1, ours, floor)
        aims, met = [*aims, text], [*met, reached]
    whole = Row(name, "s per step", ours, plain, floor, floor_is, aim=", ".join(aims), met=all(met) if met else None)
    return [whole, *part_rows(ensemble, ours, rounds)]


def part_rows(ensemble: Ensemble, step: float, rounds: int) -> list[Row]:
    """What a step consists of. On a GPU batches are made while it is busy with the steps before."""
    config, models = ensemble.config, len(ensemble.members)
    active = ensemble.weights.trained
    places = list(ensemble.feed.steps(0, BLOCK))
    batches = [place.batch() for place in places]

    def figures() -> None:
        for number in range(BLOCK):
            ensemble.tracker.measure(0.0, number, ensemble.tracker.history[0])

    def optimiser() -> None:
        for _ in range(BLOCK):
            ensemble.optimiser.step(active)

    parts: dict[str, Work] = {
        "making batches": lambda: [None for _ in ensemble.feed.steps(0, BLOCK)],
        "loss and gradient": lambda: [ensemble.program.gradient(batch, active) for batch in batches],
        "norms and losses for the record": figures,
        "optimiser": optimiser,
    }
    times = medians(parts, max(3, rounds // 3), config.device)
    asked = " (as single calls)" if config.device == "cuda" else ""
    return [
        Row(
            f"  of which {name}{asked if name != 'making batches' else ''}",
            "s per model and step",
            time / BLOCK / models,
            floor=step,
            floor_is="the step",
        )
        for name, time in times.items()
    ]


def dense_trainer(config: RunConfig, ensemble: Ensemble) -> Work:
    """A step of the dense pass with autograd and torch.optim.Adam."""
    parts = {name: part.clone().requires_grad_() for name, part in ensemble.weights.member(0).items()}
    words, shown, selected = masked_positions(config, ensemble)
    vocabulary = config.topic_model.vocabulary
    loss = partial(dense_loss, config.model, parts, config.objective, words, shown, selected, vocabulary)
    return trainer(torch.optim.Adam(parts.values(), lr=config.optimizer.lr), loss)


def bert_trainer(config: RunConfig, ensemble: Ensemble) -> Work:
    """One layer, one head, the same width, trained as anyone would: labels -100 off the mask, AdamW."""
    from transformers import BertConfig, BertForMaskedLM

    v = config.topic_model.vocabulary
    shape = BertConfig(
        vocab_size=v,
        hidden_size=v,
        num_hidden_layers=1,
        num_attention_heads=1,
        intermediate_size=v,
        max_position_embeddings=150,
    )
    model = BertForMaskedLM(shape).to(config.device)  # type: ignore[no-untyped-call, arg-type]
    words, shown, selected = masked_positions(config, ensemble)
    there, labels = words >= 0, words.masked_fill(~selected, -100)

    def loss() -> torch.Tensor:
        return model(input_ids=shown.clamp(min=0), attention_mask=there.long(), labels=labels).loss

    return trainer(torch.optim.AdamW(model.parameters(), lr=config.optimizer.lr), loss)


def trainer(optimiser: torch.optim.Optimizer, loss: Callable[[], torch.Tensor]) -> Work:
    def step() -> None:
        optimiser.zero_grad()
        loss().backward()  # type: ignore[no-untyped-call]
        optimiser.step()

    return step


def masked_positions(config: RunConfig, ensemble: Ensemble) -> list[torch.Tensor]:
    """Words, what is shown of them, and which are selected."""
    documents = ensemble.data[0].train.finite().take(slice(config.batch_size))
    masked = config.masking.draw(documents, config.topic_model.words, mask_keys(Stream.TRAIN_MASKS, 0))
    words = documents.words
    arrays = (words.astype(np.int64), masked.shown_words(words).astype(np.int64), masked.selected(words))
    return [torch.from_numpy(array).to(config.device) for array in arrays]


def ensemble_rows(config: RunConfig, models: int, rounds: int) -> list[Row]:
    """Models of different seeds against one: the CPU has groups of them that fit the cache, a GPU all at once."""
    single = Ensemble([config])
    group = models if config.device == "cuda" else TOGETHER
    seeds = config.with_seeds(models)
    ensembles = [Ensemble(seeds[start : start + group]) for start in range(0, models, group)]
    for ensemble in (single, *ensembles):
        ensemble.block(BLOCK)
    ours, alone, rates = [], [], []
    products, flops = matrix_products(config.device)
    for _ in range(rounds):
        rates.append(flops / seconds(products, config.device))
        single.block(BLOCK)  # so that the single model finds its numbers in the cache, as it does alone
        alone += [seconds(lambda: single.block(BLOCK), config.device) / BLOCK for _ in range(4)]
        spent = [seconds(partial(ensemble.block, BLOCK), config.device) for ensemble in ensembles]
        ours.append(sum(spent) / BLOCK / models)
    mine, one = statistics.median(ours), statistics.median(alone)
    floor, floor_is = step_floor(config, single, statistics.median(rates))
    text, reached = aimed(config.device, models, mine, floor)
    whole = Row(
        f"ensemble of {models} models, training step, one-hot embedding",
        "s per model and step",
        mine,
        {"one model": one},
        floor,
        floor_is,
        aim=text,
        met=reached,
    )
    return [whole, *part_rows(ensembles[0], mine, rounds)]


def vocabulary_rows(config: RunConfig, *, quick: bool) -> list[Row]:
    """A step with 1,601 words against one with 101: by which power of the vocabulary it grows."""
    few = {"data.documents": 2000, "data.dev_documents": 10}
    small = Ensemble([config.changed(few)])
    large_config = config.changed(few | {f"topic_model.{name}": number for name, number in LARGE.items()})
    large = Ensemble([large_config])
    steps = 2 if quick else BLOCK
    for ensemble in (small, large):
        ensemble.block(2)
    works = {"small": partial(small.block, BLOCK), "large": partial(large.block, steps)}
    times = medians(works, 1 if quick else 3, config.device)
    mine, one = times["large"] / steps, times["small"] / BLOCK
    sizes = [ensemble.config.topic_model.vocabulary for ensemble in (small, large)]
    power = np.log(mine / one) / np.log(sizes[1] / sizes[0])
    whole = Row(
        f"training step, one-hot embedding, {sizes[1]:,} words (time grows from {sizes[0]} words as V^{power:.2f})",
        "s per step",
        mine,
        {},
        *step_floor(large_config, large, matrix_rate(config.device)),
        aim="at most 60 ms" if config.device == "cpu" else "",
        met=mine <= LARGE_AIM if config.device == "cpu" else None,
    )
    return [whole, *part_rows(large, mine, 3)] if not quick else [whole]
