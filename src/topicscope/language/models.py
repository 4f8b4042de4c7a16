"""Models that give their attention away: from a folder or the hub, trained or with fresh weights, never with code of their own.

loaded = load_model("bert-mini-wiki"); loaded.model, loaded.tokenizer, loaded.window
"""

from __future__ import annotations

import functools
import logging
import os
import re
import warnings
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from topicscope.ground import InputError

HUB_ID = re.compile(r"(?P<name>[A-Za-z0-9][\w.-]*(/[\w.-]+)?)(@(?P<revision>[\w.-]+))?")
"""NAME, OWNER/NAME, or either with @REVISION: a branch, a tag or a commit."""


@dataclass(frozen=True)
class LoadedModel:
    """A model with its tokenizer. `window` is the longest input it was made for, special tokens included.

    Packed for another process it is the place that it was loaded from, and is loaded there again.
    """

    name: str
    model: Any
    tokenizer: Any
    window: int
    variant: str = "trained"
    place: str | None = None  # absolute folder, or hub id; None: made by the caller
    seed: int = 0  # of fresh weights

    def __reduce__(self) -> tuple[Any, ...]:
        if self.place is None:
            raise InputError(
                f"{self.name}: a model that was not loaded from a folder or hub cannot be sent to other processes; use the engine serial"
            )
        folder = Path(self.place)
        written = max((file.stat().st_mtime_ns for file in folder.iterdir()), default=0) if folder.is_dir() else 0
        return _loaded_again, (self.place, self.name, self.device.type, self.variant, self.seed, written)

    @property
    def device(self) -> torch.device:
        return self.model.device

    def random(self, seed: int = 0) -> LoadedModel:
        """The same architecture with fresh weights."""
        import transformers

        state = torch.get_rng_state()
        torch.manual_seed(
            zlib.crc32(f"{seed} {Path(self.name).name}".encode())
        )  # models of the same shape are not to share their chance
        try:
            with quiet():
                build: Any = transformers.AutoModel.from_config
                fresh = build(self.model.config, attn_implementation="eager", trust_remote_code=False)
        finally:
            torch.set_rng_state(state)
        return replace(self, model=fresh.float().to(self.device).eval(), variant="random", seed=seed)


def load_tokenizer(name: str | Path) -> Any:
    """From a model's folder or hub id."""
    import transformers

    place, local, revision = _place(name)
    try:
        with quiet():
            return transformers.AutoTokenizer.from_pretrained(
                place, revision=revision, local_files_only=local, trust_remote_code=False
            )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(f"{name}: no tokenizer is to be had there ({_first_line(error)})") from None


def load_model(name: str | Path, device: str = "cpu") -> LoadedModel:
    """Weights from safetensors only: a pickle can run code. Eager attention: the fast kinds do not return weights."""
    import transformers

    place, local, revision = _place(name)
    if local:
        _check_folder(Path(place))
    tokenizer = load_tokenizer(name)
    try:
        with quiet():
            model = transformers.AutoModel.from_pretrained(
                place,
                revision=revision,
                local_files_only=local,
                trust_remote_code=False,
                use_safetensors=True,
                attn_implementation="eager",
                dtype=torch.float32,
            )
    except (OSError, ValueError, KeyError, TypeError, RuntimeError) as error:
        raise InputError(f"{name}: not to be loaded as a model ({_first_line(error)})") from None
    except Exception as error:  # safetensors has an exception of its own, outside all families
        if type(error).__name__ != "SafetensorError":
            raise
        raise InputError(f"{name}: its weights file is damaged or cut off ({_first_line(error)})") from None
    if device == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # has to stand before the first product
    return replace(
        checked(str(name), model.to(device).eval(), tokenizer),
        place=str(Path(place).absolute()) if local else str(name),
    )


def _loaded_again(place: str, name: str, device: str, variant: str, seed: int, written: int) -> LoadedModel:
    trained = _kept(place, name, device, written)
    return trained if variant == "trained" else trained.random(seed)


@functools.lru_cache(maxsize=1)
def _kept(place: str, name: str, device: str, _written: int) -> LoadedModel:
    """One model a process. `_written`: of other bytes at the same place there is another model."""
    return replace(load_model(place, device), name=name)


def checked(name: str, model: Any, tokenizer: Any) -> LoadedModel:
    """A model that the caller has: switched to eager attention, and asked whether it gives weights."""
    if len(tokenizer) > model.get_input_embeddings().weight.shape[0]:
        raise InputError(
            f"{name}: its tokenizer has {len(tokenizer)} tokens, but the model only {model.get_input_embeddings().weight.shape[0]}"
        )
    if getattr(model.config, "_attn_implementation", "eager") != "eager":
        try:
            model.set_attn_implementation("eager")
        except (AttributeError, ValueError):
            raise InputError(
                f"{name}: this model has no eager attention, and the other kinds return no weights"
            ) from None
    loaded = LoadedModel(name, model.eval(), tokenizer, window_of(model, tokenizer))
    inputs = torch.as_tensor(tokenizer("a b", return_tensors="np")["input_ids"], device=loaded.device)
    try:
        parts = attention_of(loaded, inputs, torch.ones_like(inputs))
    except (TypeError, AttributeError, KeyError):
        parts = []
    if not parts:
        raise InputError(
            f"{name}: this model returns no attention weights; a transformer with attention layers is needed"
        )
    return loaded


