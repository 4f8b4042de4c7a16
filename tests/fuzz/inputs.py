"""Inputs: every option of every command with values of every kind, by flag, by --set and by file.

Options are read from the commands' signatures and settings from their config classes: what is added is tested.
"""

import functools
import inspect
import types
from dataclasses import dataclass
from random import Random
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import yaml

from tests.fuzz import fixtures, values
from tests.fuzz.cases import Case, Expect, File, Maker


@dataclass(frozen=True)
class Base:
    """A command line that works, is fast, and to which something is added; and the fixtures that it reads."""

    argv: tuple[str, ...]
    uses: tuple[str, ...] = ()
    config: str = ""  # its config class, MODULE:NAME

    def case(self, id_: str, more: tuple[str, ...], expect: Expect, *places: Any, note: str = "") -> Case:
        name = " ".join(self.argv[:2]) if self.argv[0] == "theory" else self.argv[0]
        return Case(id_, name, (*self.argv, *more), expect, self.uses, places, note=note)


TEXT = ("corpus.txt", "model", "topics")
BASES = {
    "train": Base(("train", *fixtures.TRAIN, "--steps", "3"), (), "training:RunConfig"),
    "pretrain": Base(
        ("pretrain", *fixtures.PRETRAIN, "--steps", "2", "--snapshots", "none"),
        ("corpus.txt",),
        "pretraining:PretrainConfig",
    ),
    "topics": Base(
        ("topics", "corpus.txt", "--tokenizer", "model", "--min-documents", "1", *fixtures.TOPICS),
        ("corpus.txt", "model"),
        "language:TopicsConfig",
    ),
    "probe": Base(
        ("probe", "model", *fixtures.PROBE, *fixtures.FAST, "--topics-from", "topics"), TEXT, "language:ProbeConfig"
    ),
    "timeline": Base(
        ("timeline", "pre", *fixtures.PROBE, "--topics-from", "topics"),
        ("corpus.txt", "pre", "topics"),
        "language:TimelineConfig",
    ),
    "words": Base(("words", "model", "bread", "boat", "/", "judge"), ("model",)),
    "sweep": Base(("sweep", "grid.yaml", "--engine", "serial"), ("grid.yaml",)),
    "reproduce": Base(("reproduce", "figure8", "--engine", "serial"), ()),
    "list": Base(("list",)),
    "show": Base(("show", "train"), ("train",)),
    "report": Base(("report", "train"), ("train",)),
    "bench": Base(("bench", "--quick", "--part", "nothing")),  # refused whatever else is said: it takes long
    "theory theorem1": Base(("theory", "theorem1")),
    "theory theorem2": Base(("theory", "theorem2")),
    "theory theorem3": Base(("theory", "theorem3")),
    "theory theorem5": Base(("theory", "theorem5")),
    "theory landscape": Base(("theory", "landscape", "--topics", "4", "--words-per-topic", "3")),
    "theory optimum": Base(
        ("theory", "optimum", "--topics", "4", "--words-per-topic", "3", "--length", "9"), (), "training:RunConfig"
    ),
    "theory verify": Base(("theory", "verify", "--no-such-option")),  # the same
}
NEVER_WORKS = ("bench", "theory verify")
CONFIGURED = tuple(name for name, base in BASES.items() if base.config)

WRONG_INTEGERS = ("many", "1.5", "", "1e3", "0x10", "[1]", "null", "nan", "-1", "-1000000", str(-(10**30)), "1 2", "--")
WRONG_FLOATS = ("many", "", "nan", "inf", "-inf", "-1", "-1e-300", "1,5", "[0.1]", "null")
ODD_FLOATS = ("0", "1e-300", "1e308", "1e400", "5e-324", "1", "0.999999999999")
ODD_WORDS = (
    "", " ", "sideways", "[bold]x", "run[/]", "é", "\u202e", "x" * 300, "a\nb", "null", "[]", "{", "1e308", "nan",
    "-1", "0", "None", "*", "../..", "~", "hf:nobody/nothing", "hf:", "[0,1", "{a: 1", "[[1]]", "[1e30]", "%s", "{0}",
)  # fmt: skip
CHOICES = (
    *("prior", "embedding", "value", "loss", "optimizer", "schedule", "device", "backend", "split_text", "engine"),
    *("topics_per_word", "train_tokenizer", "architecture", "scale", "convention", "value_matrix", "weighting"),
)
"""Options that take one of a few words, though their type may be text."""


