"""The room of theory in a notebook.

bench = explore_theory(topics=6)
bench                   # sliders, and what theory says of them
train(bench.config)     # a run of the setting that the sliders show
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topicscope.explorer.theory_room import Question
from topicscope.ground import require

if TYPE_CHECKING:
    from topicscope.explorer.theory_bench import TheoryBench


def explore_theory(**settings: Any) -> TheoryBench:
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
    question = Question.of(settings)
    require(("anywidget", "ipywidgets"), "theory under sliders")
    from topicscope.explorer.theory_bench import TheoryBench

    return TheoryBench(question)
