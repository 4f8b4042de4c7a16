"""Which function makes the sections of which kind of result.

sections(read("runs/demo"))     # the same call for a run, a probe, a sweep, ...
"""

import importlib

from topicscope.figures.parts import PointMap, Section
from topicscope.ground import InputError, Result

BUILDERS = {
    "dynamics": "theory.dynamics_sections",
    "landscape": "theory.landscape_sections",
    "optimum": "theory.optimum_sections",
    "pretrain": "dynamics.pretrain_sections",
    "sweep": "maps.sweep_sections",
    "theorem": "theory.theorem_sections",
    "train": "train_run.run_sections",
    "probe": "probing.probe_sections",
    "timeline": "timelines.timeline_sections",
    "topics": "topics.topic_model_sections",
    "words": "words.word_sections",
}  # by kind: module and function of this room; the function takes the result and returns its sections


def sections(result: Result) -> list[Section]:
    """The parts of a result's report: figures, tables and what they show.

    Args:
        result: Any result of the project.

    Returns:
        The sections.

    Raises:
        InputError: There are no figures for results of this kind.

    Example:
        >>> from topicscope.theory import Setting, theorem2
        >>> [section.title for section in sections(theorem2(Setting.of(4, 3)))]
        ['Theorem 2']
    """
    if result.kind not in BUILDERS:
        raise InputError(f"no figures for results of kind {result.kind!r}; expected one of: {', '.join(BUILDERS)}")
    module, function = BUILDERS[result.kind].split(".")
    return getattr(importlib.import_module(f"topicscope.figures.{module}"), function)(result)


def points_of(result: Result) -> PointMap | None:
    """All points of a sweep, of which a reader chooses measure and axes.

    Args:
        result: Any result.

    Returns:
        The points; None for results that are no sweep.

    Example:
        >>> from topicscope.theory import Setting, theorem2
        >>> print(points_of(theorem2(Setting.of(4, 3, 2))))
        None
    """
    if result.kind != "sweep":
        return None
    found: PointMap = importlib.import_module("topicscope.figures.maps").point_map(result)
    return found
