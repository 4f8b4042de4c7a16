from .acts import Act as Act, act as act, bands_so_far as bands_so_far
from .attention_pairs import (
    AttentionMeans as AttentionMeans,
    attention_means as attention_means,
    attention_pair_sums as attention_pair_sums,
    matrix_pair_sums as matrix_pair_sums,
)
from .classification import (
    ClassScores as ClassScores,
    Guess as Guess,
    chosen_inside as chosen_inside,
    classified as classified,
    stratified_folds as stratified_folds,
)
from .effects import (
    Effect as Effect,
    Matched as Matched,
    corrected_p as corrected_p,
    effect as effect,
    embedding_effect as embedding_effect,
    matched_effect as matched_effect,
)
from .groups import Answer as Answer, Separation as Separation, separation as separation
from .half_ways import appears as appears, half_way as half_way
from .intervals import (
    Estimate as Estimate,
    Interval as Interval,
    columns as columns,
    estimate as estimate,
    interval as interval,
    with_intervals as with_intervals,
)
from .log_odds import log_odds_z as log_odds_z
from .mixtures import folded_in as folded_in
from .pairs import (
    Membership as Membership,
    PairSums as PairSums,
    frequency_bins as frequency_bins,
    pair_sums as pair_sums,
    shuffled_means as shuffled_means,
)
from .phases import (
    NOT_COVERED as NOT_COVERED,
    PHASE_MEANINGS as PHASE_MEANINGS,
    PHASES as PHASES,
    RISEN as RISEN,
    ROTATION_SPAN as ROTATION_SPAN,
    TWO_STAGE as TWO_STAGE,
    WORSE as WORSE,
    Course as Course,
    Phase as Phase,
    Stages as Stages,
    course as course,
    layer_metrics as layer_metrics,
    layer_names as layer_names,
    phase as phase,
    risen as risen,
    rotations as rotations,
    stage_bands as stage_bands,
    stages as stages,
)
from .relations import (
    WordKinds as WordKinds,
    gram_block_means as gram_block_means,
    gram_relation_means as gram_relation_means,
    matrix_block_means as matrix_block_means,
    relation_masks as relation_masks,
)
from .ridge import (
    FEWEST as FEWEST,
    FOLDS as FOLDS,
    Scores as Scores,
    direct_scores as direct_scores,
    ridge_scores as ridge_scores,
)
from .thinning import extremes as extremes, thinned as thinned
from .timelines import (
    TIMELINE as TIMELINE,
    Moment as Moment,
    Order as Order,
    Timeline as Timeline,
    TimelineRow as TimelineRow,
    measure_title as measure_title,
    read_timeline as read_timeline,
)
from .topic_maps import (
    TopicMap as TopicMap,
    hellinger as hellinger,
    nearest_topics as nearest_topics,
    topic_map as topic_map,
)
from .topic_pairs import (
    partner_means as partner_means,
    shared_topic_means as shared_topic_means,
    topic_pair_means as topic_pair_means,
)
from .topic_quality import (
    Completion as Completion,
    coherence as coherence,
    completion_perplexity as completion_perplexity,
    diversity as diversity,
    matched_overlap as matched_overlap,
)