@dataclass(frozen=True)
class Option:
    """An option or an argument of a command: its parameter, its first name, the type of its values."""

    name: str
    flag: str  # empty: an argument
    kind: Any


@functools.cache
def options(command: str) -> tuple[Option, ...]:
    """The options of a command, by its signature."""
    from topicscope.cli import main, theory

    registered = [*main.application().registered_commands, *theory.app.registered_commands]
    wanted = command.rsplit(" ", 1)[-1]
    callback: Any = next(one.callback for one in registered if one.name == wanted)
    hints = getattr(callback, "__annotations__", {})
    hints = hints if "__signature__" in vars(callback) else get_type_hints(callback, include_extras=True)
    return tuple(_option(name, hints[name]) for name in inspect.signature(callback).parameters)


def _option(name: str, hint: Any) -> Option:
    kind, info = get_args(hint)[:2] if get_origin(hint) is Annotated else (hint, None)
    if get_origin(kind) in (Union, types.UnionType):
        kind = next(part for part in get_args(kind) if part is not type(None))
    if get_origin(kind) is list:
        kind = get_args(kind)[0]
    named = [text for text in (getattr(info, "param_decls", None) or ()) if text.startswith("--")]
    argument = type(info).__name__ == "ArgumentInfo"
    return Option(name, "" if argument else (named[0].split("/")[0] if named else f"--{name.replace('_', '-')}"), kind)


def by_flag(command: str) -> Maker:
    """An option with a value that is wrong, or odd."""

    def make(rng: Random, id_: str) -> Case:
        base = BASES[command]
        option = rng.choice([one for one in options(command) if one.flag] or [Option("none", "--none", str)])
        value, expect = flag_value(rng, option)
        more = (f"{option.flag}={value}",) if option.kind is bool else (option.flag, value)
        if rng.random() < 0.1:  # a misspelt one
            more, expect = (option.flag[:-1] + "q", *more[1:]), Expect.REFUSED
        return base.case(id_, more, Expect.REFUSED if command in NEVER_WORKS else expect)

    return make


def flag_value(rng: Random, option: Option) -> tuple[str, Expect]:
    if option.kind is bool:
        return rng.choice(("maybe", "1", "")), Expect.REFUSED
    if option.kind is int:
        huge = values.BEYOND if option.name in values.TIMES else (*values.HUGE, *values.BEYOND)
        wrong = rng.random() < 0.5
        return (rng.choice(WRONG_INTEGERS), Expect.REFUSED) if wrong else (rng.choice((*huge, "0")), Expect.EITHER)
    if option.kind is float:
        wrong = rng.random() < 0.6
        return (rng.choice(WRONG_FLOATS), Expect.REFUSED) if wrong else (rng.choice(ODD_FLOATS), Expect.EITHER)
    if get_origin(option.kind) is Literal or option.name in CHOICES:
        return rng.choice(("sideways", "", "-1", "[]", "x" * 300, "[/]", "1e30")), Expect.REFUSED
    return rng.choice(ODD_WORDS), Expect.EITHER


