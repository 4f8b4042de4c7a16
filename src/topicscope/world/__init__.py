"""The paper's Section 3: topics, priors, documents, masking, and the batches that a model sees."""

from topicscope.world.batches import Batch, Batches, masked_batches, word_counts
from topicscope.world.compiled import CompiledBatches
from topicscope.world.correlated import Groups, LogisticNormal
from topicscope.world.document_files import read_documents, write_documents
from topicscope.world.documents import (
    PADDING,
    Documents,
    InfiniteDocuments,
    MaskedDocuments,
    every_document,
    sample_words,
)
from topicscope.world.entries import checked_word_topics
from topicscope.world.masking import Masked, Masking, Positions, mask_keys
from topicscope.world.matrices import matrix_of, read_matrix
from topicscope.world.moments import Moments, checked_moments
from topicscope.world.posteriors import Posterior
from topicscope.world.prior import DocumentPrior, Law, Own
from topicscope.world.priors import KINDS as PRIORS, Dirichlet, Fixed, Given, Prior
from topicscope.world.rows import Rows, stack
from topicscope.world.topics import MASK, TopicModel
from topicscope.world.world import World, WorldSettings

__all__ = [
    "MASK",
    "PADDING",
    "PRIORS",
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
    "WorldSettings",
    "checked_moments",
    "checked_word_topics",
    "every_document",
    "mask_keys",
    "masked_batches",
    "matrix_of",
    "read_documents",
    "read_matrix",
    "sample_words",
    "stack",
    "word_counts",
    "write_documents",
]
