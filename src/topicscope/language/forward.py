"""One forward pass of a model: its attention weights by part, and the vectors of words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor


@dataclass(frozen=True)
class AttentionPart:
    """Attention of one kind, in all layers: 'encoder', 'decoder' (causal) or 'cross'.

    The keys of a causal part stand before the query.
    """

    name: str
    weights: tuple[Float[Tensor, "B H Q K"], ...]
    causal: bool


@torch.inference_mode()
def attention_of(model: Any, tokens: Int[Tensor, "B N"], mask: Int[Tensor, "B N"]) -> list[AttentionPart]:
    """The decoder of an encoder-decoder reads the same text, one place later, as in training."""
    config = model.config
    inputs = {"input_ids": tokens, "attention_mask": mask, "output_attentions": True, "return_dict": True}
    if getattr(config, "is_encoder_decoder", False):
        shifted, shifted_mask = shifted_right(tokens, mask, config)
        inputs |= {"decoder_input_ids": shifted, "decoder_attention_mask": shifted_mask}
        output = model(**inputs, use_cache=False)
        named = [
            ("encoder", output.encoder_attentions, False),
            ("decoder", output.decoder_attentions, True),
            ("cross", output.cross_attentions, False),
        ]
    else:
        causal = is_causal(config)
        if causal:
            inputs["use_cache"] = False
        output = model(**inputs)
        named = [("decoder" if causal else "encoder", getattr(output, "attentions", None), causal)]
    return [
        AttentionPart(name, tuple(weights), causal)
        for name, weights, causal in named
        if weights and weights[0] is not None
    ]


def shifted_right(tokens: Int[Tensor, "B N"], mask: Int[Tensor, "B N"], config: Any) -> tuple[Tensor, Tensor]:
    """What a decoder reads: a start token, then the text without its last token."""
    start = config.decoder_start_token_id if config.decoder_start_token_id is not None else config.bos_token_id
    first = torch.full_like(tokens[:, :1], 0 if start is None else start)
    return torch.cat([first, tokens[:, :-1]], 1), torch.cat([torch.ones_like(mask[:, :1]), mask[:, :-1]], 1)


def is_causal(config: Any) -> bool:
    """Decoder-only models are listed among the causal language models, and not among the masked ones."""
    import transformers

    if getattr(config, "is_decoder", False):
        return True
    encoders = transformers.models.auto.modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    causals = transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    return config.model_type in causals and config.model_type not in encoders


@torch.inference_mode()
def word_vectors(model: Any, token: Int[np.ndarray, " W"], *, layer: bool = False) -> Float[np.ndarray, "W d"]:
    """Rows of the word-embedding matrix. With `layer`: the embedding layer's output for each word alone, with position,
    type and norm.
    """
    ids = torch.as_tensor(token, device=model.device)
    if not layer:
        return model.get_input_embeddings().weight[ids].double().cpu().numpy()
    encoder = model.get_encoder() if getattr(model.config, "is_encoder_decoder", False) else model
    outputs = [
        encoder(input_ids=part[:, None], output_hidden_states=True, return_dict=True).hidden_states[0][:, 0]
        for part in torch.split(ids, 512)
    ]
    return torch.cat(outputs).double().cpu().numpy()
