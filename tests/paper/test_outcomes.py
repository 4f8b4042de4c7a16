"""Texts, tables, numbers and figures of outcomes, against values worked out by hand; and every verdict can fail."""

import hashlib
import json
import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from tests.paper import samples_language as models, samples_sandbox as sandbox
from tests.paper.samples import BAD, GOOD, STILL, UNDECIDED, judged, panel_of
from tests.paper.samples_sandbox import HALF
from topicscope.measure import AttentionMeans
from topicscope.pages import Heat, Lines, Panel, Points
from topicscope.paper import EXPERIMENTS, figure4, matrices
from topicscope.paper.assumptions import Pattern
from topicscope.paper.matrices import Blocks
from topicscope.training import RunConfig

CASES = {name: {("plausible", "reproduced"): good()} for name, good in GOOD.items()}
for cases, verdict in ((STILL, "reproduced"), (BAD, "not reproduced"), (UNDECIDED, "undecided")):
    for name, found in cases.items():
        CASES[name] |= {(why, verdict): one for why, one in found.items()}

# Digests of all that is said of the samples of an experiment. Where one differs, read the texts, then renew it.
TEXTS = {
    "figure1": "97169e7f", "figure2": "00795d38", "figure3": "bf90e540", "figure4": "aa1a1a18",
    "figure5": "1d4282dc", "figure6": "8557a905", "figure7": "25ca0001", "figure8": "ed7898f8",
    "figure9": "8c7a4d88", "figure10": "d7f8bab7", "table1": "a26f6e80", "table2": "fcc79519", "table3": "36c1705f",
    "table4": "d9d225ff", "table5": "fc449a42", "theorem1": "513e8e3e", "theorem2": "7173fc19",
    "theorem3": "1e25822e", "theorem5": "c78d1696", "losses": "78cfcbd4", "assumptions": "447bb7d7",
    "finite-length": "7b83d71a", "coarse-to-fine": "8e5acfbd", "topic-order": "69755e23", "stage-law": "697f11da",
    "rank": "e988cb87", "no-correct-words": "dc69ece3", "one-topic": "e03bd92c", "sgd-second-stage": "e82b3ec9",
    "adam-clocks": "eda813e7", "mask-first": "9dab4555", "small-start": "4d0fd845", "pipeline": "d231f0d6",
    "timeline": "7b0d8a12", "two-stage": "0b65aaea",
}  # fmt: skip


def test_no_experiment_is_left_out() -> None:
    assert set(GOOD) == set(BAD) == set(TEXTS) == set(EXPERIMENTS)
    assert all(BAD.values())


def digest(value: object) -> str:
    """Of data as JSON, in which 1 and 1.0 are the same and keys have no order."""
    plain = json.loads(json.dumps(value), parse_int=float)
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode()).hexdigest()[:8]


def axes_of(panel: Panel) -> list[Any]:
    names = ("title", "x_label", "y_label", "log_x", "log_y", "categories")
    return [panel.kind, *(getattr(panel, name, None) for name in names)]


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_verdicts_and_what_is_said(name: str) -> None:
    outcomes = {case: judged(name, found) for case, found in CASES[name].items()}
    assert {case: outcome.verdict for case, outcome in outcomes.items()} == {case: case[1] for case in outcomes}
    texts = [
        [o.paper, o.theory, o.measured, o.reason]
        + [[table.title, table.columns, table.rows] for table in o.tables]
        + [[figure.title, figure.alt, figure.columns, *map(axes_of, figure.panels)] for figure in o.figures]
        for o in outcomes.values()
    ]
    assert all(len({figure.name for figure in o.figures}) == len(o.figures) for o in outcomes.values())
    assert digest(texts) == TEXTS[name]


def test_panels_side_by_side() -> None:
    runs = [sandbox.block_runs(0.3 + i) for i in range(4)]  # contrasts 0.4, 1.4, 2.4, 3.4
    outcome = judged("figure2", [replace(p, runs=r) for p, r in zip(sandbox.panels(), runs, strict=True)])
    (table,) = outcome.tables
    shown = f"0.4 [{0.4 - HALF:.4g}, {0.4 + HALF:.4g}]"
    assert table.rows[0][2:] == ["0.3 / -0.1 / 0.5", shown, "2", "blocks"]
    assert table.rows[3][2] == "3.3 / -0.1 / 0.5"
    assert table.rows[3][4] == "17"  # 3.4 / 0.2
    numbers = outcome.numbers["squared, SGD"]
    assert numbers["contrast"] == pytest.approx({"mean": 2.4, "low": 2.4 - HALF, "high": 2.4 + HALF, "runs": 3}, 1e-4)
    assert numbers["contrasts"] == pytest.approx([2.39, 2.4, 2.41])
    assert numbers["means"] == pytest.approx({"same": 2.3, "different": -0.1, "diagonal": 0.5})
    assert (numbers["spread"], numbers["seeds"], numbers["pattern"]) == (pytest.approx(0.2), 3, "blocks")


