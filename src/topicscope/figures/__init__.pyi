from .builders import sections as sections
from .dynamics import (
    Curves as Curves,
    curves_of as curves_of,
    dynamics_figure as dynamics_figure,
    layer_title as layer_title,
    loss_figure as loss_figure,
    stage_table as stage_table,
    starts as starts,
)
from .maps import (
    PHASE_COLOURS as PHASE_COLOURS,
    Axes as Axes,
    Row as Row,
    map_figure as map_figure,
    phase_table as phase_table,
    tick as tick,
)
from .panels import (
    Figure as Figure,
    Heat as Heat,
    Judgement as Judgement,
    Lines as Lines,
    Map as Map,
    Panel as Panel,
    Points as Points,
    Section as Section,
    Series as Series,
    TableData as TableData,
    Verdict as Verdict,
)
from .probing import (
    answers as answers,
    cooccurrence_table as cooccurrence_table,
    flat as flat,
    head_table as head_table,
    ratio_table as ratio_table,
    short as short,
    word_figure as word_figure,
)
from .timelines import (
    Effects as Effects,
    later as later,
    moment_table as moment_table,
    moments as moments,
    rows as rows,
    sentence as sentence,
    timeline_figures as timeline_figures,
)
from .train_run import run_sections as run_sections
