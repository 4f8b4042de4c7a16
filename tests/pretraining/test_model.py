"""The library's model, its start, its loss at masked places, and what is tracked, each against the plain way."""

from typing import Any

import numpy as np
import pytest
import torch
import transformers

from tests.pretraining import small
from topicscope import InputError
from topicscope.pretraining.config import Masking, Shape
from topicscope.pretraining.data import Rows
from topicscope.pretraining.loop import (
    MaskedLoss,
    Masker,
    Tracker,
    attention_layers,
    build_model,
    build_optimizer,
    library_config,
)

ARCHITECTURES = ("bert", "roberta", "albert", "electra", "bart")


def batch(seed: int = 0) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    rows = Rows(small.texts(), small.tokenizer(), small.LENGTH, seed).take(0, 8)
    return Masker(small.tokenizer(), Masking(), seed)(rows, 0, 0)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_loss_at_masked_places_is_the_librarys(architecture: str) -> None:
    model = build_model(small.config(model={"architecture": architecture}), small.tokenizer()).double().eval()
    shown, places, targets = batch()
    labels = torch.full_like(shown, -100).view(-1).index_copy(0, places, targets).view_as(shown)
    inputs: dict[str, Any] = {"input_ids": shown}
    if architecture == "bart":  # the library would make the decoder read the labels alone
        text = torch.where(labels == -100, shown, labels)
        start = torch.full_like(text[:, :1], model.config.decoder_start_token_id)
        inputs["decoder_input_ids"] = torch.cat([start, text[:, :-1]], 1)
    logits = model(**inputs).logits
    expected = torch.nn.functional.cross_entropy(
        logits.flatten(0, 1), labels.flatten(), ignore_index=-100, reduction="sum"
    )
    found = MaskedLoss(model)(shown, places, targets)
    assert found.item() == pytest.approx(expected.item(), rel=1e-12)
    ours, theirs = (
        torch.autograd.grad(loss, [p for p in model.parameters() if p.requires_grad], allow_unused=True)
        for loss in (found, expected)
    )
    for a, b in zip(ours, theirs, strict=True):
        assert (a is None) == (b is None)
        if a is not None and b is not None:
            torch.testing.assert_close(a, b, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_attention_matrices_are_found_and_start_where_told(architecture: str) -> None:
    usual = build_model(small.config(model={"architecture": architecture, "init_scale": "usual"}), small.tokenizer())
    near = build_model(
        small.config(model={"architecture": architecture, "init_scale": {"key": [0.0, 0.5], "query": 1e-3}}),
        small.tokenizer(),
    )
    names = [layer.name for layer in attention_layers(near)]
    expected = {"albert": ["0"], "bart": [f"{part}_{i}" for part in ("encoder", "decoder", "cross") for i in range(2)]}
    assert names == expected.get(architecture, ["0", "1"])
    touched = set()
    for layer, before in zip(attention_layers(near), attention_layers(usual), strict=True):
        scale = (0.0, 0.5)[layer.layer]
        assert float(layer.key.detach().std()) == pytest.approx(scale, rel=0.2)
        assert abs(float(layer.key.detach().mean())) <= 4 * scale / 16  # centred: 256 numbers
        assert float(layer.query.detach().std()) == pytest.approx(1e-3, rel=0.2)
        assert torch.equal(layer.value, before.value)  # not named: as the library made it
        touched |= {layer.key.data_ptr(), layer.query.data_ptr()}
    for (name, a), (_, b) in zip(near.named_parameters(), usual.named_parameters(), strict=True):
        assert torch.equal(a, b) or a.data_ptr() in touched, name  # everything else is untouched


class Numbers:
    """Of a tokenizer that knows only some special tokens."""

    def __init__(self, pad: int | None, first: int | None, last: int | None) -> None:
        self.pad_token_id, self.cls_token_id, self.sep_token_id = pad, first, last

    def __len__(self) -> int:
        return 77


def test_sizes_are_the_configs_and_the_rest_is_the_librarys() -> None:
    def built(architecture: Any, pad: int | None = 3, last: int | None = 5, **sizes: Any) -> Any:
        return library_config(Shape(architecture, heads=2, layers=3, **sizes), Numbers(pad, 4, last), 20)

    bert = built("bert", dim=24)
    assert (bert.hidden_size, bert.num_hidden_layers, bert.num_attention_heads) == (24, 3, 2)
    assert (bert.intermediate_size, bert.vocab_size, bert.max_position_embeddings) == (96, 77, 20)
    assert (bert.pad_token_id, bert.bos_token_id, bert.eos_token_id) == (3, 4, 5)
    assert bert.hidden_dropout_prob == transformers.BertConfig().hidden_dropout_prob
    given = built("bert", feedforward=10, dropout=0.0)
    assert (given.intermediate_size, given.hidden_dropout_prob, given.attention_probs_dropout_prob) == (10, 0.0, 0.0)
    bart = built("bart", dim=24, dropout=0.25)
    assert (bart.d_model, bart.encoder_layers, bart.decoder_layers) == (24, 3, 3)
    assert (bart.encoder_attention_heads, bart.decoder_attention_heads) == (2, 2)
    assert (bart.encoder_ffn_dim, bart.decoder_ffn_dim) == (96, 96)
    assert (bart.dropout, bart.attention_dropout, bart.activation_dropout) == (0.25, 0.25, 0.25)
    assert (bart.decoder_start_token_id, bart.forced_eos_token_id) == (5, 5)
    assert built("bart", last=None).decoder_start_token_id == 0
    for architecture in ("albert", "electra"):
        assert [built(architecture, dim=dim).embedding_size for dim in (24, 128, 256)] == [24, 128, 128]
    assert built("roberta").max_position_embeddings == 24  # positions start after the padding token's number
    assert built("roberta", pad=None).max_position_embeddings == 22
    assert built("bert", pad=None).pad_token_id == transformers.BertConfig().pad_token_id


def test_a_loss_of_bfloat16_logits_is_summed_in_float32() -> None:
    model = build_model(small.config(), small.tokenizer()).eval()
    full = MaskedLoss(model)(*batch())
    with torch.autocast("cpu", torch.bfloat16):
        half = MaskedLoss(model)(*batch())
    assert half.dtype == torch.float32
    assert half.item() == pytest.approx(full.item(), rel=0.01)


def test_making_a_model_does_not_disturb_the_callers_draws() -> None:
    torch.manual_seed(3)
    expected = torch.rand(2)
    torch.manual_seed(3)
    first = build_model(small.config(seed=5), small.tokenizer())
    assert torch.equal(torch.rand(2), expected)
    again, other = (build_model(small.config(seed=seed), small.tokenizer()) for seed in (5, 6))
    weights = [next(iter(model.parameters())) for model in (first, again, other)]
    assert torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[0], weights[2])


