"""The room of theory: one setting, and what the theorems and closed forms say of it at once.

A question is a config like any other: the same names and ranges as on the command line. Its parts are separate views,
so that a slow one does not keep the others waiting, and one that does not change is not made again.
"""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Literal, TypeVar

from pydantic import Field, TypeAdapter

from topicscope import pages, theory, training
from topicscope.explorer.workspace import View
from topicscope.ground import (
    Config,
    Count,
    InputError,
    PositiveRate,
    Probability,
    Rate,
    Text,
    Width,
    parsed,
    refuse_if,
    require,
    section,
)
from topicscope.world import PRIORS, Asked, World

if TYPE_CHECKING:
    from topicscope.explorer.notebook import TheoryBench

EDGE = 100  # times the lowest weight of the landscape: where its map has room for marks
PER_DECADE = 5  # points of the landscape: half of the paper's, which cells of six pixels do not miss
KEPT = 8  # parts, those of two settings: a matrix of 400 words is 5 MB, and there are three in a part

FLOW_RATE = 1.0  # of the SGD that stands for gradient flow in a run
HALF_TIMES = 10  # of W_V, that a run takes: what is left of topic contrasts to learn is a thousandth
FEWEST_STEPS, MOST_STEPS = 200, 20_000  # of such a run


@dataclass(frozen=True)
class Control:
    """One setting of a question: a slider with a box beside it, or a choice. `log`: the slider multiplies."""

    name: str
    label: str
    group: str
    kind: Literal["number", "choice"] = "number"
    low: float = 0
    high: float = 1
    step: float = 0.01
    log: bool = False
    whole: bool = False
    choices: tuple[str, ...] = ()
    only: str = ""  # NAME=VALUE|VALUE, or NAME (not 0), of another control, without which it says nothing
    top: str = ""  # a word that the slider has at its right end


def count(name: str, label: str, group: str, high: float, only: str = "") -> Control:
    return Control(name, label, group, low=1, high=high, step=1, log=high > 50, whole=True, only=only)


# The priors that the form of theory offers, the paper's first, with the numbers that each asks for
OFFERED = {
    kind: form for kind in sorted(PRIORS, key=lambda kind: kind != "fixed") if (form := PRIORS[kind].FORM) is not None
}

NUMBERS = {number.name: number for numbers in OFFERED.values() for number in numbers}


def of_prior(number: Asked) -> Control:
    kinds = "|".join(kind for kind, numbers in OFFERED.items() if number in numbers)
    return Control(
        number.name,
        number.label,
        "World",
        low=number.low,
        high=number.high,
        step=1 if number.whole else 0.01,
        log=number.log,
        whole=number.whole,
        only=f"prior={kinds}",
    )


CONTROLS = (
    count("topics", "T, topics", "World", 200),
    count("words_per_topic", "v, words per topic", "World", 500),
    Control("prior", "prior", "World", "choice", choices=tuple(OFFERED)),
    *map(of_prior, NUMBERS.values()),
    Control("zipf", "Zipf exponent of words", "World", high=2),
    Control("overlap", "overlap of topics", "World", high=0.5),
    Control("common_words", "common words", "World", high=100, step=1, whole=True),
    Control("common_share", "their share of a topic", "World", low=0.01, high=0.9, only="common_words"),
    Control("length", "N, words per document", "World", low=2, high=1000, log=True, whole=True, top="infinite"),
    Control("p_mask", "p_m, share masked", "Masking", low=0.01, high=0.99),
    Control("p_correct", "p_c, of these correct", "Masking", low=0.01, high=0.9),
    Control("p_random", "p_r, of these random", "Masking", low=0.01, high=0.9),
    Control("value_matrix", "W_V in stage 2", "Attention", "choice", choices=("blocks", "diagonal")),
    Control("convention", "convention", "Attention", "choice", choices=("exact", "paper")),
    Control("init_scale", "initial scale", "Learning", low=1e-6, high=1, log=True),
    Control(
        "attention_dim", "d_a, attention width (empty: T v + 1)", "Learning", low=1, high=2000, log=True, whole=True
    ),
    Control("loss", "loss", "Learning", "choice", choices=("squared", "cross-entropy")),
    Control("optimizer", "optimiser", "Learning", "choice", choices=("flow", "sgd", "adam")),
    Control("lr", "learning rate", "Learning", low=1e-5, high=100, log=True, only="optimizer=sgd|adam"),
    Control("eps", "epsilon of Adam", "Learning", low=1e-12, high=1, log=True, only="optimizer=adam"),
)


