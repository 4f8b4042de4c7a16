"""A row for every document of a probe: its length, its topics, its attention inside and between topics."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from math import isfinite

import numpy as np
import torch
from jaxtyping import Float, Int

from topicscope.ground import Progress, Stream, generator
from topicscope.language.assignment import Assignment
from topicscope.language.attention import DocumentSums
from topicscope.language.forward import attention_of
from topicscope.language.losses import NoOutputHead, Predictor, position_losses
from topicscope.language.models import LoadedModel
from topicscope.language.probe_rows import (
    LOSS_TOKENS,
    MAIN_TOPICS,
    MOST_LOSSES,
    DocumentRow,
    HeadRow,
    Piece,
    ShownDocument,
    ShownHead,
    ShownTopic,
    TopicShare,
    encoded_links,
    topical_heads,
)
from topicscope.language.states import Mixture, Originals, Tokens
from topicscope.language.vocabulary import Vocabulary, Window, special_tokens, windows

Mixtures = Callable[[int, Tokens], Mixture | None]  # from a document's number and the tokens of its words


def document_losses(
    predictor: Predictor | NoOutputHead, vocabulary: Vocabulary, texts: Sequence[str], seed: int, progress: Progress
) -> tuple[dict[int, float], str]:
    if isinstance(predictor, NoOutputHead):
        return {}, f"loss of documents: {predictor}"
    loaded = predictor.loaded
    phase, found = f"loss of documents ({loaded.name})", {}
    few = texts[:MOST_LOSSES]
    progress(phase, 0, len(few))
    for window, _, losses in position_losses(predictor, windows(loaded, vocabulary, few, 1, LOSS_TOKENS), seed):
        if len(losses):
            found[window.document] = float(losses.mean())
        progress(phase, window.document + 1, len(few))
    numbers = {document: loss for document, loss in found.items() if isfinite(loss)}  # half precision may overflow
    said = [f"of the first {MOST_LOSSES:,}"] if len(texts) > MOST_LOSSES else []
    said += [f"of {len(found) - len(numbers):,} it is not a number (NaN)"] if len(numbers) < len(found) else []
    return numbers, f"loss of documents: {'; '.join(said)}" if said else ""


def document_rows(
    loaded: LoadedModel,
    pieces: Iterable[Window],
    texts: Sequence[str],
    assignment: Assignment,
    mixture: Mixtures,
    sums: DocumentSums,
    *,
    places: Sequence[int] | None,
    losses: Mapping[int, float],
    progress: Progress,
) -> Iterator[DocumentRow]:
    """A row for each document in order; a text without tokens has none. `places` are numbers in the corpus."""
    special = sum(map(len, special_tokens(loaded.tokenizer)))
    wanted = np.zeros(len(loaded.tokenizer), dtype=bool)
    wanted[assignment.token] = True
    for number, group in groupby(pieces, key=lambda window: window.document):
        read = list(group)
        progress(f"documents of {loaded.name}", number, len(texts))
        words = np.concatenate([window.tokens[window.places] for window in read])
        same, different, same_pairs, different_pairs = sums.means(number)
        shares = mixture(number, words)
        main = [] if shares is None else [(int(k), float(shares[k])) for k in np.argsort(-shares, kind="stable")]
        yield DocumentRow(
            model=loaded.name,
            document=number,
            place=None if places is None else places[number],
            words=len(texts[number].split()),
            tokens=sum(len(window.tokens) - special for window in read),
            topic_words=int(wanted[words].sum()),
            topics=[TopicShare(k, assignment.names[k], share) for k, share in main[:MAIN_TOPICS] if share > 0],
            threshold=assignment.threshold,
            part=sums.part,
            same=same,
            different=different,
            contrast=None if same is None or different is None else same - different,
            same_pairs=same_pairs,
            different_pairs=different_pairs,
            loss=losses.get(number),
        )


LARGE_SHARE = 0.2  # if one text has a larger share of what is measured, an answer may hold for it alone


def large_text_note(rows: Sequence[DocumentRow], of: Originals) -> str:
    """Names the text that has, with its copies, more than LARGE_SHARE of what is measured; empty where none has."""
    counts = {
        "pairs of positions of one topic": [row.same_pairs for row in rows],
        "pairs of positions of different topics": [row.different_pairs for row in rows],
        "positions of topic words": [row.topic_words for row in rows],
    }
    texts = np.array([of[row.document] for row in rows], dtype=np.int64)
    by_text = {what: np.bincount(texts, weights=count) / sum(count) for what, count in counts.items() if sum(count)}
    shares = [(float(share.max()), int(share.argmax()), what) for what, share in by_text.items()]
    share, text, what = max(shares, key=lambda one: one[0], default=(0.0, 0, ""))
    if share <= LARGE_SHARE:
        return ""
    mine = [row for row, owner in zip(rows, texts, strict=True) if owner == text]
    copies = f" with {len(mine) - 1} of its copies" if len(mine) > 1 else ""
    return (
        f"warning: document {mine[0].named}{copies} has {share:.0%} of the {what}, so the answers on attention and "
        "hidden states may hold for it alone; take less of each document (--windows 1) or more documents "
        "(--documents), or leave it out"
    )


KEYS = 10  # pieces that are kept for each piece
MOST_TOKENS = 512  # of a document that is shown
MOST_BYTES = 3_200_000  # of the attention of all documents of a model, as text: all of 512 tokens in 12 x 12 heads
FEWEST_PAIRS = 20  # of each kind that a document needs to be an extreme
TOP_WORDS = 8  # of a topic that are named
LONGEST_GAP = 40  # characters between two pieces: a tokenizer may drop any
DIRECTIONS = "\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"  # of bidirectional text
CONTROLS = dict.fromkeys([*{*range(32), *range(127, 160)} - {*b"\t\n\r"}, *map(ord, DIRECTIONS)], "\ufffd")

Head = tuple[int, int | None]  # layer, head; None: the mean over the layer


def chosen_documents(rows: Sequence[DocumentRow], count: int, seed: int) -> list[tuple[DocumentRow, str]]:
    ranked = sorted(
        (row for row in rows if row.contrast is not None and min(row.same_pairs, row.different_pairs) >= FEWEST_PAIRS),
        key=lambda row: -(row.contrast or 0.0),
    )
    highest = ranked[: (count + 2) // 3]
    lowest = ranked[len(highest) :][::-1][: (count + 1) // 3]
    taken = {row.document for row in (*highest, *lowest)}
    others = [row for row in rows if row.document not in taken]
    order = generator(seed, Stream.SHOWN_DOCUMENTS).permutation(len(others))[: count - len(taken)]
    groups = {"highest contrast": highest, "lowest contrast": lowest, "random": [others[n] for n in sorted(order)]}
    return [(row, why) for why, some in groups.items() for row in some]


@dataclass(frozen=True)
class Pieces:
    """A text as one input of the model, special tokens included. `owner[i]` is the piece that token i belongs to."""

    tokens: Int[np.ndarray, " N"]
    owner: Int[np.ndarray, " N"]
    texts: list[tuple[str, str]]  # of each piece what stands before it, and itself
    word: Int[np.ndarray, " U"]  # its token, where the piece is a whole word; else -1
    cut: bool

    @classmethod
    def of(cls, loaded: LoadedModel, vocabulary: Vocabulary, text: str) -> Pieces:
        tokenizer, (before, after) = loaded.tokenizer, special_tokens(loaded.tokenizer)
        room = min(MOST_TOKENS, loaded.window) - len(before) - len(after)
        text = text[: room * 40]  # as windows are cut
        fast = bool(getattr(tokenizer, "is_fast", False))
        encoded = tokenizer(text, add_special_tokens=False, return_offsets_mapping=fast, verbose=False)
        every = np.asarray(encoded["input_ids"], dtype=np.int64)
        tokens, words = every[:room], vocabulary.words_at(every)[:room]
        starts = ~vocabulary.continues[tokens]
        if fast:  # the bytes of a character may be tokens that all stand at the same place
            offsets = encoded["offset_mapping"][:room]
            ends = [0, *np.maximum.accumulate([end for _, end in offsets]).tolist()]
            starts &= np.array([start >= end for (start, _), end in zip(offsets, ends, strict=False)], dtype=bool)
        starts[:1] = True
        first = np.flatnonzero(starts)
        texts: list[tuple[str, str]] = []
        for start, stop in pairwise([*first.tolist(), len(tokens)]):
            if fast:
                written = text[ends[start] : ends[stop]]
                piece = text[offsets[start][0] : ends[stop]].strip()
                gap = written[: len(written.rstrip()) - len(piece)] if piece else written
            else:
                gap, piece = " ", tokenizer.decode(tokens[start:stop]).strip()
            gap, piece = visible(gap[:LONGEST_GAP]), visible(piece)
            texts.append((gap or (" " if before and not texts else ""), piece or "·"))
        added = [(" ", name) for name in tokenizer.convert_ids_to_tokens([*before, *after])]
        around = (len(before), len(after))
        return cls(
            np.concatenate([before, tokens, after]).astype(np.int64),
            np.cumsum(np.pad(starts, around, constant_values=True)) - 1,
            [*added[: len(before)], *texts, *added[len(before) :]],
            np.pad(np.where(words[first] >= 0, tokens[first], -1), around, constant_values=-1),
            len(every) > room,
        )


def visible(text: str) -> str:
    """Replace control characters, also those that turn the direction of text: a page must not obey a corpus."""
    return text.translate(CONTROLS)


def pooled(weights: Float[torch.Tensor, "H N N"], owner: Int[np.ndarray, " N"]) -> Float[np.ndarray, "H U U"]:
    """From tokens to pieces: the mean over the attending tokens of a piece, the sum over the attended ones."""
    member = np.eye(int(owner.max()) + 1)[owner]
    return np.asarray((member / member.sum(0)).T @ (weights.double().cpu().numpy() @ member))


def ranked_heads(heads: Sequence[HeadRow], part: str, layers: Sequence[int]) -> tuple[list[Head], set[Head]]:
    """Every mean of a layer, then every head: those that carry topics first. And which these are."""
    topical = [(head.layer, head.head) for head in topical_heads(heads, part)] if heads else []
    known = ((head.layer, head.head) for head in heads if head.part == part)
    every = ((layer, head) for layer, count in enumerate(layers) for head in range(count))
    means = ((layer, None) for layer in range(len(layers)))
    return [*means, *dict.fromkeys([*topical, *known, *every])], set(topical)


def shown_documents(
    loaded: LoadedModel,
    vocabulary: Vocabulary,
    texts: Sequence[str],
    chosen: Sequence[tuple[DocumentRow, str]],
    assignment: Assignment,
    heads: Sequence[HeadRow],
    progress: Progress,
) -> Iterator[ShownDocument]:
    """Each is read again by the model, alone. `heads`: of the model, the largest difference first."""
    read = [Pieces.of(loaded, vocabulary, texts[row.document]) for row, _ in chosen]
    sizes = [len(pieces.texts) * min(KEYS, len(pieces.texts)) * 4 for pieces in read]  # three bytes are four letters
    for number, ((row, why), pieces) in enumerate(zip(chosen, read, strict=True)):
        progress(f"documents to look at ({loaded.name})", number, len(chosen))
        tokens = torch.as_tensor(pieces.tokens, device=loaded.device)[None]
        layers = attention_of(loaded.model, tokens, torch.ones_like(tokens))[row.part]
        ranked, topical = ranked_heads(heads, row.part, [layer.shape[1] for layer in layers])
        kept = sorted(
            ranked[: max(1, MOST_BYTES // sum(sizes))], key=lambda one: (one[0], -1 if one[1] is None else one[1])
        )
        keys = min(KEYS, len(pieces.texts))
        tables: dict[Head, np.ndarray] = {}
        for layer, weights in enumerate(layers):
            by_head = pooled(weights[0], pieces.owner)
            tables |= {(layer, None): by_head.mean(0)} | {(layer, head): one for head, one in enumerate(by_head)}
        topics, of_piece = topics_of(pieces.word, assignment)
        yield ShownDocument(
            model=loaded.name,
            document=row.document,
            why=why,
            pieces=[Piece(*text, topic) for text, topic in zip(pieces.texts, of_piece, strict=True)],
            topics=topics,
            part=row.part,
            keys=keys,
            heads=[ShownHead(*one, one in topical, encoded_links(tables[one], keys)) for one in kept],
            all_heads=sum(layer.shape[1] for layer in layers),
            cut=pieces.cut,
        )


def topics_of(word: Int[np.ndarray, " U"], assignment: Assignment) -> tuple[list[ShownTopic], list[int | None]]:
    """The topics of a document, that of most places first, and the place of each piece's (first) topic among them."""
    members, size = assignment.membership, int(assignment.token.max()) + 1
    topic = np.full(size, -1)
    topic[assignment.token[members.word[::-1]]] = members.topic[::-1]  # the first one is written last
    of_piece = np.where((word >= 0) & (word < size), topic[np.clip(word, 0, size - 1)], -1)
    found, counts = np.unique(of_piece[of_piece >= 0], return_counts=True)
    topics, place = list[ShownTopic](), dict[int, int]()
    for k in found[np.argsort(-counts, kind="stable")].tolist():
        words = members.word[members.topic == k]
        frequent = words[np.argsort(-assignment.frequency[words], kind="stable")][:TOP_WORDS]
        place[k] = len(topics)
        topics.append(ShownTopic(assignment.names[k], [assignment.words[word] for word in frequent]))
    return topics, [place.get(int(one)) for one in of_piece]
