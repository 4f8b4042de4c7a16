"""Documents that are never trained on, and the loss on them, against the plain way."""

from __future__ import annotations

import hashlib
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tests.pretraining import small
from tests.pretraining.test_loop import OneOf, loop_of
from topicscope import InputError
from topicscope.ground import Stream
from topicscope.language import Corpus
from topicscope.pretraining import MaskedLoss, cost_of, pretrain
from topicscope.pretraining.config import Masking
from topicscope.pretraining.data import Rows, is_held_out
from topicscope.pretraining.loop import HeldOutLoss
from topicscope.pretraining.model import Masker

SHARE = 0.05


def held_out_loss(rank: int = 0, processes: int = 1, **settings: Any) -> tuple[HeldOutLoss, MaskedLoss]:
    config = small.config(held_out={"share": SHARE}, **settings)
    loop = loop_of(config, accelerator=OneOf(rank, processes))
    return HeldOutLoss(loop.batches, small.tokenizer(), rank), loop.own_loss


def test_the_text_alone_decides_which_documents_are_held_out() -> None:
    texts = [f"document {i}" for i in range(4000)]
    share = np.mean([is_held_out(text, 0.1) for text in texts])
    assert abs(share - 0.1) < 4 * np.sqrt(0.1 * 0.9 / 4000)
    assert not any(is_held_out(text, 0.0) for text in texts)
    assert all(is_held_out(text, 0.2) for text in texts if is_held_out(text, 0.1))  # a larger share holds the smaller
    number = int.from_bytes(hashlib.blake2b(b"document 7", digest_size=8).digest()) / 2**64
    assert [is_held_out("document 7", number + change) for change in (-1e-9, 1e-9)] == [False, True]
    assert is_held_out("document 7\n", number + 1e-9)  # ends of lines do not count
    assert is_held_out("\udc80", 0.5) in (True, False)  # what is no text in UTF-8 has a side, too


def test_what_is_held_out_is_never_trained_on() -> None:
    out = [text for text in small.texts() if is_held_out(text, SHARE)]
    assert len(out) == 7
    rows = Rows(small.texts(), small.tokenizer(), small.LENGTH, 0, held_out=SHARE)
    for epoch in range(2):
        rows.epoch = epoch
        assert sorted([*rows._shuffled(), *out]) == sorted(small.texts())
    held = rows.held_out_rows(64)
    alone = Rows(out, small.tokenizer(), small.LENGTH, 0)
    tokens = [token for text in out for token in [*small.tokenizer()(text, add_special_tokens=False)["input_ids"], 3]]
    assert small.tokenizer().sep_token_id == 3
    assert held[:, 1:-1].ravel().tolist() == tokens[: len(held) * alone.room]
    assert len(held) == len(tokens) // alone.room == 18
    assert np.array_equal(rows.held_out_rows(5), held[:5])
    none = Rows(small.texts(), small.tokenizer(), small.LENGTH, 0).held_out_rows(64)
    assert none.shape == (0, small.LENGTH)


def test_reading_stops_once_there_are_rows_enough(corpus: str) -> None:
    """A corpus may be far longer than what is held out of it."""
    read = Corpus([corpus])
    rows = Rows(read, small.tokenizer(), small.LENGTH, 0, held_out=SHARE)
    assert len(rows.held_out_rows(2)) == 2
    assert 0 < read.counts["documents"] < 300
    assert len(rows.held_out_rows(64)) == 18
    assert read.counts["documents"] == 300


@pytest.mark.parametrize("micro", [8, 4, 1])
def test_the_loss_is_the_mean_over_masked_places_without_dropout(micro: int) -> None:
    """Of 18 rows, each with masks of its own that neither seed nor share nor micro-batch changes."""
    measure, loss_of = held_out_loss(micro_batch=micro, seed=3)
    rows = Rows(small.texts(), small.tokenizer(), small.LENGTH, 9, held_out=SHARE).held_out_rows(64)
    masker, total, places = Masker(small.tokenizer(), Masking(), 0), 0.0, 0
    model = loss_of.model.eval()
    for number, row in enumerate(rows):
        shown, at, targets = masker(row[None], 0, number, Stream.HELD_OUT_TOKENS)
        logits = model(input_ids=shown).logits.detach()[0, at]
        total += float(torch.nn.functional.cross_entropy(logits, targets, reduction="sum")) if len(at) else 0.0
        places += len(at)
    model.train()
    assert places == measure.places > 30
    found = float(measure(loss_of, nullcontext()))
    assert found == pytest.approx(total / places, rel=1e-5)
    assert float(measure(loss_of, nullcontext())) == found  # the same every time
    assert loss_of.model.training
    shares = [held_out_loss(rank, 2, micro_batch=min(4, micro), seed=3) for rank in range(2)]
    assert sum(float(one(of, nullcontext())) for one, of in shares) == pytest.approx(found, rel=1e-5)
    assert all(0.2 * found < float(one(of, nullcontext())) < 0.8 * found for one, of in shares)


def test_it_is_taken_every_so_many_steps_and_at_the_end(corpus: str, tmp_path: Path) -> None:
    config = small.config(corpus, steps=25, held_out={"share": SHARE, "every": 10}, snapshots="none")
    run = pretrain(config, tmp_path / "run")
    assert np.flatnonzero(np.isfinite(run.metrics["held_out_loss"])).tolist() == [0, 10, 20, 25]
    assert run.results.held_out_loss == run.metrics["held_out_loss"][-1] < run.metrics["held_out_loss"][0] - 0.2
    assert f", held-out loss {run.results.held_out_loss:.4f} after 25 steps" in run.summary()[0]
    without = pretrain(config.changed({"held_out.share": 0.0}))
    assert np.isnan(without.metrics["held_out_loss"]).all()
    assert without.results.held_out_loss is None
    often = pretrain(config.changed({"held_out.every": 1}))
    assert np.isfinite(often.metrics["held_out_loss"]).all()
    for name in ("loss", "norm_value_1", "gradient_norm"):  # to look on changes nothing
        np.testing.assert_array_equal(often.metrics[name], run.metrics[name])


def test_stopped_and_resumed_it_is_the_same(corpus: str, tmp_path: Path) -> None:
    """At a checkpoint that a measurement falls on, and one that none falls on."""
    config = small.config(corpus, steps=12, checkpoint_every=4, held_out={"share": SHARE, "every": 8}, snapshots="none")
    whole = pretrain(config, tmp_path / "whole")
    for stop in (5, 10):
        out = tmp_path / str(stop)
        with pytest.raises(KeyboardInterrupt):
            pretrain(config, out, progress=small.stop_at(stop, KeyboardInterrupt()))
        pretrain(config, out, resume=True)
        assert small.files(out) == small.files(tmp_path / "whole")
    assert np.flatnonzero(np.isfinite(whole.metrics["held_out_loss"])).tolist() == [0, 8, 12]


def test_it_is_in_the_estimate() -> None:
    every, off = ({"share": share, "every": 1, "rows": 320} for share in (0.1, 0.0))
    often, never = (cost_of([small.config(steps=1000, batch_size=8, held_out=held)]) for held in (every, off))
    assert often.seconds > 3 * never.seconds  # 320 rows forward: a dozen steps of 8 rows
    assert often.memory > never.memory
    with pytest.raises(InputError, match=r"held_out\.share"):
        small.config(held_out={"share": 0.6})
