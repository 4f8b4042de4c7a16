"""Rows of tokens from a corpus that is read as training goes on.

Documents come in a shuffled order and are cut into rows; a step draws its rows from a shuffled store. Memory does not
grow with the corpus. What a step draws depends on the seed and the step alone: the state is what was read, and no
generator.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import islice
from typing import Any

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor

from topicscope.ground import InputError, Stream, generator, torch_seed
from topicscope.language import Corpus, encode, special_tokens
from topicscope.pretraining.config import Masking

DOCUMENTS, ROWS = 1000, 4096
"""How many documents and rows are held in memory to draw from."""

TOGETHER = 32
"""Documents tokenised at once."""


class Rows:
    """Rows of `length` tokens, special ones included.

    Documents follow each other, with the closing special token between them.
    """

    def __init__(self, corpus: Iterable[str], tokenizer: Any, length: int, seed: int) -> None:
        self.corpus, self.tokenizer, self.length, self.seed = corpus, tokenizer, length, seed
        self.fingerprint = corpus.fingerprint() if isinstance(corpus, Corpus) else "given"
        self.before, self.after = special_tokens(tokenizer)
        self.room = length - len(self.before) - len(self.after)
        self.epoch = self.drawn = 0  # passes over the corpus, and documents of this one that were read
        self.rest: Int[np.ndarray, " n"] = np.empty(0, dtype=np.int32)  # tokens that no row has yet
        self.store: Int[np.ndarray, "R N"] = np.empty((0, length), dtype=np.int32)
        self._documents: Iterator[str] | None = None
        self._ahead = ThreadPoolExecutor(1)  # reads and tokenises what comes next while a step runs
        self._coming: Future[list[Int[np.ndarray, " n"]]] | None = None

    def take(self, step: int, count: int) -> Int[np.ndarray, "B N"]:
        """The rows of a step. Their places in the store are filled with the next ones."""
        if not len(self.store):
            self._fill(count)
        places = generator(self.seed, Stream.DRAWN_ROWS, step).choice(len(self.store), count, replace=False)
        rows = self.store[places].copy()
        self.store[places] = self._next(count)
        return rows

    def state(self) -> dict[str, np.ndarray]:
        return {"place": np.array([self.epoch, self.drawn]), "rest": self.rest, "store": self.store}

    def load(self, state: dict[str, np.ndarray]) -> None:
        self.epoch, self.drawn = (int(x) for x in state["place"])
        self.rest, self.store = state["rest"].copy(), state["store"].copy()
        self._documents, self._coming = islice(self._shuffled(), self.drawn, None), None

    def _fill(self, least: int) -> None:
        """Fill the store with ROWS rows, or with the whole corpus where it has fewer."""
        parts: list[np.ndarray] = []
        count = 0
        while count < ROWS and self.epoch == 0:
            rows = self._cut(ROWS - count)
            parts.append(rows)
            count += len(rows)
            if count < ROWS:
                self._read()
        if count < least:
            raise InputError(
                f"the corpus has {count} rows of {self.length} tokens, fewer than a batch of {least}; "
                "give more text, or choose a smaller batch"
            )
        self.store = np.concatenate(parts)

    def _next(self, count: int) -> Int[np.ndarray, "B N"]:
        while len(self.rest) < count * self.room:
            self._read()
        return self._cut(count)

    def _cut(self, most: int) -> Int[np.ndarray, "n N"]:
        """Up to `most` rows of what is left over."""
        count = min(most, len(self.rest) // self.room)
        inner = self.rest[: count * self.room].reshape(count, self.room)
        self.rest = self.rest[count * self.room :]
        return np.concatenate(
            [
                np.tile(np.array(self.before, dtype=np.int32), (count, 1)),
                inner,
                np.tile(np.array(self.after, dtype=np.int32), (count, 1)),
            ],
            1,
        )

    def _read(self) -> None:
        """Read some more documents; at the end of the corpus start again, in another order."""
        documents = (self._coming or self._ahead.submit(self._encoded)).result()
        if not documents:
            if self.drawn == 0:
                raise InputError("the corpus has no text")
            self.epoch, self.drawn, self._documents, self._coming = self.epoch + 1, 0, None, None
            return
        self.drawn += len(documents)
        self._coming = self._ahead.submit(self._encoded)
        border = np.array(self.after, dtype=np.int32)
        self.rest = np.concatenate([self.rest, *(part for tokens in documents for part in (tokens, border))])

    def _encoded(self) -> list[Int[np.ndarray, " n"]]:
        """The next documents; none at the end of a pass."""
        if self._documents is None:
            self._documents = self._shuffled()
        texts = list(islice(self._documents, TOGETHER))
        return [tokens.astype(np.int32) for tokens in encode(self.tokenizer, texts)] if texts else []

    def _shuffled(self) -> Iterator[str]:
        """The documents of this pass: each leaves a store of DOCUMENTS at a random time."""
        rng = generator(self.seed, Stream.CORPUS_ORDER, self.epoch)
        held: list[str] = []
        for text in self.corpus:
            if len(held) < DOCUMENTS:
                held.append(text)
                continue
            place = int(rng.integers(DOCUMENTS))
            yield held[place]
            held[place] = text
        for place in rng.permutation(len(held)):
            yield held[place]


class Masker:
    """The library's masking, with a stream of its own for every micro-batch: each process can draw the masks of all."""

    def __init__(self, tokenizer: Any, masking: Masking, seed: int) -> None:
        import transformers

        self.seed = seed
        self.special = torch.tensor(tokenizer.all_special_ids)
        build: Any = transformers.DataCollatorForLanguageModeling
        self.collator = build(
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
