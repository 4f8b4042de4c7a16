"""An optimiser from outside in one file: SGD along the sign of an average of gradients."""

from typing import Any

from topicscope.training import Rule, register_optimiser


@register_optimiser
class SignSGD(Rule):
    NAME = "sign"

    def moments(self, settings: Any) -> tuple[str, ...]:
        return ("average",)

    def step(self, settings: Any, weights: Any, gradients: Any, memory: dict[str, Any]) -> None:
        memory["average"].mul_(0.5).add_(gradients)
        weights.sub_(memory["average"].sign(), alpha=settings.lr)
