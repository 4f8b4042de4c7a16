"""The paper's Section 3: topics, priors, documents, masking, and the batches that a model sees."""

from topicscope.world.batches import (
    Batch as Batch,
    Batches as Batches,
    CompiledBatches as CompiledBatches,
    Masked as Masked,
    Masking,
    Positions as Positions,
    Rows,
    mask_keys as mask_keys,
    masked_batches as masked_batches,
    stack as stack,
    word_counts as word_counts,
)
from topicscope.world.documents import (
    PADDING,
    Documents,
    InfiniteDocuments,
    MaskedDocuments,
    every_document as every_document,
    read_documents,
    sample_words as sample_words,
    write_documents,
)
from topicscope.world.exact import Dirichlet, Fixed, Groups
from topicscope.world.logistic_normal import LogisticNormal
from topicscope.world.priors import (
    KINDS as PRIORS,
    Asked as Asked,
    DocumentPrior,
    Given,
    Law,
    Moments,
    Own,
    Posterior,
    checked_moments as checked_moments,
    prior,
)
from topicscope.world.topics import (
    MASK,
    TopicModel,
    checked_word_topics as checked_word_topics,
    matrix_of as matrix_of,
    read_matrix as read_matrix,
)
from topicscope.world.world import Prior, World

__all__ = [
    "MASK",
    "PADDING",
    "PRIORS",
    "Dirichlet",
    "DocumentPrior",
    "Documents",
    "Fixed",
    "Given",
    "Groups",
    "InfiniteDocuments",
    "Law",
    "LogisticNormal",
    "MaskedDocuments",
    "Masking",
    "Moments",
    "Own",
    "Posterior",
    "Prior",
    "Rows",
    "TopicModel",
    "World",
    "prior",
    "read_documents",
    "write_documents",
]