NumbersOfPriors = TypeVar("NumbersOfPriors", bound=type)


def with_numbers_of_priors(cls: NumbersOfPriors) -> NumbersOfPriors:
    """The numbers that the priors ask for, as settings behind `prior`."""
    names = list(cls.__annotations__.items())
    behind = [name for name, _ in names].index("prior") + 1
    asked = [(number.name, number.type) for number in NUMBERS.values()]
    cls.__annotations__ = dict([*names[:behind], *asked, *names[behind:]]) | {"prior": Literal[tuple(OFFERED)]}
    for number in NUMBERS.values():
        setattr(cls, number.name, number.default)
    return cls


@section
@with_numbers_of_priors
class Question(Config):
    """A world, how it is masked, and how it is learnt. 0 for zipf, overlap and common words: none."""

    topics: Count = 10
    words_per_topic: Count = 10
    prior: Text = "fixed"
    zipf: Annotated[float, Field(ge=0, le=10)] = 0.0
    overlap: Annotated[float, Field(ge=0, le=0.5)] = 0.0
    common_words: Annotated[int, Field(ge=0, le=1000)] = 0
    common_share: Annotated[float, Field(gt=0, lt=1)] = 0.3
    length: Text = "125"
    p_mask: Probability = 0.15
    p_correct: Probability = 0.1
    p_random: Probability = 0.1
    value_matrix: theory.ValueMatrix = "blocks"
    convention: theory.Convention = "exact"
    init_scale: Rate = 1e-3
    attention_dim: Width | None = None
    loss: Literal["squared", "cross-entropy"] = "squared"
    optimizer: Literal["flow", "sgd", "adam"] = "flow"
    lr: PositiveRate = 0.01
    eps: Rate = 1e-8

    @property
    def world(self) -> dict[str, Any]:
        shape = {
            "zipf": self.zipf,
            "overlap": self.overlap,
            "common_words": self.common_words,
            "common_share": self.common_share if self.common_words else 0,
        }
        return {
            "topic_model": {
                "topics": self.topics,
                "words_per_topic": self.words_per_topic,
                **{name: value for name, value in shape.items() if value},
            },
            "documents": {"kind": self.prior, "length": length_of(self.length)}
            | {number.name: getattr(self, number.name) for number in OFFERED[self.prior]},
            "masking": {"p_mask": self.p_mask, "p_correct": self.p_correct, "p_random": self.p_random},
        }

    @property
    def run(self) -> dict[str, object]:
        """The settings of a run of it: what 'train this' starts with."""
        rule = {"name": self.optimizer, "lr": self.lr} | ({"eps": self.eps} if self.optimizer == "adam" else {})
        width = {} if self.attention_dim is None else {"attention_dim": self.attention_dim}
        return {
            **self.world,
            "model": {"init_scale": self.init_scale, "prediction_bias": "none", **width},
            "objective": {"loss": self.loss},
            "optimizer": {"name": "sgd", "lr": FLOW_RATE} if self.optimizer == "flow" else rule,
            "steps": steps_to_learn_topics(self),
        }

    @property
    def beyond_the_paper(self) -> str:
        """Why the paper's theorems do not cover this world; empty where they do."""
        if self.prior != "fixed":
            return "the paper's theorems are about documents of tau topics in equal shares (prior fixed)"
        if self.zipf or self.overlap or self.common_words:
            return "the paper's theorems are about disjoint topics of equally probable words"
        return ""

    @property
    def setting(self) -> theory.Setting:
        refuse_if(self.beyond_the_paper, self.beyond_the_paper)
        return theory.Setting.of(
            self.topics,
            self.words_per_topic,
            self.world["documents"]["topics_per_document"],
            p_mask=self.p_mask,
            p_correct=self.p_correct,
            p_random=self.p_random,
        )


