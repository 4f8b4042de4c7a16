"""`theory optimum`: its JSON, its table, matrices from and to files, runs, and bad input in one line."""

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.calling import topicscope
from tests.cli import answer
from topicscope import RunConfig, train
from topicscope.theory import group_rates, optimum, theorem2
from topicscope.theory.theorem import Setting
from topicscope.world import Dirichlet, Fixed, Groups, Masking, TopicModel

SIZES = ["--topics", "5", "--words-per-topic", "4"]
FIXED = [*SIZES, "--prior", "fixed", "--topics-per-document", "2"]
MASKS = ["--p-mask", "0.2", "--p-correct", "0.15", "--p-random", "0.1"]
COLUMNS = np.array([[0.5, 0.1], [0.3, 0.2], [0.2, 0.7]])
numbers = partial(answer, "theory", "optimum")


@pytest.mark.parametrize("weighting", ["run", "positions", "documents"])
def test_the_contract(weighting: Any) -> None:
    found = numbers(*FIXED, "--length", "6-9", "--weighting", weighting, *MASKS)
    masking = Masking(p_mask=0.2, p_correct=0.15, p_random=0.1)
    best = optimum(TopicModel(5, 4), Fixed(topics_per_document=2, length=(6, 9)), masking, weighting=weighting)
    whole = best.matrix()
    assert (found["same_topic"], found["different_topic"]) == pytest.approx((whole[1, 2], whole[1, 5]))
    assert (found["diagonal"], found["mask_column"]) == pytest.approx((whole[1, 1], whole[1, 0]))
    assert found["loss"] == pytest.approx(best.loss)
    assert sum(mode["count"] for mode in found["modes"]) == 21
    assert {"name", "count", "eigenvalue", "half_time"} <= set(found["modes"][0])
    rates = [mode["eigenvalue"] for mode in found["modes"]]
    assert rates == sorted(rates, reverse=True)
    assert found["settings"]["length"] == [6, 9]
    assert "matrix" not in found


def test_infinite_documents_give_theorem_2() -> None:
    found = numbers(*FIXED, "--length", "infinite", *MASKS)
    exact = theorem2(Setting.of(5, 4, 2, p_mask=0.2, p_correct=0.15, p_random=0.1))
    for name in ("same_topic", "different_topic", "mask_column"):
        assert found[name] == found["theorem2"][name] == pytest.approx(getattr(exact, name), rel=1e-12)
    assert found["limit"]["diagonal"] > found["diagonal"] == found["same_topic"]
    assert [mode["half_time"] is None for mode in found["modes"]] == [False, False, True, True]


def test_a_person_sees_tables_and_reasons() -> None:
    shown = topicscope("theory", "optimum", *SIZES, "--alpha", "0.5", "--length", "30").stdout
    for text in ("limit of long documents", "Theorem 2", "half-time", "within-topic", "not to Theorem 2"):
        assert text in shown
    assert "never learnt" in topicscope("theory", "optimum", *FIXED, "--length", "infinite").stdout


def test_topics_from_a_file(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "A.csv", COLUMNS, delimiter=",")
    flags = ["--word-topics", str(tmp_path / "A.csv"), "--alpha", "0.4", "--length", "7"]
    exact = optimum(COLUMNS, Dirichlet(alpha=0.4, length=7)).matrix()
    found = numbers(*flags)
    assert np.array(found["matrix"]) == pytest.approx(exact, rel=1e-12)
    assert "same_topic" not in found
    for name in ("W.csv", "W.npy"):
        written = numbers(*flags, "--out", str(tmp_path / name))
        assert written["written"] == str(tmp_path / name)
        assert "matrix" not in written
    assert np.load(tmp_path / "W.npy") == pytest.approx(exact, rel=1e-12)
    assert np.loadtxt(tmp_path / "W.csv", delimiter=",") == pytest.approx(exact, rel=1e-15)
    compared = numbers(*flags, "--matrix", str(tmp_path / "W.csv"))["distances"]
    assert compared["optimum"] < 1e-12 < compared["theorem2"]
    assert "at relative distance" in topicscope("theory", "optimum", *flags, "--matrix", str(tmp_path / "W.csv")).stdout


