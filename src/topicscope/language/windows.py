"""Documents cut to a model's length, and batches of them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Bool, Int
from torch import Tensor

from topicscope.language.models import LoadedModel
from topicscope.language.vocabulary import Vocabulary, encode

TOKENS = 8192
"""Positions of a batch, padding included."""


@dataclass(frozen=True)
class Window:
    """A stretch of a document, with the model's special tokens; `places` are the positions of whole words in it."""

    document: int
    tokens: Int[np.ndarray, " N"]
    places: Int[np.ndarray, " P"]

    def only(self, wanted: Bool[np.ndarray, " V"]) -> Window:
        """With the positions of the wanted tokens only."""
        return Window(self.document, self.tokens, self.places[wanted[self.tokens[self.places]]])


def windows(
    loaded: LoadedModel,
    vocabulary: Vocabulary,
    texts: Iterable[str],
    per_document: int | None,
    length: int | None = None,
) -> Iterator[Window]:
    """Documents cut to the model's length (or a smaller one), at most `per_document` windows of each.

    A word at a cut is not a whole word.
    """
    before, after = special_tokens(loaded.tokenizer)
    room = min(length or loaded.window, loaded.window) - len(before) - len(after)
    for number, text in enumerate(texts):
        tokens = encode(loaded.tokenizer, [text[: room * 40 * per_document] if per_document else text])[0]
        words = vocabulary.words_at(tokens)
        for start in range(0, len(tokens), room)[: per_document or None]:
            piece = slice(start, start + room)
            places = np.flatnonzero(words[piece] >= 0) + len(before)
            yield Window(number, np.concatenate([before, tokens[piece], after]).astype(np.int64), places)


def special_tokens(tokenizer: object) -> tuple[list[int], list[int]]:
    """What the tokenizer puts before and after a text."""
    bare = tokenizer("a", add_special_tokens=False)["input_ids"]  # type: ignore[operator]
    full = tokenizer("a")["input_ids"]  # type: ignore[operator]
    for start in range(len(full) - len(bare) + 1):
        if full[start : start + len(bare)] == bare:
            return full[:start], full[start + len(bare) :]
    return [], []


def chunks(items: Iterable[Window], size: int) -> Iterator[list[Window]]:
    chunk: list[Window] = []
    for item in items:
        chunk.append(item)
        if len(chunk) == size:
            yield chunk
            chunk = []
    if chunk:
        yield chunk


def batches(chunk: list[Window]) -> Iterator[list[Window]]:
    """Windows of about the same length, at most TOKENS positions with padding."""
    batch: list[Window] = []
    for window in sorted(chunk, key=lambda window: len(window.tokens), reverse=True):
        if batch and (len(batch) + 1) * len(batch[0].tokens) > TOKENS:
            yield batch
            batch = []
        batch.append(window)
    if batch:
        yield batch


def padded(batch: list[Window], loaded: LoadedModel) -> tuple[Tensor, Tensor]:
    """Tokens and mask of a batch."""
    longest = max(len(window.tokens) for window in batch)
    filler = loaded.tokenizer.pad_token_id
    tokens = np.full((len(batch), longest), 0 if filler is None else filler, dtype=np.int64)
    mask = np.zeros((len(batch), longest), dtype=np.int64)
    for row, window in enumerate(batch):
        tokens[row, : len(window.tokens)] = window.tokens
        mask[row, : len(window.tokens)] = 1
    return torch.as_tensor(tokens, device=loaded.device), torch.as_tensor(mask, device=loaded.device)
