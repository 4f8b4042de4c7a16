"""A training run as data, and what it will cost. `RunConfig()` is the paper's run of Section 6.1."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

import numpy as np
from pydantic import Field, model_validator

from topicscope.ground import (
    FLOPS,
    MOST,
    STREAMED,
    Config,
    Cost,
    Count,
    Device,
    PositiveRate,
    Seed,
    Steps,
    Text,
    driving,
    flat,
    log_steps,
    merged,
    nearest,
    refuse,
    refuse_if,
    section,
)
from topicscope.laws import covered_world, optimum_bytes, optimum_seconds
from topicscope.model import MOST_PARTS, AnyModel, Architecture, ModelConfig, Objective
from topicscope.training.optimiser import OPTIMISERS, Optimizer
from topicscope.world import Dirichlet, Fixed, Masking, Prior, TopicModel, World, matrix_of


@section
class Data:
    """How many documents are drawn, or the files that they are read from.

    Attributes:
        documents: Number of training documents.
        dev_documents: Number of development documents, on which runs are evaluated.
        train_file: Path of training documents in the authors' text format (see `read_documents`); None: drawn.
        dev_file: The same for development documents.

    Example:
        >>> from topicscope import Data, RunConfig
        >>> RunConfig(data=Data(documents=100), epochs=2, batch_size=50).total_steps  # 2 x 100 documents / 50
        4
    """

    documents: Count = 10_000
    dev_documents: Count = 10_000
    train_file: Text | None = None
    dev_file: Text | None = None


@section
class Phase:
    """A stretch of a run in which only some parts of the model train.

    Attributes:
        parts: Names of the parts that train, such as 'value', 'key' and 'query'.
        steps: Number of steps; None: to the end of the run.

    Example:
        See `Schedule`.
    """

    parts: Annotated[list[Text], Field(max_length=MOST_PARTS)]
    steps: Count | None = None


@section
class Schedule:
    """Which parts train when: phases one after another. Without phases all trained parts train throughout.

    Attributes:
        phases: The phases.
        repeat: Start again with the first phase after the last one.

    Example:
        >>> from topicscope import Phase, Schedule
        >>> schedule = Schedule([Phase(["value"], 100), Phase(["key", "query"])])
        >>> schedule.active(step=99, trained=("key", "query", "value")), schedule.active(100, ("key", "query", "value"))
        (('value',), ('key', 'query'))
    """

    phases: list[Phase] = Field(default_factory=list, max_length=1000)
    repeat: bool = False

    @model_validator(mode="after")
    def _check(self) -> Schedule:
        unbounded = [phase.steps is None for phase in self.phases]
        refuse(
            (self.repeat and not self.phases, "schedule: repeat needs phases to repeat"),
            (
                not all(phase.parts for phase in self.phases),
                "schedule: a phase without parts trains nothing; name at least one part",
            ),
            (
                any(unbounded[:-1]) or (self.repeat and any(unbounded)),
                "schedule: only the last phase of a schedule that does not repeat may leave out its steps",
            ),
        )
        return self

    def active(self, step: int, trained: tuple[str, ...]) -> tuple[str, ...]:
        """The parts that train at `step`. Behind the last phase the last phase goes on."""
        if not self.phases:
            return trained
        ends = list(itertools.accumulate(phase.steps or math.inf for phase in self.phases))
        place = step % ends[-1] if self.repeat else step
        phase = next((phase for phase, end in zip(self.phases, ends, strict=True) if place < end), self.phases[-1])
        return tuple(part for part in trained if part in phase.parts)

    def groups(self, trained: tuple[str, ...]) -> list[tuple[str, ...]]:
        """Trained parts that are always active together, which the optimiser can treat as one."""
        together: dict[tuple[bool, ...], list[str]] = {}
        for part in trained:
            together.setdefault(tuple(part in phase.parts for phase in self.phases), []).append(part)
        return [tuple(parts) for parts in together.values()]


TOGETHER = 8  # models that share a program on the CPU: they spread the calls, and stay in the cache
BLOCK = 50  # steps whose figures are kept on the device before they are read; checkpoints fall on multiples of it
# positions and words of documents whose batches are made together: on a CPU few enough for the cache
AT_ONCE = {"cpu": 600_000, "cuda": 100_000_000}
# settings that may name a file instead of giving their numbers, without which the world is not known
WORLD_FILES = ("documents.covariance", "documents.proportions", "topic_model.matrix")
MOST_NUMBERS = 400_000  # of such files, that a config holds: config.yaml stays below 10 MB


@section
class RunConfig(Config):
    """Everything that a training run depends on. The same config gives the same bytes.

    `RunConfig()` is the paper's run of Section 6.1. `RunConfig.of` takes nested settings, with names as in YAML files
    and on the command line.

    Attributes:
        version: Version of the format.
        seed: Seed of all random draws: documents, masks, initial weights, order.
        steps: Number of steps; None: by `epochs`.
        epochs: Passes over the training documents; None, without `steps`: 20.
        batch_size: Documents per step; all of them where there are fewer.
        evaluate_every: Steps between evaluations on dev; None: only at the start and the end.
        patience: Stop after this many evaluations without improvement; None: never.
        checkpoint_every: Steps between checkpoints; None: no checkpoints.
        snapshots: Steps at which the weights are kept: 'none', 'log' (evenly on a logarithmic scale), or a list.
        floors: Compute the floors of the dev loss at the end.
        device: 'cpu', 'cuda', or 'auto'.
        dtype: Floating-point type of weights and batches.
        topic_model: Words and topics.
        documents: Prior of topic proportions, and the length of documents.
        data: How many documents, or files.
        masking: The masking scheme.
        model: Parts of the model, trained or frozen.
        objective: Loss and L2 penalty.
        optimizer: SGD or Adam.
        schedule: Which parts train when.

    Raises:
        InputError: A setting is unknown, out of range, or contradicts another; in one line.

    Example:
        >>> from topicscope import RunConfig
        >>> config = RunConfig.of({"optimizer": {"name": "sgd", "lr": 0.1}}, epochs=2, batch_size=50)
        >>> config.optimizer.lr, config.total_steps  # 2 x 10,000 documents / 50
        (0.1, 400)
        >>> config.changed({"optimizer.lr": 0.3}).optimizer.lr
        0.3
    """

    VERSION: ClassVar[int] = 2
    FILES: ClassVar[tuple[str, ...]] = (
        "data.train_file",
        "data.dev_file",
        *WORLD_FILES,
        *(f"model.{name}" for name in ModelConfig.FILES),
    )

    version: Literal[2] = 2
    seed: Seed = 0
    steps: Count | None = None
    epochs: PositiveRate | None = None
    batch_size: Count = 40
    evaluate_every: Count | None = 500
    patience: Count | None = None
    checkpoint_every: Count | None = 500
    snapshots: Literal["none", "log"] | Steps = "none"
    floors: bool = True
    device: Device = "auto"
    dtype: Literal["float32", "float64"] = "float32"
    topic_model: TopicModel = TopicModel()
    documents: Prior = Dirichlet()
    data: Data = Data()
    masking: Masking = Masking()
    model: AnyModel = ModelConfig()
    objective: Objective = Objective()
    optimizer: Optimizer = Optimizer()
    schedule: Schedule = Schedule()

    @model_validator(mode="after")
    def _check(self) -> RunConfig:
        refuse_if(self.steps and self.epochs, "steps and epochs are both given; give one of them")
        self.model.check(self.world.topic_model, self.masking)
        trained = tuple(self.model.trained_shapes(self.topic_model.vocabulary))
        scheduled = [part for phase in self.schedule.phases for part in phase.parts]
        penalised = self.objective.l2 if isinstance(self.objective.l2, dict) else ()
        unknown = next((part for part in scheduled if part not in self.model.STREAMS), "")
        frozen = next((part for part in (*penalised, *scheduled) if part not in trained), None)
        last = max(self.snapshot_steps, default=0)
        refuse(
            (not trained, "every part of the model is frozen; let at least one be 'trained'"),
            (unknown, f"schedule: unknown part {unknown!r}; {nearest(unknown, self.model.STREAMS)}"),
            (
                frozen is not None,
                f"part {frozen!r} is not trained in this model, so neither L2 nor a schedule can name it; "
                f"trained: {', '.join(trained)}",
            ),
            (
                self.total_steps > MOST,
                f"epochs = {self.epochs or 20:g} makes {self.total_steps:,} steps; at most {MOST:,} are allowed",
            ),
            (last > self.total_steps, f"snapshots: step {last} is after the last of {self.total_steps} steps"),
            (
                self.patience is not None and self.evaluate_every is None,
                "patience counts evaluations on dev; set evaluate_every",
            ),
            (
                (self.data.train_file or self.data.dev_file) and self.documents.length == "infinite",
                "data files hold finite documents; set documents.length to a number or a range",
            ),
        )
        return self

    def with_world(self) -> RunConfig:
        """The same with the numbers of the world's files in place of their names: files may change, a run does not."""
        settings = flat(self.as_dict())
        files = {name: settings[name] for name in WORLD_FILES if isinstance(settings.get(name), str)}
        numbers = {name: matrix_of(path, name) for name, path in files.items()}
        for name, matrix in numbers.items():
            many = f"{name}: {files[name]} has {matrix.size:,} numbers; a run keeps its world in its own config"
            refuse_if(matrix.size > MOST_NUMBERS, f"{many}, which holds at most {MOST_NUMBERS:,} per file")
        return self.changed({name: matrix.tolist() for name, matrix in numbers.items()}) if numbers else self

    @cached_property
    def world(self) -> World:
        """Topics, prior and masking: what theory needs to know of the run."""
        return World(self.topic_model, self.documents, self.masking)

    def world_for(self, law: str) -> World:
        """The world, where this law covers the run; else InputError, with the reason of the table of laws."""
        return covered_world(self, law)

    @property
    def documents_per_step(self) -> int:
        """The size of a batch: no document is in it twice."""
        return min(self.batch_size, self.data.documents)

    @property
    def longest(self) -> int:
        """Words of the longest document; 0 where documents are infinite."""
        length = self.documents.length
        return 0 if isinstance(length, str) else length[1] if isinstance(length, tuple) else length

    @property
    def total_steps(self) -> int:
        """Steps of the run; 20 epochs where neither steps nor epochs is given (the paper's 5,000 steps)."""
        if self.steps is not None:
            return self.steps
        return max(1, round((self.epochs or 20) * self.data.documents / self.documents_per_step))

    @property
    def snapshot_steps(self) -> list[int]:
        if self.snapshots == "none":
            return []
        return log_steps(self.total_steps) if self.snapshots == "log" else sorted(set(self.snapshots))

    @classmethod
    def of(cls, settings: Mapping[str, Any] | None = None, /, **more: Any) -> Self:
        """As `Config.of`; `schedule` may be a name: joint, two-stage or alternating."""
        whole = merged(settings or {}, more)
        name = whole.get("schedule")
        if not isinstance(name, str):
            return super().of(whole)
        config = super().of(whole | {"schedule": {}})
        schedule = named_schedule(name, config.model, config.topic_model.vocabulary, config.total_steps)
        return super().of(whole | {"schedule": asdict(schedule)})


