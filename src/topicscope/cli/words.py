"""`topicscope words`: the cosine map of some words."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from topicscope.cli import consoles, text_options as text
from topicscope.cli.options import AsJson


def command(
    model: Annotated[str, typer.Argument(help="Model folder or hub id.")],
    words: Annotated[list[str], typer.Argument(help="Words; a / starts the next group.")],
    embedding: text.Embedding = None,
    out: text.OutReplaced = None,
    as_json: AsJson = False,
) -> int:
    """Draw the cosines between words (Figure 3). A word of several tokens is averaged over them, and marked.

    Example: [bold]topicscope words bert-base-uncased frog toad lizard / mozart beethoven schubert[/bold]
    """
    from topicscope.figures import word_table
    from topicscope.ground import gather, progress_shown
    from topicscope.language import WordsConfig, map_words

    groups: list[list[str]] = [[]]
    for word in words:
        groups.append([]) if word == "/" else groups[-1].append(word)
    flags = {"model": model, "groups": [group for group in groups if group], "embedding": embedding}
    settings = WordsConfig.of(gather(None, flags))
    with progress_shown() as progress:
        result = map_words(settings, out, progress=progress)
    if as_json:
        print(json.dumps(result.as_dict()))
    else:
        consoles.print_table(word_table(result))
    consoles.finish(result, out, quiet=as_json)
    return 0