def question(query: Mapping[str, str]) -> Question:
    """A question from the text of a query. YAML reads the values, except `length`, which may be a range."""
    return Question.of({name: text if name == "length" else parsed(text) for name, text in query.items()})


LENGTH = {"type": "integer", "minimum": 1, "maximum": 10**7, "word": "infinite"}


@cache
def limits() -> dict[str, dict[str, Any]]:
    """What the box of each setting may hold, as JSON Schema says it, and in words (`expected`)."""
    found: dict[str, dict[str, Any]] = {}
    for name, schema in TypeAdapter(Question).json_schema()["properties"].items():
        kind = next((one for one in schema.get("anyOf", [schema]) if one["type"] in ("integer", "number")), None)
        if name == "length":
            found[name] = LENGTH | {"expected": f"{in_words(LENGTH)}, a range such as 100-150, or infinite"}
        elif kind is not None:
            bounds = {key: value for key, value in kind.items() if key == "type" or key.lower().endswith("imum")}
            found[name] = bounds | {"expected": in_words(bounds)}
    return found


def in_words(bounds: Mapping[str, object]) -> str:
    kind = "a whole number" if bounds["type"] == "integer" else "a number"
    numbers = {name: f"{value:,.10g}" for name, value in bounds.items() if name.lower().endswith("imum")}
    if "minimum" in numbers and "maximum" in numbers:
        return f"{kind} from {numbers['minimum']} to {numbers['maximum']}"
    above = f"above {numbers['exclusiveMinimum']}"
    return f"{kind} {above} and " + (
        f"up to {numbers['maximum']}" if "maximum" in numbers else f"below {numbers['exclusiveMaximum']}"
    )


def length_of(text: str) -> int | str | list[int]:
    ends = [part.strip() for part in text.split("-", 1)]
    if not all(map(str.isdigit, ends)):
        return text.strip()
    return int(ends[0]) if len(ends) == 1 else list(map(int, ends))


def value_part(asked: Question) -> list[pages.Section]:
    best = theory.optimum(World.of(asked.world))
    (first,) = best.sections()
    return [replace(first, title="The best value matrix", note="\n".join(best.summary()), command="", config={})]


def theorem_part(asked: Question) -> list[pages.Section]:
    if asked.beyond_the_paper:
        note = (
            f"Not covered: {asked.beyond_the_paper}. 'Theorem 2 for these topics' applies its idea to this world: of "
            "all matrices that are optimal for infinite documents, the one that gradient flow from zero reaches."
        )
        return [pages.Section(PARTS["theorems"][0], note)]
    return [
        replace(section, figures=[], config={}, command="")
        for theorem in theory.OPTIMUM_THEOREMS
        for section in theorem(asked.setting).sections()
    ]


def attention_part(asked: Question) -> list[pages.Section]:
    stage = theory.second_stage(asked.setting, asked.value_matrix, asked.convention)
    grid = theory.landscape(asked.setting, asked.value_matrix, asked.convention, cap=stage.cap, per_decade=PER_DECADE)
    (first,) = theory.AttentionLandscape(stage, grid, None).sections()
    note = "\n".join([first.note, *stage.summary()])
    (drawn,) = first.figures
    panels = [replace(panel, references=[*panel.references, *interval_ends(grid, stage)]) for panel in drawn.panels]
    alt = f"{drawn.alt} The other rings are the ends of the theorem's interval."
    return [replace(first, note=note, config={}, command="", figures=[replace(drawn, panels=panels, alt=alt)])]


