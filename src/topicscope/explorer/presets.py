"""Settings by the paper's names, for the room in which runs are started."""

from typing import Any

INFINITE = {"kind": "fixed", "topics_per_document": 3, "length": "infinite"}
SMALL = {
    "topic_model": {"topics": 5, "words_per_topic": 4},
    "documents": {"kind": "fixed", "topics_per_document": 2, "length": "infinite"},
}

PRESETS: dict[str, tuple[str, dict[str, Any]]] = {
    "two stages": (
        "Value, then key and query: SGD in a small world, where theory predicts both (less than a minute).",
        {
            **SMALL,
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
            "documents": INFINITE,
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
