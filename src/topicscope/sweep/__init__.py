"""Grids of runs, on any engine: one process, a pool of them, or Ray."""

from topicscope.sweep.grid import Grid, Point, build_grid, grid_of, read_grid
from topicscope.sweep.run import Sweep, read_sweep, stored_grid, sweep
from topicscope.sweep.table import write_table

__all__ = ["Grid", "Point", "Sweep", "build_grid", "grid_of", "read_grid", "read_sweep", "stored_grid", "sweep", "write_table"]
