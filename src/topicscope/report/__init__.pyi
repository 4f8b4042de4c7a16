from .notebook import NotebookView as NotebookView, notebook_view as notebook_view
from .page import (
    environment as environment,
    notebook_html as notebook_html,
    page_html as page_html,
    sections_html as sections_html,
    write_report as write_report,
)
from .pictures import canvas as canvas, csv_of as csv_of, draw_figure as draw_figure, write_csv as write_csv
from .scripts import STATIC as STATIC
from .sweep_page import (
    curves_of_rows as curves_of_rows,
    kept_map_html as kept_map_html,
    map_html as map_html,
    write_sweep_page as write_sweep_page,
)
