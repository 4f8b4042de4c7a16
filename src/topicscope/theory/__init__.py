"""The paper's theorems as formulas. One file a theorem."""

from topicscope.theory.bayes import BayesLoss, bayes_loss
from topicscope.theory.constants import Constants
from topicscope.theory.least_squares import UniformOptimum, uniform_optimum
from topicscope.theory.theorem1 import prediction_bias
from topicscope.theory.theorem2 import Theorem2, theorem2
from topicscope.theory.theorem5 import diagonal_value_matrix

__all__ = ["BayesLoss", "Constants", "Theorem2", "UniformOptimum", "bayes_loss", "diagonal_value_matrix", "prediction_bias", "theorem2", "uniform_optimum"]
