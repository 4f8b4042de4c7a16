"""`topicscope explore`: the explorer in the browser."""

import sys
import webbrowser
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from topicscope.cli import consoles, theory
from topicscope.cli.options import AsJson, UsageError, misuse, option
from topicscope.ground import InputError, check_out, nearest, require

SERVER = "Server"
ASKED = frozenset(
    [
        *("topics", "words_per_topic", "topics_per_document", "p_mask", "p_correct", "p_random"),
        *("convention", "value_matrix", "cap", "prior", "alpha", "groups"),
        *("rho", "length", "weighting", "init_scale", "attention_dim", "loss"),
        *("embedding", "width", "optimizer", "lr", "eps", "loss_scale"),
        *("batch_noise", "output_bias"),
    ]
)
"""Options that a request may give: numbers and words, nothing that names a file or says where an answer goes."""


def command(
    folders: Annotated[
        list[Path] | None, typer.Argument(help="Other folders to show, besides the workspace.", show_default=False)
    ] = None,
    workspace: Annotated[Path, option("Folder for new runs; what it holds is shown too.", SERVER)] = Path("runs"),
    port: Annotated[int, option("Port to listen on; 0: any free port.", SERVER, min=0, max=65535)] = 0,
    host: Annotated[
        str, option("Address to listen on; with any but a loopback address, other machines can connect.", SERVER)
    ] = ("127.0.0.1"),
    open_: Annotated[bool, option("Open the browser.", SERVER, "--open/--no-open")] = True,
    read_only: Annotated[
        bool, option("View only: no run can be started, paused or resumed.", SERVER, "--read-only")
    ] = False,
    as_json: AsJson = False,
) -> int:
    """Open the explorer in the browser: change settings and see the theory, watch runs learn, browse results.

    Example: [bold]topicscope explore runs[/bold]
    """
    require(["starlette", "uvicorn"], "the explorer")
    from topicscope import explorer

    check_out(workspace)
    place = explorer.Workspace(workspace, folders or [])
    if not explorer.is_loopback(host):
        typer.echo(
            f"topicscope: warning: {host} can be reached from other machines, without encryption; "
            "anyone who has the token can start runs here",
            err=True,
        )

    def ready(url: str, bound: int) -> None:
        if as_json:
            consoles.print_json({"url": url, "port": bound, "workspace": str(place.home)})
            sys.stdout.flush()
        else:
            typer.echo(f"The explorer is at {url}\nCtrl-C stops the explorer; its runs continue.")
        if open_:
            webbrowser.open(url)

    explorer.serve(place, answer, ready, host=host, port=port, read_only=read_only)
    return 0


def answer(name: str, options: Mapping[str, str]) -> Any:
    """The JSON of `topicscope theory NAME`, computed in this process."""
    group: Any = typer.main.get_command(theory.app)
    if name not in group.commands:
        raise InputError(f"no such command of theory; {nearest(name, list(group.commands))}")
    known = {one.name: one for one in group.commands[name].params if one.name in ASKED}
    arguments = []
    for key, text in options.items():
        if key not in known:
            raise InputError(f"{name} has no option {key!r:.80}; expected: {', '.join(known)}")
        flag = max(known[key].opts, key=len)
        arguments += [flag] * (text.lower() in ("true", "1")) if known[key].is_flag else [f"{flag}={text}"]
    with consoles.answered() as answers:
        try:
            group.main([name, *arguments, "--json"], standalone_mode=False)
        except UsageError as error:
            raise InputError(misuse(error)) from None
    return answers[0]
