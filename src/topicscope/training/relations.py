"""What a run's matrix has between which topics, where 'same topic' and 'different topic' would hide it.

train(RunConfig.of({"documents": {"kind": "groups", "groups": 5}})).results["relations"]["value"]["partners"]
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from jaxtyping import Float

from topicscope import theory
from topicscope.measure import partner_means, shared_topic_means, topic_pair_means
from topicscope.training.config import RunConfig
from topicscope.world import Groups

MOST_TOPICS = 100  # of the map that results hold: T x T numbers
MOST_ENTRIES = 20_000_000  # of A, up to which means are made: seconds


def topics_alike(config: RunConfig) -> bool:
    """Whether all pairs of topics are alike, as in the paper: disjoint, of equal words, exchangeable.

    Args:
        config: Config of the run.

    Returns:
        True or False.

    Example:
        >>> from topicscope.training import RunConfig
        >>> topics_alike(RunConfig()), topics_alike(RunConfig.of({"documents": {"kind": "groups", "groups": 5}}))
        (True, False)
    """
    return theory.topics_alike(config.topic_model, config.documents)


def topic_relations(config: RunConfig, matrix: Float[np.ndarray, "V V"]) -> dict[str, Any]:
    """Means of a matrix over pairs of different words, by how their topics are related; None where there are none.

    Args:
        config: Config of the run.
        matrix: Such as its value matrix (V x V), [MASK] first.

    Returns:
        Empty where topics are alike, A is too large, or the matrix is not finite. Else:

        - `topics`: T x T means by pair of topics, output word in rows. A word with several topics counts in each by its
          share A[w, t] / sum of A[w, :].
        - `shared`: means by the number of topics that two words have in common, where words have several.
        - `partners`: under the prior `groups`; words of one topic, of two topics of one group, of different groups.

    Example:
        >>> import numpy as np
        >>> from topicscope.training import RunConfig
        >>> world = {"topic_model": {"topics": 4, "words_per_topic": 1}, "documents": {"kind": "groups", "groups": 2}}
        >>> matrix = np.pad(np.kron(np.eye(2), np.ones((2, 2))), ((1, 0), (1, 0)))  # 1 inside a group, 0 across
        >>> topic_relations(RunConfig.of(world), matrix)["partners"]
        {'same': None, 'partner': 1.0, 'other': 0.0}
    """
    model, prior = config.topic_model, config.documents
    if model.words * model.topics > MOST_ENTRIES or not np.isfinite(matrix).all() or topics_alike(config):
        return {}
    relations: dict[str, Any] = {}
    if model.topics <= MOST_TOPICS:
        share = model.word_topics / model.word_topics.sum(1, keepdims=True)
        rows = topic_pair_means(matrix, share).tolist()
        relations["topics"] = [[None if math.isnan(mean) else mean for mean in row] for row in rows]
    if not model.disjoint:
        means = shared_topic_means(matrix, model.word_topics > 0)
        relations["shared"] = {str(count): mean for count, mean in means.items()}
    if isinstance(prior, Groups) and config.data.train_file is None:
        group = np.arange(model.topics) // (model.topics // prior.groups)
        relations["partners"] = partner_means(matrix, model.word_topics > 0, group)
    return relations
