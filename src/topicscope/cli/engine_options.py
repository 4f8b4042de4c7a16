"""`--engine`, `--address`, `--workers`: where the work is done, for every command that can divide it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, cast

from topicscope.cli.options import option
from topicscope.ground import ENGINES, check_engine as check_by_keyword, open_engine

if TYPE_CHECKING:
    from topicscope.ground import Engine, Name

ENGINE = "Engine"
PLACES = ", ".join(f"{name} ({engine.place})" for name, engine in ENGINES.items())

EngineOption = Annotated[str, option(f"Where the work is done: {PLACES}.", ENGINE, "--engine")]
AddressOption = Annotated[
    str | None, option("Of Ray: local (default), auto, or HOST[:PORT] of a running head.", ENGINE, "--address")
]
WorkersOption = Annotated[
    int | None, option("Processes of local, or of a Ray started here (default: one per core).", ENGINE, min=1)
]


def check_engine(engine: str, address: str | None, workers: int | None = None) -> None:
    """What can be said at once, before anything is loaded or started."""
    check_by_keyword(engine, workers=workers, address=address)


@contextmanager
def chosen_engine(
    engine: str, address: str | None = None, workers: int | None = None, gpus: float = 0
) -> Iterator[Engine]:
    """The engine that the options name; `gpus`: of each Ray task."""
    with open_engine(cast("Name", engine), workers=workers, address=address, gpus=gpus) as opened:
        yield opened