def window_of(model: Any, tokenizer: Any) -> int:
    """The longest input: what the tokenizer and the positions allow. Positions that start after the padding index are fewer than the table has."""
    config = model.config
    known = [getattr(config, key, None) for key in ("max_position_embeddings", "n_positions", "max_sequence_length")]
    lengths = [length for length in known if isinstance(length, int) and length > 0]
    for name, module in model.named_modules():
        if (
            name.endswith("position_embeddings")
            and isinstance(module, torch.nn.Embedding)
            and module.padding_idx is not None
        ):
            lengths.append(module.num_embeddings - module.padding_idx - 1)
    if isinstance(tokenizer.model_max_length, int) and tokenizer.model_max_length < 10**6:
        lengths.append(tokenizer.model_max_length)
    return min(lengths, default=512)


@dataclass(frozen=True)
class AttentionPart:
    """Attention of one kind, all layers: 'encoder', 'decoder' (causal) or 'cross'. Keys of a causal part are those before the query."""

    name: str
    weights: tuple[Float[Tensor, "B H Q K"], ...]
    causal: bool


@torch.inference_mode()
def attention_of(loaded: LoadedModel, tokens: Int[Tensor, "B N"], mask: Int[Tensor, "B N"]) -> list[AttentionPart]:
    """One forward pass. The decoder of an encoder-decoder reads the same text, one place later, as in training."""
    config = loaded.model.config
    inputs = {"input_ids": tokens, "attention_mask": mask, "output_attentions": True, "return_dict": True}
    if getattr(config, "is_encoder_decoder", False):
        shifted, shifted_mask = shifted_right(tokens, mask, config)
        inputs |= {"decoder_input_ids": shifted, "decoder_attention_mask": shifted_mask}
        found = loaded.model(**inputs, use_cache=False)
        named = [
            ("encoder", found.encoder_attentions, False),
            ("decoder", found.decoder_attentions, True),
            ("cross", found.cross_attentions, False),
        ]
    else:
        if is_causal(config):
            inputs["use_cache"] = False
        found = loaded.model(**inputs)
        causal = is_causal(config)
        named = [("decoder" if causal else "encoder", getattr(found, "attentions", None), causal)]
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
    """Decoder-only models name a causal language model as their main class, and are no encoders."""
    import transformers

    if getattr(config, "is_decoder", False):
        return True
    encoders = transformers.models.auto.modeling_auto.MODEL_FOR_MASKED_LM_MAPPING_NAMES
    causals = transformers.models.auto.modeling_auto.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    return config.model_type in causals and config.model_type not in encoders


@torch.inference_mode()
def word_vectors(loaded: LoadedModel, token: Int[np.ndarray, " W"], *, layer: bool = False) -> Float[np.ndarray, "W d"]:
    """Rows of the word-embedding matrix; with `layer`, what the embedding layer makes of each word alone (position, type, norm added)."""
    ids = torch.as_tensor(token, device=loaded.device)
    if not layer:
        return loaded.model.get_input_embeddings().weight[ids].double().cpu().numpy()
    found = []
    for part in torch.split(ids, 512):
        model = (
            loaded.model.get_encoder() if getattr(loaded.model.config, "is_encoder_decoder", False) else loaded.model
        )
        found.append(model(input_ids=part[:, None], output_hidden_states=True, return_dict=True).hidden_states[0][:, 0])
    return torch.cat(found).double().cpu().numpy()


def _place(name: str | Path) -> tuple[str, bool, str]:
    """Where a model is: a folder (of a pretraining run: the model in it), or else the hub if the name can be one of it; and the revision there."""
    path = Path(name)
    if path.exists():
        if not path.is_dir():
            raise InputError(
                f"{name} is a file; expected a model's folder (config.json, model.safetensors, tokenizer.json) or a hub id"
            )
        inside = path / "model"
        return (
            str(inside if not (path / "config.json").exists() and (inside / "config.json").exists() else path),
            True,
            "main",
        )
    found = HUB_ID.fullmatch(str(name))
    if found is None:
        raise InputError(
            f"no such model: {name} (a folder with config.json and model.safetensors, or a hub id such as bert-base-uncased)"
        )
    return found["name"], False, found["revision"] or "main"


def _check_folder(folder: Path) -> None:
    if not (folder / "config.json").is_file():
        raise InputError(f"{folder} is no model folder: it has no config.json")
    if not list(folder.glob("*.safetensors")):
        pickles = [
            path.name for pattern in ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5") for path in folder.glob(pattern)
        ]
        if pickles:
            raise InputError(
                f"{folder} has its weights as {pickles[0]} only, a format that can run code when opened; convert it to safetensors first"
            )
        raise InputError(f"{folder} has no weights (model.safetensors)")


@contextmanager
def quiet() -> Iterator[None]:
    """Without the library's remarks on missing heads and progress bars of its own."""
    import transformers

    before, hub = transformers.logging.get_verbosity(), logging.getLogger("huggingface_hub")
    level = hub.level
    transformers.logging.set_verbosity(40)
    hub.setLevel(logging.ERROR)
    hide: Any = transformers.logging.disable_progress_bar
    hide()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        transformers.logging.set_verbosity(before)
        hub.setLevel(level)


def _first_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[0][:200] if lines else type(error).__name__
