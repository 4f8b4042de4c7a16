from .experiment import Context as Context, Experiment as Experiment
from .outcome import Outcome as Outcome
from .registry import EXPERIMENTS as EXPERIMENTS, NOT_IN_REFERENCE as NOT_IN_REFERENCE, chosen as chosen
from .runner import claim as claim, load as load, reproduce as reproduce, results_of as results_of
