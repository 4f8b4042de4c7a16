from .cost import estimate as estimate
from .grid import Grid as Grid, Point as Point, build_grid as build_grid, grid_of as grid_of, read_grid as read_grid
from .points import read as read
from .run import (
    ABOUT as ABOUT,
    Sweep as Sweep,
    check as check,
    read_sweep as read_sweep,
    stored_grid as stored_grid,
    sweep as sweep,
)
from .table import write_table as write_table
from .tasks import Place as Place, Task as Task, compute as compute, pack as pack
