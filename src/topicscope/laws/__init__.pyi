from .coverage import (
    LAWS as LAWS,
    TABLE as TABLE,
    Law as Law,
    Refusal as Refusal,
    RunSettings as RunSettings,
    covered_world as covered_world,
)
from .predictions import (
    PredictedNorms as PredictedNorms,
    PredictedPhase as PredictedPhase,
    TrainingOptimum as TrainingOptimum,
    contributions as contributions,
    optimum_bytes as optimum_bytes,
    optimum_seconds as optimum_seconds,
    predicted_norms as predicted_norms,
    predicted_phase as predicted_phase,
    predicted_phases as predicted_phases,
    predicted_value as predicted_value,
    prediction_or_none as prediction_or_none,
    topic_relations as topic_relations,
    training_optimum as training_optimum,
    world_optimum as world_optimum,
)
