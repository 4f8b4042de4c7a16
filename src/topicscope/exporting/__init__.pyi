from .cards import model_card as model_card
from .curves import curves_of as curves_of
from .events import event_file as event_file
from .targets import TARGETS as TARGETS, Exported as Exported, export as export
