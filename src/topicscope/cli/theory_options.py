"""What the `topicscope theory` commands share: their options, the setting they make, and how they print."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated, Any

import typer

from topicscope.cli import consoles

if TYPE_CHECKING:
    from topicscope.theory import Setting

app = typer.Typer(help="The theorems for any setting: optima, bounds, landscapes, certificates.", no_args_is_help=False)

Topics = Annotated[int, typer.Option(help="T, number of topics.")]
Words = Annotated[int, typer.Option(help="v, words in each topic.")]
Tau = Annotated[int, typer.Option(help="tau, topics in a document.")]
PMask = Annotated[float, typer.Option(help="p_m, share of positions that are masked.")]
PCorrect = Annotated[float, typer.Option(help="p_c, share of masked positions that show their word.")]
PRandom = Annotated[float, typer.Option(help="p_r, share of masked positions that show a random word.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print only JSON to stdout.")]


def setting(
    topics: int, words_per_topic: int, topics_per_document: int, p_mask: float, p_correct: float, p_random: float
) -> Setting:
    from topicscope.theory import Setting

    return Setting.of(topics, words_per_topic, topics_per_document, p_mask, p_correct, p_random)


def describe(s: Setting, *, tau: bool = True) -> dict[str, Any]:
    from topicscope.theory import describe

    return {key: value for key, value in describe(s).items() if tau or key != "topics_per_document"}


def emit(payload: dict[str, Any], as_json: bool, lines: list[Any]) -> None:
    """JSON alone, or the lines for a person."""
    if as_json:
        print(json.dumps(payload, allow_nan=False))
        return
    console = consoles.results()
    for line in lines:
        console.print(line, soft_wrap=isinstance(line, str), highlight=False)
