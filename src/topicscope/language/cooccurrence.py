"""The control of Table 2: pairs of words that stand together most often, against pairs of one topic."""

from collections.abc import Callable, Sequence

import numpy as np
from jaxtyping import Float, Int

from topicscope.ground import Engine, Stream, generator
from topicscope.language.assignment import Assignment, LabelWords
from topicscope.language.attention_tallies import PartTally
from topicscope.language.configs import Measurement
from topicscope.language.controls import PairContrast
from topicscope.language.models import LoadedModel
from topicscope.language.probe_rows import CooccurrenceRow, ProbeRow
from topicscope.language.relations import PairRelation
from topicscope.language.topics import Topics
from topicscope.language.vocabulary import Vocabulary, top_pairs, word_documents
from topicscope.measure import Effect, interval

MOST_PAIRS = 100_000  # that are counted for given topics
LISTED = 10  # pairs that are named
Pairs = Int[np.ndarray, "P 2"]


def pair_relations(
    topics: Topics | LabelWords | Assignment,
    assignments: Sequence[Assignment],
    loaded: LoadedModel,
    measurement: Measurement,
    counted: Callable[[], tuple[Pairs, np.ndarray]],
) -> dict[int, PairRelation]:
    """By the number of an assignment: the top co-occurring pairs, as many as one of its topics has pairs of words.

    Fitted topics and labels know them. For given topics `counted` counts them in the texts: pairs, and the tokens of
    their words.
    """
    relations: dict[int, PairRelation] = {}
    if not measurement.cooccurrence:
        return relations
    known = None if isinstance(topics, Assignment) else (topics.cooccurring, topics.token)
    for number, assignment in enumerate(assignments):
        if assignment.topics_per_word != "one":
            continue
        if isinstance(topics, Topics):
            words = int((assignment.threshold or 0.0) * topics.vocabulary_size)
        else:
            words = max(2, round(float(assignment.membership.sizes.mean())))
        pairs, token = known = known or counted()
        pairs = pairs[: words * (words - 1) // 2]
        if len(pairs):
            relations[number] = PairRelation(token, pairs, len(loaded.tokenizer), loaded.device)
    return relations


@np.errstate(invalid="ignore", divide="ignore")
def listed_attention(
    tally: PartTally, effect: Effect | None, listed: int, heads: Sequence[int] | None = None
) -> PairContrast:
    """Attention between listed pairs beside that between pairs of a topic: the mean over all heads, or some of them."""
    chosen = slice(None) if heads is None else list(heads)
    number = float(tally.pairs.sum())
    resampled = tally.boot_sums.numpy()[:, 0, chosen].mean(1) / tally.boot_pairs.numpy()[:, 0]
    mean = float(tally.sums.numpy()[:, chosen].mean(1).sum()) / number if number else None
    if effect is None or effect.same_resamples is None:
        return PairContrast(None, mean, interval(resampled), None, listed)
    # the same documents are drawn for both
    return PairContrast(effect.same, mean, interval(resampled), interval(effect.same_resamples - resampled), listed)


def counted_pairs(vocabulary: Vocabulary, texts: Sequence[str], engine: Engine) -> tuple[Pairs, np.ndarray]:
    """The pairs of words that stand together most often in these texts, and the tokens of all words."""
    documents = [words for words in word_documents(texts, vocabulary, engine) if len(words)]
    return top_pairs(documents, len(vocabulary.words), MOST_PAIRS, engine)[0], vocabulary.token


def of_one_topic(relation: PairRelation, assignment: Assignment) -> int:
    """How many of the pairs have both words in one topic, where each word has at most one."""
    topic = np.full(relation.vocabulary_size, -1)
    topic[assignment.token[assignment.membership.word]] = assignment.membership.topic
    left, right = topic[relation.token[relation.pairs]].T
    return int(((left == right) & (left >= 0)).sum())


def cooccurrence_row(
    relation: PairRelation,
    assignment: Assignment,
    tally: PartTally,
    row: ProbeRow,
    topical: Sequence[int],
    vectors: Float[np.ndarray, "W d"],
    vocabulary: Vocabulary,
    measurement: Measurement,
) -> CooccurrenceRow:
    """Table 2: pairs that stand together most often, against pairs of one topic.

    `vectors`: of length 1, of the words that are in some pair, in the order of their numbers.
    """
    left, right = np.unique(relation.pairs, return_inverse=True)[1].reshape(relation.pairs.shape).T
    cosines = np.einsum("pd,pd->p", vectors[left], vectors[right])
    times = generator(measurement.seed, Stream.BOOTSTRAP_PAIRS).multinomial(
        len(cosines), np.full(len(cosines), 1 / len(cosines)), measurement.bootstrap
    )
    resampled, of_topics = times @ cosines / len(cosines), row.cosine
    same = None if of_topics is None else of_topics.same_resamples
    return CooccurrenceRow(
        **row.about(),
        pairs=len(relation.pairs),
        of_one_topic=of_one_topic(relation, assignment),
        commonest=[
            [vocabulary.words[word] for word in vocabulary.index[relation.token[pair]]]
            for pair in relation.pairs[:LISTED]
        ],
        cosine=PairContrast(
            of_topics.same if of_topics else None,
            float(cosines.mean()),
            interval(resampled),
            None if same is None else interval(same - resampled),
            len(cosines),
        ),
        attention=listed_attention(tally, row.attention, len(cosines)),
        topical=listed_attention(tally, row.topical, len(cosines), topical) if topical else None,
    )
