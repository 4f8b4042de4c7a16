"""The paper's theorems as formulas, one file per theorem; exact losses, the best attention, certificates for every
claim.
"""

from collections.abc import Callable

from topicscope.theory.attention_loss import (
    AttentionLandscape,
    Convention,
    Landscape,
    Optimum,
    SecondStage,
    asymptotic_loss,
    attention_landscape,
    attention_loss,
    best_attention,
    landscape,
    population_loss,
    read_landscape,
    second_stage,
)
from topicscope.theory.certificates import Certificate, verify
from topicscope.theory.dynamics import (
    LIMITS as LIMITS,
    AttentionStage,
    Dynamics,
    Embedding,
    Optimizer,
    Steps,
    Training,
    ValueStage,
    dynamics,
)
from topicscope.theory.floors import (
    BayesLoss,
    NoFloor,
    UniformOptimum,
    bayes_loss,
    shown_evidence as shown_evidence,
    uniform_optimum,
)
from topicscope.theory.forces import (
    FirstStageRates,
    GroupRates,
    Loss,
    MaskForce,
    SmallWorld as SmallWorld,
    TopicShares,
    contrast_force,
    first_stage_rates,
    force_formula,
    group_rates,
    grouped_subsets as grouped_subsets,
    inside_force,
    mask_force,
    subset_world as subset_world,
    topic_contrasts,
    topic_shares,
)
from topicscope.theory.gradient_flow import Trajectory, curvature, descent, gradient_flow
from topicscope.theory.growth import (
    FEWEST_STEPS as FEWEST_STEPS,
    AdamClock,
    Growth,
    MaskFirst,
    adam_clock,
    entry_steps as entry_steps,
    escape_rate,
    mask_first,
    third_act_time,
)
from topicscope.theory.optimum import DenseOptimum, closed_form, optimum, topics_alike
from topicscope.theory.population import (
    NamedWeights as NamedWeights,
    Population,
    WordTables as WordTables,
    enumerated_loss as enumerated_loss,
    gaussian_start as gaussian_start,
    score_force as score_force,
    word_tables as word_tables,
)
from topicscope.theory.theorem import (
    AttentionTheorem,
    Constants,
    OptimumTheorem,
    Setting,
    Theorem,
    ValueMatrix,
    assumptions,
)
from topicscope.theory.theorem2 import (
    Membership,
    Theorem1,
    Theorem2,
    family_loss,
    fit_embedding,
    fit_family,
    prediction_bias,
    prediction_bias_at as prediction_bias_at,
    random_member as random_member,
    theorem1,
    theorem2,
)
from topicscope.theory.theorem3 import Theorem3, Theorem5, diagonal_value_matrix, theorem3, theorem5
from topicscope.theory.value_optimum import (
    WEIGHTINGS,
    DocumentMoments as DocumentMoments,
    Entries,
    Mode,
    OptimumSettings,
    SymmetricOptimum,
    ValueOptimum,
    Weighting,
    document_moments,
    given_moments as given_moments,
    length_weights as length_weights,
    relative_distance as relative_distance,
    solve_moments as solve_moments,
)

OPTIMUM_THEOREMS: tuple[Callable[[Setting], OptimumTheorem], ...] = (theorem1, theorem2)
ATTENTION_THEOREMS: tuple[Callable[[Setting], AttentionTheorem], ...] = (theorem3, theorem5)
"""The theorems of the first and of the second stage; each is a command of `topicscope theory`."""

__all__ = [
    "ATTENTION_THEOREMS", "OPTIMUM_THEOREMS", "WEIGHTINGS", "AdamClock", "AttentionLandscape", "AttentionStage",
    "AttentionTheorem", "BayesLoss", "Certificate", "Constants", "Convention", "DenseOptimum", "Dynamics",
    "Embedding", "Entries", "FirstStageRates", "GroupRates", "Growth", "Landscape", "Loss", "MaskFirst",
    "MaskForce", "Membership", "Mode", "NoFloor", "Optimizer", "Optimum", "OptimumSettings", "OptimumTheorem",
    "Population", "SecondStage", "Setting", "Steps", "SymmetricOptimum", "Theorem", "Theorem1", "Theorem2",
    "Theorem3", "Theorem5", "TopicShares", "Training", "Trajectory", "UniformOptimum", "ValueMatrix",
    "ValueOptimum", "ValueStage", "Weighting", "adam_clock", "assumptions", "asymptotic_loss",
    "attention_landscape", "attention_loss", "bayes_loss", "best_attention", "closed_form", "contrast_force",
    "curvature", "descent", "diagonal_value_matrix", "document_moments", "dynamics", "escape_rate", "family_loss",
    "first_stage_rates", "fit_embedding", "fit_family", "force_formula", "gradient_flow", "group_rates",
    "inside_force", "landscape", "mask_first", "mask_force", "optimum", "population_loss", "prediction_bias",
    "read_landscape", "second_stage", "theorem1", "theorem2", "theorem3", "theorem5", "third_act_time",
    "topic_contrasts", "topic_shares", "topics_alike", "uniform_optimum", "verify",
]  # fmt: skip
