"""The paper's theorems as formulas, one file a theorem; exact losses, the best attention, and certificates for every claim."""

from topicscope.theory.attention_loss import Entries, asymptotic_loss, attention_loss
from topicscope.theory.bayes import BayesLoss, bayes_loss
from topicscope.theory.certificates import Certificate, describe, verify
from topicscope.theory.constants import Constants
from topicscope.theory.landscape import Landscape, landscape
from topicscope.theory.least_squares import UniformOptimum, uniform_optimum
from topicscope.theory.lemma1 import Membership, family_loss, fit_family, random_member
from topicscope.theory.minimise import Optimum, best_attention
from topicscope.theory.population import enumerated_loss, population_loss
from topicscope.theory.setting import Setting
from topicscope.theory.theorem1 import fit_embedding, identity_member, prediction_bias
from topicscope.theory.theorem2 import Theorem2, theorem2
from topicscope.theory.theorem5 import diagonal_value_matrix

__all__ = [
    "BayesLoss",
    "Certificate",
    "Constants",
    "Entries",
    "Landscape",
    "Membership",
    "Optimum",
    "Setting",
    "Theorem2",
    "UniformOptimum",
    "asymptotic_loss",
    "attention_loss",
    "bayes_loss",
    "best_attention",
    "describe",
    "diagonal_value_matrix",
    "enumerated_loss",
    "family_loss",
    "fit_embedding",
    "fit_family",
    "identity_member",
    "landscape",
    "population_loss",
    "prediction_bias",
    "random_member",
    "theorem2",
    "uniform_optimum",
    "verify",
]
