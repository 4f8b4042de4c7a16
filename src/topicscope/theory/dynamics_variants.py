"""`dynamics` away from gradient flow on one-hot words with squared loss: cross entropy, a trained embedding, SGD, Adam.

Each function takes the prediction made so far and returns it with what changes; laws are in `clocks`.
"""

from __future__ import annotations

import math

from topicscope.theory.adam_entry import entry_steps
from topicscope.theory.clocks import FEWEST_STEPS, adam_clock, embedding_clock, mask_first
from topicscope.theory.dynamics_result import AttentionStage, Dynamics, Steps, ValueStage
from topicscope.theory.growth import Growth
from topicscope.theory.value_optimum import Mode

LARGEST_SCALE = 0.03  # of the start, up to which the laws of one-hot words were measured
WIDEST_START = 0.3  # s sqrt(d) of a trained embedding up to which the law was measured


def with_cross_entropy(found: Dynamics, topic: Mode | None) -> Dynamics:
    """R7: no finite optimum of W_V; the [MASK] query is first."""
    growth, how = found.growth, found.training
    sentences = ["Under cross entropy W_V has no finite optimum on infinite documents: absent words want -infinity."]
    not_covered = ["half-times under cross entropy: they depend on the length of the run; only the start is known"]
    first = None
    if growth is None:
        not_covered.append("the start under cross entropy: known for infinite documents and topics that are alike")
    elif topic is None:
        not_covered.append("the start under cross entropy: all documents have the same topics, so none is learnt")
    elif growth.masking.p_mask_word == 0:
        not_covered.append("the start under cross entropy: no masked position shows [MASK]")
    elif not 0 < how.init_scale <= LARGEST_SCALE:
        not_covered.append(
            f"the start under cross entropy at init_scale = {how.init_scale:g}: the law holds above 0 and was "
            f"measured up to {LARGEST_SCALE:g}"
        )
    else:
        first = mask_first(growth, topic.eigenvalue, how.attention_dim)
        sentences.append(
            f"At first W_V grows evenly on topic contrasts, {first.speed:.4g} per unit of time. [MASK] then learns not "
            f"to look at [MASK]: |W_K| is three times its start near time {first.time:.4g} (measured: a third later)."
        )
    return found.changed(
        value=ValueStage(None, None, found.value.modes),
        attention=AttentionStage(),
        sentences=tuple(sentences),
        not_covered=(*found.not_covered, *not_covered),
        mask_first=first,
    )


def with_embedding(found: Dynamics, topic: Mode | None) -> Dynamics:
    """R8: value and embedding leave zero together, after a time in proportion to 1 / s."""
    growth, how = found.growth, found.training
    width, scale = how.width or found.best.vocabulary, how.init_scale
    empty = {"value": ValueStage(None, None, found.value.modes), "attention": AttentionStage()}
    reasons = []
    if growth is None or topic is None:
        reasons.append(
            "a trained embedding: known for infinite documents and topics that are alike"
            if growth is None
            else "a trained embedding: all documents have the same topics, so none is learnt"
        )
    elif how.optimizer == "adam":
        reasons.append("a trained embedding with Adam: its steps do not feel the saddle at zero")
    elif not 0 < scale * math.sqrt(width) <= WIDEST_START:
        reasons.append(
            f"a trained embedding at init_scale x sqrt(width) = {scale * math.sqrt(width):.3g}: "
            f"the law holds above 0 and up to {WIDEST_START:g}"
        )
    if reasons or growth is None or topic is None:
        return found.changed(**empty, sentences=(), not_covered=(*found.not_covered, *reasons))
    squared = how.loss == "squared"
    clock = embedding_clock(
        growth, topic.eigenvalue, squared=squared, width=width, attention_dim=how.attention_dim, init_scale=scale
    )
    stage, modes = AttentionStage(), min(growth.topics - 1, how.attention_dim)
    said = [
        f"With a trained embedding value and embedding leave zero together: topics are half-way at time "
        f"{clock.escape:.5g}, in proportion to 1 / (s sqrt(d)), d = {width} (10% to 40% off at small d)."
    ]
    if clock.attention is not None:
        said.append(
            f"Then key and query grow {clock.square:.4g} times as fast as on one-hot words: half-way near "
            f"{clock.attention:.5g} (measured: up to a quarter earlier)."
        )
        e_fold = growth.e_fold(how.attention_dim) / clock.square
        stage = AttentionStage(growth.sigma, modes, e_fold, half_time=clock.attention)
    elif squared:
        reasons.append(f"key and query: {growth.reason}")
    else:
        reasons.append("key and query with a trained embedding under cross entropy: their later course is not known")
    return found.changed(
        value=ValueStage(None, clock.escape, found.value.modes),
        attention=stage,
        sentences=tuple(said),
        not_covered=(*found.not_covered, *reasons),
        trained_embedding=clock,
    )


