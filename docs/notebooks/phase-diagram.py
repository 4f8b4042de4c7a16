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
# Do the two stages of learning appear? That depends on learning rate and initial scale. This notebook draws a small
# map, for a small world and few steps, and compares it with the prediction. `examples/phase-diagram.yaml` is the whole
# map; docs/two-stages.md explains the phases.

# %%
from pathlib import Path
from tempfile import mkdtemp

from topicscope import RunConfig, sweep
from topicscope.laws import predicted_phase

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
# `predicted_phase` predicts the phase of each cell from theory. If no formula covers a cell, it says why.

# %%
for row in result.rows:
    config = RunConfig.of(
        base,
        optimizer={"name": "sgd", "lr": row["optimizer.lr"]},
        model={"prediction_bias": "none", "init_scale": row["model.init_scale"]},
    )
    predicted = predicted_phase(config).phase
    print(f"rate {row['optimizer.lr']:g}, start {row['model.init_scale']:g}: {row['phase']}, predicted {predicted}")
