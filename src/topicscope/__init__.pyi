from . import theory as theory
from .explorer import explore_theory as explore_theory
from .exporting import export as export
from .ground import EngineError as EngineError, InputError as InputError
from .language import (
    Corpus as Corpus,
    Probe as Probe,
    ProbeConfig as ProbeConfig,
    TimelineConfig as TimelineConfig,
    Topics as Topics,
    fit_topics as fit_topics,
    load_model as load_model,
    probe as probe,
    timeline as timeline,
    topic_world as topic_world,
    word_map as word_map,
)
from .model import ModelConfig as ModelConfig, Objective as Objective, Weights as Weights
from .paper import reproduce as reproduce
from .pretraining import PretrainConfig as PretrainConfig, PretrainRun as PretrainRun, pretrain as pretrain
from .reading import read as read
from .sweeps import Grid as Grid, Sweep as Sweep, sweep as sweep
from .training import (
    Data as Data,
    Optimizer as Optimizer,
    Phase as Phase,
    Run as Run,
    RunConfig as RunConfig,
    Runs as Runs,
    Schedule as Schedule,
    compare_with_optimum as compare_with_optimum,
    sandbox_timeline as sandbox_timeline,
    train as train,
)
from .world import (
    Dirichlet as Dirichlet,
    Documents as Documents,
    Fixed as Fixed,
    Given as Given,
    Groups as Groups,
    LogisticNormal as LogisticNormal,
    Masking as Masking,
    TopicModel as TopicModel,
    read_documents as read_documents,
    write_documents as write_documents,
)

__version__: str
