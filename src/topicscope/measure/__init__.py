"""What is measured, on arrays alone: relations between words, attention, norms and stages, intervals over runs."""

from topicscope.measure.attention import AttentionMeans, attention_means, attention_pair_sums
from topicscope.measure.dynamics import ROTATION_SPAN, rotation
from topicscope.measure.effects import Effect, embedding_effect, interval
from topicscope.measure.onset import appears, half_way
from topicscope.measure.pairs import matrix_pair_sums
from topicscope.measure.relations import BlockMeans, gram_block_means, matrix_block_means, relation_masks
from topicscope.measure.stages import PHASES, TWO_STAGE, Stages, phase, risen, stage_bands, stages
from topicscope.measure.statistics import Estimate, estimate

__all__ = [
    "PHASES", "ROTATION_SPAN", "TWO_STAGE", "AttentionMeans", "BlockMeans", "Effect", "Estimate", "Stages", "appears", "attention_means",
    "attention_pair_sums", "embedding_effect", "estimate", "gram_block_means", "half_way", "interval", "matrix_block_means", "matrix_pair_sums", "phase",
    "relation_masks", "risen", "rotation", "stage_bands", "stages",
]  # fmt: skip
