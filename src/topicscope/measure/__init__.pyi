from .attention import (
    AttentionMeans as AttentionMeans,
    attention_means as attention_means,
    attention_pair_sums as attention_pair_sums,
)
from .dynamics import ROTATION_SPAN as ROTATION_SPAN, rotation as rotation
from .effects import (
    Effect as Effect,
    Interval as Interval,
    Matched as Matched,
    columns as columns,
    effect as effect,
    embedding_effect as embedding_effect,
    interval as interval,
    matched_effect as matched_effect,
    with_intervals as with_intervals,
)
from .onset import appears as appears, half_way as half_way
from .pairs import (
    Membership as Membership,
    PairSums as PairSums,
    frequency_bins as frequency_bins,
    matrix_pair_sums as matrix_pair_sums,
    pair_sums as pair_sums,
    shuffled_means as shuffled_means,
)
from .phases import (
    PHASES as PHASES,
    TWO_STAGE as TWO_STAGE,
    Course as Course,
    Stages as Stages,
    course as course,
    phase as phase,
    risen as risen,
    stage_bands as stage_bands,
    stages as stages,
)
from .relations import (
    gram_block_means as gram_block_means,
    matrix_block_means as matrix_block_means,
    relation_masks as relation_masks,
)
from .statistics import Estimate as Estimate, estimate as estimate
from .timelines import (
    TIMELINE as TIMELINE,
    Effects as Effects,
    Moment as Moment,
    Order as Order,
    Timeline as Timeline,
    TimelineRow as TimelineRow,
    measure_title as measure_title,
    read_timeline as read_timeline,
)
