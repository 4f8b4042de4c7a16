"""Models that are whole: loaded to the bit as the library has them, quietly, and without running their code."""

import contextlib
import json
import logging
import os
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
import transformers

from tests.language import tiny
from tests.language.samples import model_folder
from topicscope import InputError
from topicscope.ground import file_digest
from topicscope.language import Window, load_model, padded, quiet, shifted_right, word_map, word_vectors
from topicscope.language.forward import attention_of, is_causal
from topicscope.language.models import checked, counted, unused, window_of

SMALL: dict[str, Any] = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}


@pytest.mark.parametrize("kind", tiny.MODELS)
def test_models_load_from_folders_with_eager_attention(tmp_path: Path, kind: str) -> None:
    loaded = load_model(model_folder(tmp_path, kind))
    assert loaded.model.config._attn_implementation == "eager"
    assert not loaded.model.training
    assert is_causal(loaded.model.config) == (kind == "decoder")
    assert loaded.window == 40
    dice = torch.get_rng_state()
    fresh, again, other = loaded.random(1), loaded.random(1), loaded.random(2)
    assert torch.equal(torch.get_rng_state(), dice)
    weights = [model.model.get_input_embeddings().weight for model in (loaded, fresh, again, other)]
    assert torch.equal(weights[1], weights[2])
    assert not torch.equal(weights[0], weights[1])
    assert not torch.equal(weights[1], weights[3])
    assert fresh.variant == "random"


def test_a_model_without_attention_is_refused() -> None:
    class Plain(torch.nn.Module):
        """An embedding with nothing after it."""

        def __init__(self, size: int) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(size, 4)
            self.config = tiny.model("encoder", size).config
            self.device = torch.device("cpu")

        def get_input_embeddings(self) -> torch.nn.Embedding:
            return self.table

        def forward(self, input_ids: torch.Tensor, **_: Any) -> Any:
            return type("Out", (), {"attentions": None})()

    tokenizer = tiny.tokenizer("wordpiece")
    with pytest.raises(InputError, match="returns no attention weights"):
        checked("plain", Plain(len(tokenizer)), tokenizer)


def test_positions_after_the_padding_index_are_fewer(tmp_path: Path) -> None:
    tokenizer = tiny.tokenizer("bpe", 10**9)
    config = transformers.RobertaConfig(vocab_size=len(tokenizer), max_position_embeddings=30, pad_token_id=1, **SMALL)
    build: Any = transformers.AutoModel.from_config
    loaded = checked("roberta", build(config, attn_implementation="sdpa"), tokenizer)
    assert loaded.window == 28  # positions 2, ..., 29
    assert loaded.model.config._attn_implementation == "eager"
    full = torch.full((1, loaded.window), 7)
    loaded.model(input_ids=full)  # fits


@pytest.mark.parametrize("kind", tiny.MODELS)
def test_word_vectors_are_rows_of_the_matrix_or_what_the_layer_makes_of_them(kind: str) -> None:
    tokenizer = tiny.tokenizer("bpe")
    loaded = checked(kind, tiny.model(kind, len(tokenizer)), tokenizer)
    token = np.array([5, 9, 30])
    table = loaded.model.get_input_embeddings().weight.detach().numpy()
    assert np.array_equal(word_vectors(loaded.model, token), table[token])
    layer = word_vectors(loaded.model, token, layer=True)
    assert layer.shape == (3, 16)
    assert not np.allclose(layer, table[token])
    if kind == "encoder":
        embeddings = loaded.model.embeddings
        by_hand = embeddings.LayerNorm(
            embeddings.word_embeddings.weight[token]
            + embeddings.position_embeddings.weight[0]
            + embeddings.token_type_embeddings.weight[0]
        )
        np.testing.assert_allclose(layer, by_hand.detach().numpy(), rtol=1e-10)


def test_word_map_averages_pieces_and_marks_them() -> None:
    tokenizer = tiny.tokenizer("wordpiece")
    loaded = checked("encoder", tiny.model("encoder", len(tokenizer)), tokenizer)
    found = word_map(loaded, [["bread", "butter"], ["judgeboat"]])
    assert found.pieces[:2] == (1, 1)
    assert found.pieces[2] > 1
    assert found.labels == ["bread", "butter", "judgeboat*"]
    pieces = tokenizer("judgeboat", add_special_tokens=False)["input_ids"]
    table = loaded.model.get_input_embeddings().weight.detach().numpy()
    mean, bread = table[pieces].mean(0), table[tokenizer.convert_tokens_to_ids("bread")]
    assert found.cosine[0, 2] == pytest.approx(mean @ bread / np.linalg.norm(mean) / np.linalg.norm(bread), rel=1e-10)
    same, different = found.means()
    assert same == pytest.approx(found.cosine[0, 1])
    assert different == pytest.approx(found.cosine[:2, 2].mean())
    with pytest.raises(InputError, match="does not know"):
        word_map(loaded, [["bread"], ["\u4e2d"]])


