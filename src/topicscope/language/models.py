"""Models that return their attention weights: from a folder or the hub, trained or with random weights.

loaded = load_model("bert-mini-wiki"); loaded.model, loaded.tokenizer, loaded.window

Code that comes with a model is never run. The library itself fills missing weights with random numbers and goes on; a
probe would then call noise 'trained'. So a model is refused if a weight is missing, of another shape, or no number.
"""

from __future__ import annotations

import functools
import logging
import os
import warnings
import zlib
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import KW_ONLY, dataclass, replace
from pathlib import Path
from typing import Any

import torch

from topicscope.ground import InputError, machine_memory, needed, one_line, refuse, refuse_if, size
from topicscope.language.corpora import first_few
from topicscope.language.forward import attention_of
from topicscope.language.inputs import Place, check_model, check_tokenizer, read_model_files
from topicscope.language.vocabulary import LibraryModel, Tokenizer

transformers = needed("transformers", "a language model")

TRIED = "a b"  # the text on which a tokenizer and a model are tried
HEADS = (  # first parts of names: what stands on top of an encoder, for the task that it was trained on
    *("cls", "lm_head", "lm_predictions", "predictions", "sop_classifier", "classifier", "qa_outputs", "score"),
    *("discriminator_predictions", "generator_predictions", "generator_lm_head", "final_logits_bias", "pooler"),
    *("vocab_transform", "vocab_layer_norm", "vocab_projector", "pre_classifier", "mlm", "nsp", "seq_relationship"),
)


@contextmanager
def quiet() -> Iterator[None]:
    logs, hub = transformers.logging, logging.getLogger("huggingface_hub")
    with ExitStack() as restored:
        restored.callback(logs.set_verbosity, logs.get_verbosity())
        restored.callback(hub.setLevel, hub.level)
        restored.enter_context(warnings.catch_warnings(action="ignore"))
        logs.set_verbosity(logging.CRITICAL)
        hub.setLevel(logging.ERROR)
        logs.disable_progress_bar()
        yield


@contextmanager
def refusing(said: str) -> Iterator[None]:
    """What a library raises becomes an InputError with the reason: given a broken file it may raise anything."""
    try:
        with quiet():
            yield
    except (InputError, MemoryError):
        raise
    except BaseException as error:
        if not isinstance(error, Exception) and type(error).__module__ != "pyo3_runtime":  # a panic of the tokenizers
            raise
        raise InputError(f"{said} ({one_line(error)})") from None


