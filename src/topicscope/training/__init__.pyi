from .config import (
    BLOCK as BLOCK,
    TOGETHER as TOGETHER,
    Data as Data,
    Phase as Phase,
    RunConfig as RunConfig,
    Schedule as Schedule,
    cost_of as cost_of,
    settings_that_cost as settings_that_cost,
    together as together,
)
from .data import RunData as RunData
from .ensemble import Ensemble as Ensemble, resolve_device as resolve_device
from .feed import Feed as Feed
from .optimiser import (
    OPTIMISERS as OPTIMISERS,
    Optimizer as Optimizer,
    Rule as Rule,
    optimiser_names as optimiser_names,
    register_optimiser as register_optimiser,
)
from .result import (
    Run as Run,
    Runs as Runs,
    WatchedRun as WatchedRun,
    ask_to_pause as ask_to_pause,
    ask_to_stop as ask_to_stop,
    read_run as read_run,
    stored_configs as stored_configs,
)
from .run import train as train
from .timeline import (
    OptimumComparison as OptimumComparison,
    TopicCeiling as TopicCeiling,
    compare_with_optimum as compare_with_optimum,
    is_sandbox as is_sandbox,
    own_optimum as own_optimum,
    read_snapshots as read_snapshots,
    sandbox_effects as sandbox_effects,
    sandbox_timeline as sandbox_timeline,
    snapshot_timeline as snapshot_timeline,
    topic_ceiling as topic_ceiling,
)
