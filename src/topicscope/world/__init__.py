"""The paper's Section 3: topics, documents, masking, and the batches that a model sees."""

from topicscope.world.batches import Batch, infinite_batch, masked_batch, stack
from topicscope.world.documents import DocumentPrior, Documents, read_documents, write_documents
from topicscope.world.masking import Masked, Masking
from topicscope.world.topics import MASK, TopicModel

__all__ = [
    "MASK",
    "Batch",
    "DocumentPrior",
    "Documents",
    "Masked",
    "Masking",
    "TopicModel",
    "infinite_batch",
    "masked_batch",
    "read_documents",
    "stack",
    "write_documents",
]
