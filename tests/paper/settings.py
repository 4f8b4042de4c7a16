"""The settings of the reference runs, as rules: what each experiment changes of the base settings, at seed 2.

`Two(1500, 5000)` stands for a number of the quick and one of the full scale. Keys are written as on the command line.
"""

import itertools
from collections.abc import Mapping
from typing import Any, NamedTuple

SEED = 2


class Two(NamedTuple):
    """A setting that depends on the scale."""

    quick: Any
    full: Any


Row = dict[str, Any]

LEFT_OUT = object()  # of a setting that the base has and a row has not
BASE: Row = {"device": "cpu", "evaluate_every": None, "seed": 1000 * SEED}
UNIFORM: Row = {"model.key": "zero", "model.query": "zero"}
NO_BIAS: Row = {"model.prediction_bias": "none"}
INFINITE: Row = {"documents.kind": "infinite", "documents.topics_per_document": 3, "objective.loss": "squared"}
TRAINED: Row = {"model.embedding": "trained"}


def four_panels(**changes: Any) -> list[Row]:
    """Both losses with SGD and Adam."""
    rates = {("cross-entropy", "sgd"): 1.0, ("squared", "sgd"): 0.3}
    return [
        {"steps": Two(1500, 5000), "objective.loss": loss, "optimizer.name": name}
        | {"optimizer.lr": rates.get((loss, name), 0.01)}
        | changes
        for loss in ("cross-entropy", "squared")
        for name in ("sgd", "adam")
    ]


FIGURE4 = TRAINED | {f"model.{bias}": "trained" for bias in ("key_bias", "query_bias", "value_bias")}
FIGURE4 |= {"steps": 3000, "objective.loss": "squared-mean", "optimizer.lr": 0.001}
FIGURE4 |= {"model.head": "untied", "model.dim": 12, "model.init_scale": 0.004}

FLOW = UNIFORM | NO_BIAS | {"dtype": "float64", "objective.loss": "squared", "model.init_scale": 0.0}
FLOW |= {"data.documents": 20_000, "data.dev_documents": 50, "batch_size": 200, "optimizer.name": "sgd"}
"""SGD on the squared loss from zero: what follows W(t). The full scale has four times the steps in the same time."""


