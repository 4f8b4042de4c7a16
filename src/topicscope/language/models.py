"""Models that return their attention weights: from a folder or the hub, trained or with random weights.

Their forward pass: attention weights by part, and the vectors of words.

loaded = load_model("bert-mini-wiki"); loaded.model, loaded.tokenizer, loaded.window

Code that comes with a model is never run.
"""

from __future__ import annotations

import functools
import os
import zlib
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from topicscope.ground import InputError, needed
from topicscope.language.inputs import check_model, check_tokenizer
from topicscope.language.vocabulary import Window
from topicscope.language.weights import load_weights, quiet as quiet, refusing, without_panic_reports

transformers = needed("transformers", "a language model")

TRIED = "a b"  # the text on which a tokenizer and a model are tried


@dataclass(frozen=True)
class LoadedModel:
    """A model with its tokenizer. `window` is the longest input it was made for, special tokens included.

    Sent to another process it is the place that it was loaded from; that process loads it again.
    """

    name: str
    model: Any
    tokenizer: Any
    window: int
    _: KW_ONLY
    variant: str = "trained"
    place: str | None = None  # absolute folder, or hub id; None: made by the caller
    seed: int = 0  # of random weights
    notes: tuple[str, ...] = ()  # on what of its files was not used

    def __reduce__(self) -> tuple[Any, ...]:
        if self.place is None:
            raise InputError(
                f"{self.name}: a model that was not loaded from a folder or hub cannot be sent to other processes; "
                "use the engine serial"
            )
        folder = Path(self.place)
        written = max((file.stat().st_mtime_ns for file in folder.iterdir()), default=0) if folder.is_dir() else 0
        return _loaded_again, (self.place, self.name, self.device.type, self.variant, self.seed, written)

    @property
    def device(self) -> torch.device:
        return self.model.device

    def random(self, seed: int = 0) -> LoadedModel:
        """The same architecture with random weights."""
        build: Any = transformers.AutoModel.from_config
        with torch.random.fork_rng(devices=[]), quiet():
            # the name is part of the seed, so that models of the same shape get different weights
            torch.manual_seed(zlib.crc32(f"{seed} {Path(self.name).name}".encode()))
            fresh = build(self.model.config, attn_implementation="eager", trust_remote_code=False)
        return replace(self, model=fresh.float().to(self.device).eval(), variant="random", seed=seed)


def load_tokenizer(name: str | Path) -> Any:
    """From a model's folder or hub id. It has turned a text into tokens once: it works."""
    place = check_tokenizer(name)
    where = "" if place.local else "there is no such folder, and from the hub "
    said = f"{name}: {where}its tokenizer cannot be loaded"
    with refusing(said), without_panic_reports():
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            place.name, revision=place.revision, local_files_only=place.local, trust_remote_code=False
        )
        numbers = [*tokenizer.get_vocab().values(), *tokenizer(TRIED)["input_ids"], *tokenizer.all_special_ids]
        if not numbers or min(numbers) < 0:
            raise InputError(f"{said} (it has no tokens)")
        tokenizer.decode(tokenizer(TRIED)["input_ids"])
    return tokenizer


def load_model(name: str | Path, device: str = "cpu") -> LoadedModel:
    """From a folder or the hub, with its tokenizer; InputError where a weight is missing or is no number."""
    place = check_model(name)
    tokenizer = load_tokenizer(name)
    model, notes = load_weights(place, name)
    if device == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # has to stand before the first product
    return replace(
        checked(str(name), model.to(device).eval(), tokenizer),
        place=str(Path(place.name).absolute()) if place.local else str(name),
        notes=tuple(notes),
    )


def _loaded_again(place: str, name: str, device: str, variant: str, seed: int, written: int) -> LoadedModel:
    trained = _trained(place, name, device, written)
    return trained if variant == "trained" else trained.random(seed)


@functools.lru_cache(maxsize=1)
def _trained(place: str, name: str, device: str, _written: int) -> LoadedModel:
    """One model per process. `_written`: other bytes at the same place are another model."""
    return replace(load_model(place, device), name=name)


def checked(name: str, model: Any, tokenizer: Any) -> LoadedModel:
    """A model that the caller has: switched to eager attention, and run once to see that it returns weights."""
    with refusing(f"{name}: it has no embeddings of tokens, which a model of text has"):
        rows = int(model.get_input_embeddings().weight.shape[0])
    tokens = max(len(tokenizer), 1 + max(tokenizer.get_vocab().values(), default=-1))
    if tokens > rows:
        raise InputError(f"{name}: its tokenizer has {tokens} tokens, but the model has embeddings of only {rows}")
    if getattr(model.config, "_attn_implementation", "eager") != "eager":
        try:
            model.set_attn_implementation("eager")
        except (AttributeError, ValueError):
            raise InputError(
                f"{name}: this model has no eager attention, and the other kinds return no weights"
            ) from None
    with refusing(f"{name}: it cannot be run on a text of two words"):
        loaded = LoadedModel(name, model.eval(), tokenizer, window_of(model, tokenizer))
        inputs = torch.as_tensor(tokenizer(TRIED, return_tensors="np")["input_ids"], device=loaded.device)
        parts = attention_of(model, inputs, torch.ones_like(inputs))
    if not parts:
        raise InputError(
            f"{name}: this model returns no attention weights; a transformer with attention layers is needed"
        )
    if loaded.window < inputs.shape[1]:
        raise InputError(f"{name}: its longest input is {loaded.window} tokens, too few for a text of two words")
    return loaded


