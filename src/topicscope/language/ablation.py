"""Does a model use its topical heads? The rise of its loss without them, beside that without random heads.

ablate(loaded, predictor_of(loaded), texts, vocabulary, topical, assignments, Measurement())

A row at topic words, one at other words.

A head is taken out by its mean: at every position it puts out what it does on average, so that nothing but what it
says about the text is lost. The text, its masks and the documents are the same for all sets of heads.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product
from math import comb, prod
from typing import Any

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import InputError, Progress, Stream, generator, silent
from topicscope.language.ablation_rows import (
    DRAWS,
    LENGTH,
    PASSES,
    PLACES,
    AblationRow,
    Rises,
    ablated_documents,
    ablation_row,
)
from topicscope.language.assignment import Assignment
from topicscope.language.configs import ModelPass
from topicscope.language.head_outputs import HeadMeans, changed_heads, heads_of_layers, replacing
from topicscope.language.losses import NoOutputHead, Predictor, position_losses
from topicscope.language.models import LoadedModel
from topicscope.language.vocabulary import Vocabulary, Window, windows

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

    Args:
        loaded: The model.
        predictor: The model with its output head, or why it has none (`predictor_of`).
        texts: The documents.
        vocabulary: Whole words of the tokenizer.
        topical: Part, layer and number of each topical head.
        assignments: Words and their topics; a topic word is one of any assignment.
        measurement: Windows, resamples and seed.
        progress: Called as progress(phase, done, total, note).

    Returns:
        One row at topic words, one at other words.

    Example:
        >>> from topicscope.language import checked
        >>> from topicscope.pretraining import PretrainConfig, build_model, train_tokenizer
        >>> texts = ["frog toad newt pond", "mozart schubert opera violin"] * 10
        >>> tokenizer = train_tokenizer(texts, "wordpiece", vocab_size=100, length=16, exact=False)
        >>> tiny = {"text": {"corpus": ["-"]}, "length": 16, "model": {"layers": 1, "heads": 2, "dim": 8}}
        >>> loaded = checked("tiny", build_model(PretrainConfig.of(tiny), tokenizer), tokenizer)
        >>> from topicscope.language import predictor_of, whole_words
        >>> rows = ablate(loaded, predictor_of(loaded), texts, whole_words(tokenizer), [], [], ModelPass())
        >>> [(row.at, row.answer) for row in rows], rows[0].why
        ([('topic words', 'off'), ('other words', 'off')], 'no head carries topics, so there is none to remove')
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
    """Some of the texts, evenly from all of them."""
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
    """The heads of a layer that are drawn from, and whether they are other ones than the topical ones."""
    others = [head for head in range(heads) if head not in topical]
    return (others, True) if len(others) >= len(topical) else (list(range(heads)), False)


def drawn_from(topical: HeadSet, heads: Sequence[int]) -> str:
    """A remark where random heads may be topical ones."""
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