def flow(rate: float, steps: int, kept: int = 0, **changes: Any) -> Row:
    own: Row = {"optimizer.lr": Two(rate, rate / 4), "steps": Two(steps, 4 * steps)}
    if kept:
        own["snapshots"] = Two(*(list(range(0, total + 1, total // kept)) for total in (steps, 4 * steps)))
    return FLOW | own | changes


CORRELATED = [[2.0 if i == j else 1.2 if i // 2 == j // 2 else 0.0 for j in range(6)] for i in range(6)]
FIXED2: Row = {"documents.kind": "fixed", "documents.topics_per_document": 2, "documents.length": "infinite"}
NORMAL: Row = {"documents.kind": "logistic-normal", "documents.covariance": CORRELATED, "documents.length": "infinite"}
SAMPLED: Row = {"batch_size": 1000}
COMMON: Row = {"topic_model.common_words": 5, "topic_model.common_share": 0.3}
RELAXED: list[Row] = [
    FIXED2,
    FIXED2 | {"topic_model.words_per_topic": [2, 3, 4, 5, 7, 9]},
    FIXED2 | {"topic_model.zipf": 1.0},
    FIXED2 | {"topic_model.overlap": 0.4},
    FIXED2 | COMMON,
    FIXED2 | {"documents.weights": [1.0, 1.0, 2.0, 2.0, 4.0, 4.0]},
    {"documents.alpha": [0.1, 0.1, 0.2, 0.2, 0.4, 0.4], "documents.length": "infinite"},
    FIXED2 | {"documents.kind": "groups", "documents.groups": 2, "documents.rho": 0.5},
    NORMAL,
    FIXED2 | SAMPLED | {"documents.length": 30},
    FIXED2 | SAMPLED | {"documents.length": [100, 150]},
    NORMAL
    | SAMPLED
    | COMMON
    | {"documents.length": [100, 150], "topic_model.words_per_topic": [3, 3, 4, 5, 6, 6]}
    | {"topic_model.zipf": 1.0, "topic_model.overlap": 0.34},
]
VARIED: list[Row] = [
    {},
    {"documents.kind": "fixed", "documents.topics_per_document": 3},
    {"topic_model.topics": 5},
    {"topic_model.topics": 20, "topic_model.words_per_topic": 5},
    {"topic_model.words_per_topic": 20},
    {"documents.alpha": 0.03},
    {"documents.alpha": 1.0},
    {"masking.p_mask": 0.4},
    {"masking.p_correct": 0.3, "masking.p_random": 0.3},
    {"topic_model.word_probabilities": [0.28, 0.2, 0.14, 0.1, 0.08, 0.06, 0.05, 0.04, 0.03, 0.02]},
]


def clock(topics: int, words: int, tau: int, eps: float, steps: int) -> Row:
    """Adam with full batches: every set of topics is a document."""
    subsets = list(itertools.combinations(range(topics), tau))
    proportions = [[1 / tau if topic in subset else 0.0 for topic in range(topics)] for subset in subsets]
    return (
        NO_BIAS
        | {"dtype": "float64", "steps": steps, "batch_size": len(subsets), "data.documents": len(subsets)}
        | {"data.dev_documents": 1, "topic_model.topics": topics, "topic_model.words_per_topic": words}
        | {"documents.kind": "given", "documents.proportions": proportions, "documents.length": "infinite"}
        | {"model.attention_dim": topics * words + 1, "model.init_scale": 0.001, "objective.loss": "squared"}
        | {"optimizer.name": "adam", "optimizer.lr": 0.001, "optimizer.eps": eps}
    )


EPSILONS = (1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 3e-6, 1e-5, 3e-5, 1e-4)
CLOCKS: dict[tuple[int, int, int], tuple[int, ...]] = {
    (5, 4, 2): (330, 330, 330, 340, 380, 490, 1090, 2110, 5680),
    (6, 3, 3): (370, 370, 370, 370, 410, 480, 1070, 1830, 4490),
}
"""Steps by world and epsilon: 1.3 times those at which key is predicted to be half-way."""

WEIGHTS = [1.0, 1.3, 1.7, 2.2, 2.9, 3.7, 4.8, 6.3]
UNEQUAL: Row = {"topic_model.topics": 8, "topic_model.words_per_topic": 5, "documents.length": "infinite"}

RULES: dict[str, list[Row]] = {
    "figure1": four_panels(**TRAINED),
    "figure2": four_panels(**UNIFORM, **NO_BIAS, **{"objective.l2.value": 1e-5}),
    "figure4": [
        FIGURE4,
        FIGURE4 | {"model.head": "tied"},
        FIGURE4 | {"model.dim": 32},
        FIGURE4 | {"objective.loss": "squared"},
        FIGURE4 | {"objective.loss": "cross-entropy"},
    ],
    "figure6": [NO_BIAS | {"steps": Two(2500, 5000), "optimizer.lr": 0.003, "objective.loss": "squared-mean"}],
    "figure9": four_panels(**UNIFORM, **NO_BIAS, **{"objective.l2": 0.0}),
    "figure10": four_panels(**NO_BIAS, **{"objective.l2": 0.0}),
    "table3": [
        NO_BIAS | {"steps": Two(3000, 5000), "optimizer.name": name, "optimizer.lr": lr, "model.init_scale": "usual"}
        for name, lr in (("adam", 0.003), ("adam", 0.01), ("adam", 0.03), ("sgd", 10.0), ("sgd", 30.0))
    ],
    "table4": [
        NO_BIAS | {"steps": Two(2500, 10_000), "optimizer.lr": lr, "objective.loss": loss}
        for loss in ("cross-entropy", "squared-mean")
        for lr in (0.003, 0.01)
    ],
    "theorem1": [
        INFINITE
        | UNIFORM
        | TRAINED
        | {"dtype": "float64", "steps": Two(3000, 10_000), "batch_size": 40, "data.documents": 120}
        | {"data.dev_documents": 120, "optimizer.name": "sgd", "optimizer.lr": 2.0, "model.value": "identity"}
        | {"model.prediction_bias": "theorem1", "model.init_scale": 0.1}
    ],
    "theorem2": [
        UNIFORM
        | NO_BIAS
        | {"documents.kind": "fixed", "documents.topics_per_document": 3, "documents.length": length}
        | {"objective.loss": "squared", "objective.l2.value": 1e-7, "dtype": "float64", "steps": Two(600, 2000)}
        | {"batch_size": 40, "data.documents": documents, "data.dev_documents": 100, "optimizer.name": "sgd"}
        | {"optimizer.lr": 10.0, "model.init_scale": 0.0}
        for length, documents in (
            (100, Two(2000, 10_000)),
            (1000, Two(2000, 10_000)),
            (10_000, Two(400, 2000)),
            ("infinite", 120),
        )
    ],
    **{
        theorem: [
            INFINITE
            | NO_BIAS
            | {"dtype": "float32", "steps": Two(400, 2000), "batch_size": 24, "data.documents": 120}
            | {"data.dev_documents": 120, "optimizer.lr": 0.03, "model.value": value, "model.init_scale": 0.02}
        ]
        for theorem, value in (("theorem3", "blocks"), ("theorem5", "diagonal"))
    },
    "losses": [
        {"steps": Two(2000, 8000), "objective.loss": loss, "optimizer.lr": 0.003} | trained
        for loss in ("cross-entropy", "squared")
        for trained in (TRAINED, TRAINED | UNIFORM | {"model.value": "identity"}, UNIFORM)
    ],
    "assumptions": [
        NO_BIAS
        | {"steps": Two(800, 3000), "optimizer.lr": 0.01, "data.documents": 4000, "data.dev_documents": 200}
        | change
        for change in VARIED
    ]
    + [flow(0.15, 400) | {"topic_model.topics": 6, "topic_model.words_per_topic": 5} | change for change in RELAXED],
    "finite-length": [
        NO_BIAS | {"steps": Two(1500, 5000), "optimizer.lr": 0.003, "objective.loss": loss} | attention
        for loss in ("squared-mean", "cross-entropy")
        for attention in (UNIFORM, {})
    ]
    + [
        {"seed": 1000 * SEED + sample, "documents.kind": "fixed", "documents.topics_per_document": 3}
        | {"documents.length": length, "data.documents": documents, "data.dev_documents": 1, "masking.fresh": False}
        | {"evaluate_every": LEFT_OUT}
        for length in (30, 125, 1000, "infinite")
        for documents, samples in [(1000, 1) if length == "infinite" else (Two(6000, 12_000), 16)]
        for sample in range(samples)
    ],
    "coarse-to-fine": [
        flow(0.25, 1000, 100)
        | {"topic_model.topics": 9, "topic_model.words_per_topic": 4, "documents.kind": "groups"}
        | {"documents.groups": 3, "documents.rho": 0.5, "documents.topics_per_document": 2}
        | {"documents.length": "infinite"}
    ],
    "topic-order": [
        flow(0.5, 800, 200) | UNEQUAL | documents
        for documents in (
            {"documents.kind": "fixed", "documents.topics_per_document": 1, "documents.weights": WEIGHTS},
            {"documents.kind": "fixed", "documents.topics_per_document": 2, "documents.weights": WEIGHTS},
            {"documents.kind": "dirichlet", "documents.alpha": [0.1 * weight for weight in WEIGHTS]},
        )
    ],
    "sgd-second-stage": [
        NO_BIAS
        | {"steps": Two(5000, 28_000), "batch_size": Two(40, 10), "snapshots": [0], "topic_model.topics": Two(5, 10)}
        | {"topic_model.words_per_topic": Two(4, 10), "documents.topics_per_document": Two(2, 3)}
        | {"documents.kind": "fixed", "documents.length": "infinite", "data.documents": 20_000}
        | {"data.dev_documents": 20, "model.attention_dim": Two(21, 16), "model.init_scale": 0.01}
        | {"objective.loss": "squared", "optimizer.name": "sgd", "optimizer.lr": Two(8.0, 20.0)}
    ],
    "timeline": [
        TRAINED
        | {"objective.loss": "squared-mean", "optimizer.lr": 0.002, "model.init_scale": 0.001}
        | {"steps": 3000, "snapshots": "log"}
    ],
}


def clocks(scale: str) -> list[Row]:
    """`adam-clocks`: the quick scale has five of the nine epsilons."""
    asked = (1e-10, 1e-8, 1e-6, 1e-5, 3e-5) if scale == "quick" else EPSILONS
    return [
        clock(*world, eps, count)
        for world, steps in CLOCKS.items()
        for eps, count in zip(EPSILONS, steps, strict=True)
        if eps in asked
    ]


def settings_of(experiment: str, scale: str) -> list[Row]:
    """What each training of the reference runs was asked for, one row per training."""
    rows = clocks(scale) if experiment == "adam-clocks" else RULES[experiment]
    return [
        {
            key: getattr(value, scale) if isinstance(value, Two) else value
            for key, value in (BASE | row).items()
            if value is not LEFT_OUT
        }
        for row in rows
    ]


def pretrained(scale: str, *, given_text: bool) -> list[Row]:
    """`figure5`: two rates from near zero, and the usual start at the slower one; one seed or three."""
    slow, fast, seeds = (0.001, 0.003, 1) if scale == "quick" else (0.0003, 0.001, 3)
    length, batch_size = (64, 32) if scale == "quick" else (128, 64)
    if not given_text:
        length, batch_size = 50, 16 if scale == "quick" else 64
    return [
        {"text.corpus": ["x"] if given_text else ["(made-up texts)"], "steps": 400, "snapshots": "none"}
        | {"held_out.share": 0.0, "model.layers": 4, "model.heads": 4, "model.dim": 64 if scale == "quick" else 256}
        | {"model.dropout": 0.0 if scale == "quick" else "usual", "model.init_scale": init_scale, "optimizer.lr": lr}
        | {"length": length, "batch_size": batch_size, "micro_batch": batch_size if scale == "quick" else None}
        | {"seed": 1000 * SEED + number}
        for init_scale, lr in ((1e-4, fast), (1e-4, slow), ("usual", slow))
        for number in range(seeds)
    ]


def grids(scale: str) -> list[Row]:
    """`two-stage`: maps of Adam and SGD, Adam along epsilon, and SGD over the same time at two rates."""
    quick = scale == "quick"
    base = {"evaluate_every": None, "floors": False, "data": {"dev_documents": 1000}, "seed": 1000 * SEED}
    axes = {"objective.loss": ["squared", "cross-entropy"], "model.embedding": ["one-hot", "trained"]}
    rates = {
        "adam": [1e-3, 1e-2, 1e-1] if quick else [1e-4, 3e-4, 1e-3, 3e-3, 1e-2, 3e-2, 1e-1, 1.0],
        "sgd": [1e-1, 1.0] if quick else [1e-2, 3e-2, 1e-1, 3e-1, 1.0, 3.0, 10.0],
    }
    scales = [1e-3, 1e-2, 1e-1] if quick else [1e-5, 1e-4, 1e-3, 1e-2, 3e-2, 1e-1, 1.0]
    epsilons = [1e-20, 1e-8, 1e-4]
    if not quick:
        epsilons = [1e-20, 1e-14, 1e-12, 1e-10, 1e-9, 1e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-2]
    seeds = {"seed": [2000] if quick else [2000, 2001, 2002]}
    steps, epsilon_scales, flow_scales = (1000, [1e-2], [1e-1]) if quick else (3000, [1e-3, 1e-2], [1e-2, 1e-1])
    flow_rates = [("squared", "one-hot", 0.3), ("squared", "trained", 0.3)]
    flow_rates += [("cross-entropy", "one-hot", 3.0), ("cross-entropy", "trained", 1.0)]
    return [
        *(
            {"base": base | {"steps": steps, "optimizer": {"name": name}}}
            | {"axes": axes | {"optimizer.lr": lrs, "model.init_scale": scales} | seeds}
            for name, lrs in rates.items()
        ),
        {"base": base | {"steps": steps, "optimizer": {"lr": 1e-3}}}
        | {"axes": axes | {"optimizer.eps": epsilons, "model.init_scale": epsilon_scales} | seeds},
        *(
            {
                "base": base
                | {"steps": part * (1400 if quick else 8000), "objective": {"loss": loss}}
                | {"model": {"embedding": embedding}, "optimizer": {"name": "sgd", "lr": rate / part}},
                "axes": {"model.init_scale": flow_scales},
            }
            for loss, embedding, rate in flow_rates
            if embedding == "trained" or not quick
            for part in (1, 3)
        ),
    ]


def dotted(settings: Mapping[str, Any], before: str = "") -> Row:
    """Nested settings with keys as on the command line."""
    flat: Row = {}
    for key, value in settings.items():
        flat |= dotted(value, f"{before}{key}.") if isinstance(value, dict) else {f"{before}{key}": value}
    return flat
