"""`dynamics`: numbers of every stage, steps, and what is not covered."""

import json
import math
from typing import Any

import numpy as np
import pytest

from topicscope.ground import InputError
from topicscope.theory import Dynamics, Setting, Steps, dynamics, first_stage_rates, optimum
from topicscope.training import RunConfig
from topicscope.world import Fixed, Groups, Masking, TopicModel

S = Setting.of(5, 4, 2)


def reasons(found: Dynamics) -> str:
    return " | ".join(found.not_covered)


def test_the_numbers_of_ten_topics_of_ten_words() -> None:
    found = dynamics(Setting.of(10, 10, 3))
    value, attention = found.value, found.attention
    assert value.rate == pytest.approx(2 * first_stage_rates(Setting.of(10, 10, 3)).topics)
    assert attention.sigma == pytest.approx(4.96396e-5, rel=1e-5)  # the others: test_printed_numbers.py
    assert attention.e_fold == pytest.approx(2.02e5, rel=5e-3)
    assert attention.plateau_norm == pytest.approx(math.sqrt(math.sqrt(101) * 9 * 20.902), rel=1e-4)
    assert found.steps is None
    assert [reason.split(":")[0] for reason in found.not_covered] == ["the third act's time"]
    assert not dynamics(Setting.of(4, 3, 2), init_scale=1e-5).not_covered  # all is known
    assert json.loads(json.dumps(found.as_dict(), allow_nan=False))["attention"]["rank"] == 9
    assert {mode.name: mode.count for mode in value.modes}["topic contrasts"] == 9


def test_the_law_of_the_start_and_of_the_width() -> None:
    late, early = (dynamics(S, init_scale=scale).attention.third_act_time for scale in (1e-4, 1e-3))
    assert late == pytest.approx(138_670, abs=0.5)
    assert early is None  # before the plateau
    near, far = (dynamics(S, init_scale=scale).attention for scale in (1e-3, 1e-5))
    assert (far.half_time or 0) - (near.half_time or 0) == pytest.approx((near.e_fold or 0) * math.log(100))
    narrow = dynamics(S, attention_dim=6).attention
    assert (narrow.e_fold or 0) / (near.e_fold or 1) == pytest.approx(math.sqrt(6 / 21))
    assert narrow.l_star == near.l_star


@pytest.mark.parametrize(
    ("world", "training", "reason", "known"),
    [
        (Setting.of(5, 4, 5), {}, "same topics", ()),
        (Setting.of(5, 4, 1), {}, "1/s", ("sigma", "rank")),
        (Setting.of(100_000, 1000, 10), {}, "differences inside topics grow", None),
        (Setting(TopicModel(5, 4), 2, Masking(p_correct=0.0)), {}, "p_correct = 0", ("sigma", "rank")),
        (S, {"attention_dim": 3}, "attention_dim = 3", ("sigma", "rank", "e_fold")),
        (S, {"init_scale": 0.0}, "stay at zero", None),
        (S, {"init_scale": 0.1}, "up to 0.03", None),
        (RunConfig(), {}, "length (100, 150)", ()),
        (RunConfig.of({"documents": {"kind": "fixed", "length": 7}}), {}, "length 7", ()),
        (S, {"loss": "cross-entropy"}, "half-times under cross entropy", ()),
        (S, {"embedding": "trained", "init_scale": 0.1}, "sqrt(width)", ()),
        (S, {"embedding": "trained", "optimizer": "adam", "lr": 0.001}, "Adam", ()),
    ],
)
def test_what_is_not_covered_is_none_and_says_why(
    world: Any, training: dict[str, Any], reason: str, known: tuple[str, ...] | None
) -> None:
    found = dynamics(world, **training)
    assert reason in reasons(found)
    stage = vars(found.attention)
    assert stage["half_time"] is None
    if known == ("sigma", "rank"):
        assert stage["sigma"] == stage["rank"] == 0
    if known is not None:
        assert {name for name, number in stage.items() if number is not None} == set(known)
    assert f"Not covered: {found.not_covered[0]}" in found.summary()


