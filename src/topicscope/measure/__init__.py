"""What is measured, on arrays alone: relations between words, norms, rotation."""

from topicscope.measure.dynamics import ROTATION_SPAN, rotation
from topicscope.measure.relations import BlockMeans, gram_block_means, matrix_block_means, relation_masks

__all__ = ["ROTATION_SPAN", "BlockMeans", "gram_block_means", "matrix_block_means", "relation_masks", "rotation"]
