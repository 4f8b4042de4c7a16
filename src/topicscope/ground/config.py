"""Configurations: one way to build, check, write and vary them, for every command.

Settings from flags, `--set`, YAML files, grid axes and Python keywords have the same names and pass the same check:

    RunConfig.of({"optimizer": {"lr": 0.1}}, steps=100) == RunConfig(steps=100, optimizer=Optimizer(lr=0.1))
"""

import dataclasses
import functools
import glob
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

import pydantic
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from topicscope.ground.checked import one_line as why, shown
from topicscope.ground.errors import InputError, one_line
from topicscope.ground.ranges import MOST_RUNS
from topicscope.ground.settings import assign, flat, merged

Section = TypeVar("Section", bound=type)


@dataclass_transform(frozen_default=True, field_specifiers=(pydantic.Field, dataclasses.field))
def section(cls: Section) -> Section:
    """Make a class a part of a configuration: a frozen dataclass whose values are checked.

    Args:
        cls: The class, with annotated fields.

    Returns:
        The class; a wrong value is an InputError of one line.

    Example:
        >>> @section
        ... class Size:
        ...     words: int = 5
        >>> Size(words="many")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        topicscope.ground.errors.InputError: Size: words = 'many': ...
    """
    strict = ConfigDict(extra="forbid", allow_inf_nan=False)
    built: Any = dataclass(frozen=True, config=strict)(cls)
    checked_init, names = built.__init__, [field.name for field in dataclasses.fields(built) if not field.kw_only]

    @functools.wraps(checked_init)
    def checked(self: Any, *args: Any, **settings: Any) -> None:
        by_name = dict(zip(names, args, strict=False)) if len(args) <= len(names) else {}  # so that messages have names
        try:
            checked_init(self, *args[len(by_name) :], **by_name, **settings)
        except pydantic.ValidationError as error:
            raise InputError(one_line(error, adapter_of(built), built.__name__)) from None

    built.__init__ = checked
    return built


def only_for(section: Any, name: str, owner: str, *settings: str) -> None:
    """Refuse a setting that belongs to another variant: it would be ignored.

    Args:
        section: The section, with a `name`.
        name: What the section is called.
        owner: The variant that the settings belong to.
        settings: Names of settings.

    Raises:
        ValueError: One of them is given, but the variant is another.

    Example:
        >>> from topicscope.training import Optimizer
        >>> only_for(Optimizer(name="sgd"), "optimizer", "adam", "eps") is None
        True
    """
    for setting in settings if section.name != owner else ():
        default = next(field.default for field in dataclasses.fields(section) if field.name == setting)
        if getattr(section, setting) != default:
            raise ValueError(
                f"{name}.{setting} belongs to {owner}; set {name}.name to {owner}, or leave {name}.{setting} out"
            )


# once per class: building one takes milliseconds
adapter_of: Callable[[type], pydantic.TypeAdapter[Any]] = functools.cache(pydantic.TypeAdapter)


class Config:
    """Base of the commands' configurations, which are sections with a `seed`.

    Example:
        >>> from topicscope.training import RunConfig
        >>> config = RunConfig.of({"optimizer": {"lr": 0.1}}, steps=20).changed({"seed": 3})
        >>> isinstance(config, Config), config.as_dict()["seed"], [one.seed for one in config.with_seeds(2)]
        (True, 3, [3, 4])
    """

    VERSION: ClassVar[int] = 1  # of the format; a file of another version is refused
    FILES: ClassVar[tuple[str, ...]] = ()  # dotted names of the settings that may name files or folders

    @classmethod
    def of(cls, settings: Mapping[str, Any] | None = None, /, **more: Any) -> Self:
        """Build from nested settings, from keywords, or from both (keywords win)."""
        whole = merged(settings or {}, more)
        version = whole.get("version", cls.VERSION)
        if version != cls.VERSION:  # first, since another version may have other keys
            raise InputError(
                f"config version {version!r}: this topicscope reads version {cls.VERSION}; "
                "use the topicscope that wrote it, or write the config again"
            )
        cls.require(whole)
        try:
            config: Self = adapter_of(cls).validate_python(whole)
        except pydantic.ValidationError as error:
            raise InputError(one_line(error, adapter_of(cls), "config")) from None
        return config

    @classmethod
    def require(cls, settings: Mapping[str, Any]) -> None:
        """Raise InputError where something is missing that no default can stand for."""

    def as_dict(self) -> dict[str, Any]:
        """All settings, nested, as JSON and YAML hold them."""
        return dict(adapter_of(type(self)).dump_python(self, mode="json"))

    def changed(self, settings: Mapping[str, Any]) -> Self:
        """The same configuration with some settings changed, by their dotted names: {'optimizer.lr': 0.1}."""
        whole = self.as_dict()
        for name, value in settings.items():
            assign(whole, name, value)
        return type(self).of(whole)

    def with_seeds(self, count: int) -> list[Self]:
        """The same run with `count` seeds: seed, seed + 1, ..."""
        if count < 1:
            raise InputError(f"seeds: {count}; expected at least one")
        if count > MOST_RUNS:
            raise InputError(
                f"seeds: {count:,} runs; at most {MOST_RUNS:,} are allowed at once; "
                f"run a sweep with the axis seed: {{seeds: {count}}}"
            )
        first: int = self.seed  # type: ignore[attr-defined]  # which every subclass has
        return [dataclasses.replace(self, seed=first + i) for i in range(count)]  # type: ignore[type-var]

    def absolute(self) -> Self:
        """File names in full, so that a run can be resumed from anywhere; what names no file stays as it is."""
        names = flat(self.as_dict())
        changes = {name: _absolute(names[name]) for name in self.FILES if names.get(name) is not None}
        return self.changed(changes) if any(changes[name] != names[name] for name in changes) else self


def _absolute(value: Any) -> Any:
    if isinstance(value, list):
        return [_absolute(part) for part in value]
    try:
        names_files = (
            isinstance(value, str) and value and (Path(value).exists() or glob.glob(value))
        )  # texts/*.txt does
        return os.path.abspath(value) if names_files else value
    except (OSError, RuntimeError) as error:  # a name that is too long, links that lead to themselves
        raise InputError(f"{shown(value):.200} cannot be read: {why(error)}") from None
