"""Configurations: one way to build, check, write and vary them, for every command.

Settings from flags, `--set`, YAML files, grid axes and Python keywords have the same names and pass the same check:

    RunConfig.of({"optimizer": {"lr": 0.1}}, steps=100) == RunConfig(steps=100, optimizer=Optimizer(lr=0.1))

Every number has a range. The ranges are far wider than any use, and narrow enough that arithmetic on them neither
overflows nor runs for ever. What fits into a machine is another question, which `machine.py` answers.
"""

import dataclasses
import functools
import glob
import os
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Annotated, Any, ClassVar, Self, TypeVar, dataclass_transform

import numpy as np
import pydantic
from pydantic import BeforeValidator, ConfigDict, Field, ValidationError, ValidatorFunctionWrapHandler, WrapValidator
from pydantic.dataclasses import dataclass
from pydantic_core import PydanticCustomError

from topicscope.ground.errors import InputError, refuse, refuse_if, refusing, reported
from topicscope.ground.files import MOST_OWN, MOST_SETTINGS, MOST_VALUES, parse_yaml, read_text, shown, sound

MOST = 10**9  # of whatever is counted
LARGEST = 1e6  # rates and scales
LONGEST_TEXT = 4096  # signs of a path or of another text
LONGEST_LIST = 100_000
WIDEST = 65_536  # rows or columns of a weight matrix
SMALLEST = 1e-9  # of a probability that something is divided by
MOST_RESAMPLES = 10**6
MOST_RUNS = 1000
MOST_WORKERS = 1024


def _no_boolean(value: object) -> object:
    """Python takes True for 1; who writes `steps: true` has mistaken the key."""
    if isinstance(value, bool):
        raise PydanticCustomError("boolean", "input should be a number")
    return value


def _storable(value: object) -> object:
    """config.yaml could not hold it, and the file could not be found again."""
    if isinstance(value, str) and not sound(value):
        raise PydanticCustomError("utf-8", "it is not UTF-8; rename it")
    return value


def expected(name: str, what: str) -> WrapValidator:
    """A validator for a setting of several kinds: one sentence says what would do."""

    def check(value: object, kinds: ValidatorFunctionWrapHandler) -> object:
        try:
            return kinds(value)
        except ValidationError:
            raise ValueError(f"{name} = {value!r:.100}: expected {what}") from None

    return WrapValidator(check)


number_only = BeforeValidator(_no_boolean)

Count = Annotated[int, Field(ge=1, le=MOST), number_only]
Natural = Annotated[int, Field(ge=0, le=MOST), number_only]
Seed = Annotated[int, Field(ge=0, le=2**63 - 1), number_only]
Width = Annotated[int, Field(ge=1, le=WIDEST), number_only]
Resamples = Annotated[int, Field(ge=0, le=MOST_RESAMPLES), number_only]
Rate = Annotated[float, Field(ge=0, le=LARGEST), number_only]
PositiveRate = Annotated[float, Field(gt=0, le=LARGEST), number_only]
Entry = Annotated[float, Field(ge=-1e9, le=1e9), number_only]  # of a matrix or a vector
Probability = Annotated[float, Field(ge=0, le=1), number_only]
SomeProbability = Annotated[float, Field(ge=SMALLEST, le=1), number_only]
Decay = Annotated[float, Field(ge=0, lt=1), number_only]
Text = Annotated[str, Field(max_length=LONGEST_TEXT), BeforeValidator(_storable)]
Steps = Annotated[list[Natural], Field(max_length=LONGEST_LIST)]
Row = Annotated[list[Entry], Field(max_length=WIDEST)]
Matrix = Annotated[list[Row], Field(max_length=LONGEST_LIST)]


def load_settings(path: str | Path, what: str = "config", *, own: bool = False) -> dict[str, Any]:
    with refusing((InputError,), "", "; give the path of a YAML file"):
        text = read_text(path, f"the {what}", MOST_OWN if own else MOST_SETTINGS)
    settings = parse_yaml(text, f"the {what} {shown(path)}", most=MOST_OWN if own else MOST_VALUES)
    refuse_if(
        settings is not None and not isinstance(settings, dict),
        f"the {what} {shown(path)} holds a {type(settings).__name__}; expected keys and values",
    )
    return settings or {}


def gather(file: str | Path | None, flags: Mapping[str, object], assignments: Iterable[str] = ()) -> dict[str, Any]:
    """The settings of a command: those of a file, then flags, then assignments."""
    settings = {} if file is None else load_settings(file)
    for name, value in flags.items():
        if value is not None:
            assign(settings, name, value)
    for assignment in assignments:
        key, equals, text = assignment.partition("=")
        with refusing((InputError,), f"--set {assignment!r}: "):
            refuse_if(not equals or not key, "expected key=value, for example --set optimizer.lr=0.003")
            assign(settings, key, parsed(text))
    return settings


def assign(settings: dict[str, Any], name: str, value: object) -> None:
    """Set the setting with a dotted name, making the sections on the way."""
    *sections, last = name.split(".")
    node = settings
    for part in sections:
        node = node.setdefault(part, {})
        refuse_if(not isinstance(node, dict), f"{part!r} is not a section")
    node[last] = value


def parsed(text: str) -> Any:
    return number(parse_yaml(text, "the value"))


