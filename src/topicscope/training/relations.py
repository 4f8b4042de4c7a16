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
    """Whether all pairs of topics are alike, as in the paper: disjoint, equal and exchangeable."""
    return theory.topics_alike(config.topic_model, config.documents)


def topic_relations(config: RunConfig, matrix: Float[np.ndarray, "V V"]) -> dict[str, Any]:
    """Means over pairs of different words, None where there is no such pair.

    Empty where topics are alike, where A is too large, and where a run has diverged.

    - `topics`: by pair of topics, output word in rows. A word with several topics counts in each by its share of the
      word's probabilities: A[w, t] / sum of A[w, :].
    - `shared`: by the number of topics that two words have in common, where words have several.
    - `partners`: under the prior `groups`; words of one topic, of other topics of one group, and of no group in common.
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
