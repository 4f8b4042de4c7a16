"""Ablation of heads is exact: it equals a model whose output projection ignores the head and adds its mean instead."""

from __future__ import annotations

import copy
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import pytest
import torch
import transformers
from torch import Tensor

from topicscope.ground import InputError
from topicscope.language.ablation import HeadMeans, changed_heads, heads_of_layers, replacing

pytestmark = pytest.mark.model
LAYERS, HEADS, DIM, WORDS = 3, 4, 16, 30
SMALL: dict[str, Any] = {"vocab_size": WORDS, "num_hidden_layers": LAYERS, "num_attention_heads": HEADS}
SMALL |= {"hidden_size": DIM, "intermediate_size": 20, "initializer_range": 0.5}
IDS: dict[str, Any] = {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2}
PARTS: dict[str, Any] = {"encoder_layers": LAYERS, "decoder_layers": 2, "encoder_attention_heads": HEADS}
PARTS |= {"decoder_attention_heads": HEADS, "encoder_ffn_dim": 20, "decoder_ffn_dim": 20, "decoder_start_token_id": 2}

# by architecture: its class, its config, and where the output projection of a layer of its main part is
KINDS: dict[str, tuple[str, dict[str, Any], Callable[[Any, int], Any]]] = {
    "Bert": ("MaskedLM", SMALL, lambda m, i: m.bert.encoder.layer[i].attention.output.dense),
    "Roberta": ("MaskedLM", SMALL, lambda m, i: m.roberta.encoder.layer[i].attention.output.dense),
    "Electra": ("MaskedLM", SMALL, lambda m, i: m.electra.encoder.layer[i].attention.output.dense),
    "Albert": (
        "MaskedLM",
        {**SMALL, "embedding_size": 8},
        lambda m, i: m.albert.encoder.albert_layer_groups[i].albert_layers[0].attention.dense,
    ),
    "DistilBert": (
        "MaskedLM",
        {"vocab_size": WORDS, "dim": DIM, "n_layers": LAYERS, "n_heads": HEADS, "hidden_dim": 20}
        | {"initializer_range": 0.5},
        lambda m, i: m.distilbert.transformer.layer[i].attention.out_lin,
    ),
    "GPT2": (
        "LMHeadModel",
        {"vocab_size": WORDS, "n_embd": DIM, "n_layer": LAYERS, "n_head": HEADS, "initializer_range": 0.5, **IDS},
        lambda m, i: m.transformer.h[i].attn.c_proj,
    ),
    "GPTNeoX": ("ForCausalLM", {**SMALL, **IDS}, lambda m, i: m.gpt_neox.layers[i].attention.dense),
    "Llama": (
        "ForCausalLM",
        {**SMALL, **IDS, "num_key_value_heads": 2},
        lambda m, i: m.model.layers[i].self_attn.o_proj,
    ),
    "Bart": (
        "ForConditionalGeneration",
        {"vocab_size": WORDS, "d_model": DIM, "init_std": 0.5, "forced_eos_token_id": 2, **PARTS, **IDS},
        lambda m, i: m.model.encoder.layers[i].self_attn.out_proj,
    ),
    "T5": (
        "ForConditionalGeneration",
        {"vocab_size": WORDS, "d_model": DIM, "d_kv": 4, "d_ff": 20, "num_layers": LAYERS, "num_heads": HEADS}
        | {"decoder_start_token_id": 0, "pad_token_id": 0, "eos_token_id": 2, "initializer_factor": 3.0},
        lambda m, i: m.encoder.block[i].layer[0].SelfAttention.o,
    ),
}


def build(kind: str, **settings: Any) -> Any:
    head, config, _ = KINDS[kind]
    torch.manual_seed(3)
    made = getattr(transformers, f"{kind}Config")(**{**config, **settings})
    name = f"{kind}{head}" if head.startswith(("For", "LM")) else f"{kind}For{head}"
    model = getattr(transformers, name)(made).double().eval()
    model.set_attn_implementation("eager")
    return model


def inputs_of(model: Any) -> dict[str, Tensor]:
    torch.manual_seed(5)
    tokens, mask = torch.randint(3, WORDS, (4, 9)), torch.ones(4, 9, dtype=torch.long)
    mask[2:, 6:] = 0
    inputs = {"input_ids": tokens, "attention_mask": mask}
    return inputs | ({"decoder_input_ids": tokens[:, :5]} if model.config.is_encoder_decoder else {})


