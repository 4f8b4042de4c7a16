"""`dynamics`: when each stage of learning comes, predicted for any setting (R1 to R4, R7, R8)."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from topicscope.ground import MOST, InputError, refuse
from topicscope.theory.clocks import FEWEST_STEPS, adam_clock, embedding_clock, entry_steps, mask_first
from topicscope.theory.document_moments import K_FROM, NO_K, length_weights
from topicscope.theory.dynamics_result import (
    EMBEDDINGS,
    LOSSES,
    OPTIMIZERS,
    AttentionStage,
    Dynamics,
    Steps,
    Training,
    ValueStage,
    passed,
)
from topicscope.theory.growth import SHOWS, Growth, escape_rate, gain_by_half_time, third_act_time
from topicscope.theory.optimum import HasWorld, checked_length, optimum
from topicscope.theory.setting import Setting
from topicscope.theory.value_optimum import Mode, OptimumSettings, ValueOptimum, symmetric_optimum
from topicscope.world import DocumentPrior, Fixed, Masking, TopicModel, World

LARGEST_SCALE = 0.03  # of the start, up to which the laws of one-hot words were measured
WIDEST_START = 0.3  # s sqrt(d) of a trained embedding up to which the law was measured


def with_cross_entropy(prediction: Dynamics, topic: Mode | None) -> Dynamics:
    """R7: no finite optimum of W_V; the [MASK] query is first."""
    growth, scale = prediction.growth, prediction.training.init_scale
    prediction = prediction.more(
        ["Under cross entropy W_V has no finite optimum on infinite documents: absent words want -infinity."],
        [passed("entropy-half-times")],
    )
    if growth is None:
        return prediction.more(reasons=[passed("entropy-topics")])
    if topic is None:
        return prediction.more(reasons=[passed("entropy-same-topics")])
    if growth.masking.p_mask_word == 0:
        return prediction.more(reasons=[passed("entropy-no-mask")])
    if not 0 < scale <= LARGEST_SCALE:
        return prediction.more(reasons=[passed("entropy-start", scale=scale, largest=LARGEST_SCALE)])
    first = mask_first(growth, topic.eigenvalue, prediction.training.attention_dim)
    said = (
        f"At first W_V grows evenly on topic contrasts, {first.speed:.4g} per unit of time. [MASK] then learns not "
        f"to look at [MASK]: |W_K| is three times its start near time {first.time:.4g} (measured: a third later)."
    )
    return prediction.more([said], mask_first=first)


def with_embedding(prediction: Dynamics, topic: Mode | None) -> Dynamics:
    """R8: value and embedding leave zero together, after a time in proportion to 1 / s."""
    growth, how = prediction.growth, prediction.training
    width = how.width or prediction.best.vocabulary
    size, squared = how.init_scale * math.sqrt(width), how.loss == "squared"
    if growth is None or topic is None:
        return prediction.more(reasons=[passed("embedding-topics" if growth is None else "embedding-same-topics")])
    if how.optimizer == "adam":
        return prediction.more(reasons=[passed("embedding-adam")])
    if not 0 < size <= WIDEST_START:
        return prediction.more(reasons=[passed("embedding-start", size=size, largest=WIDEST_START)])
    dim = how.attention_dim
    clock = embedding_clock(
        growth, topic.eigenvalue, squared=squared, width=width, attention_dim=dim, init_scale=how.init_scale
    )
    said = (
        f"With a trained embedding value and embedding leave zero together: topics are half-way at time "
        f"{clock.escape:.5g}, in proportion to 1 / (s sqrt(d)), d = {width} (10% to 40% off at small d)."
    )
    prediction = prediction.more(
        [said], value=ValueStage(None, clock.escape, prediction.value.modes), trained_embedding=clock
    )
    if clock.attention is None:
        reason = passed("no-force", reason=growth.reason) if squared else passed("embedding-entropy")
        return prediction.more(reasons=[reason])
    said = (
        f"Then key and query grow {clock.square:.4g} times as fast as on one-hot words: half-way near "
        f"{clock.attention:.5g} (measured: up to a quarter earlier)."
    )
    stage = AttentionStage(
        growth.sigma, min(growth.topics - 1, dim), growth.e_fold(dim) / clock.square, half_time=clock.attention
    )
    return prediction.more([said], attention=stage)


def with_adam(prediction: Dynamics, rate: float, topic: Mode | None) -> Dynamics:
    how, growth = prediction.training, prediction.growth
    if how.loss != "squared" or how.embedding != "one-hot" or growth is None or topic is None:
        return prediction.without_steps(passed("adam-setting"))
    clock = adam_clock(growth, topic.eigenvalue, lr=rate, batch_noise=how.batch_noise, **how.of_adam)
    known = prediction.attention.plateau_norm is not None and how.init_scale <= LARGEST_SCALE
    attention = clock.attention if known else None
    fewest = min(clock.value, attention or math.inf)
    if fewest < FEWEST_STEPS:
        return prediction.without_steps(passed("adam-fast", lr=rate, fewest=fewest, least=FEWEST_STEPS))
    said = [f"Adam: W_V is half-way after {clock.value:.4g} steps"]
    if attention is not None:
        said[0] += (
            f", key and query after {attention:.4g}: {clock.sign:.4g} at the full rate, {clock.epsilon:.4g} more for "
            f"epsilon, which delays them above {clock.delays_attention_from:.2g} and rules them above "
            f"{clock.rules_attention_from:.2g} (over the scale of the loss)"
        )
        if how.batch_noise == 1:
            clock = clock._replace(followed=entry_steps(growth, value=clock.value, lr=rate, **how.of_adam))
    if clock.followed is not None:
        said.append(
            f"With Adam's own averages, which make its steps longer where gradients grow, key and query are half-way "
            f"after {clock.followed:.4g} steps (full batches; measured: .84 to 1.15 of it)"
        )
    return prediction.more([f"{one}." for one in said], steps=Steps(clock.value, attention), adam=clock)


def with_sgd(prediction: Dynamics, rate: float) -> Dynamics:
    fastest = max(mode.eigenvalue for mode in prediction.best.modes)
    if rate * fastest >= 1:
        stable = 1 / (fastest * prediction.training.loss_scale)
        return prediction.without_steps(passed("sgd-diverges", lr=prediction.training.lr, stable=stable))
    times = {"W_V is half-way": prediction.value.half_time, "key and query": prediction.attention.half_time}
    steps = {name: None if time is None else time / rate for name, time in times.items()}
    parts = [f"{name} after {number:.5g} steps" for name, number in steps.items() if number is not None]
    return prediction.more([f"SGD: {', '.join(parts)}."] if parts else [], steps=Steps(*steps.values()))


SMALLEST_SCALE, LARGEST_RATE = 1e-100, 1e6  # of what is given: nothing beyond overflows
APART = 10  # times that W_V must be faster than key and query, to follow them at once
EARLY = -2.0  # log of what differences inside topics have grown to at the half-time, from which no plateau shows
OVERTAKEN = 3.0
"""The same, from which they come first. Measured half-times: 2% late at -0.3 and 2% early at 1.4 (s = .01); 9% and 20%
early at 0.8 and 2.5 (s = .03)."""

TOPICS = "topic contrasts"  # the name of the mode


def dynamics(
    world: Setting | World | HasWorld | TopicModel,
    prior: DocumentPrior | None = None,
    masking: Masking | None = None,
    *,
    attention_dim: int | None = None,
    init_scale: float = 1e-3,
    **training: Any,
) -> Dynamics:
    """When each stage of learning comes, predicted from the world and the training alone (R1 to R4, R7, R8).

    Args:
        world: A `Setting`, a `World`, a RunConfig, which has one, or a topic model.
        prior: Prior of documents, where `world` is a topic model.
        masking: The masking scheme, where `world` is a topic model.
        attention_dim: d_a; None: T v + 1.
        init_scale: All three matrices start from N(0, init_scale^2).
        **training: Other settings of `Training`, such as optimizer, lr and loss.

    Returns:
        Times of W_V and of attention. What the theory does not cover is None, with the reason in `not_covered`.

    Raises:
        InputError: A setting is unknown or out of range.

    Example:
        >>> from topicscope import theory
        >>> prediction = theory.dynamics(theory.Setting.of(4, 3, 2), optimizer="sgd", lr=0.1)
        >>> round(prediction.steps.value), round(prediction.steps.attention)
        (167, 131197)
    """
    topics, prior, masking = parts_of(world, prior, masking)
    how = checked(topics, attention_dim, init_scale, training)
    refuse((masking.k < K_FROM, NO_K))
    growth, why_not = growth_of(topics, prior, masking)
    best = value_optimum(topics, prior, masking, growth)
    modes = [mode for mode in best.modes if mode.eigenvalue > 0]
    topic = next((mode for mode in modes if mode.name == TOPICS), None)
    if topic is None and growth is None and best.settings.infinite:
        topic = min(modes, key=lambda mode: mode.eigenvalue)  # topics that are not alike: the last one that is learnt
    numbers = {name: value for name, value in vars(best.settings).items() if name != "weighting"}
    value = ValueStage(None, None, best.modes)
    prediction = Dynamics(numbers, how, value, AttentionStage(), None, (), why_not, best, growth)
    if how.embedding == "trained":
        prediction = with_embedding(prediction, topic)
    elif how.loss == "cross-entropy":
        prediction = with_cross_entropy(prediction, topic)
    else:
        prediction = with_attention(with_value(prediction, topic), topic)
    if how.lr is None:
        return prediction
    if how.optimizer == "adam":
        return with_adam(prediction, how.lr, topic)
    return with_sgd(prediction, how.lr * how.loss_scale)


def parts_of(
    world: Setting | World | HasWorld | TopicModel, prior: DocumentPrior | None, masking: Masking | None
) -> tuple[TopicModel, DocumentPrior, Masking]:
    if isinstance(world, Setting):
        return world.topic_model, Fixed(topics_per_document=world.tau, length="infinite"), world.masking
    if isinstance(world, TopicModel) and prior is not None:
        return world, prior, masking or Masking()
    if isinstance(world, TopicModel):
        raise InputError("a topic model needs a prior: give the law of theta, or a Setting or World")
    here = world if isinstance(world, World) else world.world
    return here.topic_model, prior or here.prior, masking or here.masking


def checked(topics: TopicModel, attention_dim: int | None, init_scale: float, training: dict[str, Any]) -> Training:
    dim = topics.vocabulary if attention_dim is None else attention_dim
    names = Training.__dataclass_fields__
    unknown = [name for name in training if name not in names]
    refuse((bool(unknown), f"unknown setting {unknown[:1]}; expected one of {', '.join(names)}"))
    how = Training(dim, init_scale, **training)
    lr_range = how.lr is not None and SMALLEST_SCALE <= how.lr <= LARGEST_RATE
    refuse(
        (
            attention_dim is not None and not 1 <= dim <= MOST,
            f"attention_dim = {dim}: expected a number from 1 to {MOST:,}",
        ),
        (
            not (init_scale == 0 or SMALLEST_SCALE <= init_scale <= LARGEST_RATE),
            f"init_scale = {init_scale:g}: expected 0, or a number from {SMALLEST_SCALE:g} to {LARGEST_RATE:,.0f}",
        ),
        (how.loss not in LOSSES, f"loss = {how.loss!r}: expected {' or '.join(LOSSES)}"),
        (how.embedding not in EMBEDDINGS, f"embedding = {how.embedding!r}: expected {' or '.join(EMBEDDINGS)}"),
        (how.optimizer not in OPTIMIZERS, f"optimizer = {how.optimizer!r}: expected {', '.join(OPTIMIZERS)}"),
        (
            how.optimizer != "flow" and not lr_range,
            f"{'' if how.lr is None else f'lr = {how.lr:g}: '}{how.optimizer} needs a learning rate (--lr) above 0",
        ),
        (how.optimizer == "flow" and how.lr is not None, "lr: gradient flow has no learning rate; choose sgd or adam"),
        (not 0 <= how.eps <= LARGEST_RATE, f"eps = {how.eps:g}: expected a number from 0 to {LARGEST_RATE:,.0f}"),
        (
            not SMALLEST_SCALE <= how.loss_scale <= LARGEST_RATE,
            f"loss_scale = {how.loss_scale:g}: expected a number above 0",
        ),
        (
            how.optimizer == "flow" and how.loss_scale != 1,
            "loss_scale: times of gradient flow are those of the loss itself; choose sgd or adam",
        ),
        (
            how.embedding != "trained" and how.width is not None,
            "width belongs to a trained embedding; one-hot words have none",
        ),
        (
            how.optimizer != "adam" and (how.batch_noise != 1 or how.output_bias),
            "batch_noise and output_bias belong to adam; leave them out",
        ),
        (not 0 < how.batch_noise <= 1, f"batch_noise = {how.batch_noise:g}: expected a number above 0 and at most 1"),
        (how.width is not None and how.width < 1, f"width = {how.width}: expected a number from 1"),
    )
    return how


def growth_of(topics: TopicModel, prior: DocumentPrior, masking: Masking) -> tuple[Growth | None, tuple[str, ...]]:
    """How attention grows, or the reason why it is not known."""
    if checked_length(prior.length) != "infinite":
        return None, (passed("finite-documents", length=prior.length),)
    try:
        return Growth.of(topics, prior, masking), ()
    except InputError as error:
        return None, (passed("topics-not-alike", error=error),)


def value_optimum(topics: TopicModel, prior: DocumentPrior, masking: Masking, growth: Growth | None) -> ValueOptimum:
    """W*; where the topics are alike nothing of the size of T x T is made."""
    if growth is None:
        return optimum(topics, prior, masking)
    settings = OptimumSettings.of(topics.topics, topics.words, prior, "infinite", masking)
    return symmetric_optimum(settings, growth.shares.contrast, masking, length_weights("infinite", masking.p_mask))


def with_value(prediction: Dynamics, topic: Mode | None) -> Dynamics:
    modes = prediction.best.modes
    if topic is None:
        said = "W_V never learns topics: all documents show them alike."
        return prediction.more([said], value=ValueStage(0.0, None, modes))
    said = (
        f"W_V learns {topic.name} at the rate {2 * topic.eigenvalue:.5g}: half of it at time {topic.half_time:.5g} "
        "(learning rate x steps), under gradient flow, squared loss and uniform attention."
    )
    return prediction.more([said], value=ValueStage(2 * topic.eigenvalue, topic.half_time, modes))


def with_attention(prediction: Dynamics, topic: Mode | None) -> Dynamics:
    """Sigma, the plateau and the half-time, as far as each is known."""
    growth = prediction.growth
    if growth is None:
        return prediction
    if growth.reason is not None or topic is None:
        stage = AttentionStage() if topic is None else AttentionStage(sigma=0.0, rank=0)
        return prediction.more(reasons=[passed("no-force", reason=growth.reason)], attention=stage)
    dim, scale, modes = prediction.training.attention_dim, prediction.training.init_scale, growth.topics - 1
    e_fold = growth.e_fold(dim)
    stage = AttentionStage(growth.sigma, min(modes, dim), e_fold)
    said = [
        f"The force on attention is then {growth.sigma:.6g} times the projector on {modes} topic contrasts: key and "
        f"query grow by e in time {e_fold:.5g}."
    ]
    if dim < modes:
        return prediction.more(said, [passed("few-dimensions", dim=dim, modes=modes)], attention=stage)
    first, leaving, gain = growth.expected_start(dim, scale), escape_rate(growth, dim), gain_by_half_time(growth, dim)
    unknown = no_half_time(growth, first, scale, topic, e_fold, gain)
    stage = replace(
        stage,
        l_star=growth.l_star,
        alpha_star=growth.alpha_star,
        plateau_norm=growth.plateau_norm(dim),
        constant=growth.constant(dim),
        half_time=None if unknown else growth.half_time(dim, first),
        loss=growth.loss(growth.l_star),
        third_act_rate=leaving,
        third_act_gain=gain,
        third_act_time=None if unknown else third_act_time(growth, dim, scale),
    )
    said += [
        f"They end on a plateau: norm {stage.plateau_norm:.5g}, {modes} equal singular values, {growth.alpha_star:.4g} "
        f"times as much attention to a word of the same topic, loss {stage.loss:.5f}.",
        f"They are half-way at {e_fold:.5g} ln({stage.constant:.4g} / s)"
        + (
            "."
            if stage.half_time is None
            else f" = {stage.half_time:.5g}, {stage.half_time * 2 * topic.eigenvalue / math.log(2):.4g} times as late "
            "as contrasts in W_V."
        )
        + " s is the scale of the start.",
    ]
    if leaving > 0:
        said.append(third_act_sentence(leaving, gain, scale, stage.third_act_time))
        if not unknown and stage.third_act_time is None:
            unknown = passed("early-third-act")
    return prediction.more(said, [unknown] if unknown else [], attention=stage)


def third_act_sentence(leaving: float, gain: float, scale: float, time: float | None) -> str:
    reached = math.log(scale) + gain if scale > 0 else -math.inf
    if reached > EARLY:
        then = "From this start they are not small then: the norms rise past the plateau without resting there"
        then += ", and half-way comes 2% to 20% earlier." if reached > 0 else "."
    elif time is None:
        then = "They show before the plateau is reached."
    else:
        then = f"In W_V their norm is {SHOWS:g} near time {time:.5g} (measured: up to 16% earlier)."
    return (
        "The plateau is a saddle, which training leaves again (the third act): on it differences inside topics "
        f"grow by e in time {1 / leaving:.5g}; when key and query are half-way they have grown by exp({gain:.3g}). "
        f"{then}"
    )


def no_half_time(growth: Growth, first: float, scale: float, topic: Mode, e_fold: float, gain: float) -> str | None:
    """Why the half-time of key and query is not predicted, where it is not."""
    limits = (
        (scale == 0, "zero-start"),
        (scale > LARGEST_SCALE, "large-start"),
        (first >= growth.l_star / 4, "above-plateau"),
        (2 * topic.eigenvalue * e_fold < APART, "slow-value"),
        (scale > 0 and math.log(scale) + gain > OVERTAKEN, "overtaken"),
    )
    numbers = {"scale": scale, "gain": gain, "largest": LARGEST_SCALE}
    return next((passed(code, **numbers) for beyond, code in limits if beyond), None)
