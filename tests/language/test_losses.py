"""Losses by position: those of plain forward passes, window by window; and no loss where there is no output head."""

from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import pytest
import torch
import transformers

from tests.language import tiny
from tests.language.samples import SHARED, model_folder, needs_shared
from topicscope.ground import InputError
from topicscope.language import (
    LoadedModel,
    NoOutputHead,
    Window,
    checked,
    load_model,
    losses,
    position_losses,
    whole_words,
    with_output_head,
)
from topicscope.language.vocabulary import windows

pytestmark = pytest.mark.model
CLASSES = {"encoder": "AutoModelForMaskedLM", "decoder": "AutoModelForCausalLM"}


def headed(kind: str, *, length: int = 40) -> LoadedModel:
    """A tiny model with an output head, in float64."""
    tokenizer = tiny.tokenizer("wordpiece", length)
    config = tiny.model(kind, len(tokenizer), length).config
    torch.manual_seed(1)
    build: Any = getattr(transformers, CLASSES.get(kind, "AutoModelForSeq2SeqLM"))
    model = build.from_config(config, attn_implementation="eager").double().eval()
    return checked(kind, model, tokenizer)


def cut(loaded: LoadedModel, length: int = 20) -> list[Window]:
    return list(windows(loaded, whole_words(loaded.tokenizer), tiny.TEXTS, None, length))


def by_loop(loaded: LoadedModel, window: Window, position: int, hidden: set[int]) -> float:
    """One token of one window: nothing padded, all of the predictions, softmax as it is written."""
    tokens = torch.tensor(window.tokens)[None]
    shown = torch.tensor([loaded.tokenizer.mask_token_id if i in hidden else t for i, t in enumerate(window.tokens)])
    with torch.no_grad():
        if loaded.name == "encoder":
            row = loaded.model(input_ids=shown[None]).logits[0, position]
        elif loaded.name == "decoder":
            row = loaded.model(input_ids=tokens[:, :position]).logits[0, -1]
        else:
            start = torch.tensor([[loaded.model.config.decoder_start_token_id]])
            before = torch.cat([start, tokens[:, :position]], 1)
            row = loaded.model(input_ids=shown[None], decoder_input_ids=before).logits[0, -1]
    row = row.numpy()
    return float(np.log(np.exp(row - row.max()).sum()) + row.max() - row[window.tokens[position]])


@pytest.mark.parametrize("rounds", [1, 3])
@pytest.mark.parametrize("kind", tiny.MODELS)
def test_losses_are_those_of_single_predictions(kind: str, rounds: int) -> None:
    loaded = headed(kind)
    pieces, special = cut(loaded), set(loaded.tokenizer.all_special_ids)
    with mock.patch.object(losses, "CHUNK", 3):
        found = list(position_losses(with_output_head(loaded), iter(pieces), 4, rounds=rounds))
    assert [one.window for one in found] == pieces
    assert sum(len(one.positions) for one in found) > 20
    numbers: dict[int, int] = {}
    for window, positions, values in found:
        number = numbers[window.document] = numbers.get(window.document, -1) + 1
        turns = losses.predicted(window, number, np.array(sorted(special)), 4, rounds)
        if kind == "decoder":
            turns = [np.array([i for i, t in enumerate(window.tokens) if i and t not in special], dtype=int)]
        expected = {int(i): by_loop(loaded, window, int(i), set(map(int, turn))) for turn in turns for i in turn}
        assert positions.tolist() == sorted(expected)
        np.testing.assert_allclose(values, [expected[int(i)] for i in positions], rtol=1e-10, atol=1e-12)


def test_seven_rounds_mask_every_token_once() -> None:
    loaded = headed("encoder")
    special = loaded.tokenizer.all_special_ids
    for window, positions, _ in position_losses(with_output_head(loaded), cut(loaded), 0, rounds=99):
        assert positions.tolist() == np.flatnonzero(~np.isin(window.tokens, special)).tolist()
    for window in cut(loaded):
        (first,) = losses.predicted(window, 0, np.array(special), 0, 1)
        words = int((~np.isin(window.tokens, special)).sum())
        assert len(first) == -(-words // losses.MASKED)


def test_masks_are_named_by_seed_document_and_window() -> None:
    window, special = Window(3, np.arange(100), np.arange(100)), np.array([0, 1])
    drawn = [
        losses.predicted(one, number, special, seed, 1)[0].tolist()
        for one, number, seed in (
            (window, 0, 0),
            (window, 0, 0),
            (window, 1, 0),
            (window, 0, 1),
            (Window(4, window.tokens, window.places), 0, 0),
        )
    ]
    assert drawn[0] == drawn[1]
    assert len({tuple(one) for one in drawn}) == 4


@pytest.mark.parametrize("kind", tiny.MODELS)
def test_a_stored_head_is_loaded(kind: str, tmp_path: Path) -> None:
    made = headed(kind)
    made.model.float().save_pretrained(tmp_path)
    made.tokenizer.save_pretrained(tmp_path)
    loaded = load_model(tmp_path)
    assert loaded.model.get_output_embeddings() is None
    ours, theirs = (
        np.concatenate([one.losses for one in position_losses(with_output_head(one), cut(made), 0)])
        for one in (loaded, made)
    )
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)


def test_no_head_is_made_up(tmp_path: Path) -> None:
    bare = load_model(model_folder(tmp_path))
    with pytest.raises(NoOutputHead, match=r"no output head .* missing \(cls\.predictions"):
        with_output_head(bare)
    with pytest.raises(NoOutputHead, match="random weights"):
        with_output_head(bare.random())
    tokenizer = tiny.tokenizer("wordpiece")
    with pytest.raises(NoOutputHead, match="given without an output head"):
        with_output_head(checked("encoder", tiny.model("encoder", len(tokenizer)), tokenizer))
    assert issubclass(NoOutputHead, InputError)


def test_a_tokenizer_without_a_mask_hides_nothing() -> None:
    loaded = headed("encoder")
    hidden = mock.patch.object(type(loaded.tokenizer), "mask_token_id", None, create=True)
    with hidden, pytest.raises(NoOutputHead, match="no mask token"):
        with_output_head(loaded)


def test_predictions_that_see_their_word_are_refused() -> None:
    """A decoder whose attention looks ahead has losses that mean nothing."""
    loaded = headed("decoder")
    inside = loaded.model.forward

    def looking(**inputs: Any) -> Any:
        output = inside(**inputs)
        output.logits = output.logits + inputs["input_ids"][:, -1, None, None]
        return output

    ahead = mock.patch.object(loaded.model, "forward", looking)
    with ahead, pytest.raises(NoOutputHead, match="depend on that word"):
        with_output_head(loaded)


@needs_shared
@pytest.mark.parametrize("name", ["bert", "roberta", "albert", "bart", "electra"])
def test_shared_models(name: str) -> None:
    """Trained heads predict better than chance; the discriminator has no head."""
    loaded = load_model(SHARED / "models" / f"{name}-mini-wiki")
    if name == "electra":
        with pytest.raises(NoOutputHead, match="generator_lm_head"):
            with_output_head(loaded)
        return
    text = "The French composer wrote an opera, and the orchestra played the symphony in the concert hall. " * 5
    pieces = windows(loaded, whole_words(loaded.tokenizer), [text], None)
    found = np.concatenate([one.losses for one in position_losses(with_output_head(loaded), pieces, 0, rounds=7)])
    assert found.mean() < 0.6 * np.log(len(loaded.tokenizer))
