"""Models that return their attention weights: from a folder or the hub, trained or with random weights.

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

import torch

from topicscope.ground import InputError, needed
from topicscope.language.forward import attention_of
from topicscope.language.inputs import check_model, check_tokenizer
from topicscope.language.weights import load_weights, quiet as quiet, refusing, without_panic_reports

transformers = needed("transformers", "a language model")

TRIED = "a b"  # the text on which a tokenizer and a model are tried


@dataclass(frozen=True)
class LoadedModel:
    """A model with its tokenizer.

    Sent to another process it is only the place that it was loaded from; that process loads it again.

    Attributes:
        name: Its name.
        model: The model, of the library transformers.
        tokenizer: Its tokenizer.
        window: The longest input that it was made for, in tokens, special ones included.
        variant: 'trained' or random weights.
        place: Absolute folder, or hub id; None: made by the caller.
        seed: Seed of random weights.
        notes: What of its files was not used.

    Example:
        See `load_model`.
    """

    name: str
    model: Any
    tokenizer: Any
    window: int
    _: KW_ONLY
    variant: str = "trained"
    place: str | None = None
    seed: int = 0
    notes: tuple[str, ...] = ()

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
    """Load a tokenizer, and try it once.

    Args:
        name: Folder or hub id of a model.

    Returns:
        The tokenizer, of the library transformers.

    Raises:
        InputError: It cannot be loaded, or does not work.

    Example:
        >>> import tempfile
        >>> from topicscope.pretraining import train_tokenizer
        >>> texts = ["frog toad newt pond", "mozart schubert opera violin"] * 10
        >>> tokenizer = train_tokenizer(texts, "wordpiece", vocab_size=100, length=16, exact=False)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = tokenizer.save_pretrained(folder)
        ...     load_tokenizer(folder).tokenize("frog mozart")
        ['frog', 'mozart']
    """
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
    """Load a model with its tokenizer, from safetensors. Code that comes with a model is never run.

    Args:
        name: Folder or hub id.
        device: 'cpu' or 'cuda'.

    Returns:
        The model, in evaluation mode, with eager attention.

    Raises:
        InputError: It is missing, a weight is missing or no number, or it returns no attention weights.

    Example:
        >>> import tempfile
        >>> from topicscope import load_model
        >>> from topicscope.language import checked
        >>> from topicscope.pretraining import PretrainConfig, build_model, train_tokenizer
        >>> texts = ["frog toad newt pond", "mozart schubert opera violin"] * 10
        >>> tokenizer = train_tokenizer(texts, "wordpiece", vocab_size=100, length=16, exact=False)
        >>> tiny = {"text": {"corpus": ["-"]}, "length": 16, "model": {"layers": 1, "heads": 2, "dim": 8}}
        >>> loaded = checked("tiny", build_model(PretrainConfig.of(tiny), tokenizer), tokenizer)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     _ = loaded.model.save_pretrained(folder), tokenizer.save_pretrained(folder)
        ...     again = load_model(folder)
        >>> again.window, again.model.config.num_hidden_layers, again.notes
        (16, 1, ('5 tensors of the output head not used, except for losses',))
    """
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
    """Take a model that you have: it is switched to eager attention, and run once to see that it returns weights.

    Args:
        name: What it is called in tables.
        model: A model of the library transformers.
        tokenizer: Its tokenizer.

    Returns:
        The model with its tokenizer.

    Raises:
        InputError: It is no model of text, returns no attention weights, or its tokenizer has more tokens than it.

    Example:
        >>> from topicscope.language import checked
        >>> from topicscope.pretraining import PretrainConfig, build_model, train_tokenizer
        >>> texts = ["frog toad newt pond", "mozart schubert opera violin"] * 10
        >>> tokenizer = train_tokenizer(texts, "wordpiece", vocab_size=100, length=16, exact=False)
        >>> tiny = {"text": {"corpus": ["-"]}, "length": 16, "model": {"layers": 1, "heads": 2, "dim": 8}}
        >>> loaded = checked("tiny", build_model(PretrainConfig.of(tiny), tokenizer), tokenizer)
        >>> loaded.name, loaded.window, loaded.variant
        ('tiny', 16, 'trained')
    """
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
