"""Options that several commands share, each declared once; and what commands make of them."""

from collections.abc import Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any, cast

import pydantic
import typer

from topicscope import language
from topicscope.ground import (
    ENGINES,
    MOST_WORKERS,
    WIDEST,
    Engine,
    Name,
    check_out,
    merged,
    open_engine,
    plain_words,
    refuse,
    usable_device,
)

UsageError = cast("type[typer.BadParameter]", typer.BadParameter.__bases__[0])
"""The base of typer's complaints about arguments; typer has it from click or, since 0.20, within itself."""


def misuse(error: typer.BadParameter) -> str:
    """What typer says of the arguments: in plain words, and with the value."""
    message = error.format_message().removesuffix(".")
    if isinstance(error.__cause__, pydantic.ValidationError):  # of typer since 0.26; before, it gave the value itself
        first = error.__cause__.errors()[0]
        said, value = plain_words(first["type"], first["msg"]), repr(first["input"])
        message = message.replace(error.message.removesuffix("."), said if value in said else f"{value}: {said}")
    return message


OUTPUT, SETTINGS, ENGINE = "Output", "Settings", "Engine"


def option(text: str, panel: str, *names: str, **more: Any) -> object:
    return typer.Option(*names, help=text, rich_help_panel=panel, **more)


def out_option(text: str) -> object:
    """--out, checked before anything else: can a folder be made there and written to?"""
    return option(text, OUTPUT, "--out", "-o", callback=lambda out: out if out is None else check_out(out))


ConfigFile = Annotated[
    Path | None, option("YAML file of settings; other options and --set override it.", SETTINGS, "--config", "-c")
]
Assignments = Annotated[
    list[str] | None, option("Any setting by its name; may be repeated.", SETTINGS, "--set", metavar="KEY=VALUE")
]
Device = Annotated[str | None, option("auto, cpu or cuda.", SETTINGS)]
Out = Annotated[Path | None, out_option("Folder to write (new or empty).")]
Resume = Annotated[bool, option("Continue the run in --out.", OUTPUT, "--resume")]
Force = Annotated[bool, option("Replace the run in --out.", OUTPUT, "--force")]
Yes = Annotated[bool, option("Go ahead even if it may not fit in memory or on the disk.", OUTPUT, "--yes")]
AsJson = Annotated[bool, option("Print only JSON to stdout.", OUTPUT, "--json")]

PLACES = ", ".join(f"{name} ({engine.place})" for name, engine in ENGINES.items())
EngineOption = Annotated[str, option(f"Where the work runs: {PLACES}.", ENGINE, "--engine")]
AddressOption = Annotated[
    str | None, option("For Ray: local (default), auto, or HOST[:PORT] of a running head node.", ENGINE, "--address")
]
WorkersOption = Annotated[
    int | None,
    option(
        "Number of processes, for local or a Ray started here (default: one per core).", ENGINE, min=1, max=MOST_WORKERS
    ),
]


def chosen_engine(
    engine: str, address: str | None = None, workers: int | None = None, *, device: str = "cpu"
) -> AbstractContextManager[Engine]:
    """The engine that the options name; a Ray task that computes on a GPU asks for one."""
    return open_engine(
        cast("Name", engine),
        workers=workers,
        address=address,
        gpus=int(engine == "ray" and (device == "cuda" or usable_device(device) == "cuda")),  # Ray's may have one
    )


WORLD = "World"
WorldFrom = Annotated[
    Path | None, option("Take the topics and mixtures of a corpus: a folder of 'topicscope topics'.", WORLD)
]
KeptWords = Annotated[
    int | None,
    option("With --world-from: number of most probable words to keep (default 500).", WORLD, min=1, max=WIDEST),
]


def world_of(folder: Path | None, words: int | None) -> "language.TopicWorld | None":
    refuse((words is not None and folder is None, "--words says how many words of --world-from are kept; give both"))
    if folder is None:
        return None
    topics = language.Topics.load(folder)
    return language.topic_world(topics) if words is None else language.topic_world(topics, words)


def in_world(world: "language.TopicWorld | None", settings: Mapping[str, object]) -> dict[str, object]:
    """Settings on top of a world. A prior of their own takes the place of the corpus's mixtures, not of its lengths.

    The kind 'infinite' is a length as well, and takes the place of both.
    """
    if world is None:
        return dict(settings)
    given, documents = world.settings, settings.get("documents")
    if isinstance(documents, Mapping) and "kind" in documents:
        lengths = {} if documents["kind"] == "infinite" else {"length": given["documents"]["length"]}
        given = {**given, "documents": lengths}
    return merged(given, settings)
