"""The paper's Section 3: topics, priors, documents, masking, and the batches that a model sees."""

from topicscope.world.batches import Batch, Batches, CompiledBatches, Rows, masked_batches, stack, word_counts
from topicscope.world.dirichlet import Dirichlet
from topicscope.world.documents import (
    PADDING,
    Documents,
    InfiniteDocuments,
    MaskedDocuments,
    every_document,
    read_documents,
    sample_words,
    write_documents,
)
from topicscope.world.given import Given, Law, Own
from topicscope.world.logistic_normal import LogisticNormal
from topicscope.world.masking import Masked, Masking, Positions, mask_keys
from topicscope.world.matrices import matrix_of, read_matrix
from topicscope.world.priors import KINDS as PRIORS, Asked, DocumentPrior, Moments, Posterior, checked_moments, prior
from topicscope.world.sets import Fixed, Groups
from topicscope.world.topics import MASK, TopicModel, checked_word_topics
from topicscope.world.world import Prior, World

__all__ = [
    "MASK",
    "PADDING",
    "PRIORS",
    "Asked",
    "Batch",
    "Batches",
    "CompiledBatches",
    "Dirichlet",
    "DocumentPrior",
    "Documents",
    "Fixed",
    "Given",
    "Groups",
    "InfiniteDocuments",
    "Law",
    "LogisticNormal",
    "Masked",
    "MaskedDocuments",
    "Masking",
    "Moments",
    "Own",
    "Positions",
    "Posterior",
    "Prior",
    "Rows",
    "TopicModel",
    "World",
    "checked_moments",
    "checked_word_topics",
    "every_document",
    "mask_keys",
    "masked_batches",
    "matrix_of",
    "prior",
    "read_documents",
    "read_matrix",
    "sample_words",
    "stack",
    "word_counts",
    "write_documents",
]