@contextmanager
def without_panic_reports() -> Iterator[None]:
    """Without what Rust writes past Python to the error output, ahead of the exception that says the same."""
    try:
        kept = os.dup(2)
    except OSError:  # there is no error output
        yield
        return
    try:
        with open(os.devnull, "wb") as nowhere:
            os.dup2(nowhere.fileno(), 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def load_weights(place: Place, name: str | Path, kind: str = "AutoModel") -> tuple[LibraryModel, list[str]]:
    numbers = read_model_files(Path(place.name))[1] if place.local else None
    where = {"revision": place.revision, "local_files_only": place.local, "trust_remote_code": False}
    auto = getattr(transformers, kind)
    with refusing(f"{name}: it cannot be loaded as a model"):
        config = transformers.AutoConfig.from_pretrained(place.name, **where)
        check_architecture(config, name)
        with torch.device("meta"):  # shapes alone, nothing is allocated
            empty = auto.from_config(config, attn_implementation="eager", trust_remote_code=False)
        check_size(empty, numbers, name)
        model, info = auto.from_pretrained(
            place.name,
            **where,
            use_safetensors=True,
            attn_implementation="eager",
            dtype=torch.float32,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # check_loaded refuses them by name
        )
    check_loaded(info, model, name)
    return model, unused(info["unexpected_keys"])


def check_architecture(config: Any, name: str | Path) -> None:
    for architecture in getattr(config, "architectures", None) or []:
        built = getattr(transformers, str(architecture), None)
        kind = getattr(getattr(built, "config_class", None), "model_type", None)
        refuse_if(
            kind not in (None, config.model_type),
            f"{name}: its config.json says model_type {config.model_type!r}, but {architecture} is a {kind!r} "
            "model; give the config.json that belongs to the weights",
        )


def check_size(empty: LibraryModel, numbers: int | None, name: str | Path) -> None:
    count, memory = sum(parameter.numel() for parameter in empty.parameters()), machine_memory()
    need = 4 * count + sum(buffer.numel() * buffer.element_size() for buffer in empty.buffers())
    refuse(
        (
            numbers is not None and count > 2 * numbers,  # with fewer missing, they are listed by name
            f"{name}: a model as in its config.json has {count:,} parameters, but the weights file holds "
            f"{numbers or 0:,} numbers; they do not belong together",
        ),
        (need > memory, f"{name}: the model takes {size(need)} of memory, and the machine has {size(memory)}"),
    )


def check_loaded(info: Mapping[str, Any], model: LibraryModel, name: str | Path) -> None:
    """Raise InputError where a tensor is missing, of another shape, NaN or infinite. Nothing here uses a pooler."""
    missing = sorted(key for key in info["missing_keys"] if "pooler" not in key.split("."))
    others = sorted(str(key[0] if isinstance(key, tuple) else key) for key in info["mismatched_keys"])
    faults = [
        f"{counted(len(keys))} {said} ({first_few(keys, 3)})"
        for keys, said in ((missing, "missing"), (others, "of another shape"))
        if keys
    ]
    if faults or info.get("error_msgs"):
        raise InputError(
            f"{name}: its weights are not those of the model in its config.json: "
            f"{' and '.join(faults) or one_line(ValueError(info['error_msgs']))}; "
            f"{counted(len(info['unexpected_keys']))} of the file unused"
        )
    refuse(
        *(
            (
                tensor.is_floating_point() and not torch.isfinite(tensor).all(),
                f"{name}: its weights are damaged: {key} has numbers that are NaN or infinite",
            )
            for key, tensor in model.state_dict().items()
        )
    )


def unused(keys: Collection[str]) -> list[str]:
    strange = sorted(key for key in keys if key.split(".")[0] not in HEADS)
    example = f"of the file not part of the encoder, and not used, e.g. {strange[0]}" if strange else ""
    return [f"{counted(len(keys))} {example or 'of the output head not used, except for losses'}"] if keys else []


def counted(count: int) -> str:
    return "1 tensor" if count == 1 else f"{count} tensors"


@dataclass(frozen=True)
class LoadedModel:
    """A model with its tokenizer. Another process gets the place that it was loaded from, and loads it again."""

    name: str
    model: LibraryModel
    tokenizer: Tokenizer
    window: int  # tokens of the longest input that it was made for, special ones included
    _: KW_ONLY
    variant: str = "trained"  # or random weights
    place: str | None = None  # absolute folder, or hub id; None: made by the caller
    seed: int = 0  # of random weights
    notes: tuple[str, ...] = ()  # what of its files was not used

    def __reduce__(self) -> tuple[Callable[..., LoadedModel], tuple[str | int, ...]]:
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
        with torch.random.fork_rng(devices=[]), quiet():
            # the name is part of the seed, so that models of the same shape get different weights
            torch.manual_seed(zlib.crc32(f"{seed} {Path(self.name).name}".encode()))
            fresh = transformers.AutoModel.from_config(
                self.model.config, attn_implementation="eager", trust_remote_code=False
            )
        return replace(self, model=fresh.float().to(self.device).eval(), variant="random", seed=seed)


def load_tokenizer(name: str | Path) -> Tokenizer:
    place = check_tokenizer(name)
    where = "" if place.local else "there is no such folder, and from the hub "
    said = f"{name}: {where}its tokenizer cannot be loaded"
    with refusing(said), without_panic_reports():
        tokenizer = transformers.AutoTokenizer.from_pretrained(
            place.name, revision=place.revision, local_files_only=place.local, trust_remote_code=False
        )
        numbers = [*tokenizer.get_vocab().values(), *tokenizer(TRIED)["input_ids"], *tokenizer.all_special_ids]
        refuse_if(min(numbers, default=-1) < 0, f"{said} (it has no tokens)")
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
    place, tokenizer = check_model(name), load_tokenizer(name)
    model, notes = load_weights(place, name)
    if device == "cuda":
        os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")  # it has to be set before the first product
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


def checked(name: str, model: LibraryModel, tokenizer: Tokenizer) -> LoadedModel:
    """Take a model that you have: it is switched to eager attention, and run once to see that it returns weights."""
    with refusing(f"{name}: it has no embeddings of tokens, which a model of text has"):
        rows = int(model.get_input_embeddings().weight.shape[0])
    tokens = max(len(tokenizer), 1 + max(tokenizer.get_vocab().values(), default=-1))
    refuse_if(tokens > rows, f"{name}: its tokenizer has {tokens} tokens, but the model has embeddings of only {rows}")
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
    refuse(
        (not parts, f"{name}: this model returns no attention weights; a transformer with attention layers is needed"),
        (
            loaded.window < inputs.shape[1],
            f"{name}: its longest input is {loaded.window} tokens, too few for a text of two words",
        ),
    )
    return loaded


def window_of(model: LibraryModel, tokenizer: Tokenizer) -> int:
    """The longest input of the tokenizer and the positions, some of which may come before the padding index."""
    stated = [
        length
        for key in ("max_position_embeddings", "n_positions", "max_sequence_length")
        if isinstance(length := getattr(model.config, key, None), int) and length > 0
    ]
    tables = [
        module.num_embeddings - module.padding_idx - 1
        for name, module in model.named_modules()
        if name.endswith("position_embeddings")
        and isinstance(module, torch.nn.Embedding)
        and module.padding_idx is not None
    ]
    own = tokenizer.model_max_length
    return min([*stated, *tables, *([own] if isinstance(own, int) and own < 10**6 else [])], default=512)
