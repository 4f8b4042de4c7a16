from .ceilings import TopicCeiling as TopicCeiling, topic_ceiling as topic_ceiling, word_scores as word_scores
from .comparison import (
    OptimumComparison as OptimumComparison,
    compare_with_optimum as compare_with_optimum,
    own_optimum as own_optimum,
)
from .config import (
    BLOCK as BLOCK,
    TOGETHER as TOGETHER,
    Data as Data,
    Optimizer as Optimizer,
    RunConfig as RunConfig,
)
from .cost import cost_of as cost_of, settings_that_cost as settings_that_cost, together as together
from .data import RunData as RunData
from .ensemble import Ensemble as Ensemble, resolve_device as resolve_device
from .feed import Feed as Feed
from .result import Run as Run, Runs as Runs, read_run as read_run, stored_configs as stored_configs
from .run import train as train
from .schedule import Phase as Phase, Schedule as Schedule
from .timeline import (
    is_sandbox as is_sandbox,
    read_snapshots as read_snapshots,
    sandbox_effects as sandbox_effects,
    sandbox_timeline as sandbox_timeline,
    snapshot_timeline as snapshot_timeline,
)
from .watching import WatchedRun as WatchedRun, ask_to_pause as ask_to_pause, ask_to_stop as ask_to_stop
