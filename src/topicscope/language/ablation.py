"""Does a model use its topical heads? The rise of its loss without them, beside that without random heads.

ablate(loaded, predictor_of(loaded), texts, vocabulary, topical, assignments, Measurement())

A row at topic words, one at other words.

A head is taken out by its mean: at every position it puts out what it does on average, so that nothing but what it
says about the text is lost. The text, its masks and the documents are the same for all sets of heads.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import combinations, product
from math import comb, prod
from typing import Any

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from topicscope.ground import InputError, Progress, Stream, generator, silent
from topicscope.language.assignment import Assignment
from topicscope.language.configs import ModelPass
from topicscope.language.forward import attention_of
from topicscope.language.losses import NoOutputHead, Predictor, position_losses
from topicscope.language.models import TRIED, LoadedModel
from topicscope.language.probe_rows import (
    DRAWS,
    LENGTH,
    PASSES,
    AblationRow,
    Grade,
    ablated_documents,
    interval_text,
)
from topicscope.language.probes import sets_text
from topicscope.language.verdicts import FEWEST_DOCUMENTS
from topicscope.language.vocabulary import Vocabulary, Window, windows
from topicscope.measure import interval

PLACES = ("topic words", "other words")
LOSS_WORTH = 0.01  # of the loss: the smallest rise worth naming
FEWEST_POSITIONS = 50  # with fewer there is no answer

Resample = Float[np.ndarray, " R"]


@dataclass(frozen=True)
class Rises:
    """Losses by document. The first of the sets is none, the second the topical heads; the others are draws."""

    sums: Float[np.ndarray, "S D"]
    positions: Int[np.ndarray, " D"]

    def whole(self) -> Float[np.ndarray, " S"]:
        """The rise of the mean loss without each set of heads."""
        return (self.sums - self.sums[0]).sum(1) / self.positions.sum()

    @np.errstate(invalid="ignore", divide="ignore")
    def resampled(self, resamples: int, seed: int) -> tuple[Resample, Resample, Resample]:
        """Of each resample of documents the topical rise, that of one draw of heads, and the mean over draws.

        One draw shows how random sets differ: any set differs from their mean, whether it has topics or not.
        """
        documents, draws = len(self.positions), len(self.sums) - 2
        drawing = generator(seed, Stream.BOOTSTRAP_ABLATION)
        times = drawing.multinomial(documents, np.full(documents, 1 / documents), resamples)
        one = 2 + drawing.integers(draws, size=resamples)
        rises = times @ (self.sums - self.sums[0]).T / (times @ self.positions)[:, None]
        return rises[:, 1], rises[np.arange(resamples), one], rises[:, 2:].mean(1)


def ablation_row(
    model: str, heads: int, at: str, rises: Rises, *, resamples: int, seed: int, remark: str = "", which: str = ""
) -> AblationRow:
    """The numbers of one kind of position, and the answer that they give."""
    there = rises.positions > 0
    rises = Rises(rises.sums[:, there], rises.positions[there])
    draws = len(rises.sums) - 2
    about: dict[str, Any] = {"model": model, "heads": heads, "draws": draws, "at": at, "remark": remark, "which": which}
    about |= {"positions": int(rises.positions.sum()), "documents": len(rises.positions)}
    if not len(rises.positions):
        return AblationRow(**about, answer="unsure", why=f"no {at} were predicted: raise --documents")
    if not np.isfinite(rises.sums).all():
        return AblationRow(**about, answer="unsure", why="the loss is not a number (NaN) at some of the words")
    whole = rises.whole()
    topical, random, mean = rises.resampled(resamples, seed)
    numbers: dict[str, Any] = {
        "loss": float(rises.sums[0].sum() / rises.positions.sum()),
        "topical_rise": float(whole[1]),
        "topical_interval": interval(topical),
        "random_rise": float(whole[2:].mean()),
        "random_interval": interval(random),
        "difference": float(whole[1] - whole[2:].mean()),
        "interval": interval(topical - random),
        "mean_interval": interval(topical - mean),
    }
    answer, why = judged(AblationRow(**about, **numbers), int((whole[2:] >= whole[1]).sum()))
    return AblationRow(**about, **numbers, answer=answer, why=why)


def judged(row: AblationRow, as_much: int) -> tuple[Grade, str]:
    """The rule. `as_much`: draws without which the loss rises as much as without the topical heads."""
    if row.documents < FEWEST_DOCUMENTS or row.positions < FEWEST_POSITIONS:
        few = f"{row.positions} {row.at} in {row.documents} documents"
        enough = f"at least {FEWEST_POSITIONS} in {FEWEST_DOCUMENTS}"
        return "unsure", f"{few} are too few ({enough}): raise --documents"
    assert row.loss is not None
    assert row.difference is not None
    if row.topical_interval is None or row.interval is None or row.mean_interval is None:
        return "unsure", "there is nothing to resample: raise --documents"
    worth = LOSS_WORTH * row.loss
    if row.topical_interval[1] < worth:
        return "no", f"without them the loss hardly rises (the smallest rise that matters is {worth:.2g})"
    if row.mean_interval[1] < worth and row.remark:
        return "unsure", "it rises about as much without random heads, but some of these are topical ones"
    if row.mean_interval[1] < worth:
        as_much_or_more = "more" if row.mean_interval[1] < 0 else "about as much"
        said = f"without random heads of the same layers it rises {as_much_or_more}"
        return "no", f"{said} (the smallest difference that matters is {worth:.2g})"
    if row.interval[0] > 0 and row.topical_interval[0] > 0:
        if row.difference >= worth and row.draws >= DRAWS:
            return "yes", ""
        if row.difference >= worth:
            said = f"it rises more than without other heads, but these layers have only {sets_text(row.draws)} of them"
            return "unsure", f"{said}, and chance alone makes one of {row.draws + 1} sets the largest"
        return "unsure", f"the difference is below {worth:.2g}, the smallest that matters: raise --documents"
    if row.mean_interval[0] > 0 and row.topical_interval[0] > 0 and as_much:
        sets = f"{as_much} of {sets_text(row.draws)} of random heads"
        return "unsure", f"more than without random heads on average, but without {sets} it rises as much"
    few = f" (with {sets_text(row.draws)} of other heads in these layers, a yes is out of reach)"
    said = f"the difference {row.difference:.2g} {interval_text(row.interval)} may be zero"
    return "unsure", said + (few if row.draws < DRAWS else ": raise --documents")


EAGER = "eager_attention_forward"  # the library's name of that function, in the file of each architecture

Outputs = Float[Tensor, "B N H d"]
Change = Callable[[int, Outputs, Int[Tensor, "B N"] | None], Outputs]
"""From the number of an attention call, what its heads put out, and which positions are text: what goes on from there.

