"""Floors of a run that goes on. The run itself has them only at its end; here they are worked out beside it, once."""

import threading
from collections.abc import Mapping

from topicscope import training
from topicscope.ground import InputError

MOST_MEMORY = 200e6  # bytes; the floors of larger runs are shown when these have ended
ONE_AT_A_TIME = threading.Semaphore()


class LiveFloors:
    """`found` is empty until they are known, and stays so where there are none."""

    def __init__(self, config: training.RunConfig) -> None:
        self.config = config
        self.found: Mapping[str, Mapping[str, float]] = {}
        if config.floors and config.data.dev_file is None and training.cost_of([config]).memory < MOST_MEMORY:
            threading.Thread(target=self.work, daemon=True).start()

    def work(self) -> None:
        with ONE_AT_A_TIME:
            try:
                self.found = training.RunData(self.config).task.floors()
            except (InputError, OSError, MemoryError):
                return  # the run will say why
