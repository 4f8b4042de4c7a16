"""Which function makes the sections of which kind of result.

sections(read("runs/demo"))     # the same call for a run, a probe, a sweep, ...
"""

import importlib

from topicscope.ground import InputError, Result
from topicscope.pages.panels import Section

BUILDERS = {
    "dynamics": "theory.dynamics_sections",
    "landscape": "theory.landscape_sections",
    "optimum": "theory.optimum_sections",
    "pretrain": "pretraining.pretrain_sections",
    "sweep": "maps.sweep_sections",
    "theorem": "theory.theorem_sections",
    "train": "runs.run_sections",
    "probe": "probe.probe_sections",
    "timeline": "timelines.timeline_sections",
    "topics": "topics.topic_model_sections",
    "words": "topics.word_sections",
}  # by kind: module and function of this room; the function takes the result and returns its sections


def sections(result: Result) -> list[Section]:
    """The parts of a result's report: figures, tables and what they show."""
    if result.kind not in BUILDERS:
        raise InputError(f"no figures for results of kind {result.kind!r}; expected one of: {', '.join(BUILDERS)}")
    module, function = BUILDERS[result.kind].split(".")
    return getattr(importlib.import_module(f"topicscope.pages.{module}"), function)(result)