def interval_ends(grid: theory.Landscape, stage: theory.SecondStage) -> list[tuple[float, float, str]]:
    """Where the theorem's interval begins and ends, as (beta, alpha, label), near an edge of the map.

    Theorem 3 bounds gamma, the average inside a topic, at whatever beta; Theorem 5 bounds beta, where alpha is small.
    """
    bounds = {} if stage.theorem is None else stage.theorem.bounds
    v = stage.setting.v
    low, high = float(grid.beta[0]), float(grid.beta[-1])
    aside = EDGE * low
    places = [(aside, (end * v - aside) / (v - 1), f"γ {end:.3g}") for end in bounds.get("gamma", ()) if v > 1]
    if "gamma" not in bounds:
        places = [(end, aside, f"β {end:.3g}") for end in bounds.get("beta", ())]
    return [one for one in places if all(low <= value <= high for value in one[:2])]


def dynamics_part(asked: Question) -> list[pages.Section]:
    (first,) = predicted(asked).sections()
    note = first.note
    if length_of(asked.length) != "infinite":
        note = (
            "All times here are for infinitely long documents, so W_V's half-time differs from that in the table of "
            f"modes, which is for documents of the chosen length. {note}"
        )
    return [
        replace(first, note=note, config={}, command="", tables=[replace(one, folded=True) for one in first.tables])
    ]


@lru_cache(maxsize=KEPT)
def predicted(asked: Question) -> theory.Dynamics:
    steps: dict[str, Any] = {} if asked.optimizer == "flow" else {"lr": asked.lr, "eps": asked.eps}
    return theory.dynamics(
        World.of(asked.world).endless(),
        attention_dim=asked.attention_dim,
        init_scale=asked.init_scale,
        loss=asked.loss,
        optimizer=asked.optimizer,
        **steps,
    )


def steps_to_learn_topics(asked: Question) -> int:
    """Steps in which W_V learns topics, to two digits and within bounds; the usual number if it is not known."""
    half = None
    with contextlib.suppress(InputError):
        found = predicted(asked)
        time = found.value.half_time
        half = found.steps.value if found.steps is not None else None if time is None else time / FLOW_RATE
    if half is None:
        return training.RunConfig().total_steps
    return round(float(f"{min(MOST_STEPS, max(FEWEST_STEPS, HALF_TIMES * half)):.2g}"))


# By name: the title, and what makes the sections. The room shows them in this order
PARTS: dict[str, tuple[str, Callable[[Question], list[pages.Section]]]] = {
    "value": ("The best value matrix", value_part),
    "dynamics": ("When each stage happens", dynamics_part),
    "attention": ("The best attention", attention_part),
    "theorems": ("The theorems", theorem_part),
}


@lru_cache(maxsize=KEPT)
def part_view(name: str, asked: Question) -> View:
    title, make = PARTS[name]
    try:
        return View(title, make(asked))
    except InputError as error:
        return View(title, [pages.Section(title, f"Not covered: {error}.")])


def whole_view(asked: Question) -> View:
    settings = ", ".join(f"{name} {value}" for name, value in asked.as_dict().items() if value is not None)
    return View(
        "Theory",
        [section for name in PARTS for section in part_view(name, asked).sections],
        [f"What theory says of one setting: {settings}."],
    )


def explore_theory(**settings: Any) -> "TheoryBench":
    """Theory under sliders in a notebook.

    Args:
        **settings: Where the sliders start, by the names of the explorer's controls: topics, words_per_topic, ...

    Returns:
        A widget; its `config` is the `RunConfig` of the sliders.

    Raises:
        InputError: A setting is unknown or out of range, or the extra `notebook` is not installed.

    Example:
        >>> explore_theory(topics=4, words_per_topic=3).config.topic_model.topics
        4
    """
    asked = Question.of(settings)
    require(("anywidget", "ipywidgets"), "theory under sliders")
    from topicscope.explorer.notebook import TheoryBench

    return TheoryBench(asked)
