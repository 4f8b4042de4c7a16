# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # A small phase diagram
#
# Which course does training take, over learning rate and initial scale? Here in a small world, with few steps;
# `examples/phase-diagram.yaml` is the whole map.

# %%
from pathlib import Path
from tempfile import mkdtemp

from topicscope import RunConfig, sweep
from topicscope.training import predicted_phase

# %%
base = {
    "steps": 1500,
    "topic_model": {"topics": 5, "words_per_topic": 4},
    "documents": {"kind": "fixed", "topics_per_document": 2, "length": "infinite"},
    "model": {"prediction_bias": "none"},
    "objective": {"loss": "squared"},
    "optimizer": {"name": "sgd"},
    "evaluate_every": None,
    "floors": False,
}
axes = {"optimizer.lr": [1.0, 10.0, 60.0], "model.init_scale": [0.001, 0.1, 0.5]}
result = sweep({"base": base, "axes": axes}, Path(mkdtemp()) / "sweep")
result

# %% [markdown]
# The laws predict the phase of each cell, or say why they do not cover it.

# %%
for row in result.rows:
    config = RunConfig.of(
        base,
        optimizer={"name": "sgd", "lr": row["optimizer.lr"]},
        model={"prediction_bias": "none", "init_scale": row["model.init_scale"]},
    )
    predicted = predicted_phase(config).phase
    print(f"rate {row['optimizer.lr']:g}, start {row['model.init_scale']:g}: {row['phase']}, predicted {predicted}")