def window_of(model: Any, tokenizer: Any) -> int:
    """The longest input that the tokenizer and the positions allow.

    Where positions start after the padding index, they are fewer than the rows of their table.
    """
    keys = ("max_position_embeddings", "n_positions", "max_sequence_length")
    lengths = [length for key in keys if isinstance(length := getattr(model.config, key, None), int) and length > 0]
    lengths += [
        module.num_embeddings - module.padding_idx - 1
        for name, module in model.named_modules()
        if name.endswith("position_embeddings")
        and isinstance(module, torch.nn.Embedding)
        and module.padding_idx is not None
    ]
    if isinstance(tokenizer.model_max_length, int) and tokenizer.model_max_length < 10**6:
        lengths.append(tokenizer.model_max_length)
    return min(lengths, default=512)


def padded(batch: list[Window], loaded: LoadedModel) -> tuple[Int[Tensor, "B N"], Int[Tensor, "B N"]]:
    """Tokens and mask of a batch."""
    pad = torch.nn.utils.rnn.pad_sequence
    rows = [torch.tensor(window.tokens) for window in batch]
    tokens = pad(rows, batch_first=True, padding_value=loaded.tokenizer.pad_token_id or 0)
    mask = pad([torch.ones_like(row) for row in rows], batch_first=True)
    # nobody waits: a GPU may still be busy with the batch before
    return tokens.to(loaded.device, non_blocking=True), mask.to(loaded.device, non_blocking=True)


Attention = dict[str, tuple[Float[Tensor, "B H Q K"], ...]]
States = dict[str, tuple[Float[Tensor, "B N d"], ...]]


def attention_of(model: Any, tokens: Int[Tensor, "B N"], mask: Int[Tensor, "B N"]) -> Attention:
    """The attention of `outputs_of` alone."""
    return outputs_of(model, tokens, mask, states=False)[0]


@torch.inference_mode()
def outputs_of(
    model: Any, tokens: Int[Tensor, "B N"], mask: Int[Tensor, "B N"], *, states: bool
) -> tuple[Attention, States]:
    """Of one forward pass, by part: the attention weights of every layer, and the hidden states where they are wanted.

    Parts are 'encoder', 'decoder' (causal: keys stand before the query) and, of attention, 'cross'. The decoder of an
    encoder-decoder reads the same text, one place later, as in training. States are those of the embedding layer and
    then of each layer; parts whose layers differ in size or have no state for each position are left out.
    """
    inputs = {"input_ids": tokens, "attention_mask": mask, "return_dict": True}
    inputs |= {"output_attentions": True, "output_hidden_states": states}
    if model.config.is_encoder_decoder:
        shifted, shifted_mask = shifted_right(tokens, mask, model.config)
        output = model(**inputs, decoder_input_ids=shifted, decoder_attention_mask=shifted_mask, use_cache=False)
        parts = {name: getattr(output, f"{name}_attentions") for name in ("encoder", "decoder", "cross")}
        hidden = {name: getattr(output, f"{name}_hidden_states", None) for name in ("encoder", "decoder")}
    else:
        causal = is_causal(model.config)
        name, output = "decoder" if causal else "encoder", model(**inputs, **({"use_cache": False} if causal else {}))
        parts, hidden = {name: getattr(output, "attentions", None)}, {name: getattr(output, "hidden_states", None)}
    return (
        {name: tuple(weights) for name, weights in parts.items() if weights and weights[0] is not None},
        {name: tuple(layers) for name, layers in hidden.items() if states and layers and _alike(layers, tokens)},
    )


def _alike(layers: Any, tokens: Int[Tensor, "B N"]) -> bool:
    """Whether every layer has a vector of the same size for each position."""
    return all(layer is not None and layer.shape == (*tokens.shape, layers[0].shape[-1]) for layer in layers)


def shifted_right(tokens: Int[Tensor, "B N"], mask: Int[Tensor, "B N"], config: Any) -> tuple[Tensor, Tensor]:
    """What a decoder reads: a start token, then the text without its last token."""
    start = config.decoder_start_token_id if config.decoder_start_token_id is not None else config.bos_token_id
    first = torch.full_like(tokens[:, :1], 0 if start is None else start)
    return torch.cat([first, tokens[:, :-1]], 1), torch.cat([torch.ones_like(mask[:, :1]), mask[:, :-1]], 1)


def is_causal(config: Any) -> bool:
    """Decoder-only models are listed among the causal language models, and not among the masked ones."""
    listed = transformers.models.auto.modeling_auto
    return bool(getattr(config, "is_decoder", False)) or (
        config.model_type in listed.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
        and config.model_type not in listed.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    )


@torch.inference_mode()
def word_vectors(model: Any, token: Int[np.ndarray, " W"], *, layer: bool = False) -> Float[np.ndarray, "W d"]:
    """Rows of the word-embedding matrix. With `layer`: the embedding layer's output for each word alone, with position,
    type and norm.
    """
    ids = torch.as_tensor(token, device=model.device)
    if not layer:
        return model.get_input_embeddings().weight[ids].double().cpu().numpy()
    encoder = model.get_encoder() if model.config.is_encoder_decoder else model
    outputs = (
        encoder(input_ids=part[:, None], output_hidden_states=True, return_dict=True) for part in torch.split(ids, 512)
    )
    return torch.cat([output.hidden_states[0][:, 0] for output in outputs]).double().cpu().numpy()
