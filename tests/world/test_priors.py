"""Priors as settings: what each kind takes, and what it refuses; and one from outside, in one file."""

import json
import subprocess
import sys
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pydantic
import pytest
from pydantic.dataclasses import dataclass

from tests.refusals import refused
from topicscope import Dirichlet, Fixed, Given, InputError, RunConfig, TopicModel
from topicscope.theory import optimum
from topicscope.world import (
    PRIORS,
    DocumentPrior,
    Groups,
    InfiniteDocuments,
    LogisticNormal,
    Moments,
    Own,
    Prior,
    checked_moments,
)

ADAPTER: pydantic.TypeAdapter[Any] = pydantic.TypeAdapter(Prior)


@pytest.mark.parametrize(
    ("settings", "prior"),
    [
        ({}, Dirichlet(alpha=0.1, length=(100, 150))),
        ({"kind": "fixed"}, Fixed(topics_per_document=3, length=(100, 150))),
        ({"alpha": 0.3}, Dirichlet(alpha=0.3)),
        ({"kind": "dirichlet", "length": [3, 9]}, Dirichlet(length=(3, 9))),
        ({"kind": "fixed", "topics_per_document": 2, "length": 7}, Fixed(topics_per_document=2, length=7)),
        ({"kind": "infinite"}, Fixed(length="infinite")),
        (
            {"kind": "infinite", "topics_per_document": 2, "length": "infinite"},
            Fixed(topics_per_document=2, length="infinite"),
        ),
        ({"kind": "given", "proportions": [[1.0]]}, Given(proportions=[[1.0]])),
        ({"alpha": [0.3, 1]}, Dirichlet(alpha=[0.3, 1.0])),
        ({"kind": "fixed", "weights": [1, 2, 3]}, Fixed(weights=[1.0, 2.0, 3.0])),
        ({"kind": "groups", "groups": 2}, Groups(groups=2, rho=0.5, topics_per_document=2)),
        ({"kind": "logistic-normal", "covariance": 2}, LogisticNormal(covariance=2.0)),
        (
            {"kind": "logistic-normal", "mean": [0, 1], "covariance": [[1, 0.5], [0.5, 1]]},
            LogisticNormal(mean=[0.0, 1.0], covariance=[[1.0, 0.5], [0.5, 1.0]]),
        ),
        (Fixed(length=3), Fixed(length=3)),
    ],
)
def test_flat_settings_name_a_prior_and_read_back_the_same(settings: Any, prior: DocumentPrior) -> None:
    assert ADAPTER.validate_python(settings) == prior
    written = ADAPTER.dump_python(prior, mode="json")
    assert ADAPTER.validate_python(written) == prior
    # none of the other kinds' fields, and none that is not given
    assert set(written) == {
        name for name, value in vars(prior).items() if not name.startswith("_") and value is not None
    }


def test_every_set_of_topics_is_as_probable() -> None:
    share = Fixed(topics_per_document=3).sample_proportions(6, 20_000, np.random.default_rng(0))
    assert share[share > 0] == pytest.approx(1 / 3)
    _, times = np.unique(share > 0, axis=0, return_counts=True)
    assert times / 20_000 == pytest.approx(np.full(20, 1 / 20), abs=5 * np.sqrt(1 / 20 / 20_000))


def test_given_proportions_are_made_to_sum_to_one() -> None:
    share = Given(proportions=[[0.25, 0.75 + 4e-7], [1.0, 0.0], [0.5, 0.5 - 4e-7]]).rows(2)
    assert share.sum(1) == pytest.approx(1, abs=1e-15)
    assert share[0, 1] / share[0, 0] == pytest.approx((0.75 + 4e-7) / 0.25, rel=1e-15)