def test_tracking_is_that_of_the_definitions() -> None:
    """Norms and rotation after every step, against a copy of all matrices."""
    config = small.config()
    model = build_model(config, small.tokenizer())
    layers, optimizer, loss_of = attention_layers(model), build_optimizer(config, model), MaskedLoss(model)
    tracker = Tracker(layers)
    copies: list[list[dict[str, torch.Tensor]]] = []
    tables = []
    losses: list[float] = []
    for step in range(30):
        tracker.record(step, 0.5)
        assert (tracker.start, tracker.row) == [(s, step - s + 1) for s in (0, 7, 20) if s <= step][-1]
        copies.append(
            [
                {part: getattr(layer, part).detach().double().clone() for part in ("key", "query", "value")}
                for layer in layers
            ]
        )
        optimizer.zero_grad()
        loss = loss_of(*batch(step))
        loss.backward()
        optimizer.step()
        tracker.measured.append((2 * loss.detach(), 2, torch.tensor(float(step))))
        if step % 8 == 0:
            tracker.held_out[tracker.row - 1] = torch.tensor(0.25 * step)
        losses.append(loss.item())
        if step in (6, 19):
            tables.append(tracker.rows())
    tables.append(tracker.rows())
    table = np.concatenate(tables)
    column = {name: i for i, name in enumerate(tracker.names)}
    assert table.shape == (30, 4 + 4 * 2)
    assert table[:, column["loss"]].tolist() == pytest.approx(losses)
    assert table[:, column["lr"]].tolist() == [0.5] * 30
    assert table[:, column["gradient_norm"]].tolist() == list(range(30))
    held_out = [0.25 * step if step % 8 == 0 else np.nan for step in range(30)]
    assert table[:, column["held_out_loss"]].tolist() == pytest.approx(held_out, nan_ok=True)
    for step in range(30):
        for i in range(2):
            for part in ("key", "query", "value"):
                assert table[step, column[f"norm_{part}_{i}"]] == pytest.approx(
                    float(copies[step][i][part].norm()), rel=1e-5
                )
            turned = table[step, column[f"rotation_{i}"]]
            if step < 10:
                assert np.isnan(turned)
            else:
                now, before = (copies[s][i]["value"].flatten() for s in (step, step - 10))
                cosine = float(now @ before / (now.norm() * before.norm()))
                assert turned == pytest.approx((1 - cosine) / 2, abs=1e-6)
    assert np.nanmax(table[:, column["rotation_0"]]) > 0.01  # it does turn


