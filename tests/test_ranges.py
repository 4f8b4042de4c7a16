"""Every setting of every configuration has a range: a number both bounds, a list and a text a longest length."""

from collections.abc import Iterator
from typing import Any

import pytest

from topicscope import InputError, RunConfig
from topicscope.explorer.theory_room import Question
from topicscope.ground import Config
from topicscope.ground.config import adapter_of
from topicscope.language import ProbeConfig, TimelineConfig, TopicsConfig, WordsConfig
from topicscope.pretraining import PretrainConfig
from topicscope.sweeps import GridConfig
from topicscope.world import Dirichlet, Fixed, Given, Groups, LogisticNormal
from topicscope.world.world import WorldSettings

CONFIGS: list[type] = [
    *(RunConfig, PretrainConfig, TopicsConfig, ProbeConfig, TimelineConfig, WordsConfig, GridConfig),
    *(Dirichlet, Fixed, Given, Groups, LogisticNormal, Question, WorldSettings),
]
LOWER, UPPER = {"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}


def unbounded(schema: dict[str, Any], node: dict[str, Any], path: str) -> Iterator[str]:
    """The settings below a node of a JSON schema that lack a bound."""
    if "$ref" in node:
        node = schema["$defs"][node["$ref"].rsplit("/", 1)[1]]
    if "enum" in node or "const" in node:
        return
    kind = node.get("type")
    if kind in ("integer", "number") and not (LOWER & set(node) and UPPER & set(node)):
        yield path
    if kind == "string" and "maxLength" not in node:
        yield path
    if kind == "array" and "maxItems" not in node:
        yield path
    if kind == "object" and "properties" not in node and "maxProperties" not in node and "propertyNames" not in node:
        yield path
    for option in (
        *node.get("anyOf", ()),
        *node.get("oneOf", ()),
        *node.get("allOf", ()),
        *node.get("prefixItems", ()),
    ):
        yield from unbounded(schema, option, path)
    for name, inner in node.get("properties", {}).items():
        yield from unbounded(schema, inner, f"{path}.{name}")
    for name in ("items", "additionalProperties"):
        if isinstance(node.get(name), dict):
            yield from unbounded(schema, node[name], f"{path}[]")


@pytest.mark.parametrize("config", CONFIGS)
def test_every_setting_has_a_range(config: type) -> None:
    schema = adapter_of(config).json_schema()
    assert list(unbounded(schema, schema, config.__name__)) == []


def test_all_configurations_are_looked_at() -> None:
    def below(kind: type) -> set[type[Any]]:
        return {kind}.union(*map(below, kind.__subclasses__()))

    bases = {"TextConfig", "ModelPass", "Measurement"}  # what the commands' configs are made of
    ours = {kind for kind in below(Config) - {Config} if kind.__module__.startswith("topicscope.")}
    assert {kind.__name__ for kind in ours} - bases <= {kind.__name__ for kind in CONFIGS}


def test_a_setting_without_a_range_is_found() -> None:
    schema = {
        "type": "object",
        "properties": {
            "free": {"type": "integer", "minimum": 1},
            "long": {"anyOf": [{"type": "array", "maxItems": 3, "items": {"type": "number"}}, {"type": "null"}]},
            "name": {"type": "string"},
            "good": {"type": "integer", "minimum": 1, "maximum": 3},
        },
    }
    assert list(unbounded(schema, schema, "x")) == ["x.free", "x.long[]", "x.name"]


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"steps": 10**10}, "steps = 10000000000: input should be less than or equal to 1000000000"),
        ({"steps": True}, "steps = True: input should be a number"),
        ({"seed": 2**63}, "seed = 9223372036854775808"),
        ({"optimizer": {"lr": 1e7}}, "optimizer.lr = 10000000.0: input should be less than or equal to 1000000"),
        ({"model": {"init_scale": 1e308}}, "model.init_scale = 1e+308"),
        ({"model": {"attention_dim": 10**6}}, "model.attention_dim = 1000000"),
        ({"masking": {"p_mask": 1e-300}}, "masking.p_mask = 1e-300"),
        ({"documents": {"length": 10**9}}, "documents.length = 1000000000"),
        ({"documents": {"alpha": 1e300}}, "documents.alpha = 1e+300"),
        ({"objective": {"l2": {"value": 1e9}}}, "objective.l2.value = 1000000000.0"),
        ({"data": {"train_file": "x" * 5000}}, "data.train_file"),
        ({"epochs": 1e6, "batch_size": 1}, "makes 10,000,000,000 steps; at most 1,000,000,000 are allowed"),
    ],
)
def test_the_ends_of_ranges(settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError) as error:
        RunConfig.of(settings)
    assert said in str(error.value)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize(
    ("config", "settings", "said"),
    [
        (
            RunConfig,
            {"optimizer": {"momentum": 0.9}},
            "optimizer.momentum belongs to sgd; set optimizer.name to sgd, or",
        ),
        (RunConfig, {"optimizer": {"name": "sgd", "eps": 1e-3}}, "optimizer.eps belongs to adam"),
        (RunConfig, {"optimizer": {"name": "sgd", "betas": [0.5, 0.5]}}, "optimizer.betas belongs to adam"),
        (
            PretrainConfig,
            {"text": {"corpus": ["x"]}, "optimizer": {"momentum": 0.9}},
            "optimizer.momentum belongs to sgd",
        ),
        (PretrainConfig, {"text": {"corpus": ["x"]}, "optimizer": {"name": "sgd", "eps": 1.0}}, "belongs to adamw"),
    ],
)
def test_settings_that_would_be_ignored_are_refused(config: type[Config], settings: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=said):
        config.of(settings)


def test_more_runs_than_are_taken_at_once_are_sent_to_a_sweep() -> None:
    assert len(RunConfig().with_seeds(1000)) == 1000
    with pytest.raises(InputError, match=r"run a sweep with the axis seed: \{seeds: 1000000000\}"):
        RunConfig().with_seeds(10**9)
