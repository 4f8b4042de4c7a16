"""The command reference, made from the commands themselves: one Markdown page per command.

for name, text in command_pages().items(): ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import typer

from topicscope import language, pretraining, training
from topicscope.cli import main
from topicscope.ground import Config, flat

OPTIONS = "Options"
GIVEN = "(yours)"
CONFIGS: dict[str, Config] = {
    "train": training.RunConfig(),
    "topics": language.TopicsConfig.of({"corpus": [GIVEN], "tokenizer": GIVEN}),
    "probe": language.ProbeConfig.of({"models": [GIVEN], "corpus": [GIVEN]}),
    "timeline": language.TimelineConfig.of({"snapshots": [GIVEN], "corpus": [GIVEN]}),
    "pretrain": pretraining.PretrainConfig.of({"text": {"corpus": [GIVEN]}}),
}
"""What `--set` and `--config` reach, by command; what has no default stands as GIVEN."""
NO_DEFAULT: tuple[Any, ...] = (None, False, (), [])
BOLD = re.compile(r"\[/?bold\]")


def commands() -> dict[tuple[str, ...], Any]:
    """Every command by its words, ("theory", "theorem2") for one of a group; () is `topicscope` itself."""
    return dict(walk((), typer.main.get_command(main.application())))


def walk(path: tuple[str, ...], command: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, command
    for name, child in getattr(command, "commands", {}).items():
        yield from walk((*path, name), child)


def command_pages() -> dict[str, str]:
    """Markdown by file name; a group has one page with its commands as sections."""
    found = commands()
    first = [path[0] for path in found if len(path) == 1]
    pages = {f"{name}.md": command_page(name, found) for name in first}
    return {"index.md": index_page(first, found)} | pages


def index_page(names: list[str], found: dict[tuple[str, ...], Any]) -> str:
    """What there is, by panel of the help."""
    panels: dict[str, list[str]] = {}
    for name in names:
        panels.setdefault(found[(name,)].rich_help_panel, []).append(name)
    lines = [
        "# Commands",
        "",
        "Every command with its options. `topicscope COMMAND --help` shows the same in the terminal.",
        "Exit codes: 0 done, 1 something failed on the way, 2 bad input, 130 stopped.",
        "",
        *option_table(found[()]),
    ]
    for panel, members in panels.items():
        lines += [f"## {panel}", "", "| command | what it does |", "|---|---|"]
        lines += [f"| [`{name}`]({name}.md) | {cell(first_sentence(found[(name,)]))} |" for name in members]
        lines += [""]
    return "\n".join([*lines, "```{toctree}", ":hidden:", "", *names, "```", ""])


def command_page(name: str, found: dict[tuple[str, ...], Any]) -> str:
    lines = [f"# topicscope {name}", "", *described((name,), found[(name,)])]
    for path, command in found.items():
        if len(path) == 2 and path[0] == name:
            lines += [f"## {path[1]}", "", *described(path, command)]
    if name in CONFIGS:
        lines += settings_table(CONFIGS[name])
    return "\n".join(lines)


def settings_table(config: Config) -> list[str]:
    """Every setting with its default."""
    settings = {name: default for name, default in flat(config.as_dict()).items() if name != "version"}
    rows = [f"| `{name}` | {cell(setting_text(default))} |" for name, default in settings.items()]
    return [
        "## All settings",
        "",
        "`--set NAME=VALUE` reaches each of them, and so does a YAML file given by `--config`.",
        "",
        "| setting | default |",
        "|---|---|",
        *rows,
        "",
    ]


def setting_text(default: Any) -> str:
    if default in (GIVEN, [GIVEN]):
        return "none: yours to give"
    text = "none" if default is None else str(default).lower() if isinstance(default, bool) else str(default)
    return f"`{text}`"


def described(path: tuple[str, ...], command: Any) -> list[str]:
    """Help, example, usage and options of a command."""
    text, example = help_of(command)
    lines = [escaped(text), "", "```text", usage(path, command), "```", ""]
    if example:
        lines += ["For example:", "", "```sh", *broken(example), "```", ""]
    return lines + option_table(command)


def help_of(command: Any) -> tuple[str, str]:
    """What a command says of itself, and its example; empty where it has none."""
    text, found, example = BOLD.sub("", command.help or "").rpartition("Example:")
    return (text.strip(), " ".join(example.split())) if found else (example.strip(), "")


def broken(example: str, width: int = 80) -> list[str]:
    """A long command in several lines, each but the first beginning with an option."""
    lines = [""]
    for part in re.split(r" (?=--)", example):
        if len(lines[-1]) + len(part) > width:
            lines.append("   ")
        lines[-1] += f" {part}" if lines[-1] else part
    return [f"{line} \\" for line in lines[:-1]] + lines[-1:]


def usage(path: tuple[str, ...], command: Any) -> str:
    words = ["topicscope", *path]
    if hasattr(command, "commands"):
        return " ".join([*words, "COMMAND"])
    arguments = [argument for argument in command.params if is_argument(argument)]
    names = [argument_name(argument) for argument in arguments]
    return " ".join([*words, *names, "[OPTIONS]"])


def is_argument(parameter: Any) -> bool:
    return bool(parameter.param_type_name == "argument")


def argument_name(argument: Any) -> str:
    name = (argument.metavar or argument.name).upper() + ("..." if argument.nargs == -1 else "")
    return name if argument.required else f"[{name}]"


def option_table(command: Any) -> list[str]:
    """All parameters, arguments first, then options by panel of the help."""
    shown = [parameter for parameter in command.params if not getattr(parameter, "hidden", False)]
    panels: dict[str, list[Any]] = {"Arguments": [], OPTIONS: []}
    for parameter in shown:
        panel = "Arguments" if is_argument(parameter) else parameter.rich_help_panel or OPTIONS
        panels.setdefault(panel, []).append(parameter)
    lines: list[str] = []
    for panel, parameters in panels.items():
        if parameters:
            lines += [f"**{panel}**", "", "| name | value | meaning |", "|---|---|---|"]
            lines += [f"| {names(one)} | {value(one)} | {cell(one.help or '')}{default(one)} |" for one in parameters]
            lines += [""]
    return lines


def names(parameter: Any) -> str:
    if is_argument(parameter):
        return f"`{argument_name(parameter)}`"
    return ", ".join(f"`{name}`" for name in (*parameter.opts, *parameter.secondary_opts))


def value(parameter: Any) -> str:
    """What the option takes: nothing for a switch."""
    if getattr(parameter, "is_flag", False):
        return ""
    kind = parameter.metavar or type_name(parameter.type_descriptor.annotation)
    low, high = parameter.min, parameter.max
    limits = {(True, True): f"{low} to {high}", (True, False): f"at least {low}", (False, True): f"at most {high}"}
    limit = limits.get((low is not None, high is not None), "")
    repeated = "repeatable" if parameter.multiple else ""
    return cell(", ".join(part for part in (f"`{kind}`", limit, repeated) if part))


def type_name(annotation: Any) -> str:
    choices = getattr(annotation, "__args__", ())
    if choices and all(isinstance(choice, str) for choice in choices):
        return " or ".join(choices)
    inner = next((choice for choice in choices if isinstance(choice, type) and choice is not type(None)), annotation)
    words = {"str": "TEXT", "int": "NUMBER", "float": "NUMBER", "Path": "PATH", "bool": ""}
    return words.get(inner.__name__, inner.__name__.upper())


def default(parameter: Any) -> str:
    """Said only where the help does not say it."""
    if "default" in (parameter.help or "").lower():
        return ""
    stated = getattr(parameter, "show_default", None)
    if isinstance(stated, str):
        return f" Default: `{stated}`."
    if parameter.default in NO_DEFAULT:
        return ""
    return " Default: on." if parameter.default is True else f" Default: `{parameter.default}`."


def first_sentence(command: Any) -> str:
    return " ".join(BOLD.sub("", command.help or "").split("\n\n")[0].split())


def cell(text: str) -> str:
    return escaped(" ".join(text.split())).replace("|", r"\|")


def escaped(text: str) -> str:
    """Plain text as Markdown: what would be taken for markup is not, code between backticks stays."""
    parts = re.split(r"(`[^`\n]*`)", text)
    return "".join(part if part.startswith("`") else re.sub(r"([*<>\[\]$])", r"\\\1", part) for part in parts)
