# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # Two stages: watch, then predict
#
# The value matrix W_V learns topics first, then attention forms. This notebook shows it, and predicts the steps.

# %%
from topicscope import RunConfig, train
from topicscope.theory import Setting, dynamics

# %% [markdown]
# ## Watch
#
# The setting: a trained embedding, squared loss averaged over the outputs, Adam, and all weights near zero. W_V rises
# first.

# %%
settings = {
    "model": {"embedding": "trained", "init_scale": 0.001},
    "objective": {"loss": "squared-mean"},
    "optimizer": {"lr": 0.001},
    "floors": False,
}
run = train(RunConfig.of(settings, steps=1000))
print(run.course.sentence)
run

# %% [markdown]
# ## Predict
#
# In a small world with one-hot words, squared loss and SGD, a formula gives the step at which each stage is half-way.

# %%
law = dynamics(Setting.of(5, 4, 2), init_scale=1e-3, optimizer="sgd", lr=4.0)
law.steps

# %%
small = {
    "topic_model": {"topics": 5, "words_per_topic": 4},
    "documents": {"kind": "fixed", "topics_per_document": 2, "length": "infinite"},
    "model": {"init_scale": 0.001, "prediction_bias": "none"},
    "objective": {"loss": "squared"},
    "optimizer": {"name": "sgd", "lr": 4.0},
    "floors": False,
}
measured = train(RunConfig.of(small, steps=14000))
measured.course.sentence

# %% [markdown]
# The figures of the run show the predicted norms over the measured ones.

# %%
measured