Of an encoder-decoder the encoder's calls come first, so a layer of the encoder has its own number.
"""


@contextmanager
def changed_heads(model: Any, change: Change) -> Iterator[None]:
    """Every forward pass of the model takes what `change` returns in place of what its heads put out."""
    files = {module for part in model.modules() if hasattr(module := sys.modules[type(part).__module__], EAGER)}
    calls, mask = 0, None

    def started(_model: Any, _args: Any, inputs: dict[str, Any]) -> None:
        nonlocal calls, mask
        calls, mask = 0, inputs.get("attention_mask")

    def wrapped(attend: Any) -> Any:
        def attention(*args: Any, **kwargs: Any) -> Any:
            nonlocal calls
            outputs, *rest = attend(*args, **kwargs)
            calls += 1
            return (change(calls - 1, outputs, mask), *rest)

        return attention

    plain = {file: getattr(file, EAGER) for file in files}
    handle = model.register_forward_pre_hook(started, with_kwargs=True)
    for file, attend in plain.items():
        setattr(file, EAGER, wrapped(attend))
    try:
        yield
    finally:
        handle.remove()
        for file, attend in plain.items():
            setattr(file, EAGER, attend)


class HeadMeans:
    """The mean output of every head of the first layers, over all positions that are text. `heads`: of each layer."""

    def __init__(self, heads: Sequence[int]) -> None:
        self.heads = heads
        self.sums: dict[int, Float[Tensor, "H d"]] = {}
        self.positions = [0.0] * len(heads)

    def add(self, layer: int, outputs: Outputs, mask: Int[Tensor, "B N"] | None) -> Outputs:
        if layer < len(self.heads):
            text = torch.ones_like(outputs[:, :, 0, 0]) if mask is None else mask
            found = torch.einsum("bnhd,bn->hd", outputs.double(), text.double())
            self.sums[layer] = self.sums[layer] + found if layer in self.sums else found
            self.positions[layer] += float(text.sum())
        return outputs

    def mean(self, layer: int) -> Float[Tensor, "H d"]:
        return self.sums[layer] / self.positions[layer]


def replacing(means: HeadMeans, heads: Mapping[int, Sequence[int]]) -> Change:
    def change(layer: int, outputs: Outputs, _mask: Int[Tensor, "B N"] | None) -> Outputs:
        chosen = list(heads.get(layer, ()))
        if chosen:
            outputs = outputs.clone()
            outputs[:, :, chosen] = means.mean(layer)[chosen].to(outputs.dtype)
        return outputs

    return change


@torch.inference_mode()
def heads_of_layers(model: Any, loaded: LoadedModel) -> list[int]:
    """How many heads each layer of the main part has; InputError where what they put out cannot be reached.

    A forward pass shows it: calls must come in the order of layers, one for each, with as many heads.
    """
    tokens = torch.as_tensor(loaded.tokenizer(TRIED, return_tensors="np")["input_ids"], device=loaded.device)
    seen: list[tuple[int, ...]] = []

    def watch(_layer: int, outputs: Outputs, _mask: Any) -> Outputs:
        seen.append(tuple(outputs.shape))
        return outputs

    with changed_heads(model, watch):
        parts = attention_of(model, tokens, torch.ones_like(tokens))
    main = next(iter(parts.values()))
    heads = [layer.shape[1] for layer in main]
    layers = sum(map(len, parts.values()))
    shapes = [(*tokens.shape, count) for count in heads]
    if len(seen) != layers or [shape[:3] for shape in seen[: len(heads)]] != shapes:
        raise InputError("the outputs of single heads cannot be read in this architecture")
    return heads


HeadSet = Mapping[int, Sequence[int]]  # heads by layer


def ablate(
    loaded: LoadedModel,
    predictor: Predictor | NoOutputHead,
    texts: Sequence[str],
    vocabulary: Vocabulary,
    topical: Sequence[tuple[str, int, int]],
    assignments: Sequence[Assignment],
    measurement: ModelPass,
    progress: Progress = silent,
) -> list[AblationRow]:
    """Measure whether a model uses its topical heads: the rise of its loss without them, and without random heads.

    A head that is taken out puts out its mean at every position, so that only what it says about the text is lost.
    """

    def off(why: str) -> list[AblationRow]:
        return [AblationRow(model=loaded.name, heads=len(topical), draws=0, at=at, why=why) for at in PLACES]

    if not topical:
        return off("no head carries topics, so there is none to remove")
    if isinstance(predictor, NoOutputHead):
        return off(str(predictor))
    try:
        heads = heads_of_layers(predictor.model, loaded)
    except InputError as error:
        return off(str(error))
    chosen, seed = by_layer(topical), measurement.seed
    draws = random_sets(chosen, heads, DRAWS, seed)
    if not draws:
        return off("all heads of these layers carry topics, so there are no others to compare with")
    pieces = list(windows(loaded, vocabulary, spread(texts), 1, LENGTH))
    rounds = max(1, PASSES // (2 + len(draws)))
    phase, total = f"ablating heads of {loaded.name}", float((2 + len(draws)) * len(pieces))
    done = 0

    def advance() -> None:
        nonlocal done
        done += 1
        progress(phase, done, total)

    progress(phase, 0, total)
    means, topics = HeadMeans(heads), np.unique(np.concatenate([a.token for a in assignments]))
    with changed_heads(predictor.model, means.add):
        sums, positions = losses_by_document(predictor, pieces, topics, seed, rounds, advance)
    every = [sums]
    for one in (chosen, *draws):
        with changed_heads(predictor.model, replacing(means, one)):
            every.append(losses_by_document(predictor, pieces, topics, seed, rounds, advance)[0])
    stacked = np.stack(every)  # sets x kinds x documents
    which = ", ".join(f"{layer}.{head}" for _, layer, head in topical)
    common: dict[str, Any] = {"resamples": measurement.bootstrap, "seed": seed, "which": which}
    common["remark"] = drawn_from(chosen, heads)
    return [
        ablation_row(loaded.name, len(topical), at, Rises(stacked[:, k], positions[k]), **common)
        for k, at in enumerate(PLACES)
    ]


def spread(texts: Sequence[str]) -> list[str]:
    """Some of the texts, evenly drawn from all of them."""
    count = ablated_documents(len(texts))
    return [texts[i * len(texts) // count] for i in range(count)]


def by_layer(heads: Sequence[tuple[str, int, int]]) -> dict[int, list[int]]:
    layers = sorted({layer for _, layer, _ in heads})
    return {layer: sorted(head for _, of, head in heads if of == layer) for layer in layers}


def random_sets(topical: HeadSet, heads: Sequence[int], draws: int, seed: int) -> list[HeadSet]:
    """As many heads of the same layers, other than the topical ones; different sets, or all that there are.

    In a layer where most heads are topical, too few others are left; there, any heads may be drawn.
    """
    pools = {layer: pool(chosen, heads[layer])[0] for layer, chosen in topical.items()}
    own = tuple(tuple(chosen) for chosen in topical.values())
    itself = all(set(topical[layer]) <= set(any_of) for layer, any_of in pools.items())  # among all sets
    if prod(comb(len(any_of), len(topical[layer])) for layer, any_of in pools.items()) - itself <= draws:
        every = product(*(combinations(any_of, len(topical[layer])) for layer, any_of in pools.items()))
        found = [one for one in every if one != own]
    else:
        drawing = generator(seed, Stream.ABLATED_HEADS)
        distinct: dict[tuple[tuple[int, ...], ...], None] = {}
        while len(distinct) < draws:
            one = tuple(
                tuple(sorted(drawing.choice(any_of, len(topical[layer]), replace=False).tolist()))
                for layer, any_of in pools.items()
            )
            if one != own:
                distinct[one] = None
        found = list(distinct)
    return [dict(zip(topical, one, strict=True)) for one in found]


def pool(topical: Sequence[int], heads: int) -> tuple[list[int], bool]:
    """The heads of a layer that random sets are drawn from, and whether they are all other than the topical ones."""
    others = [head for head in range(heads) if head not in topical]
    return (others, True) if len(others) >= len(topical) else (list(range(heads)), False)


def drawn_from(topical: HeadSet, heads: Sequence[int]) -> str:
    """A remark for layers where random heads may be topical ones."""
    layers = [str(layer) for layer, chosen in topical.items() if not pool(chosen, heads[layer])[1]]
    few = f"layer {layers[0]} has" if len(layers) == 1 else f"layers {', '.join(layers)} have"
    return f"{few} too few other heads, so random heads there may be topical ones" if layers else ""


def losses_by_document(
    predictor: Predictor,
    pieces: Sequence[Window],
    topics: Int[np.ndarray, " T"],
    seed: int,
    rounds: int,
    advance: Callable[[], None],
) -> tuple[Float[np.ndarray, "2 D"], Int[np.ndarray, "2 D"]]:
    """Summed losses and numbers of positions of each window: at words of topics, and at all other tokens."""
    sums, positions = np.zeros((2, len(pieces))), np.zeros((2, len(pieces)), dtype=np.int64)
    for number, (window, where, losses) in enumerate(position_losses(predictor, pieces, seed, rounds=rounds)):
        topical = np.isin(where, window.places) & np.isin(window.tokens[where], topics)
        for kind, chosen in enumerate((topical, ~topical)):
            sums[kind, number], positions[kind, number] = losses[chosen].sum(), chosen.sum()
        advance()
    return sums, positions
