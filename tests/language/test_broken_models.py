"""Model folders that are broken, in every way that was thought of: one line, nothing run, nothing waited for."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import transformers
from safetensors.numpy import load, save

from tests.language import tiny
from tests.language.samples import SHARED, model_folder, needs_shared
from topicscope import InputError
from topicscope.language import load_model, load_tokenizer
from topicscope.language.models import checked

Breakage = Callable[[Path], Any]


@pytest.fixture(scope="module")
def intact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return model_folder(tmp_path_factory.mktemp("intact"))


def rewritten(name: str, change: Callable[[bytes], bytes]) -> Breakage:
    def rewrite(folder: Path) -> None:
        path = folder / name
        path.write_bytes(change(path.read_bytes() if path.exists() else b""))

    return rewrite


def changed(name: str = "config.json", **settings: Any) -> Breakage:
    return rewritten(name, lambda old: json.dumps(json.loads(old or b"{}") | settings).encode())


def written(name: str, content: str | bytes) -> Breakage:
    return rewritten(name, lambda _: content.encode() if isinstance(content, str) else content)


def cut(name: str, share: float = 0.5) -> Breakage:
    return rewritten(name, lambda whole: whole[: int(len(whole) * share)])


def tensors(change: Callable[[dict[str, np.ndarray]], dict[str, np.ndarray]]) -> Breakage:
    return rewritten("model.safetensors", lambda old: save(change(load(old)), metadata={"format": "pt"}))


def replaced(name: str, make: Callable[[Path], Any]) -> Breakage:
    def replace(folder: Path) -> None:
        (folder / name).unlink(missing_ok=True)
        make(folder / name)

    return replace


def linked(name: str, target: str) -> Breakage:
    return replaced(name, lambda path: path.symlink_to(target))


def fifo(name: str) -> Breakage:
    return replaced(name, os.mkfifo)


def no_token_at_the_end(content: bytes) -> bytes:
    settings = json.loads(content)
    settings["post_processor"]["single"][2]["SpecialToken"]["id"] = "no such token"
    return json.dumps(settings).encode()


def sharded(part: str) -> Breakage:
    """An index that names another file of weights."""

    def change(folder: Path) -> None:
        (folder / "model.safetensors").rename(folder.parent / "outside.safetensors")
        index = {"metadata": {}, "weight_map": {"embeddings.word_embeddings.weight": part}}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))

    return change


def other_tokenizer(folder: Path) -> None:
    tiny.tokenizer("bpe").save_pretrained(folder)


def with_nan(stored: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    stored["encoder.layer.1.output.dense.weight"].ravel()[3] = np.nan
    return stored


def as_folder(folder: Path) -> None:
    (folder / "config.json").unlink()
    (folder / "config.json").mkdir()


def vision(folder: Path) -> None:
    settings: Any = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    config = transformers.ViTConfig(**settings, image_size=8, patch_size=4)
    transformers.ViTModel(config).save_pretrained(folder)


BROKEN: dict[str, tuple[Breakage, str]] = {
    # the model that config.json describes is not the one whose weights are there
    "more layers": (changed(num_hidden_layers=3), "encoder.layer.2.attention.output.LayerNorm.bias"),
    "another width": (changed(hidden_size=8, intermediate_size=8), "of another shape"),
    "a larger vocabulary": (changed(vocab_size=200), r"1 tensor of another shape \(embeddings.word_embeddings"),
    "a smaller vocabulary": (changed(vocab_size=60), "1 tensor of another shape"),
    "more positions": (changed(max_position_embeddings=64), "1 tensor of another shape"),
    "renamed tensors": (
        tensors(lambda t: {f"x.y.{name}": a for name, a in t.items()}),
        "39 tensors of the file unused",
    ),
    "a missing tensor": (
        tensors(lambda t: {name: a for name, a in t.items() if "layer.1.attention.self.key" not in name}),
        r"2 tensors missing \(encoder.layer.1.attention.self.key.bias, .*0 tensors of the file unused",
    ),
    "another kind, same names": (changed(model_type="ernie"), "model_type 'ernie', but BertModel is a 'bert' model"),
    "another kind": (changed(model_type="gpt2", architectures=["GPT2Model"]), "tensors missing"),
    "no such kind": (changed(model_type="no-such-type"), "cannot be loaded as a model"),
    "numbers that are none": (tensors(with_nan), "encoder.layer.1.output.dense.weight has numbers that are NaN"),
    # config.json
    "a string for a number": (changed(hidden_size="wide"), "cannot be loaded|no attention"),
    "null for a number": (changed(hidden_size=None), "cannot be loaded|no attention"),
    "a list for a number": (changed(num_attention_heads=[2]), "cannot be loaded|no attention"),
    "a negative width": (changed(hidden_size=-16), "cannot be loaded|no attention"),
    "negative layers": (changed(num_hidden_layers=-2), "cannot be loaded|no attention"),
    "no heads": (changed(num_attention_heads=0), "cannot be loaded|no attention"),
    "a million layers": (changed(num_hidden_layers=10**6), "num_hidden_layers = 1000000; .* at most 1000"),
    "ten million wide": (changed(hidden_size=10**7), "parameters, but the weights file holds"),
    "wider than can be counted": (changed(hidden_size=10**14, num_attention_heads=1), "cannot be loaded|no attention"),
    "a thousand million tokens": (changed(vocab_size=10**9), "parameters, but the weights file holds"),
    "a thousand million positions": (changed(max_position_embeddings=10**9), "max_position_embeddings = 1000000000"),
    "an unknown activation": (changed(hidden_act="no-such"), "cannot be loaded|no attention"),
    "config: empty": (written("config.json", "cannot be loaded|no attention"), "config.json is not JSON"),
    "config: a list": (written("config.json", "[]"), "holds a list; expected keys and values"),
    "config: nested": (written("config.json", "[" * 100_000), "config.json"),
    "config: no text": (written("config.json", b"\xff\xfe\x00\x01"), "config.json is not JSON"),
    "config: code of its own": (
        changed(model_type="strange", auto_map={"AutoConfig": "evil.Config", "AutoModel": "evil.Model"}),
        "cannot be loaded",
    ),
    "another weights file": (changed(transformers_weights="../x.safetensors"), "names its own weights file"),
    "a vision model": (vision, "embeddings of tokens|cannot be"),
    # the tokenizer
    "tokenizer: no model": (changed("tokenizer.json", model=None), "its tokenizer cannot be loaded"),
    "tokenizer: empty": (written("tokenizer.json", "cannot be loaded|no attention"), "its tokenizer cannot be loaded"),
    "tokenizer: cut off": (cut("tokenizer.json"), "its tokenizer cannot be loaded"),
    "tokenizer: nested": (written("tokenizer.json", "[" * 3000 + "]" * 3000), "its tokenizer cannot be loaded"),
    "tokenizer: of another model": (other_tokenizer, r"its tokenizer has \d+ tokens, but the model has embeddings of"),
    "tokenizer: what makes it panic": (
        rewritten("tokenizer.json", no_token_at_the_end),
        r"its tokenizer cannot be loaded \(no entry found for key",
    ),
    "tokenizer config: garbage": (written("tokenizer_config.json", "{garbage"), "tokenizer_config.json is not JSON"),
    "tokenizer config: no such class": (changed("tokenizer_config.json", tokenizer_class="NoSuchClass"), ""),
    "tokenizer config: code of its own": (
        changed("tokenizer_config.json", tokenizer_class="Evil", auto_map={"AutoTokenizer": ["evil.Evil", None]}),
        "its tokenizer cannot be loaded",
    ),
    "tokenizer config: a list": (written("tokenizer_config.json", "[1]"), "holds a list"),
    "special tokens: garbage": (written("special_tokens_map.json", "\0"), "special_tokens_map.json is not JSON"),
    # the weights
    "weights: empty": (written("model.safetensors", b""), "damaged or cut off"),
    "weights: garbage": (written("model.safetensors", os.urandom(5000)), "damaged or cut off"),
    "weights: cut off": (cut("model.safetensors", 0.9), "damaged or cut off"),
    "weights: of nothing": (tensors(lambda _: {}), "parameters, but the weights file holds 0 numbers"),
    "parts outside": (sharded("../outside.safetensors"), "expected .safetensors files of the same folder"),
    "parts that are missing": (sharded("model-00001-of-00002.safetensors"), "cannot be read: No such file"),
    "parts that are none": (
        written("model.safetensors.index.json", '{"weight_map": 3}'),
        "cannot be loaded|no attention",
    ),
    # what is no plain file
    **{f"a FIFO as {name}": (fifo(name), "it is not an ordinary file") for name in ("config.json", "tokenizer.json")},
    **{f"a FIFO as {name}": (fifo(name), "it is not an ordinary file") for name in ("model.safetensors", "vocab.txt")},
    "no end of zeros": (linked("model.safetensors", "/dev/zero"), "it is not an ordinary file"),
    "no end of settings": (linked("config.json", "/dev/zero"), "it is not an ordinary file"),
    "a link to itself": (linked("tokenizer.json", "tokenizer.json"), "cannot be read"),
    "a broken link": (linked("generation_config.json", "nowhere"), "cannot be read: No such file"),
    "a folder as a file": (as_folder, "it is a folder"),
}
SURVIVED = {
    "parts that are none",  # there is a whole file of weights beside the index
    "tokenizer config: no such class",  # tokenizer.json says everything that the class would
    "tokenizer config: code of its own",  # likewise: it is not run
}


@pytest.mark.parametrize("breakage", BROKEN)
def test_broken_folders_are_refused_in_one_line(
    intact: Path, tmp_path: Path, capfd: pytest.CaptureFixture[str], breakage: str
) -> None:
    folder = tmp_path / "model"
    shutil.copytree(intact, folder)
    (folder / "evil.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    change, said = BROKEN[breakage]
    change(folder)
    capfd.readouterr()
    if breakage in SURVIVED:
        load_model(folder)
    else:
        with pytest.raises(InputError, match=said) as caught:
            load_model(folder)
        assert "\n" not in str(caught.value)
        assert len(str(caught.value)) < 700
        assert str(tmp_path) in str(caught.value)
    assert capfd.readouterr() == ("", ""), "no remarks of the library"
    assert not (tmp_path / "ran").exists()


def test_many_files_are_no_fault(intact: Path, tmp_path: Path) -> None:
    shutil.copytree(intact, tmp_path / "model")
    for number in range(200):
        (tmp_path / "model" / f"{number}.json").write_text("{")
    (tmp_path / "model" / "optimizer.pt").write_bytes(b"x")
    load_model(tmp_path / "model")


@needs_shared
def test_a_real_model_with_more_layers_than_weights_is_refused(tmp_path: Path) -> None:
    shutil.copytree(SHARED / "models" / "bert-mini-wiki", tmp_path / "model")
    changed(num_hidden_layers=8)(tmp_path / "model")
    with pytest.raises(InputError, match=r"64 tensors missing \(.*; 5 tensors of the file unused"):
        load_model(tmp_path / "model")


def test_a_tokenizer_alone_is_checked_too(intact: Path, tmp_path: Path) -> None:
    shutil.copytree(intact, tmp_path / "model")
    fifo("tokenizer.json")(tmp_path / "model")
    with pytest.raises(InputError, match="it is not an ordinary file"):
        load_tokenizer(tmp_path / "model")


def test_whatever_the_first_pass_raises_is_said() -> None:
    tokenizer = tiny.tokenizer("wordpiece")
    model = tiny.model("encoder", len(tokenizer))
    model.forward = lambda **_: 1 // 0
    with pytest.raises(InputError, match=r"cannot be run on a text of two words \(integer division"):
        checked("broken", model, tokenizer)