@pytest.mark.parametrize(
    ("runs", "pattern"),
    [
        (sandbox.block_runs(), "blocks"),
        (sandbox.block_runs(0.0, 0.0, 0.01), "neither"),
        (sandbox.diagonal_runs(), "diagonal"),
        ([*sandbox.block_runs()[:2], replace(sandbox.block_runs()[2], diverged=True)], "1 of 3 diverged"),
        ([replace(run, diverged=True) for run in sandbox.block_runs()], "3 of 3 diverged"),
    ],
)
def test_patterns_of_a_gram_matrix(runs: list[Blocks], pattern: str) -> None:
    outcome = judged("figure1", sandbox.gram_panels(2, runs))
    assert outcome.tables[0].rows[2][-1] == pattern
    assert outcome.numbers["squared, SGD"]["pattern"] == pattern


def test_paths_of_figure_1() -> None:
    """same = step + seed, different = step / 2, diagonal = 2 step + seed."""
    blocks, diagonal = panel_of(Lines, judged("figure1"), 1, 0).series
    x = np.array(blocks.x)
    assert (blocks.x[:3], blocks.x[-1]) == ([1.0, 2.0, 3.0], 400.0)
    assert (np.diff(x) > 0).all()
    assert len(x) == len({int(400 ** (i / 149) + 1e-9) for i in range(150)})  # 150 steps, evenly in the logarithm
    assert blocks.y == (x / 2 + 1).tolist()
    assert (blocks.low, blocks.high) == ((x / 2).tolist(), (x / 2 + 2).tolist())
    assert diagonal.y == diagonal.low == diagonal.high == x.tolist()
    paths = [dict.fromkeys(("same", "different", "diagonal"), np.ones(steps)) for steps in (50, 40)]
    shorter = matrices.path_lines("cut", paths)
    assert shorter.series[0].x[-1] == 40.0  # as long as the shortest


def test_heat_maps_have_the_colours_of_their_middle() -> None:
    values = np.arange(10_000.0).reshape(100, 100)
    config = RunConfig.of({"topic_model": {"topics": 9, "words_per_topic": 11}})
    heat = matrices.heat("title", values / 7, config)
    assert heat.z[0][:2] == [0.0, 0.142857]  # six digits
    assert [heat.low, heat.high] == pytest.approx([0.002 * 9999 / 7, 0.998 * 9999 / 7])
    assert (heat.title, heat.topics, heat.words_per_topic) == ("title", 9, 11)


def test_half_way_points_of_figure_4() -> None:
    """Value starts at steps 0, 1, 2, key at 40, query at 45; each rises for 20 steps."""
    runs = [models.norms(value) for value in (0, 1, 5)]
    outcome = judged("figure4", models.stage_settings(*runs))
    separations = [50 / 10, 50 / 11, 50 / 15]
    mean = sum(separations) / 3
    half = 4.3027 * (sum((s - mean) ** 2 for s in separations) / 2) ** 0.5 / 3**0.5
    interval = f"{mean:.4g} [{mean - half:.4g}, {mean + half:.4g}]"
    distance = f"{figure4.distance(runs):.2f}"
    assert outcome.tables[0].rows[0] == [next(iter(figure4.SETTINGS)), "12", "50", "55", interval, "yes", distance]
    first = outcome.numbers[next(iter(figure4.SETTINGS))]
    assert (first["t50_value"], first["t50_key"], first["t50_query"]) == (12.0, 50.0, 55.0)
    assert first["separation"] == pytest.approx(
        {"mean": mean, "low": mean - half, "high": mean + half, "runs": 3}, 1e-4
    )
    nearest, others = outcome.figures
    assert [panel.title for panel in nearest.panels] == ["||W_K||_F", "||W_Q||_F", "||W_V||_F"]
    assert [panel.title[:9] for panel in others.panels] == ["||W_K||_F", "||W_V||_F"]
    value = panel_of(Lines, outcome, 0, 2)
    assert [line.name for line in value.series] == [figure4.NINE] * 2 + ["seed 0", "seed 1", "seed 2"]
    assert value.series[4].x[:3] == [0.0, 5.0, 10.0]
    assert value.series[4].y[:5] == [0.001, 0.001, 0.251, 0.501, 0.751]
    assert [band[:2] for band in value.bands] == [(0.0, 42.0), (42.0, 100.0)]
    share = panel_of(Lines, outcome, 1, 1)
    assert share.series[0].y[2] == round(0.501 / 1.001, 5)
    assert share.series[0].y[-1] == 1.0