SCHEDULES = ("joint", "two-stage", "alternating")


def named_schedule(name: str, model: Architecture, vocabulary: int, steps: int) -> Schedule:
    """'two-stage': all but attention for half of the steps, then key and query. 'alternating': in turns of 100."""
    refuse_if(name not in SCHEDULES, f"unknown schedule {name!r}; {nearest(name, SCHEDULES)}")
    if name == "joint":
        return Schedule()
    trained = model.trained_shapes(vocabulary)
    attention = [part for part in trained if part in model.ATTENTION]
    others = [part for part in trained if part not in model.ATTENTION]
    needs = f"schedule {name!r} needs a trained key or query and another trained part"
    refuse_if(not attention or not others, f"{needs}; trained here: {', '.join(trained) or 'nothing'}")
    if name == "two-stage":
        return Schedule([Phase(others, max(1, steps // 2)), Phase(attention)])
    return Schedule([Phase(others, 100), Phase(attention, 100)], repeat=True)


def steps_at_once(config: RunConfig, sets: int, device: str, longest: int) -> int:
    """Steps whose batches are made together, for so many data sets: a divisor of BLOCK."""
    each = sets * config.documents_per_step * (longest + config.topic_model.vocabulary)
    return max(count for count in (1, 2, 5, 10, 25, BLOCK) if count == 1 or count * each <= AT_ONCE[device])


UNEQUAL_DOCUMENTS = 500  # dev documents of the Bayes floor where the posterior takes longer: word by word
ESTIMATED_DOCUMENTS = 250  # the same where it is estimated from draws


def floor_documents(config: RunConfig) -> int:
    """The largest number of dev documents from which the Bayes floor is computed."""
    if not config.documents.exact(config.topic_model):
        return ESTIMATED_DOCUMENTS
    return config.data.dev_documents if config.topic_model.uniform else UNEQUAL_DOCUMENTS


DEV_BATCH = {True: 50, False: 500}  # documents of a batch of the dev set, infinite ones or not
STEP_SECONDS = 2e-4  # of a step beside its arithmetic
DRAFTED = 5e8  # bytes of batches that are made in a second
GPU_START, GPU_STEP = 5.0, 1.5e-4  # seconds until the first step of a GPU (one H200), and of each step
GPU_FLOPS = 5e12  # arithmetic operations per second there, of many models side by side
PACKED = 16e9  # bytes that a pack of models may take on any GPU, so that packs are the same on every machine
MOST_TOGETHER = 1024  # models of a pack on a GPU; larger packs are no quicker per model


def cost_of(configs: Sequence[RunConfig], *, floors: bool = True, gpu: bool = False) -> Cost:
    """A bound on memory and disk, and a guess of seconds, of runs that train together: all at once on a GPU."""
    config, count = configs[0], len(configs)
    model, topic_model, prior = config.model, config.topic_model, config.documents
    v, topics, words = topic_model.vocabulary, topic_model.topics, topic_model.words
    real, steps, longest = np.dtype(config.dtype).itemsize, config.total_steps, config.longest
    infinite = not longest
    train, dev, batch = config.data.documents, config.data.dev_documents, config.documents_per_step
    at_once = count if gpu else min(TOGETHER, count)
    seeds = len({one.seed for one in configs[:at_once]})

    # of a document: its masked positions, its rows of attention, the words wanted in them; bytes in a batch and before
    masked = max(1.0, config.masking.p_mask * longest)
    shown = 1 + masked * (1 - config.masking.p_mask_word)
    rows = 1.0 if model.layout.uniform else float(v) if infinite else min(float(v), shown)
    share = min(1.0, prior.topics_per_document / topics) if isinstance(prior, Fixed) else 1.0
    targets = rows * words * share if infinite else masked
    made = 8 if infinite else real  # float64 until models are put side by side
    ready = made * v + (16 + made) * rows + (8 + made) * targets
    if infinite:
        draft = 8 * rows * words + 24 * targets
        at_a_time = 1
        text = DEV_BATCH[True] * draft
    else:
        draft = (13 + real) * v + 100 * masked + 8 * longest
        at_a_time = steps_at_once(config, seeds, "cuda" if gpu else "cpu", longest)
        text = longest * (2 if v < 2**15 else 4) * (2 * train + dev) + 8 * v * train + 24 * masked * dev
    documents = text + 24 * topics * (train + dev) + dev * ready + (0 if topic_model.blocks else 24 * topics * v)

    shapes = model.trained_shapes(v)
    parameters = sum(map(math.prod, shapes.values()))
    followed = math.prod(shapes.get(model.followed().rotating or "", (0,)))
    remembered = len(OPTIMISERS[config.optimizer.name].moments(config.optimizer))
    weights = max(8 + 2 * remembered, 24 / real) * real * parameters + (8 * real + 32) * v**2 + 10 * real * followed
    floor = 0.0
    if floors and config.floors and config.data.dev_file is None:  # posteriors
        each = 12 * v + 24 * rows + 16 * targets + rows * (4 * v + 16 * topics)
        draws = 0 if topic_model.disjoint else 320_000 * v  # of proportions, looked at together
        squares = 0.0 if config.objective.loss == "cross-entropy" else 60.0 * dev * v
        posteriors = draws + min(dev, floor_documents(config)) * each
        floor = DEV_BATCH[True] * v * 32.0 * words if infinite else max(posteriors, squares)
    peak = max(
        seeds * batch * (ready + draft) * at_a_time,
        at_once * 7 * real * max(min(dev, DEV_BATCH[infinite]), batch) * rows * v,  # a pass
        0.0 if infinite else dev * (25 * masked + 4 * longest),  # the masks of dev, drawn together
        optimum_bytes(config) + floor,
    )
    figures, snapshots = steps * (8 + 2 * len(shapes)), len(config.snapshot_steps)
    beside = (dev + batch) * ready if at_once > 1 else 0.0  # dev batches put side by side
    memory = 1.1 * (seeds * documents + at_once * (weights + beside) + peak)  # and a tenth for what is not counted
    memory += count * 8 * (2 * figures + snapshots * parameters)
    disk = count * ((1 + snapshots) * parameters * real + 22.0 * figures)  # 22 bytes for a figure in metrics.jsonl
    disk += 0.0 if config.checkpoint_every is None else at_once * real * (5 * parameters + 10 * followed)

    operations, making = model.operations(v, batch * rows), batch * draft / DRAFTED
    evaluation = 2 * dev * rows * v**2 / FLOPS
    once = ((train + dev) * 8 * topics + dev * draft) / DRAFTED
    once += 1e-6 * dev * masked * topics + evaluation if config.floors else 0.0
    if gpu:
        seconds = GPU_START + steps * (GPU_STEP + count * (operations / GPU_FLOPS + (making if infinite else 0.0)))
    else:
        seconds = count * steps * (STEP_SECONDS + operations / FLOPS + weights / STREAMED + making)
    seconds += count * ((1 + steps / (config.evaluate_every or math.inf)) * evaluation + once)
    return Cost(memory, disk, seconds + math.ceil(count / at_once) * optimum_seconds(config))


def together(config: RunConfig) -> int:
    """How many runs like this one share a program: a few on the CPU, on a GPU as many as fit."""
    if config.device != "cuda":
        return TOGETHER
    each = cost_of([replace(config, seed=seed) for seed in range(2)], floors=False, gpu=True).memory / 2
    return max(1, min(MOST_TOGETHER, int(PACKED / each)))


def settings_that_cost(configs: Sequence[RunConfig], *, gpu: bool = False) -> str:
    """The settings that drive the estimate, with their values: 'topic_model.words_per_topic 1000'."""
    count = len(configs) if gpu else min(len(configs), TOGETHER)
    text = driving(configs[0], RunConfig(), lambda one: cost_of([one] * count, gpu=gpu))
    return text if len(configs) <= TOGETHER else f"{text}, number of runs {len(configs)}"