@functools.cache
def schema(config: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """The schema of a config class, and that of each of its settings."""
    import importlib

    from topicscope.ground.config import adapter_of

    module, _, name = config.partition(":")
    whole = adapter_of(getattr(importlib.import_module(f"topicscope.{module}"), name)).json_schema()
    return whole, dict(values.settings(whole))


def by_assignment(command: str) -> Maker:
    """`--set` of any setting."""

    def make(rng: Random, id_: str) -> Case:
        base = BASES[command]
        whole, each = schema(base.config)
        name = rng.choice(sorted(each))
        value = values.draw(rng, name)
        wrong = values.surely_wrong(value, each[name], whole, lists="language" in base.config)
        expect = Expect.REFUSED if wrong else Expect.EITHER
        return base.case(id_, ("--set", f"{name}={value}"), expect)

    return make


def by_file(command: str) -> Maker:
    """A YAML file with any setting. Flags win over a file, so those of the base that say the same are no hindrance."""

    def make(rng: Random, id_: str) -> Case:
        base = BASES[command]
        whole, each = schema(base.config)
        name = rng.choice(sorted(each))
        value, (*sections, last) = values.draw(rng, name), name.split(".")
        lines = [f"{'  ' * depth}{part}:" for depth, part in enumerate(sections)]
        text = "\n".join([*lines, f"{'  ' * len(sections)}{last}: {value}"]) + "\n"
        expect = Expect.EITHER if given(name, base) else expected(text, name, each[name], whole, base)
        return base.case(id_, ("--config", "settings.yaml"), expect, File("settings.yaml", text.encode()))

    return make


def given(name: str, base: Base) -> bool:
    """Whether the base's own options may stand in place of a setting of this name, or of a section around it."""
    last = name.rsplit(".", 1)[-1]
    named = {argument.lstrip("-").replace("-", "_").split("=")[0].split(".")[-1] for argument in base.argv}
    return last in named | {"kind", "documents", "models", "corpus", "snapshots", "text", "tokenizer", "thresholds"}


def expected(text: str, name: str, node: Any, whole: dict[str, Any], base: Base) -> Expect:
    """Refused where the file is no YAML, or its value no value of the setting."""
    try:
        value = yaml.safe_load(text)
        for part in name.split("."):
            value = value[part]
    except Exception:  # PyYAML raises whatever comes
        return Expect.REFUSED
    fits = values.fits(value, node, whole, "language" in base.config)
    return Expect.EITHER if fits else Expect.REFUSED


UNKNOWN = (
    *("stepz", "a.b.c", "optimizer.lrr", "topic_model.words", "", ".", "..", "a..b", "1", "é", "[bold]", "null", " "),
)


def by_key(command: str) -> Maker:
    """Keys that are unknown, doubled, no words, or not what the section is."""

    def make(rng: Random, id_: str) -> Case:
        base = BASES[command]
        _, each = schema(base.config)
        name = rng.choice(sorted(each))
        kind = rng.randrange(6)
        if kind == 0:
            return base.case(id_, ("--set", f"{rng.choice(UNKNOWN)}=1"), Expect.REFUSED)
        if kind == 1:
            return base.case(
                id_, ("--set", rng.choice(("steps", "=", "=1", "", " = ", "\n", "[bold]"))), Expect.REFUSED
            )
        if kind == 2:
            return base.case(id_, ("--set", f"{name}.{rng.choice(('x', 'x.y', '0', ''))}=1"), Expect.REFUSED)
        last = name.rsplit(".", 1)[-1]
        text = {
            3: f"{name.split('.')[0]}: 1\n{name.split('.')[0]}: 1\n",  # doubled
            4: rng.choice(
                ("[a, b]: 1\n", "{a: 1}: 2\n", "1: 2\n", "null: 1\n", "2001-01-01: 1\n", "? \n: 1\n", "true: 1\n")
            ),
            5: rng.choice((f"{last}x: 1\n", f"unknown: {{{last}: 1}}\n", "version: 99\n", "version: [1]\n")),
        }[kind]
        return base.case(id_, ("--config", "settings.yaml"), Expect.REFUSED, File("settings.yaml", text.encode()))

    return make


def as_is(command: str) -> Maker:
    """The base itself works; so the cases that are refused are refused for what was added."""

    def make(rng: Random, id_: str) -> Case:
        more = ("--json",) if rng.random() < 0.5 and command != "report" else ()
        return BASES[command].case(id_, more, Expect.WORKS)

    return make


def makers() -> dict[str, Maker]:
    """The classes of inputs that this module knows, by name."""
    found: dict[str, Maker] = {f"{name}: flags": by_flag(name) for name in BASES if options(name)}
    for name in CONFIGURED:
        found |= {f"{name}: set": by_assignment(name), f"{name}: file": by_file(name), f"{name}: keys": by_key(name)}
    return found | {f"{name}: as is": as_is(name) for name in BASES if name not in NEVER_WORKS}