def test_limit_and_theorem_2_are_beside_the_optimum_of_any_topics(tmp_path: Path) -> None:
    """In JSON and in the table; for infinite documents W* is Theorem 2 for these topics."""
    np.savetxt(tmp_path / "A.csv", COLUMNS, delimiter=",")
    flags = ["--word-topics", str(tmp_path / "A.csv"), "--alpha", "0.4"]
    best = optimum(COLUMNS, Dirichlet(alpha=0.4, length=7))
    parts = best.matrix(), best.limit_matrix(), best.least_norm_matrix()
    exact = [
        np.linalg.norm(parts[i] - parts[j]) / np.linalg.norm(parts[j])  # the one named last has the norm
        for i, j in ((0, 1), (0, 2), (1, 2))
    ]
    between = numbers(*flags, "--length", "7")["distances_between"]
    assert list(between) == ["optimum_to_limit", "optimum_to_theorem2", "limit_to_theorem2"]
    assert list(between.values()) == pytest.approx(exact, rel=1e-10)
    assert min(exact) > 0.01
    shown = topicscope("theory", "optimum", *flags, "--length", "7").stdout
    assert all(f"{distance:.4g}" in shown for distance in exact)
    assert numbers(*flags, "--length", "infinite")["distances_between"]["optimum_to_theorem2"] == 0


def test_the_picture_has_words_in_the_order_of_topics(tmp_path: Path) -> None:
    """Words of two topics by turns look as they look topic by topic, as those of a corpus should."""
    columns = np.array([[0.4, 0.1], [0.1, 0.4], [0.3, 0.0], [0.1, 0.3], [0.1, 0.2]])
    pictures = []
    for name, order in (("turns", range(5)), ("blocks", (0, 2, 1, 3, 4))):
        np.savetxt(tmp_path / f"{name}.csv", columns[list(order)], delimiter=",")
        lines = topicscope("theory", "optimum", "--word-topics", str(tmp_path / f"{name}.csv"), "--length", "20").stdout
        start = lines.index("W*, words ordered by main topic")
        pictures.append(lines[start:].splitlines()[1:7])
    assert pictures[0] == pictures[1]
    assert len(set(pictures[0])) > 2


def test_pairs_of_words_that_there_are_not_have_no_entry() -> None:
    for sizes, missing, said in (((1, 4), "different_topic", "between topics"), ((4, 1), "same_topic", "inside")):
        flags = ["--topics", str(sizes[0]), "--words-per-topic", str(sizes[1]), "--length", "9"]
        found = numbers(*flags)
        entries = ("same_topic", "different_topic", "diagonal", "mask_column")
        for one in (found, found["limit"], found["theorem2"]):
            assert [name for name in entries if one[name] is None] == [missing]
        shown = topicscope("theory", "optimum", *flags).stdout
        assert shown.count("no such pair") == 3
        assert said not in shown
    unequal = [*flags, "--set", "documents.alpha=[1,1,1,2]"]  # a matrix, of which means are given
    assert [numbers(*unequal)[name] is None for name in entries] == [True, False, False, False]


def test_the_world_is_restated_in_one_line(tmp_path: Path) -> None:
    shown = topicscope("theory", "optimum", *FIXED, "--length", "6-9", *MASKS).stdout
    assert shown.splitlines()[0] == (
        "World: T = 5 topics, v = 4 words each; prior fixed (topics_per_document 2); documents of 6 to 9 words; "
        "masking p_m = 0.2, p_c = 0.15, p_r = 0.1; weighting run."
    )
    np.savetxt(tmp_path / "A.csv", COLUMNS, delimiter=",")
    flags = ["--word-topics", str(tmp_path / "A.csv"), "--set", "documents.alpha=[.1,.2]", "--length", "infinite"]
    assert topicscope("theory", "optimum", *flags).stdout.splitlines()[0] == (
        "World: T = 2 topics, 3 words; prior dirichlet (alpha [0.1, 0.2]); documents of infinitely many words; "
        "masking p_m = 0.15, p_c = 0.1, p_r = 0.1; weighting run."
    )


