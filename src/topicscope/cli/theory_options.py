"""What the `topicscope theory` commands share: their options, declared once; the setting made of them; how they print.

A command asks for the shared options by the names of its parameters: `setting` stands for topics, words_per_topic,
topics_per_document and the masking probabilities, `convention` and `as_json` for themselves.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Callable
from typing import Annotated, Any, Literal

import typer

from topicscope.cli import consoles
from topicscope.cli.options import AsJson
from topicscope.theory import Setting

app = typer.Typer(help="The theorems for any setting: optima, bounds, landscapes, certificates.", no_args_is_help=False)

Option = tuple[Any, Any]
"""A type with its typer.Option, and the default."""

SETTING: dict[str, Any] = {
    "topics": Annotated[int, typer.Option(help="T, number of topics.")],
    "words_per_topic": Annotated[int, typer.Option(help="v, words per topic.")],
    "topics_per_document": Annotated[int, typer.Option(help="tau, topics per document.")],
    "p_mask": Annotated[float, typer.Option(help="p_m, share of positions that are masked.")],
    "p_correct": Annotated[float, typer.Option(help="p_c, share of masked positions that show their word.")],
    "p_random": Annotated[float, typer.Option(help="p_r, share of masked positions that show a random word.")],
}
"""What `Setting.of` takes, which has the defaults."""

CONVENTION = Annotated[
    Literal["exact", "paper"],
    typer.Option(
        help="exact: MASK is a word of its own topic. "
        "paper: words share all attention, positions showing MASK are left out."
    ),
]
SHARED: dict[str, Option] = {"convention": (CONVENTION, "exact"), "as_json": (AsJson, False)}


def command(
    run: Callable[..., int], name: str, *, help_: str, own: dict[str, Option] | None = None, tau: bool = True
) -> None:
    """Register `run` as a command: its `own` options first, then the shared ones that it has parameters for.

    Without `tau` the setting's topics_per_document is 1 and no option: Theorems 1 and 2 do not depend on it.
    """
    asked = inspect.signature(run).parameters
    defaults = inspect.signature(Setting.of).parameters
    sizes = [key for key in SETTING if "setting" in asked and (tau or key != "topics_per_document")]
    options = dict(own or {})
    options |= {key: (SETTING[key], defaults[key].default) for key in sizes}
    options |= {key: option for key, option in SHARED.items() if key in asked}

    def wrapped(**values: Any) -> int:
        numbers = {key: values.pop(key) for key in sizes}
        if sizes:
            values["setting"] = Setting.of(**({} if tau else {"topics_per_document": 1}) | numbers)
        return run(**values)

    wrapped.__annotations__ = {key: hint for key, (hint, _) in options.items()}
    wrapped.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        [
            inspect.Parameter(key, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=hint)
            for key, (hint, default) in options.items()
        ]
    )
    app.command(name=name, help=help_)(wrapped)


def example(text: str, arguments: str) -> str:
    """The help of a command with an example."""
    return f"{text}\n\nExample: [bold]topicscope theory {arguments}[/bold]"


def emit(payload: dict[str, Any], as_json: bool, lines: list[Any]) -> None:
    """JSON alone, or the lines for a person."""
    if as_json:
        print(json.dumps(payload, allow_nan=False))
        return
    console = consoles.results()
    for line in lines:
        console.print(line, soft_wrap=isinstance(line, str), highlight=False)
