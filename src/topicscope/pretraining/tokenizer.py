"""Tokenizers of three kinds, trained on the corpus; the same one every time, as far as the library allows."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable
from itertools import islice
from pathlib import Path
from typing import Any

from topicscope.ground import InputError, Progress, silent
from topicscope.language import Corpus, load_tokenizer, needed
from topicscope.pretraining.config import PretrainConfig
from topicscope.pretraining.results import TOKENIZER, write_pretrained

SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
ALPHABET = 1000  # letters of a WordPiece vocabulary, at most; rarer ones are unknown


def stored_tokenizer(folder: Path, make: Callable[[], Any], accelerator: Any) -> Any:
    """The main process makes the tokenizer and stores it in the folder; all read it from there, on resuming too."""
    home = folder / TOKENIZER
    if accelerator.is_main_process and not home.is_dir():
        write_pretrained(home, make())
    accelerator.wait_for_everyone()
    return load_tokenizer(home)


def make_tokenizer(config: PretrainConfig, corpus: Iterable[str], progress: Progress = silent) -> Any:
    """The tokenizer that the config names, or one trained on the corpus."""
    settings = config.tokenizer
    if settings.existing is None:
        progress("training a tokenizer")
        texts = list(islice(corpus, settings.documents))
        if not texts:
            read = f" ({', '.join(config.text.corpus)}: {corpus.summary()})" if isinstance(corpus, Corpus) else ""
            raise InputError(f"the corpus has no text{read}; give files with text in them")
        return train_tokenizer(texts, settings.train, settings.vocab_size, config.length)
    tokenizer = load_tokenizer(settings.existing)
    if tokenizer.mask_token_id is None:
        raise InputError(
            f"the tokenizer of {settings.existing} has no mask token, which masked language modelling needs; "
            "choose another, or train one"
        )
    tokenizer.model_max_length = config.length
    return tokenizer


def train_tokenizer(texts: list[str], kind: str, vocab_size: int, length: int, *, exact: bool = True) -> Any:
    """Train a tokenizer: `wordpiece` and `unigram` in lower case, `bpe` on bytes.

    The library does not train unigram the same way twice: keep the tokenizer. With `exact`, a corpus that cannot fill
    the vocabulary is refused.
    """
    needed("tokenizers", "tokenizers", "to train a tokenizer")
    import transformers
    from tokenizers import processors

    built = {"wordpiece": wordpiece, "bpe": bpe, "unigram": unigram}[kind](texts, vocab_size)
    size = built.get_vocab_size()
    if exact and size < vocab_size:
        raise InputError(
            f"the corpus supports {size} tokens of kind {kind}, fewer than the vocabulary of {vocab_size}; "
            f"choose a vocabulary of at most {size}"
        )
    if size > vocab_size:
        raise InputError(
            f"a vocabulary of {vocab_size} is too small: the letters of the corpus alone need {size}; "
            "choose a larger one"
        )
    around = [(token, built.token_to_id(token)) for token in (SPECIAL["cls_token"], SPECIAL["sep_token"])]
    built.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", pair="[CLS] $A [SEP] $B [SEP]", special_tokens=around
    )
    build: Any = transformers.PreTrainedTokenizerFast
    # an encoder-decoder asks for a first and a last token
    return build(
        tokenizer_object=built,
        model_max_length=length,
        bos_token=SPECIAL["cls_token"],
        eos_token=SPECIAL["sep_token"],
        **SPECIAL,
    )


def wordpiece(texts: list[str], size: int) -> Any:
    """Continuing letters ('##a') get their numbers beforehand.

    The library would number them in no fixed order, and it breaks ties by number.
    """
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    built = Tokenizer(models.WordPiece(unk_token=SPECIAL["unk_token"]))
    built.normalizer, built.pre_tokenizer = normalizers.BertNormalizer(), pre_tokenizers.BertPreTokenizer()
    counts: Counter[str] = Counter()
    for text in texts:
        counts.update(built.normalizer.normalize_str(text))
    letters = sorted(counts, key=lambda letter: (-counts[letter], letter))
    alphabet = sorted([letter for letter in letters if not letter.isspace()][:ALPHABET])
    continuing = [
        f"##{letter}"
        for letter in alphabet
        if not (unicodedata.category(letter)[0] == "P" or (letter.isascii() and not letter.isalnum()))
    ]
    trainer = trainers.WordPieceTrainer(
        vocab_size=size,
        special_tokens=[*SPECIAL.values(), *continuing],
        initial_alphabet=alphabet,
        limit_alphabet=max(1, len(alphabet)),
        show_progress=False,
    )
    built.train_from_iterator(texts, trainer)
    numbers = built.get_vocab()
    # in the final tokenizer continuing letters are not special tokens
    final = Tokenizer(models.WordPiece(numbers, unk_token=SPECIAL["unk_token"]))
    final.normalizer, final.pre_tokenizer, final.decoder = (
        built.normalizer,
        built.pre_tokenizer,
        decoders.WordPiece(cleanup=False),
    )
    final.add_special_tokens(list(SPECIAL.values()))
    return final


def bpe(texts: list[str], size: int) -> Any:
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    built = Tokenizer(models.BPE())
    built.pre_tokenizer, built.decoder = pre_tokenizers.ByteLevel(add_prefix_space=True), decoders.ByteLevel()
    letters = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(SPECIAL.values()), initial_alphabet=sorted(letters), show_progress=False
    )
    built.train_from_iterator(texts, trainer)
    return built


def unigram(texts: list[str], size: int) -> Any:
    """Pieces are sorted by probability: the library returns them in no fixed order."""
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

    built = Tokenizer(models.Unigram())
    built.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    built.pre_tokenizer, built.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
    trainer = trainers.UnigramTrainer(
        vocab_size=size, special_tokens=list(SPECIAL.values()), unk_token=SPECIAL["unk_token"], show_progress=False
    )
    # the trainer takes short texts
    built.train_from_iterator((line for text in texts for line in text.splitlines()), trainer)
    pieces = [
        (piece, round(score, 6))
        for piece, score in json.loads(built.to_str())["model"]["vocab"]
        if piece not in SPECIAL.values()
    ]
    ordered = sorted(pieces, key=lambda item: (-item[1], item[0]))
    final = Tokenizer(models.Unigram([(name, 0.0) for name in SPECIAL.values()] + ordered, 1, False))
    final.normalizer, final.pre_tokenizer, final.decoder = built.normalizer, built.pre_tokenizer, built.decoder
    final.add_special_tokens(list(SPECIAL.values()))
    return final
