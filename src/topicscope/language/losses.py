"""How well a model predicts each word of a text, and how much its loss rises without its topical heads.

Encoders predict masked tokens; decoders the next one; encoder-decoders restore masked tokens, of which their decoder
reads only those before. A head is taken out by its mean: at every position it puts out what it does on average. The
text and its masks (named by seed, document, window) are the same for all models of a tokenizer and all sets of heads.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import combinations, count, groupby, product
from math import comb, prod
from operator import attrgetter
from typing import Any, Literal, NamedTuple

import numpy as np
import torch
from jaxtyping import Float, Int
from torch import Tensor

from topicscope.ground import InputError, Progress, Stream, generator, refuse_if, silent
from topicscope.language.assignment import Assignment
from topicscope.language.configs import ModelPass
from topicscope.language.forward import attention_of, is_causal, padded, shifted_right
from topicscope.language.inputs import model_place
from topicscope.language.models import TRIED, LoadedModel, load_weights, refusing
from topicscope.language.probe_rows import DRAWS, LENGTH, PASSES, AblationRow, Grade, ablated_documents, interval_text
from topicscope.language.probes import sets_text
from topicscope.language.verdicts import FEWEST_DOCUMENTS
from topicscope.language.vocabulary import LibraryModel, Vocabulary, Window, batches, chunks, windows
from topicscope.measure import interval

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
            why = str(error).removeprefix(f"{loaded.name}: ")
            raise NoOutputHead(f"this checkpoint has no output head that predicts words ({why})") from None
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
    last = [np.array([len(tokens) - 1])]
    try:
        with refusing("it cannot predict"):
            pair = (tokens, np.append(tokens[:-1], another))
            one, two = (predictions(predictor, [Window(0, of, last[0])], last) for of in pair)
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
    for chunk in chunks((pair for _, of in groupby(pieces, attrgetter("document")) for pair in enumerate(of)), CHUNK):
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
    order = generator(seed, Stream.MASKED_POSITIONS, window.document, number).permutation(
        np.flatnonzero(~np.isin(window.tokens, special))
    )
    return [np.sort(order[turn::MASKED]) for turn in range(rounds)]


def batch_losses(
    predictor: Predictor, batch: list[Window], positions: Sequence[Int[np.ndarray, " M"]]
) -> list[Float[np.ndarray, " M"]]:
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


PLACES = ("topic words", "other words")
LOSS_WORTH = 0.01  # of the loss: the smallest rise worth naming
FEWEST_POSITIONS = 50  # with fewer there is no answer

Resample = Float[np.ndarray, " R"]


@dataclass(frozen=True)
class Rises:
    """Losses by document. The first of the sets is none, the second the topical heads; the others are draws."""

    sums: Float[np.ndarray, "S D"]
    positions: Int[np.ndarray, " D"]

    @np.errstate(invalid="ignore", divide="ignore")
    def resampled(self, resamples: int, seed: int) -> tuple[Resample, Resample, Resample]:
        """Of each resample of documents the topical rise, that of one draw of heads, and the mean over draws."""
        documents, draws = len(self.positions), len(self.sums) - 2
        drawing = generator(seed, Stream.BOOTSTRAP_ABLATION)
        # one draw shows how random sets differ: any set differs from their mean, whether it has topics or not
        times = drawing.multinomial(documents, np.full(documents, 1 / documents), resamples)
        one = 2 + drawing.integers(draws, size=resamples)
        rises = times @ (self.sums - self.sums[0]).T / (times @ self.positions)[:, None]
        return rises[:, 1], rises[np.arange(resamples), one], rises[:, 2:].mean(1)


def ablation_row(
    model: str, heads: int, at: str, rises: Rises, *, resamples: int, seed: int, remark: str = "", which: str = ""
) -> AblationRow:
    there = rises.positions > 0
    rises = Rises(rises.sums[:, there], rises.positions[there])
    row = AblationRow(
        model=model,
        heads=heads,
        draws=len(rises.sums) - 2,
        at=at,
        positions=int(rises.positions.sum()),
        documents=len(rises.positions),
        answer="unsure",
        remark=remark,
        which=which,
    )
    if not row.documents:
        return replace(row, why=f"no {at} were predicted: raise --documents")
    if not np.isfinite(rises.sums).all():
        return replace(row, why="the loss is not a number (NaN) at some of the words")
    whole = (rises.sums - rises.sums[0]).sum(1) / rises.positions.sum()  # the rise of the mean loss without each set
    topical, random, mean = rises.resampled(resamples, seed)
    row = replace(
        row,
        loss=float(rises.sums[0].sum() / rises.positions.sum()),
        topical_rise=float(whole[1]),
        topical_interval=interval(topical),
        random_rise=float(whole[2:].mean()),
        random_interval=interval(random),
        difference=float(whole[1] - whole[2:].mean()),
        interval=interval(topical - random),
        mean_interval=interval(topical - mean),
    )
    answer, why = judged(row, int((whole[2:] >= whole[1]).sum()))
    return replace(row, answer=answer, why=why)


def judged(row: AblationRow, as_much: int) -> tuple[Grade, str]:
    """The first rule that holds. `as_much`: draws without which the loss rises as much as without topical heads."""
    if row.documents < FEWEST_DOCUMENTS or row.positions < FEWEST_POSITIONS:
        few = f"{row.positions} {row.at} in {row.documents} documents are too few"
        return "unsure", f"{few} (at least {FEWEST_POSITIONS} in {FEWEST_DOCUMENTS}): raise --documents"
    topical, one, mean = row.topical_interval, row.interval, row.mean_interval
    if row.loss is None or row.difference is None or topical is None or one is None or mean is None:
        return "unsure", "there is nothing to resample: raise --documents"
    worth, sets, few_sets = LOSS_WORTH * row.loss, sets_text(row.draws), row.draws < DRAWS
    more_than_random = one[0] > 0 and topical[0] > 0
    advice = (
        f" (with {sets} of other heads in these layers, a yes is out of reach)" if few_sets else ": raise --documents"
    )
    rules: list[tuple[object, Grade, str]] = [
        (
            topical[1] < worth,
            "no",
            f"without them the loss hardly rises (the smallest rise that matters is {worth:.2g})",
        ),
        (
            mean[1] < worth and row.remark,
            "unsure",
            "it rises about as much without random heads, but some of these are topical ones",
        ),
        (
            mean[1] < worth,
            "no",
            f"without random heads of the same layers it rises {'more' if mean[1] < 0 else 'about as much'} (the "
            f"smallest difference that matters is {worth:.2g})",
        ),
        (
            more_than_random and row.difference < worth,
            "unsure",
            f"the difference is below {worth:.2g}, the smallest that matters: raise --documents",
        ),
        (
            more_than_random and few_sets,
            "unsure",
            f"it rises more than without other heads, but these layers have only {sets} of them, and chance alone "
            f"makes one of {row.draws + 1} sets the largest",
        ),
        (more_than_random, "yes", ""),
        (
            mean[0] > 0 and topical[0] > 0 and as_much,
            "unsure",
            f"more than without random heads on average, but without {as_much} of {sets} of random heads it rises as "
            "much",
        ),
        (True, "unsure", f"the difference {row.difference:.2g} {interval_text(one)} may be zero{advice}"),
    ]
    return next((grade, why) for holds, grade, why in rules if holds)


EAGER = "eager_attention_forward"  # the library's name of that function, in the file of each architecture

Outputs = Float[Tensor, "B N H d"]
# From the number of an attention call, what its heads put out, and which positions are text: what goes on from there.
# Of an encoder-decoder the encoder's calls come first, so a layer of the encoder has its own number.
Change = Callable[[int, Outputs, Int[Tensor, "B N"] | None], Outputs]


@contextmanager
def changed_heads(model: LibraryModel, change: Change) -> Iterator[None]:
    """Every forward pass of the model takes what `change` returns in place of what its heads put out."""
    files = {module for part in model.modules() if hasattr(module := sys.modules[type(part).__module__], EAGER)}
    calls, mask = count(), None

    def started(_model: object, _args: object, inputs: Mapping[str, Tensor]) -> None:
        nonlocal calls, mask
        calls, mask = count(), inputs.get("attention_mask")

    def attention(attend: Callable[..., tuple[Any, ...]], *args: object, **kwargs: object) -> tuple[Any, ...]:
        outputs, *rest = attend(*args, **kwargs)
        return (change(next(calls), outputs, mask), *rest)

    with ExitStack() as restored:
        restored.enter_context(model.register_forward_pre_hook(started, with_kwargs=True))
        for file in files:
            attend = getattr(file, EAGER)
            restored.callback(setattr, file, EAGER, attend)
            setattr(file, EAGER, partial(attention, attend))
        yield


@dataclass
class HeadMeans:
    """The mean output of every head of the first layers, over all positions that are text. `heads`: of each layer."""

    heads: Sequence[int]
    sums: dict[int, Float[Tensor, "H d"]] = field(default_factory=dict)
    positions: Counter[int] = field(default_factory=Counter)

    def add(self, layer: int, outputs: Outputs, mask: Int[Tensor, "B N"] | None) -> Outputs:
        if layer < len(self.heads):
            text = torch.ones_like(outputs[:, :, 0, 0]) if mask is None else mask
            self.sums[layer] = self.sums.get(layer, 0) + torch.einsum("bnhd,bn->hd", outputs.double(), text.double())
            self.positions[layer] += int(text.sum())
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
def heads_of_layers(model: LibraryModel, loaded: LoadedModel) -> list[int]:
    """How many heads each layer has; InputError unless a forward pass calls the layers in order, with these heads."""
    tokens = torch.as_tensor(loaded.tokenizer(TRIED, return_tensors="np")["input_ids"], device=loaded.device)
    seen: list[tuple[int, ...]] = []

    def watch(_layer: int, outputs: Outputs, _mask: object) -> Outputs:
        seen.append(tuple(outputs.shape[:3]))
        return outputs

    with changed_heads(model, watch):
        parts = attention_of(model, tokens, torch.ones_like(tokens))
    heads = [layer.shape[1] for layer in next(iter(parts.values()))]
    refuse_if(
        len(seen) != sum(map(len, parts.values())) or seen[: len(heads)] != [(*tokens.shape, of) for of in heads],
        "the outputs of single heads cannot be read in this architecture",
    )
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
    """The rise of a model's loss where its topical heads put out their mean, beside that without random heads."""

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
    chosen = {
        layer: sorted(head for _, of, head in topical if of == layer) for layer in sorted({of for _, of, _ in topical})
    }
    draws = random_sets(chosen, heads, DRAWS, measurement.seed)
    if not draws:
        return off("all heads of these layers carry topics, so there are no others to compare with")
    pieces = list(windows(loaded, vocabulary, spread(texts), 1, LENGTH))
    means, topics = HeadMeans(heads), np.unique(np.concatenate([a.token for a in assignments]))
    changes = [means.add, *(replacing(means, one) for one in (chosen, *draws))]
    phase, total, done = f"ablating heads of {loaded.name}", float(len(changes) * len(pieces)), count(1)
    progress(phase, 0, total)
    losses = []  # sets x (sums, positions) x kinds x documents
    for change in changes:
        with changed_heads(predictor.model, change):
            losses.append(
                losses_by_document(
                    predictor,
                    pieces,
                    topics,
                    measurement.seed,
                    max(1, PASSES // len(changes)),
                    lambda: progress(phase, next(done), total),
                )
            )
    return [
        ablation_row(
            loaded.name,
            len(topical),
            at,
            Rises(np.stack([sums[kind] for sums, _ in losses]), losses[0][1][kind]),
            resamples=measurement.bootstrap,
            seed=measurement.seed,
            remark=drawn_from(chosen, heads),
            which=", ".join(f"{layer}.{head}" for _, layer, head in topical),
        )
        for kind, at in enumerate(PLACES)
    ]


def spread(texts: Sequence[str]) -> list[str]:
    count = ablated_documents(len(texts))
    return [texts[i * len(texts) // count] for i in range(count)]


def random_sets(topical: HeadSet, heads: Sequence[int], draws: int, seed: int) -> list[HeadSet]:
    """Different sets of as many other heads of the same layers, or all that there are."""
    own = tuple(tuple(chosen) for chosen in topical.values())
    pools = [  # the other heads of each layer, or all of them
        [head for head in range(heads[layer]) if mixed(chosen, heads[layer]) or head not in chosen]
        for layer, chosen in topical.items()
    ]
    sizes = [len(chosen) for chosen in own]
    itself = all(mixed(chosen, heads[layer]) for layer, chosen in topical.items())  # the topical set is one of all
    if prod(map(comb, map(len, pools), sizes)) - itself <= draws:
        return [dict(zip(topical, one, strict=True)) for one in product(*map(combinations, pools, sizes)) if one != own]
    drawing = generator(seed, Stream.ABLATED_HEADS)
    distinct: dict[tuple[tuple[int, ...], ...], None] = {}
    while len(distinct) < draws:
        drawn = (drawing.choice(any_of, size, replace=False) for any_of, size in zip(pools, sizes, strict=True))
        one = tuple(tuple(sorted(some.tolist())) for some in drawn)
        if one != own:
            distinct[one] = None
    return [dict(zip(topical, one, strict=True)) for one in distinct]


def mixed(topical: Sequence[int], heads: int) -> bool:
    """Whether a layer has too few other heads, so that random sets are drawn from topical heads too."""
    return heads - len(topical) < len(topical)


def drawn_from(topical: HeadSet, heads: Sequence[int]) -> str:
    layers = [str(layer) for layer, chosen in topical.items() if mixed(chosen, heads[layer])]
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
    sums, positions = np.zeros((2, len(pieces))), np.zeros((2, len(pieces)), dtype=np.int64)
    for number, (window, where, losses) in enumerate(position_losses(predictor, pieces, seed, rounds=rounds)):
        topical = np.isin(where, window.places) & np.isin(window.tokens[where], topics)
        for kind, chosen in enumerate((topical, ~topical)):
            sums[kind, number], positions[kind, number] = losses[chosen].sum(), chosen.sum()
        advance()
    return sums, positions
