"""The forward pass of a model: attention weights and hidden states by part, and the vectors of words."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

import numpy as np
import torch
import transformers
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from topicscope.language.vocabulary import LibraryModel, Window

if TYPE_CHECKING:
    from topicscope.language.models import LoadedModel


def padded(batch: list[Window], loaded: LoadedModel) -> tuple[Int[Tensor, "B N"], Int[Tensor, "B N"]]:
    """Tokens and mask (1 where there is a token) of a batch of windows, on the device of the model."""
    rows = [torch.tensor(window.tokens) for window in batch]
    tokens = pad_sequence(rows, batch_first=True, padding_value=loaded.tokenizer.pad_token_id or 0)
    mask = pad_sequence([torch.ones_like(row) for row in rows], batch_first=True)
    # nobody waits: a GPU may still be busy with the batch before
    return tokens.to(loaded.device, non_blocking=True), mask.to(loaded.device, non_blocking=True)


Settings = transformers.PretrainedConfig
Attention = dict[str, tuple[Float[Tensor, "B H Q K"], ...]]
States = dict[str, tuple[Float[Tensor, "B N d"], ...]]


def attention_of(model: LibraryModel, tokens: Int[Tensor, "B N"], mask: Int[Tensor, "B N"]) -> Attention:
    return outputs_of(model, tokens, mask, states=False)[0]


@torch.inference_mode()
def outputs_of(
    model: LibraryModel, tokens: Int[Tensor, "B N"], mask: Int[Tensor, "B N"], *, states: bool
) -> tuple[Attention, States]:
    """Of one forward pass, by part: the attention weights of every layer, and the hidden states where they are wanted.

    Parts are 'encoder', 'decoder' (causal: keys stand before the query) and, of attention, 'cross'. The decoder of an
    encoder-decoder reads the same text, one place later, as in training. States are those of the embedding layer and
    then of each layer; parts whose layers differ in size or have no state for each position are left out.
    """
    outputs = {"return_dict": True, "output_attentions": True, "output_hidden_states": states}
    forward = partial(model, input_ids=tokens, attention_mask=mask, **outputs)
    if model.config.is_encoder_decoder:
        shifted, shifted_mask = shifted_right(tokens, mask, model.config)
        output = forward(decoder_input_ids=shifted, decoder_attention_mask=shifted_mask, use_cache=False)
        parts = {name: getattr(output, f"{name}_attentions") for name in ("encoder", "decoder", "cross")}
        hidden = {name: getattr(output, f"{name}_hidden_states", None) for name in ("encoder", "decoder")}
    else:
        causal = is_causal(model.config)
        name, output = ("decoder", forward(use_cache=False)) if causal else ("encoder", forward())
        parts, hidden = {name: getattr(output, "attentions", None)}, {name: getattr(output, "hidden_states", None)}
    return (
        {name: tuple(weights) for name, weights in parts.items() if weights and weights[0] is not None},
        {name: tuple(layers) for name, layers in hidden.items() if states and layers and _alike(layers, tokens)},
    )


def _alike(layers: Sequence[Tensor], tokens: Int[Tensor, "B N"]) -> bool:
    return all(layer is not None and layer.shape == (*tokens.shape, layers[0].shape[-1]) for layer in layers)


def shifted_right(tokens: Int[Tensor, "B N"], mask: Int[Tensor, "B N"], config: Settings) -> tuple[Tensor, Tensor]:
    """What a decoder reads: a start token, then the text without its last token."""
    start = config.decoder_start_token_id if config.decoder_start_token_id is not None else config.bos_token_id
    first = torch.full_like(tokens[:, :1], 0 if start is None else start)
    return torch.cat([first, tokens[:, :-1]], 1), torch.cat([torch.ones_like(mask[:, :1]), mask[:, :-1]], 1)


def is_causal(config: Settings) -> bool:
    """Decoder-only models are listed among the causal language models, and not among the masked ones."""
    listed = transformers.models.auto.modeling_auto
    return bool(getattr(config, "is_decoder", False)) or (
        config.model_type in listed.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
        and config.model_type not in listed.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    )


@torch.inference_mode()
def word_vectors(model: LibraryModel, token: Int[np.ndarray, " W"], *, layer: bool = False) -> Float[np.ndarray, "W d"]:
    """Rows of the embedding matrix; or with `layer` the embedding layer's output for each word alone."""
    ids = torch.as_tensor(token, device=model.device)
    if not layer:
        return model.get_input_embeddings().weight[ids].double().cpu().numpy()
    encoder = model.get_encoder() if model.config.is_encoder_decoder else model
    outputs = (
        encoder(input_ids=part[:, None], output_hidden_states=True, return_dict=True) for part in torch.split(ids, 512)
    )
    return torch.cat([output.hidden_states[0][:, 0] for output in outputs]).double().cpu().numpy()