def edited(model: Any, layer: Any, heads: list[int], mean: Tensor) -> None:
    """The output projection takes nothing from these heads and adds what it would make of their mean."""
    columns = torch.cat([torch.arange(head * 4, head * 4 + 4) for head in heads])
    with torch.no_grad():
        conv = type(layer).__name__ == "Conv1D"  # of GPT-2: transposed
        weight = layer.weight.T if conv else layer.weight
        added = weight[:, columns] @ mean[heads].flatten()
        bias = added if layer.bias is None else layer.bias + added
        weight = weight.clone()
        weight[:, columns] = 0
        layer.weight = torch.nn.Parameter(weight.T.contiguous() if conv else weight)
        layer.bias = torch.nn.Parameter(bias)


@pytest.mark.parametrize("kind", KINDS)
def test_a_head_that_puts_out_its_mean_is_a_projection_without_it(kind: str) -> None:
    model, find = build(kind), KINDS[kind][2]
    inputs, chosen = inputs_of(model), {0: [1], 2: [0, 3]}
    other = copy.deepcopy(model)
    if kind == "Albert":  # the layers share weights: the other model has each of them by itself
        other = build(kind, num_hidden_groups=LAYERS)
        state = dict(model.state_dict())
        for name, value in list(state.items()):
            for layer in range(1, LAYERS):
                state[name.replace("layer_groups.0.", f"layer_groups.{layer}.")] = value
        other.load_state_dict(state)
    seen: dict[int, Tensor] = {}
    for layer in range(LAYERS):
        find(other, layer).register_forward_pre_hook(lambda _, args, at=layer: seen.__setitem__(at, args[0].detach()))
    means = HeadMeans([HEADS] * LAYERS)
    with torch.no_grad():
        plain = model(**inputs).logits
        unedited = other(**inputs).logits
        with changed_heads(model, means.add):
            watched = model(**inputs).logits
        with changed_heads(model, replacing(means, {})):
            untouched = model(**inputs).logits
    assert torch.equal(plain, watched)
    assert torch.equal(plain, untouched)
    torch.testing.assert_close(plain, unedited, rtol=1e-12, atol=1e-12)
    for layer in range(LAYERS):  # the mean over positions that are text, position by position
        expected, count = torch.zeros(HEADS, 4, dtype=torch.float64), 0
        for row in range(4):
            for place in range(9):
                if inputs["attention_mask"][row, place]:
                    expected, count = expected + seen[layer][row, place].view(HEADS, 4), count + 1
        torch.testing.assert_close(means.mean(layer), expected / count, rtol=1e-10, atol=1e-12)
    for layer, heads in chosen.items():
        edited(other, find(other, layer), heads, means.mean(layer))
    with torch.no_grad(), changed_heads(model, replacing(means, chosen)):
        ablated = model(**inputs).logits
    with torch.no_grad():
        expected = other(**inputs).logits
    assert (ablated - plain).abs().max() > 1e-3
    torch.testing.assert_close(ablated, expected, rtol=1e-10, atol=1e-10)
    with torch.no_grad():
        assert torch.equal(model(**inputs).logits, plain)  # nothing stays behind


def test_nothing_stays_behind_after_an_error() -> None:
    model = build("Bert")
    inputs = inputs_of(model)

    def broken(_layer: int, _outputs: Tensor, _mask: Any) -> Tensor:
        raise KeyError("broken")

    with torch.no_grad():
        plain = model(**inputs).logits
        with pytest.raises(KeyError), changed_heads(model, broken):
            model(**inputs)
        assert torch.equal(model(**inputs).logits, plain)


def spoken(_text: str, return_tensors: str) -> dict[str, Any]:
    return {"input_ids": [[3, 4, 5]]}


@pytest.mark.parametrize("kind", KINDS)
def test_heads_of_layers(kind: str) -> None:
    model = build(kind)
    loaded: Any = SimpleNamespace(tokenizer=spoken, device=torch.device("cpu"))
    assert heads_of_layers(model, loaded) == [HEADS] * LAYERS


def test_an_architecture_of_its_own_way_is_refused() -> None:
    config = transformers.XLMConfig(vocab_size=WORDS, emb_dim=DIM, n_layers=LAYERS, n_heads=HEADS)
    build_: Any = transformers.XLMModel
    model = build_(config).eval()
    loaded: Any = SimpleNamespace(tokenizer=spoken, device=torch.device("cpu"))
    with pytest.raises(InputError, match="cannot be read in this architecture"):
        heads_of_layers(model, loaded)
