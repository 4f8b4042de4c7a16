from .builders import sections as sections
from .drawing import canvas as canvas, csv_of as csv_of, draw_figure as draw_figure, write_csv as write_csv
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
from .notebook import NotebookView as NotebookView, notebook_view as notebook_view
from .page import (
    STATIC as STATIC,
    curves_of_rows as curves_of_rows,
    environment as environment,
    kept_map_html as kept_map_html,
    map_html as map_html,
    notebook_html as notebook_html,
    page_html as page_html,
    sections_html as sections_html,
    write_report as write_report,
    write_sweep_page as write_sweep_page,
)
from .panels import (
    MATRIX_COLOURS as MATRIX_COLOURS,
    NORM_CURVES as NORM_CURVES,
    Circles as Circles,
    Compared as Compared,
    Figure as Figure,
    Heat as Heat,
    Judgement as Judgement,
    Lines as Lines,
    Map as Map,
    MarkedText as MarkedText,
    Panel as Panel,
    PointMap as PointMap,
    Points as Points,
    Section as Section,
    Series as Series,
    TableData as TableData,
    Verdict as Verdict,
    counted as counted,
)
from .pretraining import (
    dynamics_figure as dynamics_figure,
    layer_title as layer_title,
    loss_figure as loss_figure,
    stage_table as stage_table,
    starts as starts,
)
from .probe import (
    MAIN_MEASURES as MAIN_MEASURES,
    check_table as check_table,
    cooccurrence_table as cooccurrence_table,
    difference_table as difference_table,
    family as family,
    forest_figures as forest_figures,
    head_figures as head_figures,
    head_table as head_table,
    ratio_figure as ratio_figure,
    ratio_table as ratio_table,
    topic_figures as topic_figures,
    verdict_table as verdict_table,
)
from .probe_layers import (
    ablation_figures as ablation_figures,
    ablation_table as ablation_table,
    document_table as document_table,
    label_figures as label_figures,
    label_table as label_table,
    state_figures as state_figures,
    state_table as state_table,
)
from .runs import (
    happening as happening,
    live_curves as live_curves,
    live_matrices as live_matrices,
    run_figure as run_figure,
)
from .theory import landscape_figure as landscape_figure
from .timelines import (
    WordPlane as WordPlane,
    moment_table as moment_table,
    pretrain_moment as pretrain_moment,
    run_moment as run_moment,
    timeline_figures as timeline_figures,
    timeline_moment as timeline_moment,
    word_plane as word_plane,
)
from .topics import (
    compared_table as compared_table,
    topic_model_table as topic_model_table,
    word_figure as word_figure,
    word_table as word_table,
)
