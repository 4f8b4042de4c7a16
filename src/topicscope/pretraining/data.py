"""Rows of tokens from a corpus that is read as training goes on.

Documents come in a shuffled order and are cut into rows; a step draws its rows from a shuffled store. Memory does not
grow with the corpus. What a step draws depends on the seed and the step alone: the state is what was read, and no
generator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from topicscope.ground import InputError, Stream, generator, torch_seed
from topicscope.language import Corpus, encode, needed, special_tokens
from topicscope.pretraining.config import Masking

DOCUMENTS, ROWS = 1000, 4096  # held in memory to draw from
TOGETHER = 32  # documents tokenised at once


class Rows:
    """Rows of `length` tokens, special ones included.

    Documents follow each other, with the closing special token between them.
    """

    def __init__(self, corpus: Iterable[str], tokenizer: Any, length: int, seed: int) -> None:
        self.corpus, self.tokenizer, self.length, self.seed = corpus, tokenizer, length, seed
        self.fingerprint = corpus.fingerprint() if isinstance(corpus, Corpus) else "given"
        self.before, self.after = (np.array(tokens, dtype=np.int32) for tokens in special_tokens(tokenizer))
        self.room = length - len(self.before) - len(self.after)
        self.epoch = self.drawn = 0  # passes over the corpus, and documents of this one that were read
        self.rest: Int[np.ndarray, " n"] = np.empty(0, dtype=np.int32)  # tokens that no row has yet
        self.store: Int[np.ndarray, "R N"] = np.empty((0, length), dtype=np.int32)
        self._documents = self._shuffled()

    def take(self, step: int, count: int) -> Int[np.ndarray, "B N"]:
        """The rows of a step. Their places in the store are filled with the next ones."""
        if not len(self.store):  # ROWS rows, or the whole corpus where it has fewer
            while len(self.rest) < ROWS * self.room and self.epoch == 0:
                self._read()
            self.store = self._cut(ROWS)
        if len(self.store) < count:
            raise InputError(
                f"the corpus has {len(self.store)} rows of {self.length} tokens, fewer than a batch of {count}; "
                "give more text, or choose a smaller batch"
            )
        places = generator(self.seed, Stream.DRAWN_ROWS, step).choice(len(self.store), count, replace=False)
        rows = self.store[places]
        while len(self.rest) < count * self.room:
            self._read()
        self.store[places] = self._cut(count)
        return rows

    def state(self) -> dict[str, np.ndarray]:
        return {"place": np.array([self.epoch, self.drawn]), "rest": self.rest, "store": self.store}

    def load(self, state: dict[str, np.ndarray]) -> None:
        self.epoch, self.drawn = (int(x) for x in state["place"])
        self.rest, self.store = state["rest"].copy(), state["store"].copy()
        self._documents = islice(self._shuffled(), self.drawn, None)

    def _cut(self, most: int) -> Int[np.ndarray, "n N"]:
        """Up to `most` rows of what is left over."""
        count = min(most, len(self.rest) // self.room)
        inner, self.rest = np.split(self.rest, [count * self.room])
        around = [np.tile(tokens, (count, 1)) for tokens in (self.before, self.after)]
        return np.concatenate([around[0], inner.reshape(count, self.room), around[1]], 1)

    def _read(self) -> None:
        """Read some more documents; at the end of the corpus start again, in another order."""
        if texts := list(islice(self._documents, TOGETHER)):
            self.drawn += len(texts)
            parts = [part for tokens in encode(self.tokenizer, texts) for part in (tokens, self.after)]
            self.rest = np.concatenate([self.rest, *parts], dtype=np.int32, casting="unsafe")
        elif self.drawn:
            self.epoch, self.drawn, self._documents = self.epoch + 1, 0, self._shuffled()
        else:
            raise InputError("the corpus has no text")

    def _shuffled(self) -> Iterator[str]:
        """The documents of this pass: each leaves a store of DOCUMENTS at a random time."""
        rng = generator(self.seed, Stream.CORPUS_ORDER, self.epoch)
        held: list[str] = []
        for text in self.corpus:
            if len(held) < DOCUMENTS:
                held.append(text)
            else:
                place = int(rng.integers(DOCUMENTS))
                yield held[place]
                held[place] = text
        yield from (held[place] for place in rng.permutation(len(held)))


class Masker:
    """The library's masking, with a stream of its own for every micro-batch: each process can draw the masks of all."""

    def __init__(self, tokenizer: Any, masking: Masking, seed: int) -> None:
        transformers = needed("transformers", "transformers", "to pretrain")
        self.seed, self.special = seed, torch.tensor(tokenizer.all_special_ids)
        self.collator = transformers.DataCollatorForLanguageModeling(
            tokenizer,
            mlm=True,
            mlm_probability=masking.p_mask,
            mask_replace_prob=1 - masking.p_correct - masking.p_random,
            random_replace_prob=masking.p_random,
        )

    def __call__(
        self, rows: Int[np.ndarray, "B N"], step: int, number: int
    ) -> tuple[Int[Tensor, "B N"], Int[Tensor, " M"], Int[Tensor, " M"]]:
        """What the model sees, the places (in the flattened rows) whose token it predicts, and these tokens."""
        tokens = torch.from_numpy(rows.astype(np.int64))
        self.collator.generator = torch.Generator().manual_seed(
            torch_seed(self.seed, Stream.MASKED_TOKENS, step, number)
        )
        shown, labels = self.collator.torch_mask_tokens(tokens, special_tokens_mask=torch.isin(tokens, self.special))
        places = torch.nonzero(labels.flatten() != -100)[:, 0]
        return shown, places, labels.flatten()[places]
