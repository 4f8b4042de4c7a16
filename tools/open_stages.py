"""Three open questions of the dynamics, tried with exact gradients in small worlds (docs/dynamics.md, What is open).

    python tools/open_stages.py third-act       # does the third act come when linear growth inside topics says so?
    python tools/open_stages.py cross-entropy   # is [MASK] first at the time of linear growth along W_V(t)?
    python tools/open_stages.py adam-tied       # a trained embedding under Adam: is there a law of s and epsilon?

One to five minutes each, on one core.
"""

import argparse
import math

import numpy as np

from topicscope.paper.escapes import WIDTH, contrasts
from topicscope.paper.stage_law import FlowWorld
from topicscope.theory import (
    Population,
    Trajectory,
    escape_rate,
    gaussian_start,
    gradient_flow,
    grouped_subsets,
    mask_first,
    score_force,
    subset_world,
    third_act_time,
)
from topicscope.theory.growth import SHOWS, embedding_clock
from topicscope.world import Masking

SMALL = (FlowWorld(4, 3, 2), FlowWorld(5, 4, 2), FlowWorld(6, 3, 3))


def third_act(world: FlowWorld, scale: float, seed: int) -> str:
    """When |W_V| inside topics is .1: measured, and from the linear growth of differences along l(t)."""
    growth, width, within = world.growth(), world.width, np.kron(np.eye(world.T), np.eye(world.v) - 1 / world.v)
    said = third_act_time(growth, width, scale)
    assert said is not None

    def shows(course: Trajectory) -> bool:
        return float(np.linalg.norm(course.end["value"][:, 1:] @ within)) >= SHOWS

    longest = 0.1 / escape_rate(growth, width)
    course = gradient_flow(world.population(), world.start(scale, seed), 2 * said, longest=longest, stop=shows)
    half, time = course.half_way("key", growth.plateau_norm(width)), course.times[-1]
    return (
        f"{world}  s = {scale:<6g} seed {seed}  t50(key) {half:9,.0f}  third act {time:9,.0f}  predicted {said:9,.0f} "
        f"({time / said:.3f})"
    )


def cross_entropy(world: FlowWorld, scale: float, seed: int) -> str:
    """|W_K| three times its start: measured, and from linear growth under the force along W_V's own flow."""
    population = Population.of(world.topic_model, world.prior, Masking(), "cross-entropy")
    start, width = world.start(scale, seed), world.width
    alone = gradient_flow(population, start | {"key": 0 * start["key"], "query": 0 * start["query"]}, 1000.0, keep=True)
    documents = subset_world(world.T, world.v, grouped_subsets(world.T, world.tau))
    key, query, before, crossed = start["key"], start["query"], 0.0, math.nan
    grid = np.arange(0.0, 1000.0, 2.0)
    place = np.searchsorted(alone.times, grid)
    norm = float(np.linalg.norm(key))
    for time, i in zip(grid[1:], place[1:], strict=True):
        value = between(alone, int(i), (time + before) / 2)
        force = score_force(documents, Masking(), value, loss="cross-entropy") * (time - before) / math.sqrt(width)
        key, query = (
            key + query @ force.T + key @ force @ force.T / 2,
            query + key @ force + query @ force.T @ force / 2,
        )
        if np.linalg.norm(key) >= 3 * norm:
            crossed = float(time)
            break
        before = time
    growth = world.growth()
    even = mask_first(growth, Masking().k ** 2 / growth.v * growth.shares.contrast, width).time
    whole = gradient_flow(population, start, 1000.0)
    left = whole.reaches("key", 3 * norm)
    return (
        f"{world}  s = {scale:<6g} seed {seed}  measured {left:6.1f}  even growth of W_V {even:6.1f} "
        f"({left / even:.3f})  true W_V(t) {crossed:6.1f} ({left / crossed:.3f})"
    )


def between(course: Trajectory, i: int, time: float) -> np.ndarray:
    """W_V at a time, by a straight line between two steps."""
    i = min(max(i, 1), len(course.times) - 1)
    while course.times[i - 1] > time:
        i -= 1
    share = (time - course.times[i - 1]) / (course.times[i] - course.times[i - 1])
    return (1 - share) * course.states[i - 1]["value"] + share * course.states[i]["value"]


def adam_tied(scale: float, eps: float, seed: int, lr: float, steps: int = 5000) -> tuple[float, float]:
    """Half-way steps of the topic contrast and of the scores, full batches; NaN: not in so many steps."""
    world = FlowWorld(4, 3, 2)
    population, quarter = world.population(), world.growth().l_star / 4
    parts = gaussian_start(world.width, world.width, scale, seed, width=WIDTH)
    mean, square = ({name: np.zeros_like(part) for name, part in parts.items()} for _ in range(2))
    value = key = math.nan
    for step in range(1, steps + 1):
        for i, g in population.gradient(parts)[1].items():
            mean[i] = 0.9 * mean[i] + 0.1 * g
            square[i] = 0.999 * square[i] + 0.001 * g**2
            root = np.sqrt(square[i] / (1 - 0.999**step))
            parts[i] = parts[i] - lr * mean[i] / (1 - 0.9**step) / (root + eps)
        topic, score = contrasts(parts)
        value = float(step) if math.isnan(value) and topic >= 0.5 else value
        key = float(step) if math.isnan(key) and score >= quarter else key
        if not math.isnan(value + key):
            break
    return value, key


def adam_lines() -> None:
    """Beside what epsilon would add if entries moved in proportion to their gradient through the flow's saddle."""
    world, growth = FlowWorld(4, 3, 2), FlowWorld(4, 3, 2).growth()
    eigenvalue = Masking().k ** 2 / growth.v * growth.shares.contrast
    for lr, eps in ((1e-3, 1e-20), (3e-4, 1e-20), (1e-3, 1e-8), (1e-3, 1e-6), (1e-3, 1e-5)):
        for scale in (0.03, 0.01, 0.003, 0.001, 0.0003):
            flow = embedding_clock(
                growth, eigenvalue, squared=True, width=WIDTH, attention_dim=world.width, init_scale=scale
            ).escape
            value, key = zip(*(adam_tied(scale, eps, seed, lr) for seed in (0, 1, 2)), strict=True)
            print(
                f"rate {lr:<6g} eps = {eps:<6g} s = {scale:<6g} value {value[0]:5.0f} {value[1]:5.0f} {value[2]:5.0f}  "
                f"key {key[0]:5.0f} {key[1]:5.0f} {key[2]:5.0f}   eps x t_esc / rate {eps * flow / lr:7.1f}",
                flush=True,
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("question", choices=["third-act", "cross-entropy", "adam-tied"])
    question = parser.parse_args().question
    if question == "adam-tied":
        return adam_lines()
    ask, scales = (third_act, (1e-6, 1e-5, 1e-4)) if question == "third-act" else (cross_entropy, (1e-3, 1e-2))
    for world in SMALL:
        for scale in scales:
            for seed in (0, 1):
                print(ask(world, scale, seed), flush=True)
    return None


if __name__ == "__main__":
    main()
