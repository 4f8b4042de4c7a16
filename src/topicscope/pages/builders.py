"""Which function makes the sections of which kind of result.

sections(read("runs/demo"))     # the same call for a run, a probe, a sweep, ...
"""

import importlib

from topicscope.ground import InputError, Result
from topicscope.pages.parts import PointMap, Section

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
        result: Any result: a run, a probe, a sweep, a theorem, ...

    Returns:
        The sections, in the order of the page.

    Raises:
        InputError: There are no figures for results of this kind.

    Example:
        >>> from topicscope import Fixed, TopicModel, theory
        >>> best = theory.optimum(TopicModel(4, 3), Fixed(topics_per_document=2, length=20))
        >>> [section] = sections(best)
        >>> section.title, [row[0] for row in section.tables[0].rows]  # the modes in the order of learning
        ('The optimum under uniform attention', ['mean', 'topic contrasts', '[MASK] against words', 'within-topic'])
    """
    if result.kind not in BUILDERS:
        raise InputError(f"no figures for results of kind {result.kind!r}; expected one of: {', '.join(BUILDERS)}")
    module, function = BUILDERS[result.kind].split(".")
    return getattr(importlib.import_module(f"topicscope.pages.{module}"), function)(result)


def points_of(result: Result) -> PointMap | None:
    """The points of a result that is a sweep, as data for a map (see `PointMap`).

    Args:
        result: Any result.

    Returns:
        The points; None for results that are not a sweep.

    Example:
        >>> from pathlib import Path
        >>> from topicscope.sweeps import Sweep, build_grid
        >>> from topicscope.theory import Setting, theorem2
        >>> sweep = Sweep.of(build_grid({"axes": {"seed": [0, 1]}}), Path("no/such/folder"))
        >>> points_of(sweep).axes, points_of(theorem2(Setting.of(4, 3)))
        ({'seed': [0, 1]}, None)
    """
    if result.kind != "sweep":
        return None
    found: PointMap = importlib.import_module("topicscope.pages.maps").point_map(result)
    return found
