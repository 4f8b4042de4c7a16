"""Tables 1, 2 and 5 and the timelines: what is probed, and what is said of it."""

from __future__ import annotations

import itertools
import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tests.paper import samples_models as models, samples_stages as stages
from tests.paper.samples import judged
from tests.paper.short_training import Training, shortened
from topicscope import language, pretraining
from topicscope.language import Probe
from topicscope.paper import EXPERIMENTS, Context, Reproduction, language_models, timeline


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("table1", {"topics_per_word": ("one",), "cooccurrence": False, "random": True, "shuffles": 1000}),
        ("table5", {"topics_per_word": ("many",), "cooccurrence": False, "random": True, "shuffles": 1000}),
        ("table2", {"topics_per_word": ("one",), "cooccurrence": True, "random": False, "shuffles": 0}),
    ],
)
@pytest.mark.parametrize("scale", ["quick", "full"])
def test_what_is_probed(monkeypatch: pytest.MonkeyPatch, name: str, settings: dict[str, Any], scale: Any) -> None:
    asked: list[Any] = []

    def probe(config: Any) -> Probe:
        asked.append(config)
        return Probe()

    monkeypatch.setattr(language, "probe", probe)
    found = EXPERIMENTS[name].measure(Context(scale, 3, ("a", "b"), ("text.txt",)))
    (config,) = asked
    assert {key: getattr(config, key) for key in settings} == settings
    assert config.matched is (name != "table2")
    assert (tuple(config.models), tuple(config.corpus), config.seed, config.device) == (
        ("a", "b"),
        ("text.txt",),
        3,
        "cpu",
    )
    assert config.documents == (250 if scale == "quick" else 1000)
    assert (config.topics, config.max_documents) == (100, 2500)
    assert found.config == {"models": ["a", "b"], "corpus": ["text.txt"]}


@pytest.mark.parametrize(("known", "said"), [(True, "made-up texts"), (False, "models and texts are those that were")])
def test_sizes_differ_for_the_reason_of_the_models_that_were_probed(known: bool, said: str) -> None:
    found = replace(models.small_probed(), known=known)
    outcome = EXPERIMENTS["table1"].judge(found)
    reproduction = Reproduction(Context(), {"table1": replace(outcome, verdict="reproduced", ours=9.0)}, {}, Path("x"))
    assert f"ours 9) because {said}" in reproduction.sizes("table1").replace("these are small models on ", "")


def test_ratios_in_words() -> None:
    outcome = judged("table1")
    assert outcome.paper.startswith(
        "ratios of cosine, dot product and attention, at the three thresholds: "
        "bert-base: 1.21 1.19 1.32 / 1.13 1.15 1.28 / 1.11 1.13 1.22; roberta: 6.44 6.81 1.4"
    )
    assert outcome.measured.startswith(
        "ratios of cosine, dot, attention, by model and threshold: "
        "bert-base 0.0005: 1.3 [1.1, 1.5] 1.3 [1.1, 1.5] 1.35 [1.1, 1.5]; bert-base 0.001: "
    )
    assert outcome.measured.count(";") == 5
    assert outcome.reason == (
        "every effect has a 95% interval above zero; the attention ratio falls from the smallest threshold to the "
        "largest; with random weights attention shows none"
    )
    assert len(outcome.numbers["rows"]) == 12
    assert outcome.numbers["rows"][5]["attention"]["ratio"] == pytest.approx(1.2)
    assert outcome.tables[0].title == "Same topic over different topic, with 95% intervals"
    assert judged("table5").paper.split(": ", 1)[1].startswith("bert-base: 1.14 1.04 1.23 / ")
    weak = models.probed(4, dot=models.effect(-0.1), cosine=None)
    assert judged("table1", weak).reason.startswith("no effect: cosine of roberta at 0.001, dot of roberta at 0.001; ")
    assert judged("table5", weak).reason.startswith("every effect has a 95% interval above zero; ")
    rising = judged("table5", models.probed(2, attention=models.effect(0.05, 1.36)))
    assert "; the attention ratio does not fall from the smallest" in rising.reason
    loud = judged("table5", models.probed(6, attention=models.effect(-0.1, 1.02)))
    assert loud.reason.endswith("with random weights attention shows an effect")


