"""The paper's Section 3: topics, documents, masking, and the batches that a model sees."""

from topicscope.world.batches import (
    Batch,
    Rows,
    infinite_batch,
    infinite_rows,
    masked_batch,
    masked_rows,
    stack,
    word_counts,
)
from topicscope.world.documents import (
    DocumentPrior,
    Documents,
    as_matrix,
    every_document,
    read_documents,
    read_matrix,
    write_documents,
)
from topicscope.world.masking import Masked, Masking
from topicscope.world.topics import MASK, TopicModel

__all__ = [
    "MASK",
    "Batch",
    "DocumentPrior",
    "Documents",
    "Masked",
    "Masking",
    "Rows",
    "TopicModel",
    "as_matrix",
    "every_document",
    "infinite_batch",
    "infinite_rows",
    "masked_batch",
    "masked_rows",
    "read_documents",
    "read_matrix",
    "stack",
    "word_counts",
    "write_documents",
]