def test_a_written_config_holds_the_fields_of_its_kind_alone() -> None:
    config = RunConfig.of({"documents": {"kind": "infinite", "topics_per_document": 2}})
    assert config.as_dict()["documents"] == {"kind": "fixed", "topics_per_document": 2, "length": "infinite"}
    assert RunConfig().as_dict()["documents"] == {"kind": "dirichlet", "alpha": 0.1, "length": [100, 150]}
    assert RunConfig.of(config.as_dict()) == config


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"topics_per_document": 2}, "belongs to kind fixed or groups, but the kind is dirichlet; set"),
        ({"kind": "fixed", "alpha": 1}, "documents.alpha belongs to kind dirichlet, but the kind is fixed"),
        ({"kind": "infinite", "alpha": 1}, "documents.alpha belongs to kind dirichlet, but the kind is infinite"),
        ({"kind": "fixed", "proportions": [[1]]}, "documents.proportions belongs to kind given, but the kind is fixed"),
        ({"kind": "infinite", "length": 5}, "documents.length = 5: kind infinite has no length; choose kind fixed"),
        ({"kind": "given"}, "documents.proportions is missing; kind given needs it"),
        ({"kind": "gaussian"}, "documents.kind = 'gaussian': expected dirichlet, fixed, given, groups,"),
        ({"kind": ["fixed"]}, "documents.kind = ['fixed']: expected dirichlet"),
        ({"alpa": 0.1}, "config: unknown key 'documents.alpa'; did you mean 'alpha'?"),
        ({"kind": "fixed", "topic_per_document": 2}, "did you mean 'topics_per_document'?"),
        ({"alpha": 0}, "config: documents.alpha = 0: input should be greater than or equal to"),
        ({"kind": "fixed", "topics_per_document": 0}, "documents.topics_per_document = 0: input should be"),
        *(
            ({"length": length}, f"documents.length = {length!r}: expected a number of words from 1 to 10,000,000, an")
            for length in ([5, 3], 0, [0, 3], [1, 2, 3], 2.5, "abc", True, None, 10**8)
        ),
        ({"kind": "given", "proportions": [[1]], "alpha": 1}, "documents.alpha belongs to kind dirichlet"),
        ({"alpha": [1, 2]}, "documents.alpha has 2 numbers; expected one number per topic (10)"),
        ({"alpha": [0.1] * 9 + [0]}, "documents.alpha.9 = 0: input should be greater than or equal to 0.000001"),
        ({"kind": "fixed", "weights": [1, 2]}, "documents.weights has 2 numbers; expected one number per topic (10)"),
        ({"kind": "groups"}, "documents.groups is missing; kind groups needs it"),
        ({"kind": "groups", "groups": 3}, "documents.groups = 3 does not divide topics = 10"),
        ({"kind": "groups", "groups": 5, "topics_per_document": 3}, "is more than the 2 topics that they come from"),
        ({"kind": "groups", "groups": 2, "rho": 1.5}, "documents.rho = 1.5: input should be less than or equal to 1"),
        ({"kind": "logistic-normal"}, "documents.covariance is missing; kind logistic-normal needs it"),
        *(
            (
                {"kind": "logistic-normal", "covariance": given},
                f"documents.covariance = {given!r}: expected a variance from 0 to 10,000, or a matrix: a row and",
            )
            for given in (-1, None, [[1, "x"], [2, 1]], [1, 2], True)
        ),
        ({"kind": "logistic-normal", "covariance": [[1, 0], [0, 1]]}, "has shape (2, 2); expected (10, 10)"),
        ({"kind": "logistic-normal", "covariance": 1, "mean": [0]}, "documents.mean has 1 numbers; expected one"),
    ],
)
def test_wrong_settings_get_one_line(settings: dict[str, Any], message: str) -> None:
    assert message in refused("", RunConfig.of, {"documents": settings})


