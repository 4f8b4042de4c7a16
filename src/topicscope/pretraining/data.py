"""Text for a model: tokenizers of three kinds, trained on the corpus, and rows of tokens, read as training goes on.

A tokenizer is the same one every time, as far as the library allows. Documents come in a shuffled order and are cut
into rows; a step draws its rows from a shuffled store. Memory does not grow with the corpus. What a step draws depends
on the seed and the step alone: the state is what was read, and no generator. Of several processes each tokenises its
share of the documents, and they exchange the tokens: all hold the rows that one process would hold.
"""

import hashlib
import json
import unicodedata
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from functools import cache
from itertools import chain, islice
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np
from jaxtyping import Int

from topicscope.ground import InputError, Progress, Stream, generator, needed, refuse, refuse_if, silent
from topicscope.language import Corpus, Tokenizer, encode, load_tokenizer, special_tokens
from topicscope.pretraining.config import ROWS, PretrainConfig

if TYPE_CHECKING:
    import tokenizers
    from torch.distributed import ProcessGroup

SPECIAL = {
    "pad_token": "[PAD]",
    "unk_token": "[UNK]",
    "cls_token": "[CLS]",
    "sep_token": "[SEP]",
    "mask_token": "[MASK]",
}
ALPHABET = 1000  # most letters of a WordPiece vocabulary; rarer ones are unknown
DOCUMENTS = 1000  # so many, and ROWS rows of them, are held in memory to draw from
TOGETHER = 32  # most documents that a process tokenises at once

Tokens = Int[np.ndarray, " n"]  # the tokens of a document
Trained = tuple["tokenizers.Tokenizer", "tokenizers.models.Model"]  # and the model without the trainer's traces
Exchange = Callable[[list[Tokens]], list[list[Tokens]]]  # takes what one process has, returns what each has, by rank


def is_held_out(text: str, share: float) -> bool:
    """A digest of the text decides: copies of a document stay together, whatever the order or the seed is."""
    digest = hashlib.blake2b(text.strip().encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) < share * 2**64


def exchange_tokens(mine: list[Tokens]) -> list[list[Tokens]]:
    import torch.distributed as distributed

    everyone: list[list[Tokens]] = [[]] * distributed.get_world_size()
    distributed.all_gather_object(everyone, mine, group=token_group())
    return everyone


@cache
def token_group() -> "ProcessGroup":
    """A group of its own: tokens are exchanged by a thread, while the main one exchanges gradients."""
    import torch.distributed as distributed

    return distributed.new_group(backend="gloo")


