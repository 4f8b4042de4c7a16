"""Pictures of what was found."""

from topicscope.report.landscape_figure import draw_landscape
from topicscope.report.run_figure import draw_run

__all__ = ["draw_landscape", "draw_run"]
