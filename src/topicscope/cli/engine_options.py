"""`--engine`, `--address`, `--workers`: where the work is done, for every command that can share it out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Annotated, cast

import typer

if TYPE_CHECKING:
    from topicscope.ground import Engine, Name

EngineOption = Annotated[
    str,
    typer.Option(
        "--engine", help="Where the work is done: serial (this process), local (processes here) or ray (a cluster)."
    ),
]
AddressOption = Annotated[
    str | None,
    typer.Option(
        "--address",
        help="Of Ray: local (one started for this command; default), auto (the one running here), or HOST[:PORT] of its head.",
    ),
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        "--workers", help="Processes of the engine local, or of a Ray started here; default: one a core.", min=1
    ),
]


def check_engine(engine: str, address: str | None, workers: int | None = None) -> None:
    """What can be said at once, before anything is loaded or started."""
    from topicscope.ground import NAMES, InputError

    if engine not in NAMES:
        raise InputError(f"--engine {engine}: expected {', '.join(NAMES)}")
    if address is not None and engine != "ray":
        raise InputError(
            f"--address {address} is for --engine ray, but the engine is {engine}; choose --engine ray, or leave --address out"
        )
    if workers is not None and engine == "serial":
        raise InputError(f"--workers {workers} is for the engines local and ray, but the engine is serial")
    if engine == "ray" and find_spec("ray") is None:
        raise InputError(
            "ray is not installed, and --engine ray needs it; install it with: pip install 'topicscope[cluster]'"
        )


@contextmanager
def chosen_engine(
    engine: str, address: str | None = None, workers: int | None = None, gpus: float = 0
) -> Iterator[Engine]:
    """The engine that the options name; `gpus`: of each Ray task."""
    from topicscope.ground import open_engine

    check_engine(engine, address, workers)
    with open_engine(cast("Name", engine), workers=workers, address=address or "local", gpus=gpus) as opened:
        yield opened