def test_cooccurrence_in_words() -> None:
    outcome = judged("table2")
    assert outcome.measured.startswith(
        "mean cosine of same-topic against co-occurring pairs, by model and threshold: bert-base 0.0005: 0.5 against "
        "0.4; "
    )
    assert outcome.measured.endswith("; roberta 0.002: 0.45 against 0.4")
    assert outcome.reason.endswith("in 6 of 6 rows")
    assert outcome.numbers["rows"][5]["cosine"]["same_topic"] == 0.45
    assert judged("table2", models.cooccurrence(0.4, (-0.05, 0.05))).reason.endswith("in 5 of 6 rows")
    assert judged("table2", models.cooccurrence(None, None)).measured.endswith("; roberta 0.002: - against 0.4")
    assert len(outcome.tables[0].rows) == 6


def test_word_maps_in_words() -> None:
    outcome = judged("figure3")
    assert outcome.measured == (
        "mean cosine of two words that are one token each: bert-base: inside a group 0.5, between groups 0.1; "
        "roberta: inside a group 0.6, between groups 0.2"
    )
    assert outcome.reason == "the mean cosine inside groups is above that between groups"
    assert outcome.tables[0].rows[1] == ["roberta", *("0.600", "0.200") * 2, "9 of 9", "-"]
    assert outcome.numbers["means"]["roberta"] == pytest.approx([0.6, 0.2])
    assert outcome.ours == pytest.approx(0.4)
    assert [panel.title for panel in outcome.figures[0].panels] == ["bert-base", "roberta"]
    bad = judged("figure3", models.word_maps(0.1, 0.2))
    assert bad.reason == "the mean cosine inside groups is not above that between groups for roberta"


def test_words_that_are_no_whole_tokens_decide_nothing() -> None:
    outcome = judged("figure3", models.word_maps(0.6, 0.2, (1, 2, 2) * 3))
    assert outcome.verdict == "undecided"
    assert outcome.reason == (
        "the mean cosine inside groups is above that between groups; roberta decides nothing: its tokenizer splits 6 "
        "of 9 words into pieces (toad, lizard, beethoven, schubert, arithmetic, calculus), and means of pieces say "
        "little; a model whose tokenizer has 2 words of each group as one token would decide (the paper took "
        "bert-base-uncased); for other words: topicscope words"
    )
    assert outcome.tables[0].rows[1][3:6] == ["-", "-", "3 of 9"]
    assert outcome.ours == pytest.approx(0.4)  # of the model that decides
    nobody = replace(models.word_maps(), maps={"x": models.word_map("x", 0.6, 0.2, (2,) * 9)})
    assert (judged("figure3", nobody).verdict, judged("figure3", nobody).ours) == ("undecided", None)


def test_means_of_whole_tokens_pair_by_pair() -> None:
    words = models.word_map("x", 0.0, 0.0, (1, 1, 2, 1, 3, 1, 2, 1, 1))
    cosine = np.random.default_rng(0).uniform(-1, 1, (9, 9))
    words = replace(words, cosine=cosine + cosine.T)
    pairs: dict[bool, list[float]] = {True: [], False: []}
    for i, j in itertools.permutations([k for k in range(9) if words.pieces[k] == 1], 2):
        pairs[words.groups[i] == words.groups[j]].append(float(words.cosine[i, j]))
    expected = [sum(values) / len(values) for values in (pairs[True], pairs[False])]
    assert language_models.whole_means(words) == pytest.approx(expected, abs=1e-12)
    assert np.isnan(language_models.whole_means(replace(words, pieces=(1, 2, 2) * 3))).all()


def test_small_models_in_words() -> None:
    outcome = judged("table1", models.small_probed())
    assert outcome.reason == (
        "every effect has a 95% interval above zero and is beyond shuffled topics; with random weights attention shows "
        "none; shown, not judged: attention ratio of the encoder: small-bart 0.9 [1.1, 1.5]"
    )
    assert outcome.measured == (
        "same-topic against different-topic mean, by model and threshold: "
        "small-bert 0.1: cosine 0.4 against 0.3, dot 0.4 against 0.3, attention 0.4 against 0.3; "
        "small-bart 0.1: cosine 0.4 against 0.3, dot 0.4 against 0.3, attention 0.4 against 0.3"
    )
    assert outcome.ours == pytest.approx(2.0)  # of the encoder, and of BART's decoder
    assert outcome.paper.split(": ", 1)[1].startswith("small-bert: 1.21 1.19 1.32 / ")
    silent = judged("table1", models.small_probed(1, decoder=models.effect(-0.1, 1.3)))
    assert silent.reason.startswith("no effect: attention of small-bart at 0.1; ")
    assert judged("table2").ours == pytest.approx((5 * 0.1 + 0.05) / 6)


