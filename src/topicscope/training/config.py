"""A training run as data. `RunConfig()` is the paper's run of Section 6.1.

Every setting can be given in a YAML file, by `--set`, or by keyword.

>>> RunConfig.of({"optimizer": {"lr": 0.1}}, steps=100).optimizer.lr
0.1
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from dataclasses import asdict
from functools import cached_property
from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Field, model_validator

from topicscope.ground import (
    MOST,
    Config,
    Count,
    Device,
    InputError,
    PositiveRate,
    Seed,
    Steps,
    Text,
    flat,
    log_steps,
    merged,
    nearest,
    refuse,
    section,
)
from topicscope.laws import covered_world
from topicscope.model import MOST_PARTS, AnyModel, Architecture, ModelConfig, Objective
from topicscope.training.optimiser import Optimizer
from topicscope.world import Dirichlet, Masking, Prior, TopicModel, World, matrix_of


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


TOGETHER = 8
"""Models that share a program on the CPU: enough to spread the calls, few enough to stay in the cache.

On a GPU all models run together.
"""


BLOCK = 50
"""Steps whose figures are kept on the device before they are read; checkpoints fall on multiples of it."""

AT_ONCE = {"cpu": 600_000, "cuda": 100_000_000}
"""Positions and words of documents whose batches are made together: on a CPU few enough for the cache."""


WORLD_FILES = ("documents.covariance", "documents.proportions", "topic_model.matrix")
"""Settings that may name a file instead of giving their numbers, without which the world is not known."""

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
        if self.steps is not None and self.epochs is not None:
            raise ValueError("steps and epochs are both given; give one of them")
        self.model.check(self.world.topic_model, self.masking)
        trained = tuple(self.model.trained_shapes(self.topic_model.vocabulary))
        penalised = self.objective.l2 if isinstance(self.objective.l2, dict) else ()
        named = (*penalised, *(part for phase in self.schedule.phases for part in phase.parts))
        frozen, last = next((part for part in named if part not in trained), None), max(self.snapshot_steps, default=0)
        parts = (part for phase in self.schedule.phases for part in phase.parts)
        unknown = next((part for part in parts if part not in self.model.STREAMS), None)
        refuse(
            (not trained, "every part of the model is frozen; let at least one be 'trained'"),
            (
                unknown is not None,
                f"schedule: unknown part {unknown!r}; {nearest(unknown or '', self.model.STREAMS)}",
            ),
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
            if matrix.size > MOST_NUMBERS:
                raise InputError(
                    f"{name}: {files[name]} has {matrix.size:,} numbers; a run keeps its world in its own config, "
                    f"which holds at most {MOST_NUMBERS:,} per file"
                )
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
        named = named_schedule(name, config.model, config.topic_model.vocabulary, config.total_steps)
        return super().of(whole | {"schedule": asdict(named)})


SCHEDULES = ("joint", "two-stage", "alternating")


def named_schedule(name: str, model: Architecture, vocabulary: int, steps: int) -> Schedule:
    """A schedule by its name.

    'joint': all at once. 'two-stage': everything but attention for half of the steps, then key and query.
    'alternating': the same in turns of 100 steps.
    """
    if name not in SCHEDULES:
        raise InputError(f"unknown schedule {name!r}; {nearest(name, SCHEDULES)}")
    if name == "joint":
        return Schedule()
    trained = model.trained_shapes(vocabulary)
    attention = [part for part in trained if part in model.ATTENTION]
    others = [part for part in trained if part not in model.ATTENTION]
    if not attention or not others:
        raise InputError(
            f"schedule {name!r} needs a trained key or query and another trained part; "
            f"trained here: {', '.join(trained) or 'nothing'}"
        )
    if name == "two-stage":
        return Schedule([Phase(others, max(1, steps // 2)), Phase(attention)])
    return Schedule([Phase(others, 100), Phase(attention, 100)], repeat=True)


def steps_at_once(config: RunConfig, sets: int, device: str, longest: int | None = None) -> int:
    """Steps whose batches are made together, for so many data sets: a divisor of BLOCK."""
    if longest is None:
        length = config.documents.length
        longest = 0 if isinstance(length, str) else length[1] if isinstance(length, tuple) else length
    each = sets * config.documents_per_step * (longest + config.topic_model.vocabulary)
    return max(count for count in (1, 2, 5, 10, 25, BLOCK) if count == 1 or count * each <= AT_ONCE[device])
