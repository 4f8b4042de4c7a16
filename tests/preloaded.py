"""Everything that commands import, imported once, by the process from which the tests fork their commands."""

import os
import tempfile

os.environ |= {"TOKENIZERS_PARALLELISM": "false", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"}

import accelerate  # type: ignore[import-untyped]
import pyarrow.parquet
import pytest
import starlette.applications
import tomotopy  # type: ignore[import-untyped]
import torch
import transformers
import uvicorn

from tests.calling import TINY, topicscope
from topicscope import explorer, language, measure, pages, paper, pretraining, sweeps, theory, training
from topicscope.cli import main, results, runs, text, theory as theory_commands

torch.set_num_threads(1)
LOADED = (
    *(pytest.main, accelerate.Accelerator, pyarrow.parquet.write_table, tomotopy.LDAModel),
    main.main,
    *(transformers.BertModel, transformers.AutoModel, transformers.AutoTokenizer, transformers.PreTrainedTokenizerFast),
    *(language, measure, pages, paper, pretraining, sweeps, theory, training),
    *(results, runs, text, theory_commands),
    *(training.train, pretraining.pretrain, sweeps.sweep, language.probe, language.load_model, language.timeline_of),
    *(language.probe_model, language.fit_topics, paper.reproduce, pages.write_report, pages.write_sweep_page),
    *(training.sandbox_timeline, language.map_words, theory.attention_landscape, measure.course),
    *(starlette.applications.Starlette, uvicorn.Server, explorer.serve),
    pretraining.Loop if hasattr(pretraining, "Loop") else None,
)

with tempfile.TemporaryDirectory() as folder:  # forks find the compiled code, and what a command imports late
    topicscope("train", *TINY, "--out", f"{folder}/run")
