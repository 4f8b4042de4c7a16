"""How a model is measured: the settings of a pass over the text, and those of a whole probe."""

from dataclasses import KW_ONLY
from typing import Annotated

from pydantic import Field

from topicscope.ground import MOST_RESAMPLES, Config, Count, Resamples, Seed, number_only, section
from topicscope.language.config_types import Embedding, Thresholds, Ways

THRESHOLDS = (0.0005, 0.001, 0.002)
SIGNIFICANT = 0.05  # p of what is more than chance
FEWEST_SHUFFLES = 19  # of which p can be as small as that


@section
class ModelPass(Config):
    """How a model is measured at given topics.

    Attributes:
        windows: Pieces of the model's length that are taken of each document; None: all.
        embedding: 'matrix' (word embeddings) or 'layer' (the embedding layer's output, with position, type and norm).
        bootstrap: Number of resamples.
        matched: Also compare pairs of equal word frequencies.
        seed: Seed of resamples and masks.

    Example:
        >>> fewer = ModelPass(bootstrap=200, windows=None)  # whole documents, with fewer resamples
        >>> (fewer.windows, fewer.bootstrap), (ModelPass().windows, ModelPass().bootstrap)
        ((None, 200), (2, 1000))
    """

    _: KW_ONLY
    windows: Count | None = 2
    embedding: Embedding = "matrix"
    bootstrap: Annotated[int, Field(ge=2, le=MOST_RESAMPLES), number_only] = 1000
    matched: bool = True
    seed: Seed = 0


@section
class Measurement(ModelPass):
    """What a probe measures, and what it compares with.

    Attributes:
        windows: As in `ModelPass`, and so are the four next.
        embedding: 'matrix' or 'layer'.
        bootstrap: Number of resamples.
        matched: Also compare pairs of equal word frequencies.
        seed: Seed of resamples, shuffles and masks.
        thresholds: Shares of the vocabulary that each topic keeps (theta).
        topics_per_word: 'one', 'many', or both.
        shuffles: Shuffles of topics among words; attention gets a tenth of them, but enough for a verdict.
        random: Also probe the same architecture with random weights.
        cooccurrence: Also compare the pairs that stand together most often (Table 2).
        states: Probe hidden states, layer by layer.
        ablation: Measure the loss without topical heads, on some of the documents.
        show_documents: Number of documents to look at: extremes, and random ones.

    Example:
        >>> Measurement(shuffles=1000).attention_shuffles
        100
    """

    _: KW_ONLY
    thresholds: Thresholds = THRESHOLDS
    # theta: the words of a topic as a share of the vocabulary
    topics_per_word: Ways = ("one",)
    shuffles: Resamples = 1000
    random: bool = True
    cooccurrence: bool = True
    states: bool = True
    ablation: bool = True
    show_documents: Annotated[int, Field(ge=0, le=50), number_only] = 5

    @property
    def attention_shuffles(self) -> int:
        """A tenth of them, since each costs more; but enough for a verdict, where there are as many."""
        return max(self.shuffles // 10, min(self.shuffles, FEWEST_SHUFFLES))