@pytest.mark.parametrize(
    ("proportions", "message"),
    [
        ([[0.5, 0.2, 0.2999]], "every row must be non-negative and sum to 1"),
        ([[1.0, 0.0, 0.0], [0.5, 0.2, 0.2]], "every row must be non-negative and sum to 1"),
        ([[0.5, 0.5]], r"has shape \(1, 2\); expected \(1, 3\): one column per topic"),
        ([[0.5, 0.2, 0.2]], "every row must be non-negative and sum to 1"),
        ([[1.5, -0.5, 0.0]], "every row must be non-negative"),
        ([[1.0], [0.5, 0.5]], "expected rows of equal length"),
        ([], "at least one; got no row"),
        ("nowhere.npy", "nowhere.npy cannot be read: No such file"),
    ],
)
def test_given_proportions_are_checked(proportions: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Given(proportions=proportions).check(3)


def test_given_proportions_come_in_turn_and_from_a_file(tmp_path: Path) -> None:
    rows = np.array([[0.25, 0.75], [1.0, 0.0]])
    np.save(tmp_path / "share.npy", rows)
    for proportions in (rows.tolist(), str(tmp_path / "share.npy")):
        drawn = Given(proportions=proportions, length="infinite").sample(TopicModel(2, 3), 3, np.random.default_rng(0))
        assert isinstance(drawn, InfiniteDocuments)
        assert drawn.proportions.tolist() == [[0.25, 0.75], [1.0, 0.0], [0.25, 0.75]]


def test_more_topics_per_document_than_topics_are_refused() -> None:
    with pytest.raises(InputError, match="topics_per_document = 4 is more than topics = 3; choose at most 3"):
        Fixed(topics_per_document=4).sample(TopicModel(3, 2), 5, np.random.default_rng(0))


@dataclass(frozen=True)
class Halves(DocumentPrior):
    """A new kind that lacks moments and posterior."""

    kind: Literal["halves"] = "halves"
    length: int = 5

    def check(self, topics: int) -> None:
        pass

    def sample_proportions(self, topics: int, count: int, rng: np.random.Generator) -> np.ndarray:
        return np.full((count, topics), 1 / topics)


def test_a_new_kind_without_posterior_is_refused_and_never_taken_for_another(monkeypatch: Any) -> None:
    with pytest.raises(TypeError, match="posterior"):
        Halves()  # type: ignore[abstract]
    with pytest.raises(
        InputError,
        match=r"documents.kind = 'halves': expected dirichlet, fixed, given, groups, logistic-normal or infinite",
    ):
        RunConfig.of({"documents": {"kind": "halves"}})
    monkeypatch.setitem(PRIORS, "halves", Halves)
    with pytest.raises(TypeError, match="posterior"):
        RunConfig.of({"documents": {"kind": "halves"}})


def test_every_kind_is_listed_under_its_name() -> None:
    assert list(PRIORS) == ["dirichlet", "fixed", "given", "groups", "logistic-normal"]
    for kind, prior in PRIORS.items():
        assert vars(prior)["kind"] == kind


@pytest.mark.parametrize(
    ("covariance", "message"),
    [
        ([[1.0, 2.0], [2.0, 1.0]], "is not positive semidefinite: its smallest eigenvalue is -1;"),
        ([[1.0, 0.2], [0.1, 1.0]], "expected a symmetric matrix"),
        ([[1.0, 0.2]], r"has shape \(1, 2\); expected \(2, 2\)"),
        ([[1e5, 0.0], [0.0, 1.0]], "numbers up to 10,000"),
        ("nowhere.csv", "nowhere.csv cannot be read"),
    ],
)
def test_impossible_covariances_are_refused(covariance: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        LogisticNormal(covariance=covariance).check(2)


class Corner:
    """A law of the user's own: one topic, or all."""

    def __init__(self, scale: float = 1.0) -> None:
        self.scale = scale

    def sample(self, topics: int, count: int, rng: np.random.Generator) -> np.ndarray:
        one = np.eye(topics)[rng.integers(topics, size=count)]
        return self.scale * np.where(rng.random((count, 1)) < 0.5, one, 1 / topics)

    def moments(self, topics: int) -> Moments:
        mean = np.full(topics, 1 / topics)
        return Moments(self.scale * mean, (np.eye(topics) / topics + np.outer(mean, mean)) / 2)


def test_a_law_of_the_users_own_samples_and_has_moments() -> None:
    prior = Own(Corner(), length=30)
    documents = prior.sample(TopicModel(4, 3), 50, np.random.default_rng(0)).finite()
    assert documents.words.shape == (50, 30)
    assert prior.moments(4).second[0, 0] == pytest.approx((1 / 4 + 1 / 16) / 2)


def test_a_law_that_is_none_is_refused() -> None:
    class Other(Corner):  # its moments are those of documents with one topic each
        def moments(self, topics: int) -> Moments:
            return Moments(np.full(topics, 1 / topics), np.eye(topics) / topics)

    class Half:
        def sample(self, topics: int, count: int, rng: np.random.Generator) -> np.ndarray:
            return np.full((count, topics), 1 / topics)

    with pytest.raises(InputError, match=r"the law Half has no method moments; a law needs sample\(.*moments\("):
        Own(Half())  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"moments are not those of its samples: E\[theta theta'\]\[.*\] is given as"):
        Own(Other()).moments(4)
    with pytest.raises(InputError, match="the law's sample: every row must be non-negative and sum to 1"):
        Own(Corner(1.1)).sample(TopicModel(4, 3), 5, np.random.default_rng(0))
    with pytest.raises(InputError, match=r"the law's moments: E\[theta\] sums to"):
        Own(Corner(1.1)).moments(4)


@pytest.mark.parametrize("length", ["infnite", (5, 3), 0, 2.5, True, (1, 2, 3)])
def test_a_law_of_the_users_own_has_a_length_that_is_one(length: Any) -> None:
    with pytest.raises(InputError, match=r"expected a number of words from 1 to"):
        Own(Corner(), length=length)


@pytest.mark.parametrize(
    ("second", "message"),
    [
        ([[0.1, 0.4], [0.4, 0.1]], "no law has them"),  # a variance of -.15
        ([[0.3, 0.25], [0.2, 0.25]], "must be symmetric"),
        ([[0.25, float("nan")], [0.25, 0.25]], "finite"),
        ([["a"]], "expected Moments"),
    ],
)
def test_moments_that_no_law_has_are_refused(second: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        checked_moments(Moments([0.5, 0.5], second, 10.0), 2, "moments")  # type: ignore[arg-type]


def test_a_configuration_holds_no_law_of_the_users_own() -> None:
    refused("dirichlet", RunConfig, documents=Own(Corner()))


USE = """
import json, sys
from tests.world import outside_prior
from topicscope import RunConfig, laws, theory, train
from topicscope.cli.main import application
from topicscope.explorer import theory_room
from typer.testing import CliRunner

small = {"topic_model": {"topics": 4, "words_per_topic": 3}, "documents": {"kind": "pairs", "near": 0.75, "length": 9}}
config = RunConfig.of(small, data={"documents": 40, "dev_documents": 20}, steps=5, device="cpu")
again = RunConfig.of(config.as_dict())
asked = theory_room.question({"prior": "pairs", "near": "0.75", "topics": "4", "words_per_topic": "3", "length": "9"})
control = next(control for control in theory_room.CONTROLS if control.name == "near")
print(json.dumps({
    "again": again == config,
    "floors": sorted(train(config).results["floors"]),
    "optimum": theory.optimum(config).loss,
    "room": theory.optimum(theory_room.World.of(asked.world)).loss,
    "control": [control.label, control.only, theory_room.limits()["near"]["expected"]],
    "offered": "pairs" in next(control for control in theory_room.CONTROLS if control.name == "prior").choices,
    "help": "pairs" in CliRunner().invoke(application(), ["train", "--help"]).output,
    "phase": laws.predicted_phase(config).code,
}))
"""


def test_a_prior_of_one_file_works_everywhere() -> None:
    """In training, with its floors, theory, the explorer's form and the help; but no law of steps is known for it."""
    done = subprocess.run([sys.executable, "-c", USE], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    near, far = 0.75 / 2, 0.25 / 4  # of pairs of neighbours, of which there are two, and of all others
    second = np.full((4, 4), far / 4) + np.kron(np.eye(2), np.full((2, 2), (near - far) / 4))
    np.fill_diagonal(second, 1 / 8)
    best = optimum(TopicModel(4, 3), Moments(np.full(4, 1 / 4), second), length=9)
    assert found["optimum"] == found["room"] == pytest.approx(best.loss)
    assert found["floors"] == ["bayes", "bayes_topics"]
    assert found["control"] == ["share of neighbours", "prior=pairs", "a number from 0 to 1"]
    assert [found["again"], found["offered"], found["help"]] == [True] * 3
    assert found["phase"] == "prior"
