"""Attention between words by their relation, debiased, for every layer and head, with bootstrap and shuffled topics.

A weight is multiplied by the number of positions that its query can attend to and divided by 100, so that the mean over
any text is .01. A relation gives a code to every pair of positions. Documents are cut into windows. Their sums go into
tables whose size does not depend on the number of documents. The bootstrap over documents is Poisson's: document i
counts n_i times, n_i drawn once for each resample.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from topicscope.ground import Engine, Progress, Stream, generator, serial, silent
from topicscope.language.attention_tallies import ChunkTally, PartTally
from topicscope.language.documents import DocumentSums
from topicscope.language.forward import outputs_of, padded
from topicscope.language.models import LoadedModel
from topicscope.language.position_pairs import padded_places, pairs_of, slabs, sums_by_relation
from topicscope.language.relations import DIFFERENT, SAME_TOPIC, SAME_WORD, Relation
from topicscope.language.states import Arrays, ChunkStates, StatePlan, StateTally
from topicscope.language.vocabulary import Window, batches, chunks, in_shards
from topicscope.measure import Effect, effect

CHUNK = 128  # windows that are sorted by length and bootstrapped together, and by one worker where there are several


Parts = dict[str, list[PartTally]]  # by part of the model ('encoder', 'decoder', 'cross'): a tally for every relation


@dataclass(frozen=True)
class Pass:
    """What a pass over windows needs besides them. Model and relations are sent as what they are made from."""

    loaded: LoadedModel
    relations: Sequence[Relation]
    bootstrap: int
    seed: int
    advance: Callable[[float], None] | None  # called with the documents done after every batch, in this process only
    states: StatePlan | None = None  # what is summed of the hidden states
    by_document: int | None = None  # the number of the relation whose sums are kept for every document


def tally_attention(
    loaded: LoadedModel,
    pieces: Iterable[Window],
    relations: Sequence[Relation],
    *,
    bootstrap: int = 1000,
    seed: int = 0,
    engine: Engine = serial,
    progress: Progress = silent,
    phase: str = "attention",
    documents: int | None = None,
    states: StateTally | None = None,
    by_document: DocumentSums | None = None,
) -> Parts:
    """Sums of attention between words by their relation, for every layer and head of each part of the model.

    Every engine of the same machine gives the same bytes. Windows are taken as they are needed, never all at once.

    Args:
        loaded: The model.
        pieces: Windows of the documents.
        relations: How two words stand to each other, such as `TopicRelation`.
        bootstrap: Poisson resamples over documents.
        seed: Seed of the resamples.
        engine: Runs chunks of windows.
        progress: Called as progress(phase, done, total, note).
        phase: Name of the phase, for the progress.
        documents: Number of documents, for the progress.
        states: Filled with the hidden states of the same pass; None: none are kept.
        by_document: Filled with the sums of each document, of the first part of the model.

    Returns:
        By part ('encoder', 'decoder', 'cross'), one tally per relation.

    Example:
        >>> from topicscope.language import checked
        >>> from topicscope.pretraining import PretrainConfig, build_model, train_tokenizer
        >>> texts = ["frog toad newt pond", "mozart schubert opera violin"] * 10
        >>> tokenizer = train_tokenizer(texts, "wordpiece", vocab_size=100, length=16, exact=False)
        >>> tiny = {"text": {"corpus": ["-"]}, "length": 16, "model": {"layers": 1, "heads": 2, "dim": 8}}
        >>> loaded = checked("tiny", build_model(PretrainConfig.of(tiny), tokenizer), tokenizer)
        >>> from topicscope.language import TopicRelation, assign, fit_topics, whole_words
        >>> words = whole_words(tokenizer)
        >>> topics = fit_topics(texts, words, topics=2, iterations=20, stability=False)
        >>> relation = TopicRelation(assign(topics, 0.05), words.size)
        >>> read = (np.array(tokenizer(text)["input_ids"]) for text in texts)
        >>> pieces = [Window(n, tokens, np.arange(1, 5)) for n, tokens in enumerate(read)]
        >>> [tally] = tally_attention(loaded, pieces, [relation], bootstrap=2)["encoder"]
        >>> tally.heads, int(tally.pairs.sum())
        ([2], 120)
    """

    def advance(done: float) -> None:
        progress(phase, done, documents)

    advance(0)
    parts: Parts = {}
    here = engine is serial
    plan, relation = states.plan if states else None, by_document.relation if by_document else None
    common = Pass(loaded, relations, bootstrap, seed, advance if here else None, plan, relation)
    for done, sums, hidden, of_documents in in_shards(engine, tally_chunk, common, chunks(pieces, CHUNK)):
        if by_document is not None:
            by_document.add(next(iter(sums)), of_documents)
        if states is not None and hidden is not None:
            states.add(hidden)
        for name, (heads, tables) in sums.items():
            if name not in parts:
                parts[name] = [PartTally(relation, heads, bootstrap) for relation in relations]
            for tally, arrays in zip(parts[name], tables, strict=True):
                tally.add(arrays)
        if not here:
            advance(done)
    return parts


@torch.inference_mode()
def tally_chunk(
    common: Pass, chunk: Sequence[Window]
) -> tuple[float, dict[str, tuple[Sequence[int], list[dict[str, np.ndarray]]]], Arrays | None, dict[int, np.ndarray]]:
    """How many documents are done; by part the heads of its layers, and the arrays of every tally; those of states; and
    sums by document.
    """
    loaded, device = common.loaded, common.loaded.device
    shift = int(loaded.model.config.is_encoder_decoder)
    parts: dict[str, list[ChunkTally]] = {}
    owners: list[int] = []
    states = None if common.states is None else ChunkStates(common.states, device)
    for batch in batches(list(chunk)):
        inputs = padded(batch, loaded)
        attention, hidden = outputs_of(loaded.model, *inputs, states=states is not None)
        if states is not None:
            states.add(batch, hidden, shift)
        del hidden
        for name, layers in attention.items():
            if name not in parts:
                heads = [layer.shape[1] for layer in layers]
                parts[name] = [ChunkTally(relation, heads, len(chunk)) for relation in common.relations]
        for number, relation in enumerate(common.relations):
            places = torch.as_tensor(padded_places(batch, relation.wanted)).to(device, non_blocking=True)
            for some, queries in slabs(len(batch), places.shape[1], device):
                of_slab = inputs[0][some], inputs[1][some]
                for name, layers in attention.items():
                    weights = [layer[some] for layer in layers]
                    pairs = pairs_of(name, weights, of_slab, places[some], queries, shift)
                    parts[name][number].add(len(owners) + some.start, sums_by_relation(relation, pairs))
        owners += [window.document for window in batch]
        if common.advance is not None:  # batches are in order of length, so documents are done in proportion
            first, last = chunk[0].reached, chunk[-1].reached
            common.advance(first + (last - first) * len(owners) / len(chunk))
    times = document_resamples(owners, common.bootstrap, common.seed).to(device)
    tables = {name: (tallies[0].heads, [tally.arrays(times) for tally in tallies]) for name, tallies in parts.items()}
    of_documents = {}
    if common.by_document is not None:
        of_documents = next(iter(parts.values()))[common.by_document].by_document(owners)
    return chunk[-1].reached, tables, None if states is None else states.arrays(), of_documents


def document_resamples(owners: Sequence[int], bootstrap: int, seed: int) -> Float[Tensor, "R n"]:
    """How often each resample draws the document of each window."""
    drawn = {
        document: generator(seed, Stream.BOOTSTRAP_DOCUMENTS, document).poisson(1, bootstrap)
        for document in set(owners)
    }
    return torch.as_tensor(np.stack([drawn[document] for document in owners], 1), dtype=torch.float64)


@np.errstate(invalid="ignore", divide="ignore")
def attention_effect(
    tally: PartTally, heads: Sequence[int] | None = None, *, controls: bool = True, matched: bool = False
) -> Effect | None:
    """Attention to words of the same topic against attention to others. Bootstrap over documents.

    Of the mean over all heads, or over some of them. `controls`: beside the same with shuffled topics, where there are
    some; `matched`: also at equal word frequencies.
    """
    shape, chosen = (-1, tally.relation.relations, tally.relation.strata), slice(None) if heads is None else list(heads)
    pairs, boot_pairs = (table.numpy().reshape(shape).sum(-1) for table in (tally.pairs, tally.boot_pairs))
    sums = tally.sums.numpy().reshape(*shape[1:], -1).sum(1)[:, chosen].mean(1)
    means, resampled = sums / pairs[0], tally.boot_sums.numpy()[:, :, chosen].mean(2) / boot_pairs
    null = equal = None
    if controls and len(tally.null_sums):
        null = shuffled_attention(tally, chosen)
    if matched:
        left, right, (first, second) = matched_attention(tally, heads)
        equal = (left, right, first - second)
    return effect(
        float(means[SAME_TOPIC]),
        float(means[DIFFERENT]),
        (resampled[:, SAME_TOPIC], resampled[:, DIFFERENT]),
        pairs=(float(pairs[0, SAME_TOPIC]), float(pairs[0, DIFFERENT])),
        null=null,
        matched=equal,
        same_word=float(means[SAME_WORD]) if np.isfinite(means[SAME_WORD]) else None,
    )


@np.errstate(invalid="ignore", divide="ignore")
def shuffled_attention(tally: PartTally, chosen: slice | list[int]) -> tuple[np.ndarray, np.ndarray]:
    """Same-topic and different-topic mean of each shuffle, of the mean over the chosen heads."""
    same, number = tally.null_sums.numpy()[:, chosen].mean(1), tally.null_pairs.numpy()
    other = tally.other_sums.numpy()[chosen].mean()
    return same / number, (other - same) / (float(tally.other_pairs) - number)


@np.errstate(invalid="ignore", divide="ignore")
def matched_attention(
    tally: PartTally, heads: Sequence[int] | None = None
) -> tuple[float, float, tuple[np.ndarray, np.ndarray]]:
    """Same-topic and different-topic mean and their resamples, with the word frequencies of the same-topic pairs.

    Of some heads there are fewer resamples.
    """

    def means(sums: np.ndarray, pairs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        shape = (-1, tally.relation.relations, tally.relation.strata)
        summed, number = sums.reshape(shape), pairs.reshape(shape)
        usable = number[:, SAME_TOPIC] * (number[:, DIFFERENT] > 0)
        share = usable / usable.sum(-1, keepdims=True)
        each = summed / np.maximum(number, 1)
        return (share * each[:, SAME_TOPIC]).sum(-1), (share * each[:, DIFFERENT]).sum(-1)

    pairs, boot_pairs = tally.pairs.numpy(), tally.boot_pairs.numpy()
    if heads is None:
        (same,), (different,) = means(tally.sums.mean(1).numpy(), pairs)
        return float(same), float(different), means(tally.boot_strata.numpy(), boot_pairs)
    (same,), (different,) = means(tally.sums.numpy()[:, list(heads)].mean(1), pairs)
    few = tally.boot_heads.numpy()[:, :, list(heads)].mean(2)
    return float(same), float(different), means(few, boot_pairs[: len(few)])
