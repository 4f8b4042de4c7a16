"""Pictures of what was found."""

from topicscope.report.run_figure import draw_run

__all__ = ["draw_run"]
