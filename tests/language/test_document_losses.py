"""Losses of documents: means over predicted tokens, with the output head that ablation uses too."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest import mock

import numpy as np
import pytest

from tests.language import tiny
from tests.language.samples import SHARED, assignment, needs_shared
from topicscope.language import (
    Measurement,
    checked,
    documents,
    load_model,
    losses,
    predictor_of,
    probe_model,
    probing,
    whole_words,
    with_output_head,
)
from topicscope.language.attention import DocumentSums
from topicscope.language.documents import document_losses
from topicscope.language.losses import position_losses
from topicscope.language.models import load_weights
from topicscope.language.probe_rows import LOSS_TOKENS
from topicscope.language.vocabulary import windows

QUICK = Measurement(bootstrap=9, shuffles=20, random=False, states=False, cooccurrence=False)


@needs_shared
def test_the_loss_of_a_document_is_the_mean_over_its_predicted_tokens() -> None:
    loaded = load_model(str(SHARED / "models" / "bert-mini-wiki"))
    vocabulary = whole_words(loaded.tokenizer)
    some = ["The river flows through the old city to the sea. " * 30, "", "Music of the nineteenth century."]
    found, why = document_losses(with_output_head(loaded), vocabulary, some, 3, lambda *_: None)
    predictor, expected = with_output_head(loaded), {}
    for number in (0, 2):
        (piece,) = (w for w in windows(loaded, vocabulary, some, 1, LOSS_TOKENS) if w.document == number)
        ((_, _, losses),) = position_losses(predictor, [piece], 3)
        expected[number] = float(losses.mean())
    assert why == ""
    assert found == pytest.approx(expected, rel=1e-4)
    model = tiny.model("encoder", len(tiny.tokenizer("wordpiece")))
    headless = checked("headless", model, tiny.tokenizer("wordpiece"))
    assert document_losses(predictor_of(headless), vocabulary, some, 0, lambda *_: None)[0] == {}


@needs_shared
def test_a_loss_or_attention_that_is_no_number_is_stored_as_none() -> None:
    """Half precision may overflow; a folder of results takes numbers only."""
    loaded = load_model(str(SHARED / "models" / "bert-mini-wiki"))
    vocabulary, some = whole_words(loaded.tokenizer), ["The river flows to the sea.", "Music of the old city."]

    def overflow(*of: Any) -> Any:
        for number, one in enumerate(position_losses(*of)):
            yield one._replace(losses=one.losses * (np.inf if number == 0 else 1.0))

    with mock.patch.object(documents, "position_losses", overflow):
        found, why = document_losses(with_output_head(loaded), vocabulary, some, 3, lambda *_: None)
    assert list(found) == [1]
    assert why == "loss of documents: of 1 it is not a number (NaN)"
    sums = DocumentSums(0)
    sums.add("encoder", {0: np.array([[0.0, np.nan, 2.0], [0.0, 4.0, 4.0]])})
    assert sums.means(0) == (None, 0.5, 4, 4)


@needs_shared
def test_the_output_head_is_loaded_once() -> None:
    """Losses of documents and ablation share the model that predicts words."""
    loaded = load_model(str(SHARED / "models" / "bert-mini-wiki"))
    vocabulary = whole_words(loaded.tokenizer)
    words = vocabulary.words[:40]
    tokens = vocabulary.token[:40]
    a = replace(
        assignment(whole_words(tiny.tokenizer("wordpiece")), several=False), token=tokens[:19], words=words[:19]
    )
    with (
        mock.patch.object(losses, "load_weights", wraps=load_weights) as loading,
        mock.patch.object(probing, "topical_heads", lambda heads, _: heads[:1]),
    ):
        found = probe_model(loaded, [" ".join(words)] * 3, a, QUICK, vocabulary=vocabulary)
    assert loading.call_count == 1
    assert [row.draws > 0 for row in found.ablation] == [True, True]
    assert all(row.loss is not None for row in found.documents)