@pytest.mark.parametrize(
    ("config", "length", "window"),
    [
        ({}, 10**30, 512),
        ({}, 10**6, 512),  # no limit: what a tokenizer without one says
        ({}, 10**6 - 1, 10**6 - 1),
        ({"max_position_embeddings": 64}, 10**30, 64),
        ({"max_position_embeddings": 64}, 50, 50),
        ({"max_position_embeddings": 64, "n_positions": 32, "max_sequence_length": 48}, 50, 32),
        ({"max_position_embeddings": 0, "n_positions": -1, "max_sequence_length": None}, 70, 70),
        ({"max_position_embeddings": 1}, 70, 1),
    ],
)
def test_the_longest_input(config: dict[str, Any], length: int, window: int) -> None:
    model = SimpleNamespace(config=SimpleNamespace(**config), named_modules=list)
    assert window_of(model, SimpleNamespace(model_max_length=length)) == window


def test_positions_that_take_part_in_the_longest_input() -> None:
    table, padded_table = torch.nn.Embedding(30, 2), torch.nn.Embedding(20, 2, padding_idx=0)
    for modules, window in (
        ([("x.position_embeddings", table)], 100),
        ([("x.position_embeddings", padded_table)], 19),
        ([("x.word_embeddings", padded_table)], 100),
        ([("x.position_embeddings", torch.nn.Linear(2, 2)), ("position_embeddings", padded_table)], 19),
    ):
        model = SimpleNamespace(config=SimpleNamespace(), named_modules=lambda modules=modules: modules)
        assert window_of(model, SimpleNamespace(model_max_length=100)) == window


def test_decoders_are_known_by_their_kind() -> None:
    configs: list[Any] = [SimpleNamespace(model_type=kind) for kind in ("gpt2", "bert", "roberta", "no-such-model")]
    assert [is_causal(config) for config in configs] == [True, False, False, False]
    decoder: Any = SimpleNamespace(model_type="bert", is_decoder=True)
    assert is_causal(decoder)


@pytest.mark.parametrize(("start", "bos", "first"), [(7, 8, 7), (0, 8, 0), (None, 8, 8), (None, None, 0)])
def test_a_decoder_reads_the_text_one_place_later(start: int | None, bos: int | None, first: int) -> None:
    config: Any = SimpleNamespace(decoder_start_token_id=start, bos_token_id=bos)
    tokens, mask = torch.tensor([[3, 4, 5], [6, 7, 0]]), torch.tensor([[1, 1, 1], [1, 1, 0]])
    shifted, shifted_mask = shifted_right(tokens, mask, config)
    assert shifted.tolist() == [[first, 3, 4], [first, 6, 7]]
    assert shifted_mask.tolist() == [[1, 1, 1], [1, 1, 1]]


@pytest.mark.parametrize(("pad", "filled"), [(9, 9), (None, 0)])
def test_a_batch_is_padded_and_masked(pad: int | None, filled: int) -> None:
    batch = [Window(0, np.array([4, 5, 6]), np.array([1])), Window(1, np.array([7]), np.array([0]))]
    loaded: Any = SimpleNamespace(tokenizer=SimpleNamespace(pad_token_id=pad), device="cpu")
    tokens, mask = padded(batch, loaded)
    assert tokens.tolist() == [[4, 5, 6], [7, filled, filled]]
    assert mask.tolist() == [[1, 1, 1], [1, 0, 0]]


def test_more_tokens_than_embeddings_are_refused() -> None:
    tokenizer = tiny.tokenizer("wordpiece")
    size = len(tokenizer)
    assert checked("enough", tiny.model("encoder", size), tokenizer).place is None
    with pytest.raises(InputError, match=f"has {size} tokens, but the model has embeddings of only {size - 1}"):
        checked("too few", tiny.model("encoder", size - 1), tokenizer)


