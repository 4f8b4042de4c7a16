from .ablation import ablation_figures as ablation_figures, ablation_table as ablation_table
from .builders import points_of as points_of, sections as sections
from .documents import document_table as document_table
from .dynamics import (
    dynamics_figure as dynamics_figure,
    layer_title as layer_title,
    loss_figure as loss_figure,
    stage_table as stage_table,
    starts as starts,
)
from .labels import label_figures as label_figures, label_table as label_table
from .live import happening as happening, live_curves as live_curves, live_matrices as live_matrices
from .maps import (
    PHASE_COLOURS as PHASE_COLOURS,
    PREDICTED_COLOURS as PREDICTED_COLOURS,
    Axes as Axes,
    Row as Row,
    map_figure as map_figure,
    phase_table as phase_table,
    point_map as point_map,
    tick as tick,
)
from .matrices import MATRIX_COLOURS as MATRIX_COLOURS, NORM_CURVES as NORM_CURVES
from .moments import (
    WordPlane as WordPlane,
    pretrain_moment as pretrain_moment,
    run_moment as run_moment,
    timeline_moment as timeline_moment,
    word_plane as word_plane,
)
from .notebook import NotebookView as NotebookView, notebook_view as notebook_view
from .page import (
    environment as environment,
    notebook_html as notebook_html,
    page_html as page_html,
    sections_html as sections_html,
    write_report as write_report,
)
from .panels import (
    Circles as Circles,
    Heat as Heat,
    Lines as Lines,
    Map as Map,
    Panel as Panel,
    Points as Points,
    Series as Series,
)
from .parts import (
    Compared as Compared,
    Figure as Figure,
    Judgement as Judgement,
    MarkedText as MarkedText,
    PointMap as PointMap,
    Section as Section,
    TableData as TableData,
    TextLinks as TextLinks,
    TextPiece as TextPiece,
    Verdict as Verdict,
    counted as counted,
)
from .pictures import canvas as canvas, csv_of as csv_of, draw_figure as draw_figure, write_csv as write_csv
from .probe_tables import (
    MAIN_MEASURES as MAIN_MEASURES,
    cooccurrence_table as cooccurrence_table,
    difference_table as difference_table,
    family as family,
    head_table as head_table,
    ratio_table as ratio_table,
)
from .probing import (
    head_figures as head_figures,
    ratio_figure as ratio_figure,
    topic_figures as topic_figures,
)
from .scripts import STATIC as STATIC
from .states import state_figures as state_figures, state_table as state_table
from .sweep_page import (
    curves_of_rows as curves_of_rows,
    kept_map_html as kept_map_html,
    map_html as map_html,
    write_sweep_page as write_sweep_page,
)
from .theory import landscape_figure as landscape_figure
from .timelines import moment_table as moment_table, timeline_figures as timeline_figures
from .topics import compared_table as compared_table, topic_model_table as topic_model_table
from .train_run import run_figure as run_figure
from .verdicts import check_table as check_table, forest_figures as forest_figures, verdict_table as verdict_table
from .words import word_figure as word_figure, word_table as word_table
