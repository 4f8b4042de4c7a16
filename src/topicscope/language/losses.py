"""How well a model predicts each word of a text: its loss by position, with the output head that it was trained with.

predictor = with_output_head(loaded)        # NoOutputHead where the checkpoint has none
for window, positions, losses in position_losses(predictor, windows(...), seed=0): ...

Encoders predict masked tokens; decoders the next one; encoder-decoders restore masked tokens, of which their decoder
reads only those before. Masks are named by seed, document and window: they are the same for all models of a tokenizer,
and for a model whose heads are ablated.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter
from typing import Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from topicscope.ground import InputError, Stream, generator
from topicscope.language.forward import is_causal, padded, shifted_right
from topicscope.language.inputs import model_place
from topicscope.language.models import TRIED, LoadedModel, load_weights, refusing
from topicscope.language.vocabulary import LibraryModel, Window, batches, chunks

MASKED = 7  # one in so many tokens is masked at a time: 14%, near the 15% of training
CHUNK = 128  # windows that are sorted by length together
LOGITS = 2**26  # numbers that predictions of one batch may take, unless a single window takes more

Objective = Literal["masked", "next", "restored"]
CLASSES: dict[Objective, str] = {
    "masked": "AutoModelForMaskedLM",
    "next": "AutoModelForCausalLM",
    "restored": "AutoModelForSeq2SeqLM",
}


class NoOutputHead(InputError):  # noqa: N818  (a model may well have none)
    """A model cannot predict words: its checkpoint has no output head. The message says why."""


@dataclass(frozen=True)
class Predictor:
    """A loaded model with its output head. Another process loads it again."""

    loaded: LoadedModel
    model: LibraryModel
    objective: Objective

    def __reduce__(self) -> tuple[Callable[[LoadedModel], Predictor], tuple[LoadedModel]]:
        return with_output_head, (self.loaded,)


class WindowLosses(NamedTuple):
    window: Window
    positions: Int[np.ndarray, " M"]
    losses: Float[np.ndarray, " M"]


def with_output_head(loaded: LoadedModel) -> Predictor:
    model = loaded.model
    of_one_part: Objective = "next" if is_causal(model.config) else "masked"
    objective: Objective = "restored" if model.config.is_encoder_decoder else of_one_part
    if loaded.variant != "trained":
        raise NoOutputHead("random weights have no output head")
    if objective != "next" and loaded.tokenizer.mask_token_id is None:
        raise NoOutputHead("its tokenizer has no mask token, so no word can be hidden from it")
    output = getattr(model, "get_output_embeddings", None)  # what a caller made himself may have none
    if output is None or output() is None:
        if loaded.place is None:
            raise NoOutputHead("this model was given without an output head that predicts words")
        try:
            model = load_weights(model_place(loaded.place), loaded.name, CLASSES[objective])[0]  # checks the files
        except InputError as error:
            said = str(error).removeprefix(f"{loaded.name}: ")
            raise NoOutputHead(f"this checkpoint has no output head that predicts words ({said})") from None
    return tried(Predictor(loaded, model.to(loaded.device).eval(), objective))


def predictor_of(loaded: LoadedModel) -> Predictor | NoOutputHead:
    try:
        return with_output_head(loaded)
    except NoOutputHead as error:
        return error


def tried(predictor: Predictor) -> Predictor:
    """Raise NoOutputHead where predictions are of an unknown shape, or see the word that they predict."""
    tokens = np.asarray(predictor.loaded.tokenizer(TRIED)["input_ids"], dtype=np.int64)
    if len(tokens) < 2:
        raise NoOutputHead("its tokenizer turns two words into one token")
    another = tokens[0] if tokens[0] != tokens[-1] else (tokens[-1] + 1) % len(predictor.loaded.tokenizer)
    other = np.append(tokens[:-1], another)
    last = [np.array([len(tokens) - 1])]
    try:
        with refusing("it cannot predict"):
            one, two = (predictions(predictor, [Window(0, of, last[0])], last) for of in (tokens, other))
    except InputError as error:
        raise NoOutputHead(f"its output head cannot be used ({error})") from None
    if not torch.allclose(one, two, rtol=1e-4, atol=1e-4):
        raise NoOutputHead("its predictions of a word depend on that word, so they have no meaningful loss")
    return predictor


def position_losses(
    predictor: Predictor, pieces: Iterable[Window], seed: int, *, rounds: int = 1
) -> Iterator[WindowLosses]:
    """Decoders predict all tokens but the first at once; of others each round masks other tokens. None are special."""
    special = np.array(sorted(predictor.loaded.tokenizer.all_special_ids), dtype=np.int64)
    masked = predictor.objective != "next"
    size = int(predictor.model.get_output_embeddings().weight.shape[0])
    numbered = (pair for _, of in groupby(pieces, attrgetter("document")) for pair in enumerate(of))
    for chunk in chunks(numbered, CHUNK):
        positions = {
            id(window): predicted(window, number, special, seed, min(rounds, MASKED))
            if masked
            else [np.flatnonzero(~np.isin(window.tokens, special) & (np.arange(len(window.tokens)) > 0))]
            for number, window in chunk
        }
        losses: dict[int, list[Float[np.ndarray, " M"]]] = {place: [] for place in positions}
        for batch in batches([window for _, window in chunk], (MASKED if masked else 1) * LOGITS // size):
            for turn in zip(*(positions[id(window)] for window in batch), strict=True):
                for window, found in zip(batch, batch_losses(predictor, batch, turn), strict=True):
                    losses[id(window)].append(found)
        for _, window in chunk:
            every = np.concatenate(positions[id(window)])
            order = np.argsort(every)
            yield WindowLosses(window, every[order], np.concatenate(losses[id(window)])[order])


def predicted(
    window: Window, number: int, special: Int[np.ndarray, " S"], seed: int, rounds: int
) -> list[Int[np.ndarray, " M"]]:
    drawing = generator(seed, Stream.MASKED_POSITIONS, window.document, number)
    order = drawing.permutation(np.flatnonzero(~np.isin(window.tokens, special)))
    return [np.sort(order[turn::MASKED]) for turn in range(rounds)]


def batch_losses(
    predictor: Predictor, batch: list[Window], positions: Sequence[Int[np.ndarray, " M"]]
) -> list[Float[np.ndarray, " M"]]:
    """Minus the log probability of each token at the positions of each window."""
    if not sum(map(len, positions)):
        return [np.zeros(0) for _ in batch]
    targets = np.concatenate([window.tokens[where] for window, where in zip(batch, positions, strict=True)])
    logits = predictions(predictor, batch, positions)
    losses = torch.nn.functional.cross_entropy(logits, torch.as_tensor(targets, device=logits.device), reduction="none")
    return np.split(losses.double().cpu().numpy(), np.cumsum([len(where) for where in positions])[:-1])


@torch.inference_mode()
def predictions(
    predictor: Predictor, batch: list[Window], positions: Sequence[Int[np.ndarray, " M"]]
) -> Float[Tensor, "M V"]:
    model, loaded = predictor.model, predictor.loaded
    tokens, mask = padded(batch, loaded)
    rows = torch.as_tensor(np.repeat(np.arange(len(batch)), [len(where) for where in positions]), device=tokens.device)
    columns = torch.as_tensor(np.concatenate(positions), device=tokens.device)
    inputs, read = {"input_ids": tokens, "attention_mask": mask, "return_dict": True}, columns
    if predictor.objective == "next":
        read = columns - 1  # the state before a token predicts it
    else:
        inputs["input_ids"] = tokens.index_put((rows, columns), tokens.new_tensor(loaded.tokenizer.mask_token_id))
    if predictor.objective == "restored":
        inputs["decoder_input_ids"], inputs["decoder_attention_mask"] = shifted_right(tokens, mask, model.config)
    if predictor.objective != "masked":
        inputs["use_cache"] = False

    def chosen(_module: object, args: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
        """Apply the output matrix to the states at these positions alone: all logits would take gigabytes."""
        return (args[0][rows, read][None], *args[1:]) if args[0].shape[:2] == tokens.shape else args

    with model.get_output_embeddings().register_forward_pre_hook(chosen):
        logits = model(**inputs).logits
    if logits.shape[:2] == tokens.shape:  # a head of its own way, which the hook did not reach
        return logits[rows, read]
    if logits.ndim != 3 or logits.shape[:2] != (1, len(rows)):
        raise InputError(f"its predictions have the shape {tuple(logits.shape)}")
    return logits[0]
