from .page import notebook_html as notebook_html, write_report as write_report
from .pictures import canvas as canvas, draw_figure as draw_figure, write_csv as write_csv
from .sweep_page import write_sweep_page as write_sweep_page
