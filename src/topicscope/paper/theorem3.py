"""Theorem 3: attention trained with the value matrix frozen at its blocks."""

from functools import partial

from topicscope.measure import estimate
from topicscope.paper.experiment import Experiment, Number, Outcome
from topicscope.paper.second_stage import Found, judge_second_stage, measure_second_stage
from topicscope.theory import Setting, best_attention, theorem3


def judge(found: Found) -> Outcome:
    setting = Setting.of(10, 10, 3)
    theorem, best = theorem3(setting), best_attention(setting, "blocks")
    low, high = theorem.bounds["gamma"]
    gammas = [setting.gamma(alpha, beta) for alpha, beta in zip(found.alpha, found.beta, strict=True)]
    return judge_second_stage(
        found,
        "theorem3",
        theorem,
        theory=f"gamma in ({low:.3g}, {high:.3g}); exact minimiser gamma = {best.gamma:.3g}, loss {best.loss:.5f}",
        measured=f"gamma = {estimate(gammas)}, alpha = {estimate(found.alpha).mean:.3g}, "
        f"beta = {estimate(found.beta).mean:.3g}",
        ours=estimate(gammas).mean,
    )


EXPERIMENT = Experiment(
    id="theorem3",
    claim="With W_V frozen at its blocks, the best attention inside a topic (gamma) lies in Theorem 3's interval.",
    rule="For every seed gamma = ((v - 1) alpha + beta) / v of the trained attention lies between lambda1 (tau - 1) "
    "and lambda2 T. alpha, beta: attention weights to another word of the topic and to the word itself, over that to a "
    "word of another topic.",
    measure=partial(measure_second_stage, kind="blocks"),
    judge=judge,
    seconds=30,
    number=Number(
        "gamma",
        "mean attention weight to the words of the topic over that to a word of another topic, as in Theorem 3 (a "
        "ratio), mean over seeds; the paper has bounds and no number",
    ),
)
