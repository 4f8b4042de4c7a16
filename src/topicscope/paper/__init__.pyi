from .experiment import Context as Context, Experiment as Experiment, Outcome as Outcome
from .registry import EXPERIMENTS as EXPERIMENTS, chosen as chosen
from .reproduction import (
    Reproduction as Reproduction,
    read_reproduction as read_reproduction,
    reproduce as reproduce,
)
