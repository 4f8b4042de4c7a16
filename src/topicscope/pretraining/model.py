"""The transformer: the library's classes, with W_K, W_Q, W_V started near zero; and its loss at masked places only."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from topicscope.ground import Stream, torch_seed
from topicscope.language import shifted_right
from topicscope.pretraining.config import PretrainConfig, Shape


def build_model(config: PretrainConfig, tokenizer: Any) -> Any:
    """A masked language model with fresh weights."""
    import transformers

    shape = config.model
    state = torch.get_rng_state()
    torch.manual_seed(torch_seed(config.seed, Stream.PRETRAINED_WEIGHTS))
    try:
        build: Any = transformers.AutoModelForMaskedLM.from_config
        model = build(library_config(shape, tokenizer, config.length))
        start_near_zero(model, shape, config.seed)
    finally:
        torch.set_rng_state(state)
    return model


def library_config(shape: Shape, tokenizer: Any, length: int) -> Any:
    """The library's defaults, except for the sizes that the config names."""
    import transformers

    inner = shape.feedforward or 4 * shape.dim
    ids = {
        "pad_token_id": tokenizer.pad_token_id,
        "bos_token_id": tokenizer.cls_token_id,
        "eos_token_id": tokenizer.sep_token_id,
    }
    common: dict[str, Any] = {
        "vocab_size": len(tokenizer),
        **{key: value for key, value in ids.items() if value is not None},
    }
    if shape.architecture == "bart":
        sizes = {
            f"{side}_{what}": n
            for side in ("encoder", "decoder")
            for what, n in (("layers", shape.layers), ("attention_heads", shape.heads), ("ffn_dim", inner))
        }
        drop = (
            {}
            if shape.dropout == "usual"
            else dict.fromkeys(("dropout", "attention_dropout", "activation_dropout"), shape.dropout)
        )
        start = {
            "decoder_start_token_id": common.get("eos_token_id", 0),
            "forced_eos_token_id": common.get("eos_token_id"),
        }
        build_bart: Any = transformers.BartConfig
        return build_bart(d_model=shape.dim, max_position_embeddings=length, **sizes, **drop, **start, **common)
    drop = (
        {}
        if shape.dropout == "usual"
        else {"hidden_dropout_prob": shape.dropout, "attention_probs_dropout_prob": shape.dropout}
    )
    # positions of a RoBERTa start after its padding token's number
    positions = length + (common.get("pad_token_id", 1) + 1 if shape.architecture == "roberta" else 0)
    narrow = {"embedding_size": min(128, shape.dim)} if shape.architecture in ("albert", "electra") else {}
    classes = {"bert": "BertConfig", "roberta": "RobertaConfig", "albert": "AlbertConfig", "electra": "ElectraConfig"}
    build: Any = getattr(transformers, classes[shape.architecture])
    return build(
        hidden_size=shape.dim,
        num_hidden_layers=shape.layers,
        num_attention_heads=shape.heads,
        intermediate_size=inner,
        max_position_embeddings=positions,
        **narrow,
        **drop,
        **common,
    )


@dataclass(frozen=True)
class AttentionLayer:
    """The matrices of one attention layer, heads side by side.

    `name` is '0', '1', ...; 'encoder_0', 'decoder_0', 'cross_0' in models of several parts.
    """

    name: str
    layer: int
    key: Float[Tensor, "d d"]
    query: Float[Tensor, "d d"]
    value: Float[Tensor, "d d"]


NAMES = (("key", "query", "value"), ("k_proj", "q_proj", "v_proj"))


def attention_layers(model: Any) -> list[AttentionLayer]:
    """In the order of the layers; a model that uses one layer again and again (ALBERT) has one."""
    layers = []
    for path, module in model.named_modules():
        for names in NAMES:
            if all(isinstance(getattr(module, name, None), nn.Linear) for name in names):
                numbers = re.findall(r"\.(\d+)\.", f"{path}.")
                part = "cross" if "encoder_attn" in path else "decoder" if ".decoder." in path else "encoder"
                layers.append(
                    (part, int(numbers[-1]) if numbers else 0, [getattr(module, name).weight for name in names])
                )
    several = len({part for part, _, _ in layers}) > 1
    order = {"encoder": 0, "decoder": 1, "cross": 2}
    return [
        AttentionLayer(f"{part}_{layer}" if several else str(layer), layer, *weights)
        for part, layer, weights in sorted(layers, key=lambda entry: (order[entry[0]], entry[1]))
    ]


@torch.no_grad()
def start_near_zero(model: Any, shape: Shape, seed: int) -> None:
    """Draw W_K, W_Q and W_V from a normal distribution around 0; everything else stays as the library made it."""
    for number, layer in enumerate(attention_layers(model)):
        for which, part in enumerate(("key", "query", "value")):
            scale = shape.init_scale_of(part, layer.layer)  # type: ignore[arg-type]
            if scale != "usual":
                draws = torch.Generator().manual_seed(torch_seed(seed, Stream.PRETRAINED_WEIGHTS, 1 + number, which))
                matrix = getattr(layer, part)
                matrix.copy_(scale * torch.randn(matrix.shape, generator=draws))


class MaskedLoss(nn.Module):
    """Sum over masked places of -log p(token).

    Only these places go through the head: the logits of the others have no use.
    """

    def __init__(self, model: Any) -> None:
        super().__init__()
        self.model = model

    def forward(
        self, shown: Int[Tensor, "B N"], places: Int[Tensor, " M"], targets: Int[Tensor, " M"]
    ) -> Float[Tensor, ""]:
        logits = head(self.model, self.hidden(shown, places, targets).flatten(0, 1)[places])
        return nn.functional.cross_entropy(
            logits.float() if logits.dtype == torch.bfloat16 else logits, targets, reduction="sum"
        )

    def hidden(
        self, shown: Int[Tensor, "B N"], places: Int[Tensor, " M"], targets: Int[Tensor, " M"]
    ) -> Float[Tensor, "B N d"]:
        """A decoder reads the whole text, one place later, and predicts the masked tokens: denoising."""
        inputs = {"input_ids": shown}
        if self.model.config.is_encoder_decoder:
            text = shown.flatten().index_copy(0, places, targets).view_as(shown)
            inputs["decoder_input_ids"], _ = shifted_right(text, torch.ones_like(text), self.model.config)
            inputs["use_cache"] = False  # type: ignore[assignment]
        return self.model.base_model(**inputs).last_hidden_state


def head(model: Any, rows: Float[Tensor, "M d"]) -> Float[Tensor, "M V"]:
    """What the library's model does to the last hidden states."""
    kind = model.config.model_type
    if kind == "bert":
        return model.cls(rows)
    if kind == "albert":
        return model.predictions(rows)
    if kind == "electra":
        return model.generator_lm_head(model.generator_predictions(rows))
    return model.lm_head(rows) + (model.final_logits_bias if kind == "bart" else 0)
