"""docs/dynamics.md: its commands run, its numbers are those of the command, and its ids exist."""

import re
import shlex
from pathlib import Path
from typing import Any

import pytest

from tests.calling import topicscope
from tests.cli import answer
from topicscope import theory
from topicscope.laws import predicted_norms
from topicscope.paper import EXPERIMENTS
from topicscope.theory import Setting, dynamics, topic_shares
from topicscope.training import RunConfig
from topicscope.world import Fixed, Masking

PAGE = (Path(__file__).parents[2] / "docs" / "dynamics.md").read_text()
COMMANDS = re.findall(r"^    (topicscope theory .*)$", PAGE.replace("\\\n", " "), re.M)
THEORY = [shlex.split(line, comments=True)[1:] for line in COMMANDS]


def example() -> dict[str, Any]:
    return answer(*THEORY[-1])


def test_its_commands_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)  # one draws a picture
    assert len(THEORY) == 3
    for arguments in THEORY:
        assert "half_time" in topicscope(*arguments).stdout


def test_the_table_of_the_worked_example_is_what_the_command_gives() -> None:
    found = example()
    cells = re.findall(r"^\| `(value|attention|steps)\.(\w+)` \| ([-+.e\d]+) \|$", PAGE, re.M)
    assert len(cells) == 14
    for stage, name, printed in cells:
        assert f"{found[stage][name]:.6g}" == printed, (stage, name)


def test_the_steps_by_hand_lead_to_the_same_numbers() -> None:
    """Every number of the numbered list, from the sentence that has it."""
    found, text = example(), " ".join(PAGE.split())
    lam, sigma = found["value"]["rate"] / 2, found["attention"]["sigma"]
    for sentence in (
        f"k = 1 - .9 x .15 = {Masking().k:.3g}".replace("0.", "."),
        f"= {lam:.6f}".replace("0.", ".", 1),
        f"half-way at ln 2 / .028058 = {found['value']['half_time']:.2f}: step {found['steps']['value']:.0f}",
        f"(.865 x 4 x 2 x 4) = {sigma:.4e}".replace("e-04", "e-4"),
        f"sqrt(21) / sigma = {found['attention']['e_fold']:,.0f}",
        f"l* = {found['attention']['l_star']:.4g}",
        f"e^(l*/4) = {found['attention']['alpha_star']:.2f}",
        f"= {found['attention']['plateau_norm']:.2f}",
        f"half-way at 5,825 ln(957.6) = {found['attention']['half_time']:,.0f}",
        f": step {found['steps']['attention']:,.0f}, ",
        f"{found['attention']['half_time'] / found['value']['half_time']:,.0f} times as late",
    ):
        assert sentence in text
    smaller = dynamics(Setting.of(5, 4, 2), init_scale=1e-4).attention
    assert f"{smaller.half_time:,.0f} and {smaller.third_act_time:,.0f}" in text


def test_limits_of_the_force_inside_topics() -> None:
    for topics, v, tau in ((4, 3, 2), (5, 4, 2), (10, 10, 3)):
        shares = topic_shares(Fixed(topics_per_document=tau), topics)
        share = theory.inside_force(shares, v, Masking()) / theory.contrast_force(shares, v, Masking())
        assert f" {share:.4f}".replace(" 0.", " .") in PAGE


def test_the_run_of_the_page_has_predicted_norms() -> None:
    config = RunConfig.of(
        {
            "topic_model": {"topics": 5, "words_per_topic": 4},
            "documents": {"kind": "infinite", "topics_per_document": 2},
            "objective": {"loss": "squared"},
            "optimizer": {"name": "sgd", "lr": 4.0},
            "model": {"init_scale": 0.001, "prediction_bias": "none"},
        },
        steps=14_000,
    )
    assert f"own start gives step {predicted_norms(config).half_way['key']:,.0f}" in " ".join(PAGE.split())


def test_its_ids_and_files_exist() -> None:
    ids = set(re.findall(r"`(?:topicscope )?reproduce\s+([a-z-]+)`", PAGE))
    assert ids <= set(EXPERIMENTS)
    assert {"stage-law", "rank", "no-correct-words", "one-topic", "adam-clocks", "mask-first", "small-start"} <= ids
    root = Path(__file__).parents[2]
    for tool in re.findall(r"python (tools/\w+\.py)", PAGE):
        assert (root / tool).is_file()
    assert all(len(line) <= 120 for line in PAGE.splitlines())