def test_topics_that_are_not_alike_have_rates_alone() -> None:
    prior = Groups(groups=2, rho=0.5, topics_per_document=2, length="infinite")
    found = dynamics(TopicModel(6, 3), prior)
    slowest = min(mode.eigenvalue for mode in optimum(TopicModel(6, 3), prior).modes if mode.eigenvalue > 0)
    assert found.value.rate == pytest.approx(2 * slowest)
    assert "all topics are alike" in reasons(found)


def test_steps_of_sgd() -> None:
    found = dynamics(S, optimizer="sgd", lr=4.0)
    assert found.steps is not None
    assert found.steps.value == pytest.approx((found.value.half_time or 0) / 4)
    assert found.steps.attention == pytest.approx((found.attention.half_time or 0) / 4)
    halved = dynamics(S, optimizer="sgd", lr=4.0, loss_scale=0.5).steps
    assert halved is not None
    assert halved.value == pytest.approx(2 * (found.steps.value or 0))
    mean = first_stage_rates(S).mean
    unstable = dynamics(S, optimizer="sgd", lr=1.01 / mean)
    assert vars(unstable.steps) == {"value": None, "attention": None}
    assert "diverges" in reasons(unstable)
    assert "diverges" not in reasons(dynamics(S, optimizer="sgd", lr=0.99 / mean))


def test_steps_of_adam() -> None:
    found = dynamics(S, optimizer="adam", lr=1e-3, eps=1e-20)
    assert found.steps is not None
    assert round(found.steps.value or 0) == 195
    assert round(found.steps.attention or 0) == 256
    later = dynamics(S, optimizer="adam", lr=1e-3, eps=1e-4).steps
    assert later is not None
    assert (later.attention or 0) > 10 * (later.value or math.inf)
    assert dynamics(Setting.of(5, 4, 1), optimizer="adam", lr=1e-3).steps.attention is None  # type: ignore[union-attr]
    large = dynamics(S, optimizer="adam", lr=0.001, init_scale=0.5)
    assert vars(large.steps) == {"value": pytest.approx(194.5, abs=0.1), "attention": None}
    assert not any("key and query after" in sentence for sentence in large.sentences)


def test_cross_entropy_and_trained_embeddings() -> None:
    entropy = dynamics(S, loss="cross-entropy").as_dict()
    assert round(entropy["mask_first"]["time"]) == 513
    assert entropy["value"]["half_time"] is None
    trained = dynamics(Setting.of(4, 3, 2), embedding="trained", init_scale=0.001)
    assert round(trained.attention.half_time or 0) == 14433
    assert trained.value.half_time == pytest.approx(4825, abs=0.5)
    both = dynamics(Setting.of(4, 3, 2), embedding="trained", loss="cross-entropy", init_scale=0.001)
    assert both.value.half_time == pytest.approx(2 * 4825, abs=1)
    assert both.attention.half_time is None
    # limits of one-hot words are not those of a trained embedding or of cross entropy
    for more in ({"init_scale": 0.05, "width": 20}, {"attention_dim": 3}):
        assert dynamics(S, embedding="trained", **more).attention.half_time is not None
    assert dynamics(S, loss="cross-entropy", init_scale=0.01, attention_dim=3).mask_first is not None


def test_norms_go_from_the_start_to_the_plateau() -> None:
    scale, dim = 1e-3, 21
    found = dynamics(S, init_scale=scale)
    best = optimum(S.topic_model, Fixed(topics_per_document=2, length="infinite"), S.masking)
    times = np.array([0.0, 30.0, found.attention.half_time or 0, 1e6])
    norms = found.norms(times)
    plateau = found.attention.plateau_norm or 0
    assert norms["value"][:2] == pytest.approx([scale * 21, np.linalg.norm(best.value_at(30.0))], rel=1e-3)
    assert norms["key"][0] == pytest.approx(scale * math.sqrt(dim * 21), rel=1e-9)
    assert norms["key"][2:] == pytest.approx([plateau / 2, plateau], rel=1e-3)
    assert set(dynamics(Setting.of(5, 4, 1)).norms(times)) == {"value"}


