"""Theorem 3: attention trained with the value matrix frozen at its blocks."""

from __future__ import annotations

from topicscope.measure import estimate
from topicscope.paper.experiment import Context, Experiment
from topicscope.paper.outcome import Outcome
from topicscope.paper.second_stage import Found, judge_second_stage, measure_second_stage
from topicscope.theory import Setting, best_attention, theorem3


def measure(context: Context) -> Found:
    return measure_second_stage(context, "blocks")


def judge(found: Found) -> Outcome:
    setting = Setting.of(10, 10, 3)
    low, high = theorem3(setting).bounds["gamma"]
    best = best_attention(setting, "blocks")
    gammas = [setting.gamma(alpha, beta) for alpha, beta in zip(found.alpha, found.beta, strict=True)]
    return judge_second_stage(
        found,
        "theorem3",
        "blocks",
        theory=f"gamma in ({low:.3g}, {high:.3g}); exact minimiser gamma = {best.gamma:.3g}, loss {best.loss:.5f}",
        measured=f"gamma = {estimate(gammas)}, alpha = {estimate(found.alpha).mean:.3g}, "
        f"beta = {estimate(found.beta).mean:.3g}",
        inside=[low < gamma < high for gamma in gammas],
    )


EXPERIMENT = Experiment(
    id="theorem3",
    claim="With W_V frozen at blocks, the best attention inside a topic lies in Theorem 3's interval.",
    rule="gamma of the trained attention lies in (lambda1 (tau-1), lambda2 T) for every seed.",
    measure=measure,
    judge=judge,
    seconds=30,
)
