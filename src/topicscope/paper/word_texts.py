"""Texts with known topics: documents of the sandbox in words of everyday lists, and a tokenizer with these words."""

from __future__ import annotations

import json
from importlib import resources
from typing import Any

from topicscope.ground import Stream, generator
from topicscope.world import Dirichlet, TopicModel

DOCUMENTS, LENGTH = 3000, 48
SPECIAL = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]"]


def word_lists() -> dict[str, list[str]]:
    return json.loads((resources.files("topicscope.paper") / "data" / "word-lists.json").read_text(encoding="utf-8"))


def sample_texts(lists: dict[str, list[str]], seed: int) -> list[str]:
    """Documents of the sandbox (Dirichlet .1), written out in words."""
    words = [word for topic in lists.values() for word in topic]
    model = TopicModel(len(lists), len(next(iter(lists.values()))))
    documents = Dirichlet(length=LENGTH).sample(model, DOCUMENTS, generator(seed, Stream.TRAIN_DOCUMENTS)).finite()
    return [" ".join(words[i - 1] for i in row) for row in documents.words.tolist()]


def build_tokenizer(lists: dict[str, list[str]]) -> Any:
    import transformers
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    vocabulary = {
        word: i for i, word in enumerate([*SPECIAL, "a", *(word for topic in lists.values() for word in topic)])
    }
    built = Tokenizer(models.WordPiece(vocabulary, unk_token="[UNK]"))
    built.normalizer, built.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    built.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    names = {f"{token[1:-1].lower()}_token": token for token in SPECIAL}
    build: Any = transformers.PreTrainedTokenizerFast
    return build(tokenizer_object=built, model_max_length=LENGTH + 2, **names)
