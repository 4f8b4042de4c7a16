"""The settings of the commands: their defaults, and what is refused."""

import inspect
from collections.abc import Callable
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from topicscope import InputError
from topicscope.cli.text import probe, timeline, topics
from topicscope.language import (
    Corpus,
    Measurement,
    ModelPass,
    ProbeConfig,
    TimelineConfig,
    TopicsConfig,
    WordsConfig,
    fit_topics,
    tally_attention,
)
from topicscope.language.configs import topics_config

TEXT: dict[str, Any] = {
    "text_field": "text", "split_text": "auto", "stop_words": "english", "topics": 100, "iterations": 120,
    "max_documents": 2500, "seed": 0,
}  # fmt: skip
PASS: dict[str, Any] = {"windows": 2, "embedding": "matrix", "bootstrap": 1000, "matched": True, "seed": 0}
MEASURED = PASS | {
    "thresholds": [0.0005, 0.001, 0.002], "topics_per_word": ["one"], "shuffles": 1000, "random": True,
    "cooccurrence": True, "states": True, "ablation": True, "show_documents": 5,
}  # fmt: skip
COMMON: dict[str, Any] = {"topics_from": None, "label_field": None, "documents": 250, "device": "auto"}


@pytest.mark.parametrize(
    ("config", "settings"),
    [
        (
            TopicsConfig("x", "t"),
            TEXT | {"corpus": ["x"], "tokenizer": "t", "backend": "tomotopy", "min_documents": 5, "stability": True},
        ),
        (ModelPass(), PASS),
        (Measurement(), MEASURED),
        (ProbeConfig("m", "x"), TEXT | MEASURED | COMMON | {"models": ["m"], "corpus": ["x"]}),
        (
            TimelineConfig("r"),
            TEXT | PASS | COMMON | {"snapshots": ["r"], "corpus": [], "threshold": 0.002, "topics_per_word": "one"},
        ),
        (WordsConfig("m", [["a", "b"]]), {"model": "m", "groups": [["a", "b"]], "embedding": "matrix", "seed": 0}),
    ],
)
def test_defaults_are_those_of_the_documentation(config: Any, settings: dict[str, Any]) -> None:
    """Numbers of earlier versions, and of the tables in the documentation, depend on them."""
    assert config.as_dict() == settings
    assert type(config).of(settings) == config


@pytest.mark.parametrize(("function", "config"), [(fit_topics, TopicsConfig("x", "t")), (tally_attention, ModelPass())])
def test_functions_have_the_defaults_of_the_configs(function: Callable[..., Any], config: Any) -> None:
    settings = config.as_dict()
    shared = {
        name: parameter.default
        for name, parameter in inspect.signature(function).parameters.items()
        if name in settings
    }
    assert len(shared) > 1
    assert shared == {name: settings[name] for name in shared}


@pytest.mark.parametrize("threshold", [0, 1, -0.5, 1.5])
def test_a_threshold_is_a_share(threshold: float) -> None:
    with pytest.raises(InputError, match=f"threshold = {threshold}"):
        TimelineConfig("r", threshold=threshold)
    assert TimelineConfig("r", threshold=0.999).threshold == 0.999


def test_two_words_are_enough_and_one_is_not() -> None:
    assert WordsConfig("m", [["a"], ["b"]]).groups == (("a",), ("b",))
    few: list[list[list[str]]] = [[["a"]], [[]], []]
    for groups in few:
        with pytest.raises(InputError, match="at least two words"):
            WordsConfig("m", groups)


def test_paths_stand_for_their_names() -> None:
    config = ProbeConfig.of(models=[Path("a/b"), "c"], corpus=Path("d"), topics_from=Path("e"))
    assert (config.models, config.corpus, config.topics_from) == (("a/b", "c"), ("d",), "e")


def test_the_fit_inside_a_probe_has_its_settings() -> None:
    config = ProbeConfig("m", ["x", "y"], topics=7, iterations=3, max_documents=None, seed=4, text_field="body")
    assert topics_config(config, "t") == TopicsConfig(
        ["x", "y"], "t", topics=(7,), iterations=3, max_documents=None, seed=4, text_field="body", stability=False
    )


def test_one_number_of_topics_is_written_as_one() -> None:
    one, several = (TopicsConfig.of(corpus="x", tokenizer="t", topics=topics) for topics in (7, [25, 50]))
    assert (one.topics, one.as_dict()["topics"]) == ((7,), 7)
    assert (several.topics, several.as_dict()["topics"]) == ((25, 50), [25, 50])
    assert TopicsConfig.of(several.as_dict()) == several
    twice = "topics = 5 is given more than once"
    for count, said in ((1, "topics.0 = 1"), ([5, 1], "topics.1 = 1"), ([], r"topics = \[\]"), ([7, 5, 5], twice)):
        with pytest.raises(InputError, match=said):
            TopicsConfig.of(corpus="x", tokenizer="t", topics=count)


@pytest.mark.parametrize("config", [TopicsConfig, ProbeConfig])
def test_a_quick_preset_asks_for_less_of_everything(config: Any) -> None:
    names = {"models": "m", "corpus": "x"} if config is ProbeConfig else {"corpus": "x", "tokenizer": "t"}
    usual, quick = config.of(names).as_dict(), config.of({**names, **config.QUICK}).as_dict()
    assert {name for name in usual if usual[name] != quick[name]} == set(config.QUICK)
    assert all(quick[name] < usual[name] for name in config.QUICK)


@pytest.mark.parametrize("name", ["a\udcff.txt", "a\0.txt"])
def test_names_that_no_config_file_can_hold_are_refused(name: str) -> None:
    for models, corpus in (("x", name), ("x", ["b.txt", name]), (name, "b.txt")):
        with pytest.raises(InputError, match="it is not UTF-8; rename it") as caught:
            ProbeConfig(models, corpus)
        str(caught.value).encode()  # and can be printed


def test_links_that_lead_nowhere_and_names_too_long_are_one_line(tmp_path: Path) -> None:
    (tmp_path / "loop.txt").symlink_to(tmp_path / "loop.txt")
    with pytest.raises(InputError, match="cannot be read: File name too long"):
        TopicsConfig("a" * 300, "x").absolute()
    with pytest.raises(InputError, match="cannot be read: Too many levels of symbolic links"):
        Corpus(TopicsConfig(str(tmp_path / "loop.txt"), "x").absolute().corpus).check()


@pytest.mark.parametrize(
    ("command", "config"), [(probe, ProbeConfig), (timeline, TimelineConfig), (topics, TopicsConfig)]
)
def test_shown_defaults_are_those_of_the_config(command: Callable[..., int], config: Any) -> None:
    defaults = {part.name: part.default for part in fields(config)}
    compared = 0
    for name, parameter in inspect.signature(command, eval_str=True).parameters.items():
        option = getattr(parameter.annotation, "__metadata__", [None])[0]
        if isinstance(getattr(option, "show_default", None), str):
            default = defaults[name]
            if isinstance(default, tuple):
                default = ", ".join(map(str, default))
            assert option.show_default == (name if default is True else str(default)), name
            compared += 1
    assert compared > 7
