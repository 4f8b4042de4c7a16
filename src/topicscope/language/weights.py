"""The library's models, loaded from safetensors: refused where a weight is missing, of another shape, or no number.

The library itself fills what is missing with random numbers and goes on: a probe would then call noise 'trained'.
"""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from topicscope.ground import InputError, machine_memory, needed, one_line, size
from topicscope.language.inputs import Place
from topicscope.language.model_files import ModelFiles, read_model_files

transformers = needed("transformers", "a language model")

SHOWN = 3  # tensors that a message names
LARGER = 2  # times as many parameters as the weights have numbers: what is missing is then listed by name
HEADS = (
    *("cls", "lm_head", "lm_predictions", "predictions", "sop_classifier", "classifier", "qa_outputs", "score"),
    *("discriminator_predictions", "generator_predictions", "generator_lm_head", "final_logits_bias", "pooler"),
    *("vocab_transform", "vocab_layer_norm", "vocab_projector", "pre_classifier", "mlm", "nsp", "seq_relationship"),
)
"""First parts of names: what stands on top of an encoder, for the task that it was trained on."""


@contextmanager
def quiet() -> Iterator[None]:
    """Without the library's remarks on missing heads, and without its own progress bars.

    Returns:
        A context manager.

    Example:
        >>> with quiet():
        ...     transformers.logging.get_verbosity() == logging.CRITICAL
        True
    """
    logs: Any = transformers.logging
    hub = logging.getLogger("huggingface_hub")
    before, level = logs.get_verbosity(), hub.level
    logs.set_verbosity(logging.CRITICAL)
    hub.setLevel(logging.ERROR)
    logs.disable_progress_bar()
    try:
        with warnings.catch_warnings(action="ignore"):
            yield
    finally:
        logs.set_verbosity(before)
        hub.setLevel(level)


@contextmanager
def refusing(said: str) -> Iterator[None]:
    """What a library raises becomes an InputError with the reason: given a broken file it may raise anything."""
    try:
        with quiet():
            yield
    except (InputError, MemoryError):
        raise
    except BaseException as error:
        panic = type(error).__module__ == "pyo3_runtime"  # of the tokenizers, written in Rust: it is no Exception
        if not isinstance(error, Exception) and not panic:
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


def load_weights(place: Place, name: str | Path, kind: str = "AutoModel") -> tuple[Any, list[str]]:
    """Load a model from safetensors, in float32 on the CPU, with eager attention.

    Args:
        place: Where it is, from `check_model`.
        name: What error messages call it.
        kind: Class of the library transformers.

    Returns:
        The model, and notes on what of the file was not used.

    Raises:
        InputError: A weight is missing, of another shape, or no number.

    Example:
        >>> import tempfile
        >>> from topicscope.language import check_model
        >>> from topicscope.language import checked
        >>> from topicscope.pretraining import PretrainConfig, build_model, train_tokenizer
        >>> texts = ["frog toad newt pond", "mozart schubert opera violin"] * 10
        >>> tokenizer = train_tokenizer(texts, "wordpiece", vocab_size=100, length=16, exact=False)
        >>> tiny = {"text": {"corpus": ["-"]}, "length": 16, "model": {"layers": 1, "heads": 2, "dim": 8}}
        >>> loaded = checked("tiny", build_model(PretrainConfig.of(tiny), tokenizer), tokenizer)
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     loaded.model.save_pretrained(folder)
        ...     load_weights(check_model(folder), "tiny")[1]
        ['5 tensors of the output head not used, except for losses']
    """
    files = read_model_files(Path(place.name)) if place.local else None
    where: dict[str, Any] = {
        "revision": place.revision,
        "local_files_only": place.local,
        "trust_remote_code": False,
    }
    auto, said = getattr(transformers, kind), f"{name}: it cannot be loaded as a model"
    with refusing(said):
        config = transformers.AutoConfig.from_pretrained(place.name, **where)
        check_architecture(config, name)
        with torch.device("meta"):  # shapes alone: nothing is allocated
            empty = auto.from_config(config, attn_implementation="eager", trust_remote_code=False)
        check_size(empty, files, name)
        model, info = auto.from_pretrained(
            place.name,
            **where,
            use_safetensors=True,
            attn_implementation="eager",
            dtype=torch.float32,
            output_loading_info=True,
            ignore_mismatched_sizes=True,  # refused below, by name
        )
    check_loaded(info, name)
    check_finite(model, name)
    return model, unused(info["unexpected_keys"])


def check_architecture(config: Any, name: str | Path) -> None:
    """Raise InputError where the config says that its weights are of another kind of model."""
    for architecture in getattr(config, "architectures", None) or []:
        built = getattr(transformers, str(architecture), None)
        kind = getattr(getattr(built, "config_class", None), "model_type", None)
        if kind is not None and kind != config.model_type:
            raise InputError(
                f"{name}: its config.json says model_type {config.model_type!r}, but {architecture} is a {kind!r} "
                "model; give the config.json that belongs to the weights"
            )


def check_size(empty: Any, files: ModelFiles | None, name: str | Path) -> None:
    """Raise InputError where a model is far larger than its weights file, or than the memory of this machine."""
    count = sum(parameter.numel() for parameter in empty.parameters())
    if files is not None and count > LARGER * files.numbers:
        raise InputError(
            f"{name}: a model as in its config.json has {count:,} parameters, but the weights file holds "
            f"{files.numbers:,} numbers; they do not belong together"
        )
    need = 4 * count + sum(buffer.numel() * buffer.element_size() for buffer in empty.buffers())
    if need > (memory := machine_memory()):
        raise InputError(f"{name}: the model takes {size(need)} of memory, and the machine has {size(memory)}")


def check_loaded(info: dict[str, Any], name: str | Path) -> None:
    """Raise InputError where a tensor is missing or of another shape. A pooler is not needed: nothing here uses it."""
    missing = sorted(key for key in info["missing_keys"] if "pooler" not in key.split("."))
    others = sorted(str(key[0] if isinstance(key, tuple) else key) for key in info["mismatched_keys"])
    if missing or others or info.get("error_msgs"):
        faults = [
            f"{counted(len(keys))} {said} ({some(keys)})"
            for keys, said in ((missing, "missing"), (others, "of another shape"))
            if keys
        ]
        raise InputError(
            f"{name}: its weights are not those of the model in its config.json: "
            f"{' and '.join(faults) or one_line(ValueError(info['error_msgs']))}; "
            f"{counted(len(info['unexpected_keys']))} of the file unused"
        )


def check_finite(model: Any, name: str | Path) -> None:
    """Raise InputError where a weight is NaN or infinite: everything measured would be NaN."""
    for key, tensor in model.state_dict().items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            raise InputError(f"{name}: its weights are damaged: {key} has numbers that are NaN or infinite")


def unused(keys: Sequence[str]) -> list[str]:
    """A note on tensors of the file that are no part of the model; none where there are none."""
    names = sorted(keys)
    if not names:
        return []
    strange = [name for name in names if name.split(".")[0] not in HEADS]
    if not strange:
        return [f"{counted(len(names))} of the output head not used, except for losses"]
    return [f"{counted(len(names))} of the file not part of the encoder, and not used, e.g. {strange[0]}"]


def counted(count: int) -> str:
    return "1 tensor" if count == 1 else f"{count} tensors"


def some(names: Sequence[str]) -> str:
    return ", ".join(names[:SHOWN]) + (", ..." if len(names) > SHOWN else "")
