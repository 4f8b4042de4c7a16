"""Tiny tokenizers and models of every kind, built on the spot."""

import functools
from typing import Any

import torch
import transformers
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers

LISTED = """
bread butter cheese flour garlic honey anchor beach boat captain coral harbour
cello choir chord drum flute guitar appeal attorney bail court crime judge
"""
WORDS = LISTED.split()  # six of each topic
TOPICS = {word: ("kitchen", "sea", "music", "law")[i // 6] for i, word in enumerate(WORDS)}
TEXTS = [
    "the bread and butter and cheese of the bread are a flour",
    "boat anchor beach, boat! captain's coral harbour unboatly and bread",
    "",
    "cello choir cello chord drum flute guitar bread judge court crime appeal attorney bail",
    "the the the",
    "judge judge judge court honey garlic",
    " ".join(WORDS * 3),
]
SPECIAL = ["<pad>", "<unk>", "<s>", "</s>", "<mask>"]
NAMES = {"pad_token": "<pad>", "unk_token": "<unk>", "bos_token": "<s>", "eos_token": "</s>"}
NAMES |= {"cls_token": "<s>", "sep_token": "</s>", "mask_token": "<mask>"}


@functools.cache  # training one twice may number its tokens otherwise
def tokenizer(kind: str, length: int = 40) -> Any:
    """WordPiece, byte-level BPE or Unigram, trained on the texts."""
    corpus = [*TEXTS * 5, " ".join(WORDS) + " the and of are a un ly s"] * 4
    if kind == "wordpiece":  # written down: the library trains it in another order in every process
        letters = sorted(set("".join([*TEXTS, *WORDS])) - set(" "))
        pieces = [*WORDS, "the", "and", "of", "are", "un", "##ly", "##s"]
        pieces += [*(f"##{letter}" for letter in letters if letter.isalpha() and letter != "s"), *letters]
        numbered = {token: n for n, token in enumerate(dict.fromkeys([*SPECIAL, *pieces]))}
        built = Tokenizer(models.WordPiece(numbered, unk_token="<unk>"))
        built.normalizer, built.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
        built.decoder = decoders.WordPiece(cleanup=False)
    elif kind == "bpe":
        built = Tokenizer(models.BPE())
        built.pre_tokenizer, built.decoder = pre_tokenizers.ByteLevel(add_prefix_space=True), decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        of_bytes: Any = {"special_tokens": SPECIAL, "initial_alphabet": alphabet, "show_progress": False}
        built.train_from_iterator(corpus, trainers.BpeTrainer(vocab_size=420, **of_bytes))
    else:
        pieces = [*(f"\u2581{word}" for word in (*WORDS, "the", "and", "of", "are", "a", "un")), "\u2581", "ly", "s"]
        letters = sorted(set("".join(TEXTS)) - set("s "))
        scored = [(piece, -2.0 - len(piece) / 100) for piece in pieces] + [(letter, -9.0) for letter in letters]
        built = Tokenizer(models.Unigram([(name, 0.0) for name in SPECIAL] + scored, 1, False))
        built.pre_tokenizer, built.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    built.post_processor = processors.TemplateProcessing(single="<s> $A </s>", special_tokens=[("<s>", 2), ("</s>", 3)])
    build: Any = transformers.PreTrainedTokenizerFast
    return build(tokenizer_object=built, model_max_length=length, **NAMES)


KINDS = ("wordpiece", "bpe", "unigram")


def model(kind: str, size: int, length: int = 40) -> Any:
    """Encoder, decoder-only and encoder-decoder, float64. Random weights are large: attention is far from uniform."""
    torch.manual_seed(0)
    ids: Any = {"pad_token_id": 0, "bos_token_id": 2, "eos_token_id": 3, "vocab_size": size}
    config: Any
    if kind == "encoder":
        shape: Any = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 4, "intermediate_size": 16}
        config = transformers.BertConfig(**shape, max_position_embeddings=length, initializer_range=1.0, **ids)
    elif kind == "decoder":
        shape = {"n_embd": 16, "n_layer": 2, "n_head": 2, "n_positions": length}
        config = transformers.GPT2Config(**shape, initializer_range=1.0, **ids)
    else:
        shape = {"encoder_layers": 2, "decoder_layers": 1, "encoder_attention_heads": 2, "decoder_attention_heads": 2}
        shape |= {"encoder_ffn_dim": 16, "decoder_ffn_dim": 16, "decoder_start_token_id": 3, "forced_eos_token_id": 3}
        config = transformers.BartConfig(d_model=16, max_position_embeddings=length, init_std=1.0, **shape, **ids)
    build: Any = transformers.AutoModel.from_config
    return build(config, attn_implementation="eager").double().eval()


MODELS = ("encoder", "decoder", "encoder-decoder")
