"""The registry of kinds: every kind has all its parts, and its parts agree with its config."""

import dataclasses
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.calling import topicscope
from tests.sweeps.samples import BASE, baking
from topicscope.ground import flat
from topicscope.measure import Course, Effect, Matched
from topicscope.sweeps import KINDS, Point, kinds, pack, run as runs, sweep
from topicscope.sweeps.run import input_digest

SETTINGS: dict[str, dict[str, Any]] = {
    "train": {**BASE, "documents": {"kind": "given", "proportions": [[0.25] * 4]}},
    "pretrain": {"text": {"corpus": ["a.txt"]}, "snapshots": [0, 300], "optimizer": {"warmup": 50}},
    "probe": {"models": ["m"], "corpus": ["a.txt"]},
}


@pytest.mark.parametrize("name", KINDS)
def test_every_kind_has_all_its_parts(name: str) -> None:
    assert set(SETTINGS) == set(KINDS)
    kind = KINDS[name]
    config = kind.build(SETTINGS[name])
    settings = flat(config.as_dict())
    assert kind.build(config.as_dict()) == config
    assert kind.reads
    assert kind.measures
    assert all(kind.measures.values())  # each with its meaning
    assert {name.split(".")[0] for name in kind.reads} <= set(config.as_dict())  # variants have settings of their own
    assert set(kind.may_differ) <= set(settings)
    assert set(kind.sizes(config)) == set(kind.knobs) <= set(settings)
    assert all(0 < small < large for small, large in kind.knobs.values())
    assert kind.pack_size(config) == 1 or kind.may_differ


@pytest.mark.parametrize("name", KINDS)
def test_a_trial_is_a_valid_config_with_smaller_knobs(name: str) -> None:
    kind = KINDS[name]
    whole = Point(name, kind.build(SETTINGS[name]).as_dict(), {})
    small = {knob: sizes[0] for knob, sizes in kind.knobs.items()}
    short = runs.shortened(whole, small)
    assert kind.sizes(kind.build(short.config)) == small
    assert whole.config == kind.build(SETTINGS[name]).as_dict()  # the point itself is not touched


