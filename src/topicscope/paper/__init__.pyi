from .experiment import Context as Context, Experiment as Experiment, Outcome as Outcome
from .made_up import made_up_texts as made_up_texts
from .registry import EXPERIMENTS as EXPERIMENTS, chosen as chosen, verdict_name as verdict_name
from .reproduction import (
    outcomes_so_far as outcomes_so_far,
    read_reproduction as read_reproduction,
    reproduce as reproduce,
)
from .reproduction_result import Reproduction as Reproduction