def test_the_defaults_that_the_help_names_are_those_of_the_settings() -> None:
    shown = " ".join(topicscope("theory", "optimum", "--help").stdout.replace("│", " ").split())
    masking, groups = Masking(), Groups(groups=2)
    for text in (
        f"positions masked (default {masking.p_mask:g})",
        f"showing their word (default {masking.p_correct:g})",
        f"showing a random word (default {masking.p_random:g})",
        f"of one group, for the prior groups (default {groups.rho:g})",
        f"fixed (default {Fixed().topics_per_document}) and groups (default {groups.topics_per_document})",
        f"for the prior dirichlet (default {Dirichlet().alpha:g})",
    ):
        assert text in shown


def test_dependent_topics_say_what_is_used(tmp_path: Path) -> None:
    np.savetxt(tmp_path / "A.csv", COLUMNS[:, [0, 1, 1]], delimiter=",")
    flags = ["--word-topics", str(tmp_path / "A.csv"), "--length", "infinite"]
    assert "a basis of their span is used instead of A" in numbers(*flags)["notes"][0]
    single = optimum(COLUMNS, Dirichlet(), length="infinite").matrix()
    assert np.array(numbers(*flags)["matrix"]) == pytest.approx(single, abs=1e-12)


def test_groups_are_learnt_before_their_topics() -> None:
    flags = ["--topics", "9", "--words-per-topic", "4", "--prior", "groups", "--groups", "3", "--rho", "0.5"]
    found = numbers(*flags, "--topics-per-document", "2", "--length", "infinite")
    rates = group_rates(Setting.of(9, 4, 2), 3, 0.5)
    modes = [(mode["count"], mode["eigenvalue"]) for mode in found["modes"][1:3]]
    assert modes == [(2, pytest.approx(rates.between)), (6, pytest.approx(rates.within))]
    exact = theorem2(Setting.of(9, 4, 2))  # the prior does not enter W*
    assert (found["same_topic"], found["mask_column"]) == pytest.approx((exact.same_topic, exact.mask_column))


