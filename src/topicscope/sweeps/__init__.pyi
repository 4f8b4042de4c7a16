from .grid import (
    Axes as Axes,
    Grid as Grid,
    GridConfig as GridConfig,
    Point as Point,
    build_grid as build_grid,
    grid_of as grid_of,
    read_grid as read_grid,
)
from .kinds import KINDS as KINDS, PointResult as PointResult, SweepKind as SweepKind
from .run import (
    PHASE as PHASE,
    SWEEP as SWEEP,
    Estimate as Estimate,
    Place as Place,
    Row as Row,
    Sweep as Sweep,
    compute as compute,
    devices as devices,
    estimate as estimate,
    pack as pack,
    read_sweep as read_sweep,
    stored_points as stored_points,
    sweep as sweep,
)
