"""The room of theory in a notebook.

bench = explore_theory(topics=6)
bench                   # sliders, and what theory says of them
train(bench.config)     # a run of the setting that the sliders show
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from topicscope.explorer.theory_room import Question
from topicscope.ground import InputError

if TYPE_CHECKING:
    from topicscope.explorer.theory_bench import TheoryBench


def explore_theory(**settings: Any) -> TheoryBench:
    """Theory under sliders in a notebook. They start at `settings`, which have the names of `Question`."""
    question = Question.of(settings)
    try:
        from topicscope.explorer.theory_bench import TheoryBench
    except ModuleNotFoundError as error:
        raise InputError(
            f"theory under sliders needs {error.name}; install it with: pip install 'topicscope[notebook]'"
        ) from None
    return TheoryBench(question)
