"""Configurations: one way to build, check, write and vary them, for every command.

Settings from flags, `--set`, YAML files, grid axes and Python keywords have the same names and pass the same check:

    RunConfig.of({"optimizer": {"lr": 0.1}}, steps=100) == RunConfig(steps=100, optimizer=Optimizer(lr=0.1))
"""

from __future__ import annotations

import dataclasses
import functools
import glob
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, dataclass_transform

import pydantic
from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

from topicscope.ground.errors import InputError, one_line, validated
from topicscope.ground.settings import assign, flat, merged

STRICT = ConfigDict(extra="forbid", arbitrary_types_allowed=True, allow_inf_nan=False)
"""Every section refuses keys that it does not know."""

Section = TypeVar("Section", bound=type)


@dataclass_transform(frozen_default=True, field_specifiers=(pydantic.Field, dataclasses.field))
def section(cls: Section) -> Section:
    """A part of a configuration: a frozen dataclass whose values are checked. A wrong one is an InputError."""
    built: Any = dataclass(frozen=True, config=STRICT)(cls)
    checked_init = built.__init__

    @functools.wraps(checked_init)
    def checked(self: Any, *args: Any, **settings: Any) -> None:
        try:
            checked_init(self, *args, **settings)
        except pydantic.ValidationError as error:
            raise InputError(one_line(error, adapter_of(built), built.__name__)) from None

    built.__init__ = checked
    return built


def adapter_of(cls: type) -> pydantic.TypeAdapter[Any]:
    if cls not in ADAPTERS:
        ADAPTERS[cls] = pydantic.TypeAdapter(cls)
    return ADAPTERS[cls]


ADAPTERS: dict[type, pydantic.TypeAdapter[Any]] = {}
"""Made once per class: building one takes milliseconds."""


class Config:
    """Base of the commands' configurations, which are sections with a `seed`."""

    VERSION: ClassVar[int] = 1
    """Of the format; a file of another version is refused."""

    FILES: ClassVar[tuple[str, ...]] = ()
    """Dotted names of the settings that may name files or folders."""

    @classmethod
    def of(cls, settings: Mapping[str, Any] | None = None, /, **more: Any) -> Self:
        """Build from nested settings, from keywords, or from both (keywords win)."""
        whole = merged(settings or {}, more)
        version = whole.get("version", cls.VERSION)
        if version != cls.VERSION:  # first, since another version may have other keys
            raise InputError(
                f"config version {version!r}: this topicscope reads version {cls.VERSION}; "
                "use the topicscope that wrote it, or write the config anew"
            )
        cls.require(whole)
        config = validated(adapter_of(cls), whole)
        if not isinstance(config, cls):
            raise TypeError(f"{cls.__name__} was built as {type(config).__name__}")
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
        first = getattr(self, "seed")  # noqa: B009  (a field of every subclass)
        return [dataclasses.replace(self, seed=first + i) for i in range(count)]  # type: ignore[type-var]

    def absolute(self) -> Self:
        """File names in full, so that a run can be resumed from anywhere; what names no file stays as it is."""
        names = flat(self.as_dict())
        changes = {name: _absolute(names[name]) for name in self.FILES if names.get(name) is not None}
        return self.changed(changes) if any(changes[name] != names[name] for name in changes) else self


def _absolute(value: Any) -> Any:
    if isinstance(value, list) and all(isinstance(part, str) for part in value):
        return [_absolute(part) for part in value]
    names_files = isinstance(value, str) and value and (Path(value).exists() or glob.glob(value))  # texts/*.txt does
    return str(Path(value).resolve()) if names_files else value
