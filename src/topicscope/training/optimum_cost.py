"""Whether a run should end in W*, and what W* costs after the last step, from the settings alone."""

from topicscope.ground import FLOPS
from topicscope.training.config import RunConfig
from topicscope.training.relations import topics_alike

MOST_WORDS = 2000  # of a world without symmetry, for which `train` computes W*: five seconds
MOST_TOPICS = 1000  # of a logistic normal, whose moments are numerical: five seconds
SOLVED = 25  # operations per V^3 to decompose E[xx'] and to multiply by its parts


def ends_in_optimum(config: RunConfig) -> bool:
    """Whether a run's value matrix should end in W*, if there is one: uniform attention and squared loss."""
    return config.model.uniform_attention and config.objective.loss != "cross-entropy"


def without_symmetry(config: RunConfig) -> bool:
    """Whether W* may be a matrix that is solved for. Moments, which decide it, are not made here."""
    given = ends_in_optimum(config) and not config.no_optimum
    return given and config.topic_model.words <= MOST_WORDS and not topics_alike(config)


def optimum_seconds(config: RunConfig) -> float:
    """Of W*, where it is more than a handful of numbers."""
    return SOLVED * config.topic_model.vocabulary**3 / FLOPS if without_symmetry(config) else 0.0


def optimum_bytes(config: RunConfig) -> float:
    """Of W* and what it is made of."""
    matrices = 0 if not ends_in_optimum(config) else 8 if without_symmetry(config) else 3
    return 8.0 * matrices * config.topic_model.vocabulary**2
