"""Words and topics by their names, where a run's words have names: those of a corpus."""

import numpy as np
from jaxtyping import Int

from topicscope.laws import contributions, training_optimum
from topicscope.pages.panels import Heat
from topicscope.pages.parts import Figure
from topicscope.training import Run

MOST_NAMED = 30  # words along the side of a matrix that have room for their names


def topic_names(run: Run) -> list[str]:
    """The number of each topic, from 1 on; with its most probable word, where words have names."""
    model = run.config.topic_model
    if model.word_names is None:
        return [f"{t + 1}" for t in range(model.topics)]
    return [f"{t + 1} {model.word_names[word]}" for t, word in enumerate(model.word_topics.argmax(0))]


def named_words(run: Run) -> tuple[Int[np.ndarray, " n"], list[str]] | None:
    """[MASK] and the most probable words of each main topic, topic by topic, with their names; None without names."""
    model = run.config.topic_model
    if model.word_names is None:
        return None
    main, picked = model.main_topic[1:] - 1, [0]
    each = max(1, MOST_NAMED // model.topics)
    for topic in range(model.topics):
        words = np.flatnonzero(main == topic)
        picked += (1 + words[np.argsort(-model.word_topics[words, topic], kind="stable")][:each]).tolist()
    picked = picked[: 1 + MOST_NAMED]
    return np.array(picked), ["[MASK]", *(model.word_names[word - 1] for word in picked[1:])]


def optimum_name(run: Run) -> str:
    """Of W* as W_V should be: less what biases add to it, where there are any."""
    biases = run.config.model.value_bias, run.config.model.prediction_bias
    return "W*" if biases == ("none", "none") else "W* (minus the run's bias)"


def word_figures(run: Run) -> list[Figure]:
    """The matrix over the words with names, and W* where the run was compared with it; none without names."""
    named, weights = named_words(run), run.weights
    if named is None:
        return []
    places, names = named
    matrices = {}
    if "gram" in run.results:
        matrices["W_E'W_E"] = weights["embedding"].T @ weights["embedding"]
    elif "value" in run.results:
        matrices["W_V"] = weights["value"]
        best = training_optimum(run.config).matrix if "distance_to_optimum" in run.results else None
        if best is not None:  # W* less the run's bias is what W_V should be
            matrices[optimum_name(run)] = best - (contributions(run.config, weights) - weights["value"])
    shown = {name: np.asarray(matrix, dtype=float)[np.ix_(places, places)] for name, matrix in matrices.items()}
    panels = [
        Heat(name, np.round(z, 6).tolist(), "input word", "output word", labels=names)
        for name, z in shown.items()
        if np.isfinite(z).all()
    ]
    if not panels:
        return []
    title = f"The most probable words of each main topic ({len(places) - 1} of {run.config.topic_model.words})"
    return [Figure("words", title, "Heat maps over words with their names, [MASK] first, topic by topic.", panels, 1)]
