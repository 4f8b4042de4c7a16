"""Grids of runs, and engines that run them: one process, or a pool."""

from topicscope.sweep.grid import Grid, Point, build_grid, grid_of, read_grid
from topicscope.sweep.run import Sweep, sweep

__all__ = ["Grid", "Point", "Sweep", "build_grid", "grid_of", "read_grid", "sweep"]
