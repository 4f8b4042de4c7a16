"""Which function makes the sections of which kind of result.

sections(read("runs/demo"))     # the same call for a run, a probe, a sweep, ...
"""

import importlib

from topicscope.ground import Result, refuse
from topicscope.pages.panels import Section

BUILDERS = {
    "dynamics": ".theory.dynamics_sections",
    "landscape": ".theory.landscape_sections",
    "optimum": ".theory.optimum_sections",
    "pretrain": ".pretraining.pretrain_sections",
    "sweep": ".maps.sweep_sections",
    "theorem": ".theory.theorem_sections",
    "train": ".runs.run_sections",
    "probe": ".probe.probe_sections",
    "timeline": ".timelines.timeline_sections",
    "topics": ".topics.topic_model_sections",
    "words": ".topics.word_sections",
}  # by kind: module of this room (with '.' before it) or any other, and its function from the result to its sections


def sections(result: Result) -> list[Section]:
    """The parts of a result's report: figures, tables and what they show."""
    known = ", ".join(BUILDERS)
    refuse((result.kind not in BUILDERS, f"no figures for results of kind {result.kind!r}; expected one of: {known}"))
    module, _, function = BUILDERS[result.kind].rpartition(".")
    return getattr(importlib.import_module(module, __package__), function)(result)
