"""The one table of what each law covers, how exact it is and where it is derived.

Every place that prints or draws a prediction asks it. What a row does not list is not covered: an optimiser, a prior or
an architecture that nobody has thought of has no prediction.

>>> from topicscope.training import RunConfig
>>> LAWS["norms"].refusal(RunConfig())
Refusal(code='finite-documents', reason='W(t) beside attention is known for infinite documents')
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, Protocol

from topicscope.ground import InputError
from topicscope.model import ModelConfig, Objective
from topicscope.theory import LIMITS, topics_alike
from topicscope.world import LogisticNormal, World

# Words from which documents count as infinite, as in the paper's. What differs inside topics is learnt last.
LONG = 100

# Scale of the start up to which attention counts as even at first: scores have the standard deviation s^2.
LARGEST_START = 0.3

MOST_DRAWN = 600  # words for which W(t) is made at every point of a curve
MOST_FOLLOWED = 300  # words that are all followed: a gradient of 100 takes 20 ms
MOST_TOPICS = 1000  # of a logistic normal, whose moments are numerical: five seconds

KNOWN_PRIORS = ("dirichlet", "fixed", "given", "groups", "logistic-normal")


class OptimizerSettings(Protocol):
    """SGD or Adam, or one that this table does not know."""

    @property
    def name(self) -> str: ...
    @property
    def lr(self) -> float: ...
    @property
    def momentum(self) -> float: ...
    @property
    def eps(self) -> float: ...


class ScheduleSettings(Protocol):
    """Phases in which only some parts train."""

    @property
    def phases(self) -> Sequence[object]: ...


class DataSettings(Protocol):
    """Where training documents are from."""

    @property
    def train_file(self) -> str | None: ...


class RunSettings(Protocol):
    """What laws ask of a run. `RunConfig` has it."""

    @property
    def world(self) -> World: ...
    @property
    def model(self) -> ModelConfig: ...
    @property
    def objective(self) -> Objective: ...
    @property
    def optimizer(self) -> OptimizerSettings: ...
    @property
    def schedule(self) -> ScheduleSettings: ...
    @property
    def data(self) -> DataSettings: ...
    @property
    def seed(self) -> int: ...
    @property
    def total_steps(self) -> int: ...


Reason = str | Callable[[RunSettings], str]  # A sentence, or what makes it of a run


class Condition(NamedTuple):
    """A condition of laws: the runs that meet it, in words, and whether a run does not."""

    covers: str
    broken: Callable[[RunSettings], bool]


class Refusal(NamedTuple):
    """Why a law does not cover a run."""

    code: str
    reason: str


def shortest(run: RunSettings) -> float:
    """Words of the shortest documents."""
    length = run.world.length
    return float("inf") if length == "infinite" else length[0] if isinstance(length, tuple) else length


def starts_even(run: RunSettings) -> bool:
    """Whether attention is nearly even at the start."""
    return run.model.start_scale(run.world.topic_model.vocabulary) <= LARGEST_START


def by_flow(run: RunSettings) -> bool:
    """SGD with cross entropy or a trained embedding has no closed form of a whole course."""
    entropy, embedded = run.objective.loss == "cross-entropy", run.model.embedding == "trained"
    return run.optimizer.name == "sgd" and (entropy or embedded)


def has_bias(run: RunSettings, *names: str) -> bool:
    return any(getattr(run.model, f"{name}_bias") not in ("none", 0) for name in names)


def value_penalised(run: RunSettings) -> bool:
    trained = tuple(run.model.trained_shapes(run.world.topic_model.vocabulary))
    return bool(set(run.objective.penalties(trained)) - set(run.model.ATTENTION))


# All conditions, by the code of a run that breaks one. Each law lists those that it has, with its own sentence.
CONDITIONS: dict[str, Condition] = {
    "unknown-documents": Condition("documents drawn from a prior", lambda run: run.data.train_file is not None),
    "hidden-masks": Condition("attention sees masked positions", lambda run: run.model.hide_masked),
    "value-penalty": Condition("no L2 penalty on W_V", value_penalised),
    "penalty": Condition("no L2 penalty", lambda run: bool(run.objective.l2)),
    "attention": Condition("uniform attention", lambda run: not run.model.uniform_attention),
    "cross-entropy": Condition("squared loss", lambda run: run.objective.loss == "cross-entropy"),
    "momentum": Condition("no momentum", lambda run: run.optimizer.momentum > 0),
    "embedding": Condition("one-hot words", lambda run: run.model.embedding != "one-hot"),
    "untied-head": Condition("no head of its own", lambda run: run.model.head == "untied"),
    "head": Condition("a tied head", lambda run: run.model.head != "tied"),
    "frozen-value": Condition("W_V trains", lambda run: run.model.value != "trained"),
    "frozen-parts": Condition(
        "key, query and value train", lambda run: {run.model.key, run.model.query, run.model.value} != {"trained"}
    ),
    "other-parts": Condition(
        "W_V alone trains", lambda run: set(run.model.trained_shapes(run.world.topic_model.vocabulary)) != {"value"}
    ),
    "key-or-query": Condition("key and query both train or neither", lambda run: run.model.key != run.model.query),
    "biases": Condition("no biases", lambda run: has_bias(run, "key", "query", "value", "prediction")),
    "inner-biases": Condition("no biases but the output's", lambda run: has_bias(run, "key", "query", "value")),
    "fixed-output-bias": Condition(
        "no fixed output bias", lambda run: run.model.prediction_bias not in ("none", 0, "trained")
    ),
    "schedule": Condition("all parts train throughout", lambda run: bool(run.schedule.phases)),
    "one-mask": Condition("new masks in every step", lambda run: not run.world.masking.fresh),
    "finite-documents": Condition("infinite documents", lambda run: run.world.length != "infinite"),
    "short-documents": Condition(f"documents of {LONG} words or more", lambda run: shortest(run) < LONG),
    "unequal-topics": Condition("disjoint topics of equal words", lambda run: not run.world.topic_model.uniform),
    "topics-not-alike": Condition(
        "exchangeable topics",
        lambda run: run.world.topic_model.uniform and not topics_alike(run.world.topic_model, run.world.prior),
    ),
    "adam-embedding": Condition(
        "Adam: one-hot words", lambda run: run.optimizer.name == "adam" and run.model.embedding == "trained"
    ),
    "adam-cross-entropy": Condition(
        "Adam: squared loss", lambda run: run.optimizer.name == "adam" and run.objective.loss == "cross-entropy"
    ),
    "many-words": Condition(f"up to {MOST_DRAWN} words", lambda run: run.world.topic_model.vocabulary > MOST_DRAWN),
    "many-words-uneven": Condition(
        f"up to {MOST_FOLLOWED} words where a flow starts above {LARGEST_START}",
        lambda run: by_flow(run) and not starts_even(run) and run.world.topic_model.words > MOST_FOLLOWED,
    ),
    "many-topics": Condition(
        f"up to {MOST_TOPICS:,} topics of a logistic normal",
        lambda run: isinstance(run.world.prior, LogisticNormal) and run.world.topic_model.topics > MOST_TOPICS,
    ),
}


@dataclass(frozen=True)
class Row(ABC):
    name: str
    predicts: str
    status: Literal["exact", "numerical", "heuristic"]
    error: str
    derived: str  # page of the documentation, with its anchor

    @property
    @abstractmethod
    def covers(self) -> list[str]:
        """The conditions in words."""

    @property
    @abstractmethod
    def codes(self) -> list[str]:
        """The codes of what it refuses."""

    def as_dict(self) -> dict[str, str | list[str]]:
        return {
            "law": self.name,
            "predicts": self.predicts,
            "status": self.status,
            "error": self.error,
            "covers": self.covers,
            "codes": self.codes,
            "derived": self.derived,
        }


@dataclass(frozen=True)
class Stage(Row):
    """A stage that `theory.dynamics` predicts from a world and a training, with its limits (`theory.LIMITS`)."""

    limits: tuple[str, ...]

    @property
    def covers(self) -> list[str]:
        return list(dict.fromkeys(LIMITS[code].covers for code in self.limits))

    @property
    def codes(self) -> list[str]:
        return list(self.limits)


@dataclass(frozen=True)
class Law(Row):
    """A law of whole runs. `reasons` holds a sentence for each code that it refuses, in the order of checking."""

    optimizers: tuple[str, ...] | None  # None: whatever the optimiser, since it is no law of steps
    priors: tuple[str, ...] | None  # None: any prior, by the moments that it states
    reasons: Mapping[str, Reason]

    def refusals(self, run: RunSettings) -> Iterator[Refusal]:
        """All reasons why the law does not cover a run. The architecture is first: others have other settings."""
        for code in [*(code for code in UNLISTED if code not in self.reasons), *self.reasons]:
            if self.refuses(code, run):
                reason = self.reasons.get(code) or UNLISTED[code]
                yield Refusal(code, reason if isinstance(reason, str) else reason(run))
                if code == "architecture":
                    return

    def refuses(self, code: str, run: RunSettings) -> bool:
        if code == "architecture":
            return not isinstance(run.model, ModelConfig)
        if code == "prior":
            return self.priors is not None and kind_of(run) not in self.priors
        if code == "optimizer":
            return self.optimizers is not None and run.optimizer.name not in self.optimizers
        return CONDITIONS[code].broken(run)

    def refusal(self, run: RunSettings) -> Refusal | None:
        """The first reason why the law does not cover a run; None where it does."""
        return next(self.refusals(run), None)

    def require(self, run: RunSettings) -> None:
        """InputError, with the reason and its code, where the law does not cover a run."""
        if refusal := self.refusal(run):
            raise InputError(refusal.reason, refusal.code)

    @property
    def covers(self) -> list[str]:
        optimizers = [] if self.optimizers is None else [" or ".join(NAMES[name] for name in self.optimizers)]
        priors = [] if self.priors is None else [f"priors {', '.join(self.priors)}"]
        conditions = [CONDITIONS[code].covers for code in self.reasons if code in CONDITIONS]
        return ["the one-layer model", *optimizers, *priors, *conditions]

    @property
    def codes(self) -> list[str]:
        return list(dict.fromkeys([*UNLISTED, *self.reasons]))


def kind_of(run: RunSettings) -> str:
    return getattr(run.world.prior, "kind", type(run.world.prior).__name__)


NAMES = {"sgd": "SGD", "adam": "Adam"}
# The reasons where a row has no sentence of its own for what it does not list.
UNLISTED: dict[str, Callable[[RunSettings], str]] = {
    "architecture": lambda run: f"the laws are for the one-layer transformer, not for {run.model.NAME}",
    "prior": lambda run: f"the laws are not known to hold for documents.kind = {kind_of(run)!r}",
    "optimizer": lambda run: f"no law of the steps of {run.optimizer.name} is known",
}

WORLD_KNOWN: dict[str, str] = {
    "unknown-documents": "documents come from a file, so their law is not known; W* is that of a topic model and a "
    "prior",
    "hidden-masks": "attention does not see masked positions (model.hide_masked); W* assumes that it does",
    "value-penalty": "the L2 penalty (objective.l2) moves the optimum; W* is that of the loss alone",
}
UNIFORM_AND_SQUARED = dict.fromkeys(("attention", "cross-entropy"), "it holds under uniform attention and squared loss")

ROWS = (
    Law(
        "optimum",
        "W*, the best value matrix under uniform attention and squared loss",
        optimizers=None,
        priors=None,
        reasons=WORLD_KNOWN,
        status="exact",
        error="rounding; where moments of the prior are numerical, their stated error",
        derived="optimum.md#the-formula",
    ),
    Law(
        "end",
        "the value matrix that a run ends in: W*",
        optimizers=None,
        priors=None,
        reasons={
            **UNIFORM_AND_SQUARED,
            "many-topics": lambda run: (
                f"{run.world.topic_model.topics:,} topics: the moments of a logistic normal take seconds above "
                f"{MOST_TOPICS:,}"
            ),
            **WORLD_KNOWN,
        },
        status="exact",
        error="as optimum",
        derived="optimum.md#the-formula",
    ),
    Law(
        "course",
        "W(t), the value matrix at every step",
        optimizers=("sgd",),
        priors=None,
        reasons={
            **UNIFORM_AND_SQUARED,
            **dict.fromkeys(("optimizer", "momentum"), "it holds for SGD without momentum"),
            "other-parts": "it holds where the value matrix alone is trained",
            "schedule": "it holds where the value matrix trains throughout",
            "one-mask": "it holds where masks are drawn anew",
        },
        status="exact",
        error="gradient flow: the noise of batches and the size of steps are left out (2% measured)",
        derived="optimum.md#modes",
    ),
    Law(
        "norms",
        "norms of value, key and query at every step",
        optimizers=("sgd",),
        priors=KNOWN_PRIORS,
        reasons={
            "finite-documents": "W(t) beside attention is known for infinite documents",
            "cross-entropy": "norms are predicted for the squared loss",
            "penalty": "norms are predicted without an L2 penalty",
            **dict.fromkeys(("optimizer", "momentum"), "norms are predicted for SGD without momentum"),
            **dict.fromkeys(("embedding", "untied-head"), "norms are predicted for one-hot words"),
            "frozen-value": "the value matrix is frozen",
            "biases": "norms are predicted without biases",
            "key-or-query": "key and query are predicted together",
            "hidden-masks": "attention does not see masked positions (model.hide_masked)",
            "schedule": "norms are predicted where all parts train throughout",
            "many-words": lambda run: f"{run.world.topic_model.vocabulary:,} words: W(t) is drawn up to {MOST_DRAWN:,}",
        },
        status="numerical",
        error="half-way steps of key and query within 4%, norms within 3% (measured)",
        derived="dynamics.md#the-stage-law",
    ),
    Law(
        "phase",
        "the phase of a run, such as two-stage or never",
        optimizers=("sgd", "adam"),
        priors=KNOWN_PRIORS,
        reasons={
            "unequal-topics": "the laws are for disjoint topics of equally many, equally probable words",
            "topics-not-alike": "the laws are for topics that are alike in every order",
            "short-documents": lambda run: f"documents of {shortest(run)} words are not nearly infinite",
            **WORLD_KNOWN,
            "penalty": "the laws are without an L2 penalty",
            "momentum": "the laws are for SGD without momentum",
            "frozen-parts": "the laws are for trained key, query and value",
            "head": "the laws are for a head that is the embedding",
            "inner-biases": "the laws are for key, query and value without biases",
            "fixed-output-bias": "the output bias is fixed",
            "schedule": "the laws are for runs in which all parts train throughout",
            "adam-embedding": "Adam with a trained embedding: its steps do not feel the saddle at zero that R8 "
            "describes",
            "adam-cross-entropy": "Adam with cross entropy: no law of its steps is known",
            "many-words-uneven": lambda run: (
                f"{run.world.topic_model.words:,} words from a large start: all words are followed up to "
                f"{MOST_FOLLOWED}"
            ),
        },
        status="heuristic",
        error="97.6% of 212 runs of SGD and gradient flow take the phase; with Adam 15 of 28 (measured)",
        derived="two-stages.md#the-map-that-theory-predicts",
    ),
    Law(
        "half-way",
        "the steps at which value, then key and query are half-way",
        optimizers=("sgd", "adam"),
        priors=KNOWN_PRIORS,
        reasons={
            "cross-entropy": "cross entropy",
            "embedding": lambda run: f"a trained embedding with {run.optimizer.name}",
            "momentum": "momentum",
            "untied-head": "an untied head",
            "inner-biases": "biases of attention",
            "finite-documents": "finite documents",
        },
        status="heuristic",
        error="with SGD 1% to 3%; with Adam .84 to 1.15 of the step (measured)",
        derived="dynamics.md#a-worked-example",
    ),
)
LAWS = {law.name: law for law in ROWS}
"""The laws of whole runs, by name."""

STAGES = (
    Stage(
        "attention",
        "rates, plateau and half-times of key and query, by gradient flow",
        "numerical",
        "half-times within 2.3% in 76 gradient flows (measured)",
        "dynamics.md#the-stage-law",
        (
            *("finite-documents", "topics-not-alike", "no-force", "few-dimensions", "zero-start", "large-start"),
            *("above-plateau", "slow-value", "overtaken", "early-third-act"),
        ),
    ),
    Stage(
        "cross-entropy",
        "the start under cross entropy: [MASK] learns first",
        "heuristic",
        "a third later than predicted (measured)",
        "dynamics.md#why-in-short",
        ("entropy-half-times", "entropy-topics", "entropy-same-topics", "entropy-no-mask", "entropy-start"),
    ),
    Stage(
        "embedding",
        "when value and a trained embedding leave zero, and key and query after them",
        "heuristic",
        "10% to 40% off at small widths; key and query up to a quarter earlier (measured)",
        "dynamics.md#why-in-short",
        ("embedding-topics", "embedding-same-topics", "embedding-adam", "embedding-start", "embedding-entropy"),
    ),
    Stage(
        "steps",
        "half-times in steps of SGD or Adam",
        "heuristic",
        "with SGD 1% to 3%; with Adam .84 to 1.15 of the step (measured)",
        "dynamics.md#a-worked-example",
        ("adam-setting", "adam-fast", "sgd-diverges"),
    ),
)
TABLE: tuple[Row, ...] = (*ROWS, *STAGES)
"""All rows: laws of whole runs, and the stages that `theory.dynamics` predicts."""


def covered_world(run: RunSettings, law: str) -> World:
    """The world of a run that a law covers; InputError with the reason for another run."""
    LAWS[law].require(run)
    return run.world
