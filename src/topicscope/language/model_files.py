"""The files of a model folder, checked before any library opens them, and before PyTorch is loaded.

A library that is given a FIFO waits for ever; given ten million layers it builds them. So every file is a plain one,
the weights are read as far as their shapes, and the sizes in config.json are held against the shapes.
"""

import re
from collections.abc import Iterator, Mapping
from math import prod
from pathlib import Path
from typing import Any

from safetensors import SafetensorError, safe_open

from topicscope.ground import InputError, checked_file, file_digest, one_line, parse_json, read_bytes, shown

SEAL = "digests.json"  # digests of the other files of a folder that `topicscope pretrain` wrote
CONFIG, WEIGHTS, INDEX = "config.json", "model.safetensors", "model.safetensors.index.json"
TOKENIZER = ("tokenizer*.json", "vocab.*", "*.model", "*.spm")  # one of these is in every folder with whole words
PUBLISHED = (
    *("config.json", "generation_config.json", "model*.safetensors", INDEX, SEAL, "README.md"),
    *(*TOKENIZER, "special_tokens_map.json", "added_tokens.json", "merges.txt", "*.jinja"),
)
PICKLES = ("*.bin", "*.pt", "*.pth", "*.ckpt", "*.h5")
READ = (".json", ".txt", ".model", ".spm", ".jinja", ".safetensors")  # endings of files that the library may open
MOST = 2**28  # bytes of a file that the library reads whole; the tokenizer of a large model has 2**25
OBJECTS = (
    *("tokenizer_config.json", "special_tokens_map.json", "added_tokens.json", "generation_config.json"),
    *(CONFIG, INDEX),
)
COUNTED = re.compile(r"^(num|n)_.*(layer|head|group|expert|block)s?$|layers$|heads$|depth$")  # built one by one
MOST_COUNTED = 1000  # layers, heads or experts; the deepest published models have a thousand layers
POSITIONS = re.compile(r"position|n_ctx|seq_?len|max_.*length")
MOST_POSITIONS = 100_000  # most positions of a model whose weights are fewer than that


def check_plain_files(folder: Path) -> None:
    """Raise InputError unless all that a library may open in a folder is a plain file of bounded size."""
    try:
        entries = sorted(folder.iterdir())
    except OSError as error:
        raise InputError(f"{shown(folder)} cannot be read: {one_line(error)}") from None
    for entry in entries:
        opened = entry.suffix.lower() in READ
        if opened or not entry.is_dir():
            weights = entry.suffix.lower() == ".safetensors"
            checked_file(entry, "the file", MOST if opened and not weights else 2**62)
        if entry.name in OBJECTS:
            content = parse_json(read_bytes(entry), shown(entry), finite=False, narrow=False)
            if not isinstance(content, dict):
                raise InputError(f"{shown(entry)} holds a {type(content).__name__}; expected keys and values")
    check_seal(folder)


def check_seal(folder: Path) -> None:
    if not (folder / SEAL).exists():
        return
    digests = parse_json(read_bytes(folder / SEAL), shown(folder / SEAL))
    for name, digest in digests.items() if isinstance(digests, dict) else [(SEAL, "")]:
        if file_digest(checked_file(folder / Path(name).name, "the file", 2**62)) != digest:
            raise InputError(
                f"{shown(folder / name)} is damaged: it is not what topicscope wrote; train again, or remove {SEAL} to "
                "use it as it is"
            )


def read_model_files(folder: Path) -> tuple[Mapping[str, Any], int]:
    """The config of a model folder, and how many numbers its weights hold; InputError where it is none, or damaged."""
    if not (folder / CONFIG).exists():
        raise InputError(f"{shown(folder)} is not a model folder: it has no {CONFIG}")
    names = [name for name in (WEIGHTS, INDEX) if (folder / name).exists()]
    if not names:
        pickles = [path.name for pattern in PICKLES for path in folder.glob(pattern)]
        raise InputError(
            f"{shown(folder)} has its weights only as {pickles[0]}, a format that can run code when opened; "
            "convert it to safetensors first"
            if pickles
            else f"{shown(folder)} has no weights ({WEIGHTS})"
        )
    check_plain_files(folder)
    config = parse_json(read_bytes(folder / CONFIG), shown(folder / CONFIG), finite=False, narrow=False)
    if config.get("transformers_weights") is not None:  # a file that is not checked here
        raise InputError(f"{shown(folder / CONFIG)} names its own weights file; name it {WEIGHTS}")
    parts = [WEIGHTS] if names[0] == WEIGHTS else _parts(folder)
    numbers = sum(_numbers(folder / part) for part in parts)
    _check_sizes(config, numbers, folder / CONFIG)
    return config, numbers


def published_files(folder: Path) -> list[Path]:
    """The files of a model folder that belong to the model and its tokenizer: no code, no pickles, nothing else."""
    return sorted({file for pattern in PUBLISHED for file in folder.glob(pattern) if file.is_file()})


def _parts(folder: Path) -> list[str]:
    """The files that an index names. They lie in the folder: an index may not reach for others."""
    weights = parse_json(read_bytes(folder / INDEX), shown(folder / INDEX), finite=False).get("weight_map")
    if not isinstance(weights, dict) or not weights or not all(isinstance(part, str) for part in weights.values()):
        raise InputError(f"{shown(folder / INDEX)} is damaged: it does not say which file holds which tensor")
    parts = sorted(set(weights.values()))
    for part in parts:
        if Path(part).name != part or not part.endswith(".safetensors"):
            raise InputError(f"{shown(folder / INDEX)} names {part!r}; expected .safetensors files of the same folder")
        checked_file(folder / part, f"the file that {INDEX} names,", 2**62)
    return parts


def _numbers(path: Path) -> int:
    """How many numbers the tensors of a file hold, from their shapes alone."""
    try:
        with safe_open(path, "np") as opened:
            return sum(prod(opened.get_slice(name).get_shape()) for name in opened.keys())  # noqa: SIM118
    except (SafetensorError, OSError, ValueError, TypeError, OverflowError) as error:
        raise InputError(f"{shown(path)}: the weights file is damaged or cut off ({one_line(error)})") from None


def _check_sizes(config: Mapping[str, Any], numbers: int, path: Path) -> None:
    """Raise InputError where a size in the config lets the library build far more than the weights fill."""
    for name, value in _whole_numbers(config):
        for pattern, most in ((COUNTED, MOST_COUNTED), (POSITIONS, MOST_POSITIONS + numbers)):
            if pattern.search(name) and value > most:
                raise InputError(f"{shown(path)}: {name} = {value}; a model with these weights has at most {most}")


def _whole_numbers(config: Mapping[str, Any]) -> Iterator[tuple[str, int]]:
    """Names and values, of the sections too; of a list of whole numbers each."""
    for name, value in config.items():
        if isinstance(value, dict):
            yield from _whole_numbers(value)
        else:
            several = value if isinstance(value, list) else [value]
            yield from ((name, one) for one in several if isinstance(one, int) and not isinstance(one, bool))
