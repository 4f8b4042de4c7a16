"""Models that are whole: loaded to the bit as the library has them, with a note on what of the file was not used."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
import transformers

from tests.language import tiny
from tests.language.samples import model_folder
from topicscope.language import load_model
from topicscope.language.forward import attention_of
from topicscope.language.models import counted, unused


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


SMALL = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 16}
WITH_HEADS = {
    "bert": (transformers.BertConfig, "BertForMaskedLM", SMALL),
    "roberta": (transformers.RobertaConfig, "RobertaForMaskedLM", SMALL),
    "albert": (transformers.AlbertConfig, "AlbertForMaskedLM", {**SMALL, "embedding_size": 8}),
    "electra": (transformers.ElectraConfig, "ElectraForPreTraining", {**SMALL, "embedding_size": 8}),
    "distilbert": (
        transformers.DistilBertConfig,
        "DistilBertForMaskedLM",
        {"dim": 16, "n_layers": 2, "n_heads": 2, "hidden_dim": 16},
    ),
    "gpt2": (transformers.GPT2Config, "GPT2LMHeadModel", {"n_embd": 16, "n_layer": 2, "n_head": 2}),
    "bart": (
        transformers.BartConfig,
        "BartForConditionalGeneration",
        {
            "d_model": 16,
            "encoder_layers": 2,
            "decoder_layers": 1,
            "encoder_ffn_dim": 16,
            "decoder_ffn_dim": 16,
            "encoder_attention_heads": 2,
            "decoder_attention_heads": 2,
        },
    ),
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
