"""The optimiser of a pretraining run."""

from typing import Any

import torch

from topicscope.pretraining.config import PretrainConfig


def build_optimizer(config: PretrainConfig, model: Any) -> torch.optim.Optimizer:
    """AdamW or SGD of torch.optim; biases and norms do not decay.

    Args:
        config: Config of the run.
        model: The model.

    Returns:
        The optimiser.

    Example:
        >>> config = PretrainConfig.of({"text": {"corpus": ["-"]}, "optimizer": {"lr": 0.01, "weight_decay": 0.1}})
        >>> [group["weight_decay"] for group in build_optimizer(config, torch.nn.Linear(2, 2)).param_groups]
        [0.1, 0.0]
    """
    settings = config.optimizer
    groups = [
        {"params": [p for p in model.parameters() if p.ndim > 1], "weight_decay": settings.weight_decay},
        {"params": [p for p in model.parameters() if p.ndim <= 1], "weight_decay": 0.0},
    ]
    if settings.name == "sgd":
        return torch.optim.SGD(groups, lr=settings.lr, momentum=settings.momentum)
    return torch.optim.AdamW(groups, lr=settings.lr, betas=settings.betas, eps=settings.eps, fused=True)
