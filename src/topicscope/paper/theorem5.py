"""Theorem 5: attention trained with the value matrix frozen at its diagonal optimum."""

from functools import partial

import numpy as np

from topicscope.measure import estimate
from topicscope.paper.experiment import Experiment, Number, Outcome
from topicscope.paper.second_stage import Found, judge_second_stage, measure_second_stage
from topicscope.theory import Setting, best_attention, theorem5


def judge(found: Found) -> Outcome:
    setting = Setting.of(10, 10, 3)
    theorem, best = theorem5(setting), best_attention(setting, "diagonal")
    low, high = theorem.bounds["beta"]
    shares = [alpha / beta for alpha, beta in zip(found.alpha, found.beta, strict=True)]
    return judge_second_stage(
        found,
        "theorem5",
        theorem,
        theory=f"beta in ({low:.3g}, {high:.3g}), "
        f"alpha < {theorem.lambda5:.3g} beta; exact minimiser beta = {best.beta:.3g}, loss {best.loss:.5f}",
        measured=f"beta = {estimate(found.beta)}, alpha / beta = {np.mean(shares):.3g}",
        ours=estimate(found.beta).mean,
    )


EXPERIMENT = Experiment(
    id="theorem5",
    claim="With W_V frozen at its diagonal optimum, the best attention lies inside Theorem 5's bounds: mostly to the "
    "word itself.",
    rule="For every seed lambda3 tau < beta < lambda4 T and alpha < lambda5 beta. beta, alpha: trained attention "
    "weights to the word itself and to another word of its topic, over that to a word of another topic.",
    measure=partial(measure_second_stage, kind="diagonal"),
    judge=judge,
    seconds=30,
    number=Number(
        "beta",
        "attention weight to the word itself over that to a word of another topic (a ratio), mean over seeds; the "
        "paper has bounds and no number",
    ),
)
