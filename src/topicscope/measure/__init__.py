"""What is measured, on arrays alone: relations between words, attention, norms and stages, intervals over runs."""

from topicscope.measure.attention import AttentionMeans, attention_means
from topicscope.measure.dynamics import ROTATION_SPAN, rotation
from topicscope.measure.relations import BlockMeans, gram_block_means, matrix_block_means, relation_masks
from topicscope.measure.stages import Stages, risen, stage_bands, stages
from topicscope.measure.statistics import Estimate, estimate

__all__ = [
    "ROTATION_SPAN",
    "AttentionMeans",
    "BlockMeans",
    "Estimate",
    "Stages",
    "attention_means",
    "estimate",
    "gram_block_means",
    "matrix_block_means",
    "relation_masks",
    "risen",
    "rotation",
    "stage_bands",
    "stages",
]
