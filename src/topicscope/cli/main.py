"""`topicscope`: the command. Exit codes: 0 done, 1 ran and something failed, 2 bad input (one line, no traceback)."""

import errno
import os
import sys
import traceback
from collections.abc import Callable
from typing import Any

import typer
import typer.core

from topicscope.cli.shell import UsageError, misuse
from topicscope.ground import EngineError, InputError, Interrupted, files, one_line, shown

INTERRUPTED = 130
BARRED = (errno.EISDIR, errno.ENOTDIR, errno.EEXIST, errno.EACCES, errno.EPERM, errno.EROFS, errno.ENAMETOOLONG)
TRACEBACK = "TOPICSCOPE_TRACEBACK"  # set, a fault of topicscope's own is shown whole


def _version(wanted: bool) -> None:
    if wanted:
        from topicscope import __version__

        typer.echo(__version__)
        raise typer.Exit


def _root(
    context: typer.Context,
    version: bool = typer.Option(
        False, "--version", callback=_version, is_eager=True, help="Print the version and exit."
    ),
) -> None:
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


class TheoryGroup(typer.core.TyperGroup):
    """Its commands are imported when they are asked for: they need SciPy, which takes long to import."""

    @property
    def commands(self) -> Any:
        from topicscope.cli import theory

        return typer.main.get_group(theory.app).commands

    @commands.setter
    def commands(self, _: Any) -> None:
        """Nothing is registered beside those of the module."""


def application() -> typer.Typer:
    """The commands by panel of the help. They are imported here, so that an interruption meanwhile is answered too."""
    from topicscope.cli import results, runs, text

    panels: dict[str, dict[str, Callable[..., int]]] = {
        "The paper": {"reproduce": results.reproduce, "list": results.list_},
        "The sandbox": {"train": runs.train, "sweep": runs.sweep},
        "Your models and text": {
            "topics": text.topics,
            "probe": text.probe,
            "timeline": text.timeline,
            "words": text.words,
            "pretrain": runs.pretrain,
        },
        "Results": {
            "show": results.show,
            "report": results.report,
            "export": results.export,
            "explore": results.explore,
            "bench": results.bench,
        },
    }
    app = typer.Typer(
        name="topicscope",
        help="A laboratory for how transformers learn topic structure.",
        invoke_without_command=True,
        pretty_exceptions_enable=False,
        rich_markup_mode="rich",
        context_settings={"help_option_names": ["-h", "--help"]},
        callback=_root,
    )
    for panel, commands in panels.items():
        for name, command in commands.items():
            app.command(name=name, rich_help_panel=panel)(command)
    theory = typer.Typer(help="The theorems for any setting: optima, bounds, landscapes, certificates.")
    app.add_typer(theory, name="theory", cls=TheoryGroup, no_args_is_help=False, rich_help_panel="The paper")
    return app


def fail(message: str, code: int = 2) -> int:
    typer.echo(f"topicscope: {shown(' '.join(str(message).split()))}", err=True)
    return code


def main() -> None:
    try:
        code = application()(prog_name="topicscope", standalone_mode=False)  # also as python -m topicscope
        sys.stdout.flush()  # where the reader of a pipe has gone, Python would find out only when it ends
    except InputError as error:
        code = fail(str(error))
    except UsageError as error:
        code = fail(with_help(misuse(error), error))
    except (typer.Abort, KeyboardInterrupt):
        code = INTERRUPTED
    except Interrupted as stop:  # typer answers the interrupt itself by its code alone
        sys.exit(fail(str(stop), INTERRUPTED))
    except EngineError as error:
        code = fail(str(error), 1)
    except MemoryError:
        code = fail(
            "not enough memory for a setting of this size; choose fewer or shorter documents, fewer words or fewer runs"
        )
    except BrokenPipeError:
        code = reader_gone()
    except SystemExit as end:  # of completion; and of typer and rich, which answer a broken pipe by exit code 1
        code = reader_gone() if isinstance(end.__context__, BrokenPipeError) else end.code
    except OSError as error:
        where = f" ({error.filename})" if error.filename else ""
        full = "; free some space, then continue: 'train' and 'pretrain' with --resume, other commands as before"
        barred = "; remove what is in the way, or choose another place"
        advice = full if error.errno in files.FULL else barred if error.errno in BARRED else ""
        code = fail(f"{one_line(error)}{where}{advice}", 2 if advice == barred else 1)
    except Exception as error:
        code = fail(own_fault(error), 1)
    if code == INTERRUPTED:
        fail(
            "interrupted; to continue, run 'reproduce' or 'sweep' again, 'train' or 'pretrain' with --resume; "
            "other commands start from the beginning",
            INTERRUPTED,
        )
    sys.exit(code if isinstance(code, int) else 0)


def with_help(message: str, error: typer.BadParameter) -> str:
    command = error.ctx.command_path if error.ctx else command_of(sys.argv[1:])
    see = f"see {command} --help)"
    return f"{message[:-1]}; {see}" if message.endswith(")") else f"{message} ({see}"


def command_of(arguments: list[str]) -> str:
    """The command that is named before any option: 'topicscope theory theorem2'."""
    path, group = ["topicscope"], typer.main.get_command(application())
    for word in arguments:
        if (command := getattr(group, "commands", {}).get(word)) is None:
            break
        path, group = [*path, word], command
    return " ".join(path)


def reader_gone() -> int:
    """The reader of a pipe, such as 'head', has all that it wants: nothing is wrong. What is left goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 0


def own_fault(error: Exception) -> str:
    if os.environ.get(TRACEBACK):
        traceback.print_exception(error)
    frame = traceback.extract_tb(error.__traceback__)[-1]
    return (
        f"this is a bug in topicscope: {type(error).__name__}: {one_line(error)} ({os.path.basename(frame.filename)}, "
        f"line {frame.lineno}); please report it, with the traceback that {TRACEBACK}=1 prints"
    )
