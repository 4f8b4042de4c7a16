"""A theorem of the first stage in one file, as the row 'a theorem' of docs/architecture.md asks for."""

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from topicscope import theory
from topicscope.theory.theorem import Entry, Examination, Matrix, OptimumTheorem


@dataclass(frozen=True, repr=False)
class Theorem9(OptimumTheorem):
    """Theorem 9: predicting nothing costs 1."""

    picture: ClassVar[str] = "nothing"

    setting: theory.Setting
    loss: float

    @property
    def sentence(self) -> str:
        return f"Theorem 9: predicting nothing costs {self.loss:g}."

    def summary(self) -> list[str]:
        return [self.sentence]

    def matrix(self) -> Matrix:
        return np.zeros((self.setting.topic_model.vocabulary,) * 2)

    def entries(self) -> list[Entry]:
        return [Entry("loss", self.loss, "of the zero matrix")]

    def examine(self, given: Matrix) -> Examination:
        largest = float(np.abs(given).max())
        return Examination("comparison", {"largest": largest}, f"the largest entry is {largest:g}.")


def theorem9(setting: theory.Setting) -> Theorem9:
    """Theorem 9: predicting nothing costs 1, in any world."""
    return Theorem9(setting, loss=1.0)


theory.OPTIMUM_THEOREMS = (*theory.OPTIMUM_THEOREMS, theorem9)
