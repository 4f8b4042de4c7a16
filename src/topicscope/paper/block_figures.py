"""What Figures 1, 2, 9 and 10 share: settings of the value matrix's training, and the verdict rule."""

from __future__ import annotations

from typing import Any

from topicscope.paper.experiment import Context, optimizer

RULE = (
    "For each panel the mean over words of the same topic minus that over different topics, diagonal left out: "
    "its 95% interval over seeds excludes zero from above."
)


def value_settings(context: Context, loss: str, method: str, *, l2: float, attention: bool) -> dict[str, Any]:
    model = {} if attention else {"key": "zero", "query": "zero"}
    return {
        "steps": context.pick(1500, 5000), "model": model | {"prediction_bias": "none"},
        "objective": {"loss": loss, "l2": {"value": l2} if l2 else 0.0}, "optimizer": optimizer(method),
    }  # fmt: skip