def test_a_run_is_compared_with_its_own_world(tmp_path: Path) -> None:
    settings: dict[str, Any] = {
        "steps": 3,
        "topic_model": {"topics": 3, "words_per_topic": 2},
        "documents": {"length": 9},
        "data": {"documents": 20, "dev_documents": 5},
        "objective": {"loss": "squared"},
        "model": {"key": "zero", "query": "zero"},
        "device": "cpu",
    }
    run = train(RunConfig.of(settings), tmp_path / "run")
    compared = numbers("--matrix", str(tmp_path / "run"))
    assert list(compared["distances"]) == ["optimum", "theorem2", "limit", "own_documents"]
    assert compared["distances"]["optimum"] == pytest.approx(run.results["distance_to_optimum"])
    assert (compared["settings"]["topics"], compared["settings"]["length"]) == (3, 9)
    assert (
        "the optimum of the run's own documents"
        in topicscope("theory", "optimum", "--matrix", str(tmp_path / "run")).stdout
    )
    assert "World: T = 3 topics" in topicscope("theory", "optimum", "--matrix", str(tmp_path / "run")).stdout
    assert compared["notes"] == ["No predicted W(t): it holds for SGD without momentum."]
    alone = {"model": {"key": "zero", "query": "zero", "prediction_bias": "none"}}
    train(RunConfig.of(settings | alone, optimizer={"name": "sgd"}), tmp_path / "sgd")
    assert numbers("--matrix", str(tmp_path / "sgd"))["distances"]["predicted"] < 0.1
    assert "from the predicted W(t)" in topicscope("theory", "optimum", "--matrix", str(tmp_path / "sgd")).stdout
    train(RunConfig.of(settings | alone, steps=40, optimizer={"name": "sgd", "lr": 1e3}), tmp_path / "lost")
    assert "The run diverged at step" in topicscope("theory", "optimum", "--matrix", str(tmp_path / "lost")).stdout
    assert "The run diverged at step" in numbers("--matrix", str(tmp_path / "lost"))["notes"][0]
    assert "dev loss at step 0, before it diverged" in topicscope("show", str(tmp_path / "lost")).stdout
    wrong = topicscope("theory", "optimum", "--matrix", str(tmp_path / "run"), "--length", "9", code=2).stderr
    assert "takes the world from the run" in wrong
    theorem = ["theory", "theorem2", "--matrix", str(tmp_path / "run"), "--p-mask", "0.2"]
    assert topicscope(*theorem, code=2).stderr.endswith(
        "run has another world; add --topics 3 --words-per-topic 2 --p-mask 0.15\n"
    )
    same = topicscope(
        "theory", "theorem2", "--matrix", str(tmp_path / "run"), "--topics", "3", "--words-per-topic", "2"
    )
    assert "run: " in same.stdout
    train([RunConfig.of(settings, seed=seed) for seed in (0, 1)], tmp_path / "runs")
    assert "holds several runs" in topicscope("theory", "optimum", "--matrix", str(tmp_path / "runs"), code=2).stderr


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (["--word-topics", "{A2}"], "A2.csv: column 1 of 2 sums to 2; expected 1"),
        (["--word-topics", "{ragged}"], "ragged.csv, row 3: has 1 numbers; expected 2, as many as the first row"),
        (["--word-topics", "{head}"], "head.csv, row 1: could not convert string to float: 'cats'; expected numbers"),
        (["--word-topics", "{minus}"], "minus.csv: row 2, column 1 is -0.5; expected a probability"),
        (["--set", "topic_model.matrix={minus}"], "minus.csv: row 2, column 1 is -0.5; expected a probability"),
        (["--set", "topic_model.matrix={A2}"], "A2.csv: column 1 of 2 sums to 2; expected 1"),
        (["--word-topics", "{A}", "--topics", "3"], "--word-topics gives the topics"),
        (["--word-topics", "missing.csv"], "missing.csv"),
        (["--word-topics", "{A}", "--prior", "fixed", "--topics-per-document", "3"], "more than topics = 2"),
        (["--p-mask", "1", "--p-correct", "0"], "p_mask = 1 and p_correct = 0"),
        (["--p-correct", "0.7", "--p-random", "0.7"], "more than 1"),
        (["--length", "0"], "length"),
        (["--length", "9-5"], "length"),
        (["--length", "many"], "--length 'many': expected N, LOW-HIGH or infinite"),
        (["--length", "1-2-3"], "expected N, LOW-HIGH or infinite"),
        (["--weighting", "words"], "weighting"),
        (["--prior", "nonsense"], "documents.kind"),
        (["--prior", "given", "--set", "documents.proportions=[[2,-1]]", "--topics", "2"], "non-negative and sum to 1"),
        (["--alpha", "-1"], "alpha"),
        (["--set", "objective.l2=0.1"], "the L2 penalty (objective.l2) moves the optimum"),
        (["--set", "model.hide_masked=true"], "attention does not see masked positions"),
        (["--set", "data.train_file=text"], "documents come from a file"),
        (["--word-topics", "{A}", "--set", "objective.l2=0.1"], "the L2 penalty (objective.l2) moves the optimum"),
        (["--out", "W.txt"], "expected a file ending in .csv or .npy"),
        (["--matrix", "{A}"], "shape (3, 2); expected (101, 101)"),
    ],
)
def test_bad_input_is_one_line(tmp_path: Path, flags: list[str], message: str) -> None:
    np.savetxt(tmp_path / "A.csv", COLUMNS, delimiter=",")
    np.savetxt(tmp_path / "A2.csv", 2 * COLUMNS, delimiter=",")
    (tmp_path / "ragged.csv").write_text("0.5,0.1\n0.5,0.2\n0.7\n")
    (tmp_path / "head.csv").write_text("cats,dogs\n0.5,0.2\n0.5,0.8\n")
    (tmp_path / "minus.csv").write_text("1.5,0.2\n-0.5,0.8\n")
    places = {path.stem: str(path) for path in tmp_path.glob("*.csv")}
    given = [flag.format(**places) for flag in flags]
    printed = topicscope("theory", "optimum", *given, code=2)
    assert message in printed.stderr
    assert printed.stderr.count("\n") == 1
    assert printed.stdout == ""