@pytest.mark.parametrize("name", KINDS)
def test_a_changed_file_changes_what_a_point_reads(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    settings = SETTINGS[name] | ({"data": {"train_file": "a.txt"}} if name == "train" else {})
    point = Point(name, KINDS[name].build(settings).as_dict(), {})
    digests = []
    for text in ("one", "other", "one"):
        Path("a.txt").write_text(text)
        digests.append(input_digest(point))
    assert digests[0] == digests[2] != digests[1]


@pytest.mark.usefixtures("bakery")
def test_a_kind_is_one_entry(tmp_path: Path) -> None:
    """Grids, packs, cost, table and map of a new kind come from its entry alone."""
    grid = baking(sugar=[1, 5], seed={"seeds": 4})
    assert [len(task) for task in pack(grid)] == [3, 1, 3, 1]
    result = sweep(grid, tmp_path / "sweep")
    assert [row["sweetness"] for row in result.rows] == [10, 11, 12, 13, 50, 51, 52, 53]
    assert [row["together"] for row in result.rows] == [3, 3, 3, 1, 3, 3, 3, 1]
    [panel] = result.sections()[0].figures[0].panels
    assert panel.z == [[11.5, 51.5]]  # seeds are averaged
    assert runs.estimate(grid, {point.name for point in grid.points}).packs == 4


@pytest.mark.usefixtures("bakery")
def test_the_commands_run_show_and_draw_a_kind_from_outside(tmp_path: Path) -> None:
    grid, out = tmp_path / "cakes.yaml", tmp_path / "sweep"
    grid.write_text("{kind: bake, base: {seed: 4}, axes: {sugar: [1, 5]}}")
    assert "of 'bake'" in topicscope("sweep", str(grid), "--out", str(out), "--dry-run").stdout
    said = topicscope("sweep", str(grid), "--out", str(out), "--engine", "serial").stdout
    assert "sweetness: as measured" in said
    [entry] = json.loads(topicscope("show", str(out), "--json").stdout)
    assert [row["sweetness"] for row in entry["results"]["rows"]] == [14, 54]
    (out / "report.html").unlink()
    assert "report.html" in topicscope("report", str(out)).stdout
    assert '"curvePanels":{"crumbs":"crumb_"}' in (out / "report.html").read_text()


def test_curves_are_thinned_to_two_hundred_points_and_keep_their_ends() -> None:
    for length, kept in ((1, 1), (2, 2), (200, 200), (201, 200), (1999, 200)):
        curve = np.arange(length, dtype=float)
        found = kinds.thinned({"step": curve, "loss": -curve})
        assert len(found["step"]) == kept
        assert (found["step"][0], found["step"][-1]) == (0, length - 1)
        np.testing.assert_array_equal(found["loss"], -found["step"])
        assert np.all(np.diff(found["step"]) > 0)
        assert found["loss"].dtype == np.float32


def test_what_is_not_a_number_is_stored_as_none() -> None:
    others: dict[str, Any] = {"d": 0.0, "e": 3, "f": "phase", "g": None, "h": False}
    odd = {"a": float("nan"), "b": -float("inf"), "c": float("inf")}
    assert kinds.finite(odd | others) == dict.fromkeys(odd) | others


def trained(course: Course | None, **results: Any) -> Any:
    metrics = {"step": np.arange(3), "loss": np.ones(3), "norm_key": np.zeros(3), "other": np.zeros(3)}
    results = {"steps": 2, "loss": 0.5, **results}
    model = SimpleNamespace(table_symbols=lambda: {"value": "W_V", "gram": "W_E'W_E"}, SYMBOLS={"other": "W"})
    config = SimpleNamespace(model=model)
    return SimpleNamespace(status="complete", results=results, course=course, metrics=metrics, config=config)


def test_a_trained_point_has_the_contrast_of_its_values_or_else_of_its_gram_matrix() -> None:
    value, gram = {"same": 3.0, "different": 1.0}, {"same": 7.0, "different": 2.0}
    plain = kinds.train_result(trained(None))
    assert plain.measures == {"status": "complete", "steps_done": 2, "loss": 0.5, "dev_loss": None, "contrast": None}
    assert list(plain.curves) == ["step", "loss", "norm_key"]
    assert kinds.train_result(trained(None, gram=gram)).measures["contrast"] == 5
    both = kinds.train_result(trained(Course("never"), gram=gram, value=value, dev_loss=0.25)).measures
    assert (both["contrast"], both["dev_loss"], both["phase"]) == (2, 0.25, "never")
    overlapping = trained(None, value={"same": 3.0, "different": None})  # all words have a topic in common
    assert kinds.train_result(overlapping).measures["contrast"] is None


def effect(**parts: Any) -> Effect:
    usual: dict[str, Any] = {"same": 0.5, "different": 0.25, "difference": 0.25, "ratio": 2.0, "interval": (0.1, 0.4)}
    return Effect(**usual | parts)


def probed(*rows: tuple[str, Effect | None, Effect | None], pairs: tuple[float, ...] = ()) -> Any:
    """A probe with the cosine and attention effects of some variants, and no effect of the dot product."""
    return SimpleNamespace(
        rows=[
            SimpleNamespace(variant=variant, words=30 + i, topics=4 + i, cosine=cosine, dot=None, attention=attention)
            for i, (variant, cosine, attention) in enumerate(rows)
        ],
        cooccurrence=[
            SimpleNamespace(cosine=SimpleNamespace(cooccurring=one), attention=SimpleNamespace(cooccurring=10 * one))
            for one in pairs
        ],
    )


def test_an_interval_of_a_probe_is_two_columns_also_where_it_is_missing() -> None:
    matched = Matched(0.4, 0.3, 0.1, (0.0, 0.2))
    whole = effect(ratio_interval=(1.5, 2.5), null_interval=(-0.1, 0.1), p_value=0.01, matched=matched)
    found = kinds.probe_result(probed(("trained", whole, None))).measures
    bare = kinds.probe_result(probed(("trained", effect(ratio=None, interval=None), None))).measures
    assert list(found) == list(bare)
    assert (found["cosine_interval_low"], found["cosine_interval_high"]) == (0.1, 0.4)
    assert (found["cosine_ratio_interval_low"], found["cosine_ratio_interval_high"]) == (1.5, 2.5)
    assert (found["cosine_matched_interval_low"], found["cosine_matched_interval_high"]) == (0.0, 0.2)
    missing = {name for name in bare if "ratio" in name or "interval" in name or "matched" in name}
    assert {bare[name] for name in missing} == {None}
    assert {"cosine_ratio_interval_low", "cosine_ratio_interval_high", "cosine_matched_same"} <= missing
    assert not {name for name in bare if name.endswith("interval")}
    assert not {name for name in found if name.startswith(("dot", "attention"))}


def test_the_controls_of_a_probe_have_their_prefixes() -> None:
    random = effect(difference=0.01)
    found = kinds.probe_result(probed(("trained", effect(), effect()), ("random", None, random), pairs=(0.7, 0.8)))
    measures = found.measures
    assert (measures["word_count"], measures["topic_count"]) == (30, 4)  # of the trained model
    assert (measures["attention_difference"], measures["random_attention_difference"]) == (0.25, 0.01)
    assert measures["cosine_difference"] == 0.25
    assert "random_cosine_difference" not in measures
    assert (measures["cooccurring_cosine"], measures["cooccurring_attention"]) == (0.7, 7)
    assert "cooccurring_cosine" not in kinds.probe_result(probed(("trained", effect(), None))).measures


def test_a_trial_of_pretraining_writes_snapshots_only_where_the_run_does() -> None:
    kind = KINDS["pretrain"]
    for snapshots, short in (("none", "none"), ([0, 300], "log"), ([7], "log")):
        config = kind.build({**SETTINGS["pretrain"], "snapshots": snapshots})
        changes = kind.for_trial(config, {"steps": 30})
        assert changes == {"snapshots": short, "optimizer.warmup": 30}
        assert kind.for_trial(config, {"steps": 80})["optimizer.warmup"] == 50


def test_the_time_of_a_probe_grows_with_the_topic_model_only_where_one_is_fitted() -> None:
    sizes = KINDS["probe"].sizes
    fitted = KINDS["probe"].build({**SETTINGS["probe"], "documents": 70, "iterations": 30})
    assert sizes(fitted) == {"documents": 70, "iterations": 30}
    assert sizes(dataclasses.replace(fitted, topics_from="topics")) == {"documents": 70}


def test_a_point_of_train_names_its_device_and_keeps_no_snapshots_in_trials() -> None:
    kind = KINDS["train"]
    assert kind.for_trial(kind.build(BASE), {"steps": 20}) == {"epochs": None, "snapshots": "none"}
    assert [kind.build({**BASE, "device": name}).device for name in ("auto", "cpu", "cuda")] == ["cpu", "cpu", "cuda"]
