# ---
# jupyter:
#   jupytext:
#     formats: py:percent
#   kernelspec:
#     display_name: Python 3
#     name: python3
# ---

# %% [markdown]
# # Probe your model
#
# Does a model encode topics? This notebook trains a small BERT on artificial texts and probes it. The texts have words
# of twelve topics, and some words of different topics always appear together.
#
# To probe your own model, skip the training: put the path of your model into `models` below, and that of your text into
# `corpus`.

# %%
from pathlib import Path
from tempfile import mkdtemp

from topicscope import PretrainConfig, ProbeConfig, pretrain, probe
from topicscope.paper import made_up_texts

# %%
work = Path(mkdtemp())
corpus = work / "texts.txt"
corpus.write_text("\n".join(made_up_texts()))
config = PretrainConfig.of(
    text={"corpus": [str(corpus)], "split": "line"},
    tokenizer={"vocab_size": 400},
    model={"layers": 1, "heads": 4, "dim": 64, "dropout": 0.0, "init_scale": "usual"},
    masking={"p_mask": 0.3},
    optimizer={"lr": 0.004},
    steps=400,
    length=34,
    snapshots="none",
)
trained = pretrain(config, work / "pretrain")
trained

# %% [markdown]
# ## Ask
#
# The probe prints one sentence for each answer. docs/reading-your-probe.md explains the answers.

# %%
settings = ProbeConfig.of(
    models=[str(work / "pretrain" / "model")],
    corpus=[str(corpus)],
    split_text="line",
    topics=12,
    thresholds=[0.02, 0.03],
    documents=100,
)
result = probe(settings, work / "probe")
print(*result.summary(), sep="\n")

# %% [markdown]
# ## Look
#
# The result shows its figures: layers, heads, topics and documents.

# %%
result