def test_settings_of_figure_4_that_show_no_stages_are_named() -> None:
    names = list(figure4.SETTINGS)
    found = models.stage_settings()
    never = [*found.settings[names[2]][:2], models.norms() | {"norm_query": np.full(101, 0.1)}]
    outcome = judged("figure4", replace(found, settings=found.settings | {names[2]: never}))
    assert outcome.reason.endswith(f"settings without two stages: {names[2]}")
    assert outcome.tables[0].rows[2][1:-1] == ["10", "50", "nan", "-", "no"]
    assert outcome.numbers[names[2]]["separation"] is None
    assert outcome.numbers[names[2]]["readings"][2]["query half"] is None


def test_the_best_of_figure_6() -> None:
    runs = sandbox.value_runs(0.0, 0.0, 0.6)
    values = np.zeros((5, 5))
    values[1:, 1:] = np.arange(16).reshape(4, 4) / 10
    outcome = judged("figure6", [runs[0], replace(runs[1], matrix=values), runs[2]])
    rest = [i / 10 for i in range(16) if i % 5]  # off the diagonal, without [MASK]
    mean = sum(rest) / 12
    sd = (sum((x - mean) ** 2 for x in rest) / 12) ** 0.5
    assert outcome.measured == (
        f"in the run with the clearest diagonal: mean of the diagonal 0.6, of all other entries {mean:.2g} (standard "
        f"deviation {sd:.2g})"
    )
    assert outcome.reason == "1 of 3 runs without L2 came out diagonal"
    assert outcome.config["seed"] == 1  # of the run that is shown
    assert outcome.numbers["diagonal"][1] == {"same": 0.0, "different": 0.0, "diagonal": 0.6}
    assert judged("figure6", sandbox.value_runs(0.3, -0.1, 0.4)).reason == "0 of 3 runs without L2 came out diagonal"


def test_the_minima_of_landscapes() -> None:
    assert [row[5] for row in judged("figure8").tables[0].rows] == ["53.2", "66.4", "72.1", "75.2"]  # of reference
    outcome = judged("figure8", sandbox.grids("blocks", tau=40, off=4e-6, gamma=0.001, place=(40.0, 80.0)))
    assert outcome.tables[0].rows[1] == ["40", "0.99876", "0.99876", "40, 80", "66.47", "66.4", "yes"]
    assert outcome.numbers == {"minima": {"20": 0.99852, "40": 0.99876, "60": 0.99892, "80": 0.99904}}
    panel = panel_of(Heat, outcome, 0, 1)
    assert panel.marks == [(80.0, 40.0, "lowest")]  # beta to the right
    assert (panel.x, panel.y, panel.title) == ([1e-3, 80.0], [40.0, 1e6], "tau = 40")
    assert panel.z == [[1.0, 0.998764], [1.1, 1.2]]
    outside = judged("figure7", sandbox.grids("diagonal", tau=80, off=0.2, place=(1.0, 1e9)))
    assert outside.tables[0].rows[3] == ["80", "0.72224", "0.92224", "1, 1e+09", "-", "-", "no"]