def test_word_maps_are_of_nine_words(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Any] = []
    monkeypatch.setattr(language, "load_model", lambda name: name)
    monkeypatch.setattr(language, "word_map", lambda model, groups: asked.append((model, groups)))
    assert list(EXPERIMENTS["figure3"].measure(Context(models=("a", "b"))).maps) == ["a", "b"]
    assert [model for model, _ in asked] == ["a", "b"]
    assert [len(group) for group in asked[0][1]] == [3, 3, 3]


def test_the_timeline_in_words() -> None:
    outcome = judged("timeline", stages.sandbox_timelines(stages.course(100), stages.course(10)))
    assert outcome.reason == (
        "attention is later in 2 of 3 sandbox runs; on your own text: topicscope reproduce timeline --corpus FILES"
    )
    assert outcome.measured.startswith("sandbox: embedding: cosine: from step 10 on, half of its rise at step 10 ")
    assert [table.title for table in outcome.tables] == [
        f"Sandbox, seed {seed}: when topic structure appears" for seed in range(3)
    ]
    later = [run["later"] for run in outcome.numbers["sandbox"]]
    assert later[0]["ratio"] == pytest.approx(100 / 10, rel=1e-9)
    assert later[1]["ratio"] == pytest.approx(1)
    assert [moment["measure"] for moment in outcome.numbers["sandbox"][0]["moments"]] == ["embedding", "attention"]
    assert json.dumps(outcome.numbers)
    assert "text" not in outcome.numbers


def test_the_timeline_of_a_text_is_reported_and_not_judged() -> None:
    text = stages.timeline_of(stages.course(10), "cosine")
    found = timeline.Found(stages.sandbox_timelines().sandbox, text, {"sandbox": {}, "text": {}})
    outcome = judged("timeline", found)
    assert outcome.verdict == "reproduced"
    assert outcome.reason == "attention is later in 3 of 3 sandbox runs"
    assert ". On the given text: embeddings: cosine: from step 10 on" in outcome.measured
    assert outcome.tables[-1].title == "On the given text: when topic structure appears"
    assert outcome.numbers["text"]["later"]["ratio"] == pytest.approx(1)
    assert any(figure.name.startswith("timeline-text") for figure in outcome.figures)
    assert outcome.figures[0].name == "timeline-sandbox"


@pytest.mark.parametrize("scale", ["quick", "full"])
def test_a_text_is_pretrained_on_and_probed(monkeypatch: pytest.MonkeyPatch, scale: Any) -> None:
    asked: list[Any] = []
    short: Training = shortened(monkeypatch)

    def pretrain(config: Any, folder: str) -> None:
        asked.append((config, Path(folder).name))

    def of_text(config: Any) -> Any:
        asked.append(config)
        return stages.timeline_of(stages.course(100), "cosine")

    config = SimpleNamespace(of=lambda settings: SimpleNamespace(as_dict=lambda: settings))
    monkeypatch.setattr(pretraining, "PretrainConfig", config)
    monkeypatch.setattr(pretraining, "pretrain", pretrain)
    monkeypatch.setattr(language, "timeline", of_text)
    found = EXPERIMENTS["timeline"].measure(Context(scale, 2, (), ("x.txt",)))
    (run, name), probe = asked
    quick = scale == "quick"
    assert run.as_dict() == {
        "text": {"corpus": ["x.txt"]},
        "steps": 1500 if quick else 20_000,
        "model": {"layers": 4, "heads": 4, "dim": 64 if quick else 256, "init_scale": 1e-4, "dropout": 0.0},
        "optimizer": {"lr": 0.001},
        "seed": 2,
        "checkpoint_every": None,
        "held_out": {"share": 0.0},
        "length": 64 if quick else 128,
        "batch_size": 32 if quick else 64,
    }
    assert [Path(folder).name for folder in probe.snapshots] == [name]
    assert (tuple(probe.corpus), probe.seed, probe.threshold) == (("x.txt",), 2, 0.002)
    assert probe.documents == (100 if quick else 250)
    assert found.text is not None
    assert set(found.config) == {"sandbox", "text"}
    assert len(short.runs) == 1
