"""The rooms by name, the controls of the room of theory, what the start page offers, and settings to start with."""

from dataclasses import dataclass
from typing import Literal

from topicscope import training
from topicscope.world import PRIORS, Asked

ROOMS = {
    "theory": (
        "Theory",
        "Change a setting, and see how the optimum, the best attention and the times of learning change.",
    ),
    "live": ("Live", "Start training and watch the two stages happen."),
    "models": ("Models", "Explore a probe: layers, heads, topics, and the documents behind the numbers."),
    "maps": ("Maps", "See any measure of a sweep over any two of its axes."),
    "time": ("Time", "See how a run or a language model changes from step to step."),
    "paper": ("Paper", "The paper's claims, with figures, rules and verdicts."),
}
"""By name: the title, and what it is for."""

FILLED_BY = {
    "models": "topicscope probe MODEL --corpus TEXT --out {folder}",
    "maps": "topicscope sweep GRID.yaml --out {folder}",
    "time": "topicscope train --snapshots log --out {folder}",
}
"""By room: the command that writes what it shows."""

LOOKING_AT = {
    "theory": "One artificial world (topics, documents and masking), and what theory says about it. W* is the value "
    "matrix that predicts masked words best as long as attention is uniform; its limit for long documents and Theorem "
    "2 are shown beside it. Modes are directions that learn at their own rate, each with its half-time. The curves "
    "show when value grows, then key and query. The last map is the loss over attention once the value matrix is "
    "learnt, with its minimum and the interval in which the theorem places it. Move a slider or type a number; the "
    "page's address holds the setting.",
    "live": "The small transformer while it learns. The loss falls towards its floors (the losses that no model can "
    "beat). Norms say how large each matrix has become: in the paper the value matrix rises first (stage 1), key and "
    "query later (stage 2); stages are shaded as soon as they can be recognised, and thin curves are what theory "
    "predicts. Below, the value matrix and the scores of attention, words ordered by topic: blocks along the diagonal "
    "mean that topics are learnt. Each run has its own process and writes its own folder; closing this page or the "
    "server does not stop it.",
    "models": "A probe asks whether a language model keeps words of one topic together: in its embeddings, in its "
    "hidden states, in its attention. Each answer has controls, which say whether chance, word frequency or "
    "co-occurrence could explain it. Click a head in the map of layers by heads to see it in the documents; click a "
    "topic to read its words; click a word of a document to see which words it attends to.",
    "maps": "Each cell is one run of a sweep, or the mean of runs that differ only in settings that are not shown. "
    "Choose which measure the colours show and which settings run to the right and upwards. Click a cell to see its "
    "curves.",
    "time": "The slider goes through the steps of training. Points are words, placed by what the model has learnt "
    "about them. The axes are those of the last step and do not change, so you can see words of one topic come "
    "together. Contrast: the mean of a measure for words of one topic minus that for words of different topics.",
    "paper": "Each claim of the paper, measured again. A rule that was fixed beforehand decides whether the claim is "
    "reproduced; 'sizes differ' means that the pattern is the same but the numbers are not. You can run claims that "
    "the folder lacks from here.",
}
"""By room: what a newcomer sees there."""


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


OFFERED = {
    kind: form for kind in sorted(PRIORS, key=lambda kind: kind != "fixed") if (form := PRIORS[kind].FORM) is not None
}
"""The priors that the form of theory offers, the paper's first, with the numbers that each asks for."""

NUMBERS = {number.name: number for numbers in OFFERED.values() for number in numbers}


def of_prior(number: Asked) -> Control:
    """The control of a number that priors ask for; it is shown with one of these priors."""
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


RUN_SETTINGS: tuple[tuple[str, str, tuple[str, ...]], ...] = (
    ("topic_model.topics", "T, topics", ()),
    ("topic_model.words_per_topic", "v, words per topic", ()),
    ("documents.kind", "prior", tuple(sorted(OFFERED))),
    ("documents.topics_per_document", "tau, topics per document", ()),
    ("documents.length", "words per document, or infinite", ()),
    ("model.embedding", "embedding", ("one-hot", "trained")),
    ("model.key", "key", ("trained", "zero")),
    ("model.query", "query", ("trained", "zero")),
    ("model.value", "value", ("trained", "identity", "blocks", "diagonal")),
    ("model.init_scale", "initial scale", ()),
    ("objective.loss", "loss", ("cross-entropy", "squared", "squared-mean")),
    ("objective.l2", "L2", ()),
    ("optimizer.name", "optimiser", tuple(training.OPTIMISERS)),
    ("optimizer.lr", "learning rate", ()),
    ("optimizer.eps", "epsilon of Adam", ()),
    ("steps", "steps", ()),
    ("batch_size", "documents per step", ()),
    ("seed", "seed", ()),
)
"""Of a run: the setting's name, what it is, and what it may be where it is one of a few words."""


FIRST_THINGS = [
    (
        "Change an assumption",
        "See what theory says when topics overlap or documents are short, without running anything.",
        "/theory?topics=5&words_per_topic=4&topics_per_document=2&overlap=0.25",
    ),
    (
        "Watch two stages happen",
        "Train the small transformer for less than a minute, and see value settle before attention: press Start.",
        "/live?preset=two+stages",
    ),
    (
        "Measure a claim of the paper",
        "Each claim has its figure, its rule and its verdict; the quickest take seconds.",
        "/paper",
    ),
]
"""What the start page offers: a title, what it is, and its address."""

PRESETS: dict[str, tuple[str, dict[str, object]]] = {
    "two stages": (
        "Value, then key and query: SGD in a small world, where theory predicts both (less than a minute).",
        {
            "topic_model": {"topics": 5, "words_per_topic": 4},
            "documents": {"kind": "fixed", "topics_per_document": 2, "length": "infinite"},
            "model": {"init_scale": 0.01, "prediction_bias": "none"},
            "objective": {"loss": "squared"},
            "optimizer": {"name": "sgd", "lr": 4.0},
            "steps": 10_000,
            "evaluate_every": 2000,
            "data": {"dev_documents": 500},
        },
    ),
    "Figure 4": (
        "Norms of key, query and value against steps: the setting closest to the paper's curves.",
        {
            "model": {
                "embedding": "trained",
                "head": "untied",
                "dim": 12,
                "init_scale": 0.004,
                "key_bias": "trained",
                "query_bias": "trained",
                "value_bias": "trained",
            },
            "objective": {"loss": "squared-mean"},
            "optimizer": {"name": "adam", "lr": 0.001},
            "steps": 1000,
        },
    ),
    "Figure 2": (
        "The value matrix under uniform attention: blocks of topics.",
        {
            "model": {"key": "zero", "query": "zero"},
            "objective": {"loss": "squared", "l2": 1e-4},
            "steps": 2000,
        },
    ),
    "Theorem 2": (
        "Uniform attention and infinite documents: the value matrix converges to the theorem's optimum.",
        {
            "documents": {"kind": "fixed", "topics_per_document": 3, "length": "infinite"},
            "model": {"key": "zero", "query": "zero", "prediction_bias": "none", "init_scale": 0.001},
            "objective": {"loss": "squared"},
            "optimizer": {"name": "sgd", "lr": 5.0},
            "steps": 3000,
        },
    ),
    "everything trained": (
        "The paper's run of Section 6.1: one-hot words, cross entropy, Adam.",
        {"steps": 2000},
    ),
}
"""By name: what is to be seen, and the settings."""