def test_rows_of_table_3() -> None:
    means = [AttentionMeans(0.02 + s / 100, 0.04 + s / 100, 0.01) for s in sandbox.SEEDS]
    outcome = judged("table3", sandbox.block_rows(3, means))
    labels = ["Adam 0.003", "Adam 0.01", "Adam 0.03", "SGD 0.01 (x 1000)", "SGD 0.03 (x 1000)"]
    assert list(outcome.numbers) == labels
    assert outcome.tables[0].rows[3] == [
        "SGD 0.01 (x 1000)",
        "0.0105 / 0.0106 / 0.00673",
        "0.02 ± 0.00025",
        "0.04 ± 0.00025",
        "0.01 ± 0",
        "4, 2, 3.8",  # alpha, beta, and gamma = .9 alpha + .1 beta
        f"0.4 [{0.4 - HALF:.4g}, {0.4 + HALF:.4g}]",
        "yes",
    ]
    assert outcome.config["optimizer"]["lr"] == 0.003  # of the first row
    numbers = outcome.numbers["SGD 0.01 (x 1000)"]
    assert numbers["interval"] == pytest.approx([1.15, 5.87e4], rel=5e-3)
    assert numbers["rate"] == 10.0
    assert outcome.numbers["Adam 0.03"]["rate"] == 0.03
    assert numbers["gamma"] == pytest.approx(
        [0.9 * a + 0.1 * b for a, b in zip(numbers["alpha"], numbers["beta"], strict=True)]
    )
    assert numbers["means"] == pytest.approx([0.02, 0.04, 0.01])
    assert numbers["difference"]["mean"] == pytest.approx(0.03)
    panel = panel_of(Points, outcome, 0, 0)
    assert panel.categories == labels
    assert panel.series[1].y == pytest.approx([0.011, 0.011, 0.011, 0.04, 0.011])
    assert panel.series[0].high is not None
    assert panel.series[0].high[3] == pytest.approx(0.02 + HALF / 100, rel=1e-4)
    weak = judged("table3", sandbox.block_rows(4, sandbox.topic_attention(0.007, 0.007)))
    assert [row[-1] for row in weak.tables[0].rows] == ["yes"] * 4 + ["no"]


def test_rows_of_table_4() -> None:
    outcome = judged("table4", sandbox.one_cross_entropy_diagonal())
    assert outcome.tables[0].rows[0] == [
        "cross-entropy, Adam 0.003",
        "0.0916 / 0.00185 / 0.00256",
        *("-", "-", "-", "0 of 3", "-"),
    ]
    assert outcome.tables[0].rows[1] == [
        "cross-entropy, Adam 0.01",
        "0.0918 / 0.00182 / 0.00256",
        *("0.09 ± inf", "0.0018 ± inf", "0.0026 ± inf", "1 of 3", "yes"),
    ]
    assert list(outcome.numbers) == ["cross-entropy, Adam 0.01", "squared-mean, Adam 0.003", "squared-mean, Adam 0.01"]
    assert outcome.numbers["squared-mean, Adam 0.01"] == {
        "means": [0.09, 0.0018, 0.0026],
        "alpha": [0.0018 / 0.0026],
        "beta": [0.09 / 0.0026],
        "inside_theorem5": [True],
    }
    wrong = judged("table4", sandbox.diagonal_rows(3, [AttentionMeans(0.09, 0.003, 0.0026)] * 3))
    assert wrong.tables[0].rows[3][-1] == "no"
    none = judged("table4", sandbox.no_diagonals())
    assert (none.figures, none.numbers) == ([], {})


def test_theorem_1() -> None:
    outcome = judged("theorem1", sandbox.family(0.002, 3e-5))
    assert outcome.ours == 0.002
    assert outcome.numbers["violation_over_c3"] == [1e-8, 0.002, 1e-9]
    assert outcome.numbers["excess_loss"] == pytest.approx([0, 1e-9, 3e-5], abs=1e-12)


def test_theorem_2() -> None:
    outcome = judged("theorem2")
    t, tenth = 4.3027 / 3**0.5, 0.1  # seeds at .9, 1 and 1.1 of the mean
    intervals = [
        f"{mean:.4g} [{mean * (1 - tenth * t):.4g}, {mean * (1 + tenth * t):.4g}]" for mean in (0.5, 0.1, 0.02, 5e-4)
    ]
    lengths = ["100", "1000", "10000", "infinite"]
    assert outcome.tables[0].rows == [list(row) for row in zip(lengths, intervals, strict=True)]
    assert outcome.theory == "same topic 0.10802, different -0.007587, [MASK] 0.05419"
    line = panel_of(Lines, outcome, 0, 1)
    (trained,) = line.series
    assert trained.x == [1e2, 1e3, 1e4, 1e5]
    assert trained.y == pytest.approx([0.5, 0.1, 0.02, 5e-4])
    assert trained.low == pytest.approx([m * (1 - tenth * t) for m in trained.y], rel=1e-4)
    wide = replace(sandbox.distances(), numbers=sandbox.distances().numbers | {"infinite": [1e-6, 1e-6, 1e-4]})
    below = panel_of(Lines, judged("theorem2", wide), 0, 1)
    assert below.series[0].low is not None
    assert below.series[0].low[-1] == 0  # no negative distance on a logarithmic axis


