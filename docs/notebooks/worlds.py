# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # Worlds: topics that overlap, come in groups, or have a prior of your own
#
# The paper assumes disjoint topics that are all alike. Here you compute the best value matrix without this assumption,
# and check it by training. docs/worlds.md lists all worlds.

# %%
import numpy as np

from topicscope import RunConfig, train
from topicscope.theory import optimum
from topicscope.world import Fixed, Groups, Moments, Own, TopicModel

# %% [markdown]
# ## Overlap
#
# Each topic shares a third of its words with the next one. Two numbers no longer describe the optimum: it is a matrix.

# %%
overlapping = optimum(TopicModel(6, 6, overlap=0.34), Fixed(topics_per_document=2, length="infinite"))
overlapping

# %% [markdown]
# ## Groups: coarse before fine
#
# Nine topics form three groups, and half of the documents stay inside one group. The value matrix learns the groups
# before the topics inside them: compare the half-times.

# %%
grouped = optimum(TopicModel(9, 4), Groups(topics_per_document=2, groups=3, rho=0.5, length="infinite"))
[(mode.name, mode.count, round(mode.half_time, 1)) for mode in grouped.modes if mode.half_time]

# %% [markdown]
# ## A prior of your own
#
# A prior is the distribution of topic proportions. Two methods define it: `sample` and `moments`.


# %%
class OneOrTwo:
    """Half of the documents have one topic, half have two in equal shares."""

    def sample(self, topics, count, rng):
        theta = np.zeros((count, topics))
        for row in theta:
            row[rng.choice(topics, size=rng.integers(1, 3), replace=False)] = 1
        return theta / theta.sum(axis=1, keepdims=True)

    def moments(self, topics):
        squares = 0.75 / topics
        products = 0.25 / (topics * (topics - 1))
        second = np.full((topics, topics), products) + (squares - products) * np.eye(topics)
        return Moments(np.full(topics, 1 / topics), second)


own = optimum(TopicModel(5, 4), Own(OneOrTwo(), length=100))
print(*own.summary(), sep="\n")

# %% [markdown]
# ## Does training reach it?
#
# `distance_to_optimum` is the distance of the trained matrix to the optimum, relative to the norm of the optimum.

# %%
settings = {
    "topic_model": {"topics": 6, "words_per_topic": 6, "overlap": 0.34},
    "documents": {"kind": "fixed", "topics_per_document": 2, "length": "infinite"},
    "model": {"key": "zero", "query": "zero", "init_scale": 0, "prediction_bias": "none"},
    "objective": {"loss": "squared"},
    "optimizer": {"name": "sgd", "lr": 5.0},
    "floors": False,
}
run = train(RunConfig.of(settings, steps=2000))
run.results["distance_to_optimum"]

# %%
run
