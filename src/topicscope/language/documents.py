"""Documents of a probe: which are copies of others, and a row for each, with its topics and its attention."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import groupby
from math import isfinite

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import Progress, Stream, generator
from topicscope.language.assignment import Assignment, LabelWords
from topicscope.language.document_rows import LOSS_TOKENS, MAIN_TOPICS, MOST_LOSSES, DocumentRow, TopicShare
from topicscope.language.losses import NoOutputHead, Predictor, position_losses
from topicscope.language.mixtures import Mixture, Targets, Tokens, mixture_of
from topicscope.language.models import LoadedModel
from topicscope.language.relations import DIFFERENT, SAME_TOPIC
from topicscope.language.state_rows import HALVES
from topicscope.language.topics import Topics
from topicscope.language.vocabulary import Vocabulary, Window, special_tokens, windows

LARGE_SHARE = 0.2  # if one text has a larger share of what is measured, an answer may hold for it alone
Originals = Int[np.ndarray, " D"]


def originals(texts: Sequence[str]) -> Originals:
    """Of each text the number of the first that has the same words; spaces and ends of lines do not count."""
    first: dict[bytes, int] = {}
    digests = (
        blake2b(" ".join(text.split()).encode("utf-8", "surrogatepass"), digest_size=16).digest() for text in texts
    )
    return np.array([first.setdefault(digest, number) for number, digest in enumerate(digests)], dtype=np.int64)


def drawn_halves(of: Originals, seed: int) -> Int[np.ndarray, " D"]:
    """A half for every document: as many different texts in one as in the other, up to one.

    Halves are drawn: a corpus may be in an order, such as two sources in turn.
    """
    texts, which = np.unique(of, return_inverse=True)
    return (generator(seed, Stream.STATE_HALVES).permutation(len(texts)) % HALVES)[which]


def once(documents: Sequence[int], of: Originals) -> list[int]:
    first: dict[int, int] = {}
    for number in documents:
        first.setdefault(int(of[number]), number)
    return sorted(first.values())


def copies_note(of: Originals) -> str:
    copies = len(of) - len(np.unique(of))
    return (
        f"{copies:,} of the {len(of):,} documents have the text of another: where the topics or labels of documents "
        "are predicted each text counts once, and no states are compared between copies"
        if copies
        else ""
    )


def large_text_note(rows: Sequence[DocumentRow], of: Originals) -> str:
    """Names the text that has, with its copies, more than LARGE_SHARE of what is measured; empty where none has.

    Attention is a mean over pairs of positions, of one topic and of different topics; states are means over positions.
    """
    counts = {
        "pairs of positions of one topic": [row.same_pairs for row in rows],
        "pairs of positions of different topics": [row.different_pairs for row in rows],
        "positions of topic words": [row.topic_words for row in rows],
    }
    texts = np.array([of[row.document] for row in rows], dtype=np.int64)
    weights = {what: np.bincount(texts, weights=count) for what, count in counts.items() if sum(count)}
    shares = [(float(by_text.max() / by_text.sum()), int(by_text.argmax()), what) for what, by_text in weights.items()]
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


NO_PAIRS = np.zeros((2, 1 + max(SAME_TOPIC, DIFFERENT)))


@dataclass
class DocumentSums:
    """Sums of attention for each document, filled by `tally_attention`: a few numbers, however long it is.

    `relation`: the number of the topics' relation among those of the pass. `part`: whose attention it is.
    """

    relation: int
    part: str = ""
    sums: dict[int, Float[np.ndarray, "2 R"]] = field(default_factory=dict)  # weights and pairs, by relation

    def add(self, part: str, sums: Mapping[int, Float[np.ndarray, "2 R"]]) -> None:
        self.part = part
        for document, table in sums.items():
            self.sums[document] = self.sums.get(document, 0) + table

    def means(self, document: int) -> tuple[float | None, float | None, int, int]:
        """Same-topic and different-topic mean, and the numbers of pairs; None where it is no number, as of no pairs."""
        weights, pairs = self.sums.get(document, NO_PAIRS)
        means = [float(weights[k] / pairs[k]) if pairs[k] else None for k in (SAME_TOPIC, DIFFERENT)]
        same, different = (mean if mean is not None and isfinite(mean) else None for mean in means)
        return same, different, int(pairs[SAME_TOPIC]), int(pairs[DIFFERENT])


@dataclass(frozen=True)
class DocumentTopics:
    """What rows and shown documents take from the topics: mixtures, and the words of one assignment.

    `targets` has mixtures that the probe of hidden states made; it need not be there.
    """

    topics: Topics | LabelWords | Assignment
    assignment: Assignment
    targets: Targets | None = None
    labels: Sequence[str | None] = ()  # labels of the documents, if labels are the topics

    def mixtures(self) -> Callable[[int, Tokens], Mixture | None]:
        """From a document's number and the tokens of its words to its mixture. All of a document is its label."""
        if isinstance(self.topics, LabelWords):
            labels = self.topics
            return lambda number, _: labels.mixture(self.labels[number])
        infer = mixture_of(self.topics)
        known = {} if self.targets is None else dict(zip(self.targets.documents, self.targets.shares, strict=True))
        return lambda number, words: known[number] if number in known else infer(words)

    def main(self, shares: Mixture | None) -> list[TopicShare]:
        if shares is None:
            return []
        order = np.argsort(-shares, kind="stable")[:MAIN_TOPICS]
        return [TopicShare(int(k), self.assignment.names[k], float(shares[k])) for k in order if shares[k] > 0]


def most_words(assignments: Sequence[Assignment]) -> int:
    """The number of the assignment with most words: of single documents the others show few pairs."""
    return max(range(len(assignments)), key=lambda number: len(assignments[number].words))


def document_losses(
    predictor: Predictor | NoOutputHead, vocabulary: Vocabulary, texts: Sequence[str], seed: int, progress: Progress
) -> tuple[dict[int, float], str]:
    """By document the mean loss at its predicted tokens, among the first LOSS_TOKENS; and why there is none, or not of
    all: a forward pass each, in this process, is for so many documents.
    """
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
    topics: DocumentTopics,
    sums: DocumentSums,
    *,
    places: Sequence[int] | None,
    losses: Mapping[int, float],
    progress: Progress,
) -> list[DocumentRow]:
    """In order; a text without tokens has none. `places`: the numbers of the texts in the corpus."""
    special = sum(map(len, special_tokens(loaded.tokenizer)))
    wanted = np.zeros(len(loaded.tokenizer), dtype=bool)
    wanted[topics.assignment.token] = True
    mixture, rows = topics.mixtures(), []
    for number, group in groupby(pieces, key=lambda window: window.document):
        read = list(group)
        progress(f"documents of {loaded.name}", number, len(texts))
        words = np.concatenate([window.tokens[window.places] for window in read])
        same, different, same_pairs, different_pairs = sums.means(number)
        rows.append(
            DocumentRow(
                model=loaded.name,
                document=number,
                place=None if places is None else places[number],
                words=len(texts[number].split()),
                tokens=sum(len(window.tokens) - special for window in read),
                topic_words=int(wanted[words].sum()),
                topics=topics.main(mixture(number, words)),
                threshold=topics.assignment.threshold,
                part=sums.part,
                same=same,
                different=different,
                contrast=None if same is None or different is None else same - different,
                same_pairs=same_pairs,
                different_pairs=different_pairs,
                loss=losses.get(number),
            )
        )
    return rows
