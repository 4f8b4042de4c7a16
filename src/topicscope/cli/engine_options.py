"""`--engine`, `--address`, `--workers`: where the work is done, for every command that can share it out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, cast

from topicscope.cli.options import option
from topicscope.ground import ENGINES, open_engine, usable_device

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


@contextmanager
def chosen_engine(
    engine: str, address: str | None = None, workers: int | None = None, *, device: str = "cpu"
) -> Iterator[Engine]:
    """The engine that the options name; a Ray task that computes on a GPU asks for one."""
    gpus = int(engine == "ray" and usable_device(device) == "cuda")
    with open_engine(cast("Name", engine), workers=workers, address=address, gpus=gpus) as opened:
        yield opened
