"""`topicscope`: the command. Exit codes: 0 done, 1 ran and something failed, 2 bad input (one line, no traceback)."""

from __future__ import annotations

import os
import sys

import click
import typer

from topicscope.errors import InputError

app = typer.Typer(
    name="topicscope",
    help="A laboratory for how transformers learn topic structure.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode="rich",
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        from topicscope import __version__

        typer.echo(__version__)
        raise typer.Exit


@app.callback()
def _root(version: bool = typer.Option(False, "--version", callback=_version, is_eager=True, help="Print the version and exit.")) -> None:
    pass


def fail(message: str, code: int = 2) -> int:
    """One line on stderr."""
    typer.echo(f"topicscope: {' '.join(str(message).split())}", err=True)
    return code


def main() -> None:
    from topicscope.cli import bench, report, show, train

    for command in (train.command, show.command, report.command, bench.command):
        app.command(name=command.__module__.rsplit(".", 1)[1])(command)
    try:
        code = app(standalone_mode=False)
    except InputError as error:
        code = fail(str(error))
    except click.exceptions.NoArgsIsHelpError as error:
        typer.echo(error.format_message(), err=True)
        code = 2
    except click.ClickException as error:
        code = fail(error.format_message())
    except (click.Abort, KeyboardInterrupt):
        code = fail("interrupted; what was finished is kept", 130)
    except BrokenPipeError:  # the reader of a pipe has gone
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        code = 0
    except OSError as error:
        code = fail(f"{error.strerror or error}{f' ({error.filename})' if error.filename else ''}", 1)
    sys.exit(code if isinstance(code, int) else 0)


if __name__ == "__main__":
    main()