def test_theorem_3_reports_gamma() -> None:
    outcome = judged("theorem3", sandbox.second(3.0, 13.0, others=(3.0, 13.0)))
    assert outcome.measured == "gamma = 4 [4, 4], alpha = 3, beta = 13; loss 0.96180"  # .9 * 3 + .1 * 13
    assert outcome.theory.startswith("gamma in (1.15, 5.87e+04); exact minimiser gamma = 7.01, loss 0.96177")


def test_theorem_5_reports_beta_and_alpha_over_beta() -> None:
    outcome = judged("theorem5", sandbox.second(2.0, 50.0, others=(1.0, 50.0)))
    assert outcome.measured == "beta = 50 [50, 50], alpha / beta = 0.0267; loss 0.96180"  # (.02 + .02 + .04) / 3
    assert outcome.theory == (
        "beta in (0.264, 4.47e+03), alpha < 0.128 beta; exact minimiser beta = 35.2, loss 0.91276"
    )


def test_losses_of_parts() -> None:
    outcome = judged("losses")
    gain = math.log(100) - 3.3
    shares = [0.0, 0.1 / gain, 0.15 / gain, 0.0, 0.005 / 0.05, 0.01 / 0.05]
    assert [here["share_of_gain"] for here in outcome.numbers.values()] == pytest.approx(shares)
    assert "it learns to copy the shown word" in outcome.reason
    assert outcome.tables[0].rows[1] == [
        "cross-entropy",
        "only the embedding",
        "3.4 [3.4, 3.4]",
        "0.5",  # 3.4 - 2.9
        "0.23",  # 3.4 - 3.17
        f"{100 * shares[1]:.1f}%",
    ]
    assert outcome.numbers["squared, only the value matrix"] == pytest.approx(
        {"dev_loss": 0.95, "bayes": 0.93, "bayes_topics": 0.9453, "share_of_gain": 0.2}
    )
    panel = panel_of(Points, outcome, 0, 1)
    assert panel.series[0].y == pytest.approx([0.94, 0.945, 0.95])
    assert panel.series[0].low == pytest.approx([y - HALF / 100 for y in (0.94, 0.945, 0.95)])
    assert panel.series[0].high == pytest.approx([y + HALF / 100 for y in (0.94, 0.945, 0.95)])
    assert panel.levels == [(0.93, "Bayes"), (0.9453, "Bayes, from topics alone")]
    higher = [
        replace(found, bayes_topics=0.9402 if found.loss == "squared" else 3.17) for found in sandbox.dev_losses()
    ]
    assert "copy" not in judged("losses", higher).reason  # 0.94 + 0.00025 is not below


def test_settings_and_worlds_of_assumptions() -> None:
    found = sandbox.variations(
        2,
        sandbox.block_runs(0.0, 0.0),
        "Zipf words",
        sandbox.world(0.02, best=Pattern(0.2, 0.0, 0.0), flow=Pattern(0.15, 0.0, 0.0)),
    )
    outcome = judged("assumptions", found)
    half = 4.3027 * 0.001 / 3**0.5
    changes = {row[0]: row[1] for table in outcome.tables for row in table.rows if len(row) == 2}
    assert outcome.ours == pytest.approx(0.02)
    assert outcome.tables[0].rows[1] == [
        "topics of unequal sizes",
        "0.2",
        "0.151",
        f"0.15 [{0.15 - half:.4g}, {0.15 + half:.4g}]",
        f"0.01 [{0.01 - half:.4g}, {0.01 + half:.4g}]",
        "0.02",
        "0.3",
        "yes",
    ]
    assert changes["topics of unequal sizes"] == (
        "blocks are not flat (share of the norm: 30% in W*, 20% in W(t), 21% trained); diagonal minus block +0.11 in "
        "W*, +0.04 in W(t), +0.041 trained; topics half learnt at time 20 to 50"
    )
    assert outcome.tables[2].rows[1] == ["fixed tau = 3", f"0.4 [{0.4 - HALF:.4g}, {0.4 + HALF:.4g}]", "2", "yes"]
    assert outcome.tables[2].rows[2][3] == "no"
    numbers = outcome.numbers["fixed tau = 3"]
    assert numbers["contrast"]["mean"] == pytest.approx(0.4)
    assert numbers["spread"] == pytest.approx(0.2)
    panel = panel_of(Points, outcome, 2, 0)
    assert panel.series[0].low == pytest.approx([0.4 - HALF, 0.4 - HALF, -HALF, *[0.4 - HALF] * 7], rel=1e-3)
    assert panel.levels == [(0.0, "none")]