def number(value: object) -> Any:
    """A text that is a number as a number: YAML 1.1 reads 1e-3 as text."""
    try:
        return float(value) if isinstance(value, str) else value
    except ValueError:
        return value


def flat(settings: Mapping[str, object], prefix: str = "") -> dict[str, Any]:
    result: dict[str, Any] = {}
    for key, value in settings.items():
        result |= flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return result


def merged(settings: Mapping[str, object], more: Mapping[str, object]) -> dict[str, Any]:
    """Two nested settings as one, section by section; where one of them is no section, the second."""
    refuse_if(not isinstance(settings, Mapping), f"expected settings by their names; got {settings!r:.100}")
    both = {
        key: merged(old, value)
        for key, value in more.items()
        if isinstance(value, Mapping) and isinstance(old := settings.get(key), Mapping)
    }
    return {**settings, **more, **both}


def log_steps(steps: int, count: int = 24) -> list[int]:
    """0, and about `count` steps evenly spaced on a logarithmic axis, the last one included."""
    return [0, *np.unique(np.round(np.geomspace(1, steps, count)).astype(int)).tolist()]


Section = TypeVar("Section", bound=type)


@dataclass_transform(frozen_default=True, field_specifiers=(pydantic.Field, dataclasses.field))
def section(cls: Section, *, kw_only: bool = False) -> Section:
    """Make a class a part of a configuration: a frozen dataclass whose values are checked."""
    built: Any = dataclass(frozen=True, kw_only=kw_only, config=ConfigDict(extra="forbid", allow_inf_nan=False))(cls)
    checked_init, names = built.__init__, [field.name for field in dataclasses.fields(built) if not field.kw_only]

    @functools.wraps(checked_init)
    def checked(self: object, *args: object, **settings: object) -> None:
        by_name = dict(zip(names, args, strict=False)) if len(args) <= len(names) else {}  # so that messages have names
        try:
            checked_init(self, *args[len(by_name) :], **by_name, **settings)
        except ValidationError as error:
            raise InputError(reported(error, adapter_of(built), built.__name__)) from None

    built.__init__ = checked
    return built


def only_for(section: Any, name: str, owner: str, *settings: str) -> None:
    """Refuse a setting that belongs to another variant: it would be ignored."""
    for field in dataclasses.fields(section) if section.name != owner else ():
        if field.name in settings and getattr(section, field.name) != field.default:
            raise ValueError(
                f"{name}.{field.name} belongs to {owner}; set {name}.name to {owner}, or leave {name}.{field.name} out"
            )


# once per class: building one takes milliseconds
adapter_of: Callable[[type], pydantic.TypeAdapter[Any]] = functools.cache(pydantic.TypeAdapter)


class Config:
    """Base of the commands' configurations, which are sections with a `seed`."""

    VERSION: ClassVar[int] = 1  # of the format; a file of another version is refused
    FILES: ClassVar[tuple[str, ...]] = ()  # dotted names of the settings that may name files or folders

    seed: int

    @classmethod
    def of(cls, settings: Mapping[str, object] | None = None, /, **more: object) -> Self:
        """Build from nested settings, from keywords, or from both (keywords win)."""
        whole = merged(settings or {}, more)
        version = whole.get("version", cls.VERSION)
        refuse_if(
            version != cls.VERSION,  # first, since another version may have other keys
            f"config version {version!r}: this topicscope reads version {cls.VERSION}; "
            "use the topicscope that wrote it, or write the config again",
        )
        cls.require(whole)
        try:
            config: Self = adapter_of(cls).validate_python(whole)
        except ValidationError as error:
            raise InputError(reported(error, adapter_of(cls), "config")) from None
        return config

    @classmethod
    def require(cls, settings: Mapping[str, Any]) -> None:
        """Raise InputError where something is missing that no default can stand for."""

    def as_dict(self) -> dict[str, Any]:
        return dict(adapter_of(type(self)).dump_python(self, mode="json"))

    def changed(self, settings: Mapping[str, object]) -> Self:
        """The same configuration with some settings changed, by their dotted names: {'optimizer.lr': 0.1}."""
        whole = self.as_dict()
        for name, value in settings.items():
            assign(whole, name, value)
        return type(self).of(whole)

    def with_seeds(self, count: int) -> list[Self]:
        refuse(
            (count < 1, f"seeds: {count}; expected at least one"),
            (
                count > MOST_RUNS,
                f"seeds: {count:,} runs; at most {MOST_RUNS:,} are allowed at once; "
                f"run a sweep with the axis seed: {{seeds: {count}}}",
            ),
        )
        return [dataclasses.replace(self, seed=self.seed + i) for i in range(count)]  # type: ignore[type-var]

    def absolute(self) -> Self:
        """File names in full, so that a run can be resumed from anywhere; what names no file stays as it is."""
        settings = flat(self.as_dict())
        changes = {name: full for name in self.FILES if (full := _absolute(settings.get(name))) != settings.get(name)}
        return self.changed(changes) if changes else self


def _absolute(value: object) -> object:
    if isinstance(value, list):
        return [_absolute(part) for part in value]
    if not isinstance(value, str) or not value:
        return value
    # a name that is too long, links that lead to themselves
    with refusing((OSError, RuntimeError), f"{shown(value):.200} cannot be read: "):
        return os.path.abspath(value) if Path(value).exists() or glob.glob(value) else value  # texts/*.txt names files