def with_steps(found: Dynamics, topic: Mode | None) -> Dynamics:
    """Half-times in steps of SGD or Adam."""
    how, growth = found.training, found.growth
    if how.lr is None:
        return found
    if how.optimizer == "sgd":
        return with_sgd(found, how.lr * how.loss_scale)
    if how.loss != "squared" or how.embedding != "one-hot" or growth is None or topic is None:
        reason = "steps of Adam: known for one-hot words, squared loss, infinite documents and topics that are alike"
        return found.changed(steps=Steps(None, None), not_covered=(*found.not_covered, reason))
    clock = adam_clock(
        growth,
        topic.eigenvalue,
        attention_dim=how.attention_dim,
        init_scale=how.init_scale,
        lr=how.lr,
        eps=how.eps,
        loss_scale=how.loss_scale,
        batch_noise=how.batch_noise,
        output_bias=how.output_bias,
    )
    known = found.attention.plateau_norm is not None and how.init_scale <= LARGEST_SCALE
    attention = clock.attention if known else None
    fewest = min(clock.value, attention or math.inf)
    if fewest < FEWEST_STEPS:
        reason = (
            f"steps of Adam at lr = {how.lr:g}: the clocks give {fewest:.2g}, and they hold from {FEWEST_STEPS} on, "
            "which is how many gradients Adam's first mean spans"
        )
        return found.changed(steps=Steps(None, None), not_covered=(*found.not_covered, reason))
    said = [f"Adam: W_V is half-way after {clock.value:.4g} steps"]
    if attention is not None:
        said[0] += (
            f", key and query after {attention:.4g}: {clock.sign:.4g} at the full rate, {clock.epsilon:.4g} more for "
            f"epsilon, which delays them above {clock.delays_attention_from:.2g} and rules them above "
            f"{clock.rules_attention_from:.2g} (over the scale of the loss)"
        )
        clock = clock._replace(followed=followed_steps(found, growth, clock.value))
    if clock.followed is not None:
        said.append(
            f"With Adam's own averages, which make its steps longer where gradients grow, key and query are half-way "
            f"after {clock.followed:.4g} steps (full batches; measured: .84 to 1.15 of it)"
        )
    sentences = (*found.sentences, *(f"{one}." for one in said))
    return found.changed(steps=Steps(clock.value, attention), sentences=sentences, adam=clock)


def followed_steps(found: Dynamics, growth: Growth, value: float) -> float | None:
    """The half-way step of key by one entry; None with noise of batches, or where that is not followed so far."""
    how = found.training
    if how.batch_noise != 1 or how.lr is None:
        return None
    return entry_steps(
        growth,
        value=value,
        attention_dim=how.attention_dim,
        init_scale=how.init_scale,
        lr=how.lr,
        eps=how.eps,
        loss_scale=how.loss_scale,
        output_bias=how.output_bias,
    )


def with_sgd(found: Dynamics, rate: float) -> Dynamics:
    """t = rate x steps, as long as the fastest mode is stable."""
    fastest = max(mode.eigenvalue for mode in found.best.modes)
    if rate * fastest >= 1:
        stable = 1 / (fastest * found.training.loss_scale)
        reason = f"steps of SGD: at lr = {found.training.lr:g} W_V diverges; it is stable below {stable:.4g}"
        return found.changed(steps=Steps(None, None), not_covered=(*found.not_covered, reason))
    value, attention = (
        None if time is None else time / rate for time in (found.value.half_time, found.attention.half_time)
    )
    parts = [
        f"{name} after {steps:.5g} steps"
        for name, steps in (("W_V is half-way", value), ("key and query", attention))
        if steps is not None
    ]
    said = (f"SGD: {', '.join(parts)}.",) if parts else ()
    return found.changed(steps=Steps(value, attention), sentences=(*found.sentences, *said))
