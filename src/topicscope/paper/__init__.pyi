from .experiment import Context as Context, Experiment as Experiment, Outcome as Outcome
from .made_up import made_up_texts as made_up_texts
from .reproduction import (
    EXPERIMENTS as EXPERIMENTS,
    Reproduction as Reproduction,
    chosen as chosen,
    outcomes_so_far as outcomes_so_far,
    read_reproduction as read_reproduction,
    reproduce as reproduce,
)
