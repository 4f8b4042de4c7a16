"""What runs against the theory may show: landscapes, theorems and losses, built by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from tests.paper.samples_blocks import CONFIG, matrix
from topicscope.paper import landscapes, theorems
from topicscope.theory import Landscape

LOWEST = {"diagonal": (1.26, 1.58e4), "blocks": (50.0, 50.0)}
"""alpha and beta inside the bounds."""


def grids(
    kind: landscapes.Kind, tau: int = 60, off: float = 0.0, gamma: float = 0.0, place: tuple[float, float] | None = None
) -> landscapes.Landscapes:
    """The reference minima. At one tau: another loss, another best gamma (as a share), another place."""
    made, gammas = {}, {}
    for t, loss in landscapes.REFERENCE[kind].items():
        alpha, beta = place if place and t == tau else LOWEST[kind]
        low = loss + (off if t == tau else 0.0)
        made[t] = Landscape(np.array([alpha, 1e6]), np.array([1e-3, beta]), np.array([[1.0, low], [1.1, 1.2]]))
        if kind == "blocks":
            gammas[t] = landscapes.BEST_GAMMA[t] * (1 + (gamma if t == tau else 0.0))
    return landscapes.Landscapes(made, gammas)


def bad_grids(kind: landscapes.Kind, **places: tuple[float, float]) -> dict[str, landscapes.Landscapes]:
    made = {
        "a minimum above in the fifth digit": grids(kind, off=6e-6),
        "a minimum below in the fifth digit": grids(kind, off=-6e-6),
        "the first minimum": grids(kind, tau=20, off=1e-5),
        "the last minimum": grids(kind, tau=80, off=1e-5),
    }
    return made | {f"{name}: one outside the bounds": grids(kind, place=place) for name, place in places.items()}


def second(
    alpha: float = 0.8, beta: float = 70.0, *, others: tuple[float, float] = (0.8, 70.0)
) -> theorems.TrainedAttention:
    """Three seeds, of which the last has this attention."""
    alphas, betas = [others[0], others[0], alpha], [others[1], others[1], beta]
    return theorems.TrainedAttention(alphas, betas, [0.9617, 0.9618, 0.9619], matrix(), CONFIG)


def family(violation: float = 1e-3, excess: float = 5e-5) -> theorems.TrainedEmbedding:
    best = 1 - 1 / 30
    return theorems.TrainedEmbedding([1e-8, violation, 1e-9], [best, best + 1e-9, best + excess], matrix(), CONFIG)


def distances(*means: float) -> theorems.Distances:
    lengths = ("100", "1000", "10000", "infinite")
    given = means or (0.5, 0.1, 0.02, 5e-4)
    return theorems.Distances(
        {length: [mean, 0.9 * mean, 1.1 * mean] for length, mean in zip(lengths, given, strict=True)}, matrix(), CONFIG
    )


def dev_losses(squared_value: float = 0.95, entropy_embedding: float = 3.4) -> list[theorems.PartLosses]:
    """Gains over uniform: 4.60517 - 3.3 and 0.99 - 0.94 = 0.05."""

    def of(
        loss: str, everything: float, embedding: float, value: float, bayes: float, topics: float
    ) -> theorems.PartLosses:
        means = {"everything": everything, "only the embedding": embedding, "only the value matrix": value}
        dev = {name: [mean - 1e-4, mean, mean + 1e-4] for name, mean in means.items()}
        return theorems.PartLosses(loss, dev, bayes, topics, CONFIG)

    return [
        of("cross-entropy", 3.3, entropy_embedding, 3.45, 2.9, 3.17),
        of("squared", 0.94, 0.945, squared_value, 0.93, 0.9453),
    ]


def no_gain() -> list[theorems.PartLosses]:
    """Everything ends above the uniform prediction, parts further up: no gain to lose a share of."""
    dev = {"everything": [1.0] * 3, "only the embedding": [1.1] * 3, "only the value matrix": [1.2] * 3}
    return [dev_losses()[0], replace(dev_losses()[1], dev=dev)]


THEOREM3 = {"others": (7.0, 7.0)}