def test_loading_is_quiet_and_leaves_the_logs_as_they_were(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    logs: Any = transformers.logging
    hub = logging.getLogger("huggingface_hub")
    before = logs.get_verbosity(), hub.level
    with contextlib.suppress(KeyError), quiet(), warnings.catch_warnings(record=True) as caught:
        assert logs.get_verbosity() >= logging.ERROR
        assert hub.level == logging.ERROR
        warnings.warn("nobody hears it", stacklevel=1)
        raise KeyError
    assert not caught
    assert (logs.get_verbosity(), hub.level) == before
    monkeypatch.delenv("CUBLAS_WORKSPACE_CONFIG", raising=False)
    folder = model_folder(tmp_path)
    there = sorted(folder.iterdir())
    loaded = load_model(folder)
    assert sorted(folder.iterdir()) == there
    assert "CUBLAS_WORKSPACE_CONFIG" not in os.environ
    assert loaded.place == str(tmp_path / "model")
    assert (loaded.random().seed, loaded.random(4).seed, loaded.variant) == (0, 4, "trained")


def test_a_folder_as_others_write_it_loads(tmp_path: Path) -> None:
    """A tokenizer without a limit is saved with a number of a hundred bits; a cache has links instead of files."""
    folder = model_folder(tmp_path / "blobs")
    settings = json.loads((folder / "tokenizer_config.json").read_text())
    (folder / "tokenizer_config.json").write_text(json.dumps(settings | {"model_max_length": 10**30}))
    linked = tmp_path / "snapshot"
    linked.mkdir()
    for file in folder.iterdir():
        (linked / file.name).symlink_to(file)
    assert load_model(linked).window == 40


def test_a_model_that_topicscope_wrote_is_loaded_as_it_was_written(tmp_path: Path) -> None:
    folder = model_folder(tmp_path / "model")
    (folder / "digests.json").write_text(json.dumps({file.name: file_digest(file) for file in folder.iterdir()}))
    load_model(folder)
    weights = bytearray((folder / "model.safetensors").read_bytes())
    weights[-3] ^= 1  # still a number
    (folder / "model.safetensors").write_bytes(weights)
    with pytest.raises(InputError, match=r"model\.safetensors is damaged.*remove digests\.json to use it as it is"):
        load_model(folder)
    (folder / "digests.json").unlink()
    load_model(folder)


def test_weights_in_parts_are_read(tmp_path: Path) -> None:
    whole = load_model(model_folder(tmp_path))
    whole.model.save_pretrained(tmp_path / "parts", max_shard_size="5KB")
    tiny.tokenizer("wordpiece").save_pretrained(tmp_path / "parts")
    assert len(list((tmp_path / "parts").glob("*.safetensors"))) > 1
    parts = load_model(tmp_path / "parts")
    for name, tensor in whole.model.state_dict().items():
        assert torch.equal(tensor, parts.model.state_dict()[name])


@pytest.mark.parametrize("kind", tiny.MODELS)
def test_an_intact_model_gives_what_the_library_gives(tmp_path: Path, kind: str) -> None:
    folder = model_folder(tmp_path, kind)
    loaded = load_model(folder)
    plain = transformers.AutoModel.from_pretrained(folder, attn_implementation="eager", dtype=torch.float32).eval()
    tokens = torch.arange(5, 17)[None]
    mask = torch.ones_like(tokens)
    for part, layers in attention_of(plain, tokens, mask).items():
        for expected, found in zip(layers, attention_of(loaded.model, tokens, mask)[part], strict=True):
            assert torch.equal(expected, found)
    assert loaded.notes == ()


DISTILLED = {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 16}
PARTS = {"d_model": 16, "encoder_layers": 2, "decoder_layers": 1, "encoder_ffn_dim": 16, "decoder_ffn_dim": 16}
PARTS |= {"encoder_attention_heads": 2, "decoder_attention_heads": 2}
WITH_HEADS = {
    "bert": (transformers.BertConfig, "BertForMaskedLM", SMALL),
    "roberta": (transformers.RobertaConfig, "RobertaForMaskedLM", SMALL),
    "albert": (transformers.AlbertConfig, "AlbertForMaskedLM", {**SMALL, "embedding_size": 8}),
    "electra": (transformers.ElectraConfig, "ElectraForPreTraining", {**SMALL, "embedding_size": 8}),
    "distilbert": (transformers.DistilBertConfig, "DistilBertForMaskedLM", DISTILLED),
    "gpt2": (transformers.GPT2Config, "GPT2LMHeadModel", {"n_embd": 16, "n_layer": 2, "n_head": 2}),
    "bart": (transformers.BartConfig, "BartForConditionalGeneration", PARTS),
}


@pytest.mark.parametrize("kind", WITH_HEADS)
def test_models_with_a_head_are_read_without_it(tmp_path: Path, kind: str) -> None:
    build, head, settings = WITH_HEADS[kind]
    tokenizer = tiny.tokenizer("wordpiece")
    model = getattr(transformers, head)(build(vocab_size=len(tokenizer), pad_token_id=0, **settings))
    model.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    loaded = load_model(tmp_path)
    stored = model.get_input_embeddings().weight
    assert torch.equal(loaded.model.get_input_embeddings().weight, stored)
    heads = {"bert": 5, "roberta": 5, "albert": 5, "electra": 4, "distilbert": 5, "bart": 1}.get(kind, 0)
    assert loaded.notes == ((f"{counted(heads)} of the output head not used, except for losses",) if heads else ())


def test_notes_on_what_was_not_used() -> None:
    assert unused([]) == []
    assert unused(["cls.predictions.bias", "lm_head.bias"]) == [
        "2 tensors of the output head not used, except for losses"
    ]
    assert unused(["cls.predictions.bias", "encoder.layer.2.x"]) == [
        "2 tensors of the file not part of the encoder, and not used, e.g. encoder.layer.2.x"
    ]