OUT_OF_RANGE: list[tuple[str, Any]] = [
    ("init_scale", -1.0), ("init_scale", 1e-200), ("init_scale", math.nan), ("attention_dim", 0), ("loss", "hinge"),
    ("embedding", "tied"), ("eps", -1.0), ("loss_scale", 0.0), ("batch_noise", 2.0), ("width", 0), ("widht", 3),
]  # fmt: skip


@pytest.mark.parametrize(
    ("training", "text"),
    [
        *(({name: value}, name) for name, value in OUT_OF_RANGE),
        ({"optimizer": "adam", "lr": 0.001, "eps": 1e300}, "eps"),
        ({"optimizer": "lion", "lr": 0.1}, "optimizer"),
        ({"optimizer": "sgd"}, "needs a learning rate"),
        ({"optimizer": "adam", "lr": -1.0}, "needs a learning rate"),
        ({"lr": 0.1}, "no learning rate"),
        ({"loss_scale": 0.01}, "choose sgd or adam"),
        ({"width": 5}, "width belongs to a trained embedding"),
        ({"batch_noise": 0.3}, "belong to adam"),
    ],
)
def test_bad_settings_are_one_line(training: dict[str, Any], text: str) -> None:
    with pytest.raises(InputError, match=text) as error:
        dynamics(S, **training)
    assert "\n" not in str(error.value)
    with pytest.raises(InputError, match="needs a prior"):
        dynamics(TopicModel(3, 2))


def test_it_shows_itself() -> None:
    found = dynamics(S, init_scale=1e-4, optimizer="sgd", lr=4.0)
    (section,) = found.sections()
    (figure,) = section.figures
    assert len(figure.panels[0].series) == 4  # value, key, and a point on each
    assert [band[0] for band in figure.panels[0].bands] == [found.attention.third_act_time]
    assert figure.panels[0].series[3].x == [found.attention.half_time]
    assert figure.panels[0].series[3].y == pytest.approx([(found.attention.plateau_norm or 0) / 2], rel=1e-3)
    assert "topics 5" in repr(found)
    assert found.table().num_rows == 2 + len(vars(found.attention)) + 2
    assert not dynamics(S, loss="cross-entropy").sections()[0].figures


def test_few_steps_of_adam_are_not_predicted() -> None:
    fast, slow = (dynamics(S, optimizer="adam", lr=lr) for lr in (0.03, 0.01))
    assert fast.steps == Steps(None, None)
    assert fast.adam is None
    assert not any(sentence.startswith("Adam") for sentence in fast.sentences)
    assert slow.steps is not None
    assert slow.steps.value == pytest.approx(19.45, abs=0.01)
    assert slow.adam is not None
    assert slow.adam.followed == 33
    assert "half-way after 33 steps" in " ".join(slow.sentences)
    assert dynamics(S, optimizer="adam", lr=0.01, batch_noise=0.5).adam.followed is None  # type: ignore[union-attr]


def test_a_start_above_half_of_the_plateau_has_no_half_time() -> None:
    found = dynamics(Setting.of(p_correct=1e-5), init_scale=0.03)
    assert found.attention.plateau_norm is not None
    assert found.attention.plateau_norm < 0.03 * 101  # below the norm that key starts with
    assert found.attention.half_time is None
    assert any("no rise to be half-way on" in reason for reason in found.not_covered)
    assert set(found.norms(np.array([1.0, 1e9]))) == {"value"}


def test_masked_positions_that_all_show_their_word_have_no_plateau() -> None:
    found = dynamics(TopicModel(10, 10), Fixed(topics_per_document=3, length="infinite"), Masking(0.15, 1.0, 0.0))
    assert found.attention.l_star is None
    assert any("is no plateau" in reason for reason in found.not_covered)
    near = dynamics(TopicModel(10, 10), Fixed(topics_per_document=3, length="infinite"), Masking(0.15, 0.9999, 0.0))
    assert (near.attention.l_star, near.attention.half_time) == (None, None)
    assert dynamics(Setting.of(p_correct=0.9, p_random=5e-4)).attention.l_star == pytest.approx(73.1266, rel=1e-5)
