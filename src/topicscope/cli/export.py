"""`topicscope export`: results for other programs."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from topicscope import exporting
from topicscope.cli import consoles
from topicscope.cli.options import OUTPUT, AsJson, option
from topicscope.ground import progress_shown


def command(
    folder: Annotated[Path, typer.Argument(help="A folder that any topicscope command wrote.", metavar="DIR")],
    to: Annotated[
        Literal["tensorboard", "parquet", "hf"],
        option(
            "tensorboard: curves of train, pretrain and sweeps. parquet: the table of any folder. hf: the model of "
            "pretrain or probe, with a model card.",
            OUTPUT,
        ),
    ],
    out: Annotated[Path | None, option("Where to write (default: beside DIR).", OUTPUT, "--out", "-o")] = None,
    model: Annotated[str | None, option("For hf: which model, if the probe has several.", OUTPUT)] = None,
    force: Annotated[bool, option("Replace an earlier export there.", OUTPUT, "--force")] = False,
    as_json: AsJson = False,
) -> int:
    """Export a folder's results for other programs: to TensorBoard, to Parquet, or as a model folder with a card.

    Example: [bold]topicscope export runs/demo --to tensorboard[/bold]
    """
    with progress_shown() as progress:
        exported = exporting.export(folder, to, out, model=model, force=force, progress=progress)
    if as_json:
        consoles.print_json(exported.as_dict())
    else:
        consoles.print_lines(exported.summary())
    return 0