def test_masking_is_the_librarys_at_the_rates_asked_for() -> None:
    tokenizer = small.tokenizer()
    rows = Rows(small.texts(), tokenizer, small.LENGTH, 0).take(0, 200)
    masker = Masker(tokenizer, Masking(p_mask=0.3, p_correct=0.2, p_random=0.3), 0)
    shown, places, targets = masker(rows, 5, 1)
    tokens = torch.from_numpy(rows.astype(np.int64))
    special = torch.isin(tokens, torch.tensor(tokenizer.all_special_ids))
    assert torch.equal(tokens.flatten()[places], targets)  # the tokens to be told are those of the text
    assert not special.flatten()[places].any()
    share = len(places) / int((~special).sum())
    told = shown.flatten()[places]
    masked, same = float((told == tokenizer.mask_token_id).float().mean()), float((told == targets).float().mean())
    for found, expected, number in (
        (share, 0.3, int((~special).sum())),
        (masked, 0.5, len(places)),
        (same, 0.2, len(places)),
    ):
        assert (
            abs(found - expected) < 4 * np.sqrt(expected * (1 - expected) / number) + 0.01
        )  # a random token may be the right one
    untouched = torch.ones(tokens.numel(), dtype=torch.bool)
    untouched[places] = False
    assert torch.equal(shown.flatten()[untouched], tokens.flatten()[untouched])
    again = masker(rows, 5, 1)
    assert all(torch.equal(a, b) for a, b in zip((shown, places, targets), again, strict=True))
    assert not torch.equal(shown, masker(rows, 5, 2)[0])


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"model": {"dim": 18, "heads": 4}}, "model.dim 18 is not divisible by 4 heads"),
        ({"model": {"init_scale": [0.1, 0.2, 0.3]}}, "3 scales for 2 layers"),
        ({"batch_size": 8, "micro_batch": 3}, "batch_size 8 is not a multiple of micro_batch 3"),
        ({"snapshots": [61]}, "after the last of 60 steps"),
        ({"bf16": True}, "bf16 is for GPUs only"),
        ({"optimizer": {"warmup": 61}}, "warmup 61 is longer than the run of 60 steps"),
        ({"masking": {"p_correct": 0.6, "p_random": 0.5}}, "more than 1"),
        ({"model": {"dims": 4}}, "did you mean 'dim'?"),
    ],
)
def test_a_wrong_config_is_one_line(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as found:
        small.config(**settings)
    assert said in str(found.value)
    assert "\n" not in str(found.value)