class Rows:
    """Rows of `length` tokens, special ones included, without the `held_out` share of the documents.

    Documents follow each other, with the closing special token between them.
    """

    def __init__(
        self,
        corpus: Iterable[str],
        tokenizer: Tokenizer,
        length: int,
        seed: int,
        *,
        held_out: float = 0.0,
        rank: int = 0,
        processes: int = 1,
        exchange: Exchange = exchange_tokens,
    ) -> None:
        self.corpus, self.tokenizer, self.length, self.seed = corpus, tokenizer, length, seed
        self.held_out, self.rank, self.processes, self.exchange = held_out, rank, processes, exchange
        self.fingerprint = corpus.fingerprint() if isinstance(corpus, Corpus) else "given"
        self.before, self.after = (np.array(tokens, dtype=np.int32) for tokens in special_tokens(tokenizer))
        self.room = length - len(self.before) - len(self.after)
        self.epoch = self.drawn = 0  # passes over the corpus, and documents of this one that were read
        self.rest: Int[np.ndarray, " n"] = np.empty(0, dtype=np.int32)  # tokens that no row has yet
        self.store: Int[np.ndarray, "R N"] = np.empty((0, length), dtype=np.int32)
        self._documents = self._shuffled()
        self._documents_read = self._tokens_read = 0

    def take(self, step: int, count: int) -> Int[np.ndarray, "B N"]:
        """The rows of a step. Their places in the store are filled with the next ones."""
        if not len(self.store):  # ROWS rows, or the whole corpus where it has fewer
            while self.epoch == 0 and (missing := ROWS * self.room - len(self.rest)) > 0:
                self._read(missing)
            self.store, self.rest = self._cut(self.rest, ROWS)
        few = f"the corpus has {len(self.store)} rows of {self.length} tokens, fewer than a batch of {count}; "
        refuse_if(len(self.store) < count, f"{few}give more text, or choose a smaller batch")
        places = generator(self.seed, Stream.DRAWN_ROWS, step).choice(len(self.store), count, replace=False)
        rows = self.store[places]
        while (missing := count * self.room - len(self.rest)) > 0:
            self._read(missing)
        self.store[places], self.rest = self._cut(self.rest, count)
        return rows

    def held_out_rows(self, most: int) -> Int[np.ndarray, "n N"]:
        """The first rows of the documents that are held out: none where those do not fill a row."""
        tokens: Tokens = np.empty(0, dtype=np.int32)
        with closing(text for text in self.corpus if is_held_out(text, self.held_out)) as texts:
            while self.held_out and len(tokens) < most * self.room and (text := next(texts, None)) is not None:
                parts = [tokens, *encode(self.tokenizer, [text]), self.after]
                tokens = np.concatenate(parts, dtype=np.int32, casting="unsafe")
        return self._cut(tokens, most)[0]

    def state(self) -> dict[str, np.ndarray]:
        return {"place": np.array([self.epoch, self.drawn]), "rest": self.rest, "store": self.store}

    def load(self, state: dict[str, np.ndarray]) -> None:
        self.epoch, self.drawn = (int(x) for x in state["place"])
        self.rest, self.store = state["rest"].copy(), state["store"].copy()
        self._documents = islice(self._shuffled(), self.drawn, None)

    def _cut(self, tokens: Tokens, most: int) -> tuple[Int[np.ndarray, "n N"], Tokens]:
        count = min(most, len(tokens) // self.room)
        inner, rest = np.split(tokens, [count * self.room])
        around = [np.tile(tokens, (count, 1)) for tokens in (self.before, self.after)]
        return np.concatenate([around[0], inner.reshape(count, self.room), around[1]], 1), rest

    def _read(self, missing: int) -> None:
        """Read about so many more tokens; at the end of the corpus start again, in another order.

        How many documents are read at once changes no row. Few at a time keep the steps of a GPU evenly fed.
        """
        documents = missing * self._documents_read // max(1, self._tokens_read) + 1 if self._tokens_read else TOGETHER
        if texts := list(islice(self._documents, self.processes * min(TOGETHER, -(-documents // self.processes)))):
            self.drawn += len(texts)
            parts = [part for tokens in self._tokenised(texts) for part in (tokens, self.after)]
            self._documents_read += len(texts)
            self._tokens_read += sum(map(len, parts))
            self.rest = np.concatenate([self.rest, *parts], dtype=np.int32, casting="unsafe")
        elif self.drawn:
            self.epoch, self.drawn, self._documents = self.epoch + 1, 0, self._shuffled()
        else:
            held = " besides what is held out; hold out nothing (--held-out 0)" if self.held_out else ""
            raise InputError(f"the corpus has no text{held}")

    def _tokenised(self, texts: list[str]) -> list[Tokens]:
        """Process r tokenises texts r, r + processes, ...; all get the tokens of all."""
        share = texts[self.rank :: self.processes]
        mine = encode(self.tokenizer, share) if share else []
        everyone = [mine] if self.processes == 1 else self.exchange(mine)
        return [everyone[i % self.processes][i // self.processes] for i in range(len(texts))]

    def _shuffled(self) -> Iterator[str]:
        """The documents of this pass: each leaves a store of DOCUMENTS at a random time."""
        rng = generator(self.seed, Stream.CORPUS_ORDER, self.epoch)
        texts = (text for text in self.corpus if not (self.held_out and is_held_out(text, self.held_out)))
        held = list(islice(texts, DOCUMENTS))
        for text in texts:
            place = int(rng.integers(DOCUMENTS))
            yield held[place]
            held[place] = text
        yield from (held[place] for place in rng.permutation(len(held)))


def make_tokenizer(config: PretrainConfig, corpus: Iterable[str], progress: Progress = silent) -> Tokenizer:
    settings = config.tokenizer
    if settings.existing is None:
        progress("training a tokenizer")
        texts = list(islice(corpus, settings.documents))
        read = f" ({', '.join(config.text.corpus)}: {corpus.summary()})" if isinstance(corpus, Corpus) else ""
        refuse_if(not texts, f"the corpus has no text{read}; give files with text in them")
        return train_tokenizer(texts, settings.train, settings.vocab_size, config.length)
    tokenizer = load_tokenizer(settings.existing)
    maskless = f"the tokenizer of {settings.existing} has no mask token, which masked language modelling needs; "
    refuse_if(tokenizer.mask_token_id is None, f"{maskless}choose another, or train one")
    tokenizer.model_max_length = config.length
    return tokenizer


def train_tokenizer(texts: list[str], kind: str, vocab_size: int, length: int, *, exact: bool = True) -> Tokenizer:
    """Train a tokenizer: 'wordpiece' and 'unigram' in lower case, 'bpe' on bytes. Unigram differs each time."""
    library = needed("tokenizers", "pretraining")
    trained, model = {"wordpiece": wordpiece, "bpe": bpe, "unigram": unigram}[kind](library, texts, vocab_size)
    # it is built anew because the trainer made special tokens of all that it had to keep, such as continuing letters
    built = library.Tokenizer(model)
    built.normalizer, built.pre_tokenizer, built.decoder = trained.normalizer, trained.pre_tokenizer, trained.decoder
    built.add_special_tokens(list(SPECIAL.values()))
    size = built.get_vocab_size()
    few = f"the corpus supports {size} tokens of kind {kind}, fewer than the vocabulary of {vocab_size}; "
    many = f"a vocabulary of {vocab_size} is too small: the letters of the corpus alone need {size}; "
    refuse(
        (exact and size < vocab_size, f"{few}choose a vocabulary (vocab_size) of at most {size}"),
        (size > vocab_size, f"{many}choose a larger one"),
    )
    first, last = SPECIAL["cls_token"], SPECIAL["sep_token"]
    built.post_processor = library.processors.TemplateProcessing(
        single=f"{first} $A {last}",
        pair=f"{first} $A {last} $B {last}",
        special_tokens=[(token, built.token_to_id(token)) for token in (first, last)],
    )
    # an encoder-decoder asks for a first and a last token
    return needed("transformers", "pretraining").PreTrainedTokenizerFast(
        tokenizer_object=built, model_max_length=length, bos_token=first, eos_token=last, **SPECIAL
    )


def wordpiece(library: ModuleType, texts: list[str], size: int) -> Trained:
    """Continuing letters ('##a') get their numbers beforehand.

    The library would number them in no fixed order, and it breaks ties by number.
    """
    built = library.Tokenizer(library.models.WordPiece(unk_token=SPECIAL["unk_token"]))
    built.normalizer, built.decoder = library.normalizers.BertNormalizer(), library.decoders.WordPiece(cleanup=False)
    built.pre_tokenizer = library.pre_tokenizers.BertPreTokenizer()
    counts = Counter(chain.from_iterable(map(built.normalizer.normalize_str, texts)))
    letters = (letter for letter in counts if not letter.isspace())
    alphabet = sorted(sorted(letters, key=lambda letter: (-counts[letter], letter))[:ALPHABET])
    continuing = [
        f"##{letter}"
        for letter in alphabet
        if not (unicodedata.category(letter)[0] == "P" or (letter.isascii() and not letter.isalnum()))
    ]
    trainer = library.trainers.WordPieceTrainer(
        vocab_size=size,
        special_tokens=[*SPECIAL.values(), *continuing],
        initial_alphabet=alphabet,
        limit_alphabet=ALPHABET,
        show_progress=False,
    )
    built.train_from_iterator(texts, trainer)
    return built, library.models.WordPiece(built.get_vocab(), unk_token=SPECIAL["unk_token"])


def bpe(library: ModuleType, texts: list[str], size: int) -> Trained:
    built, letters = library.Tokenizer(library.models.BPE()), library.pre_tokenizers.ByteLevel.alphabet()
    built.pre_tokenizer = library.pre_tokenizers.ByteLevel(add_prefix_space=True)
    built.decoder = library.decoders.ByteLevel()
    trainer = library.trainers.BpeTrainer(
        vocab_size=size, special_tokens=list(SPECIAL.values()), initial_alphabet=sorted(letters), show_progress=False
    )
    built.train_from_iterator(texts, trainer)
    return built, built.model


def unigram(library: ModuleType, texts: list[str], size: int) -> Trained:
    """Pieces are sorted by probability: the library returns them in no fixed order."""
    built, normalizers = library.Tokenizer(library.models.Unigram()), library.normalizers
    built.normalizer = normalizers.Sequence([normalizers.NFKC(), normalizers.Lowercase()])
    built.pre_tokenizer, built.decoder = library.pre_tokenizers.Metaspace(), library.decoders.Metaspace()
    trainer = library.trainers.UnigramTrainer(
        vocab_size=size, special_tokens=list(SPECIAL.values()), unk_token=SPECIAL["unk_token"], show_progress=False
    )
    # the trainer takes short texts
    built.train_from_iterator((line for text in texts for line in text.splitlines()), trainer)
    scores = json.loads(built.to_str())["model"]["vocab"]
    pieces = [(piece, round(score, 6)) for piece, score in scores if piece not in SPECIAL.values()]
    ordered = sorted(pieces, key=lambda item: (-item[1], item[0]))
    return built, library.models.Unigram([(name, 0.0) for name in SPECIAL.values()] + ordered, 1, False)
