"""`--engine`, `--address`, `--workers`: where the work is done, for every command that can share it out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, cast

from topicscope.cli.options import option

if TYPE_CHECKING:
    from topicscope.ground import Engine, Name

ENGINE = "Engine"

EngineOption = Annotated[
    str,
    option("Where the work is done: serial (this process), local (processes here) or ray (a cluster).", ENGINE),
]
AddressOption = Annotated[
    str | None,
    option(
        "Of Ray: local (started for this command), auto (the one running here), or HOST[:PORT] of its head.", ENGINE
    ),
]
WorkersOption = Annotated[
    int | None,
    option("Processes of the engine local, or of a Ray started here; default: one per core.", ENGINE, min=1),
]


@contextmanager
def chosen_engine(
    engine: str, address: str | None = None, workers: int | None = None, *, device: str = "cpu"
) -> Iterator[Engine]:
    """The engine that the options name; a Ray task that computes on a GPU asks for one."""
    from topicscope.ground import check_engine, open_engine, usable_device

    check_engine(engine, workers=workers, address=address)
    gpus = int(engine == "ray" and usable_device(device) == "cuda")
    with open_engine(cast("Name", engine), workers=workers, address=address, gpus=gpus) as opened:
        yield opened
