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

# %%
from topicscope import RunConfig, train
from topicscope.theory import Setting, dynamics

# %% [markdown]
# ## Watch
#
# A trained embedding, squared loss averaged over the outputs, Adam, everything near zero: W_V rises first.

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
# In a small world with one-hot words, squared loss and SGD the times are known in closed form.

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
# The run's own page draws the predicted norms over the measured ones.

# %%
measured
