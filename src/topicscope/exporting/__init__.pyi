from .targets import (
    TARGETS as TARGETS,
    Exported as Exported,
    curves_of as curves_of,
    event_file as event_file,
    export as export,
    model_card as model_card,
)
