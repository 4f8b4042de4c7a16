from .figures import draw_figure as draw_figure, write_csv as write_csv
from .landscape_figure import draw_landscape as draw_landscape
from .page import Section as Section, write_page as write_page
from .run_figure import draw_run as draw_run
from .sweep_page import write_sweep_page as write_sweep_page
