"""`--world-from`: the topics of a corpus as the world of `train` and `theory optimum`."""

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from topicscope import language
from topicscope.cli.options import option
from topicscope.ground import WIDEST, merged, refuse

WORLD = "World"
WorldFrom = Annotated[
    Path | None, option("Take the topics and mixtures of a corpus: a folder of 'topicscope topics'.", WORLD)
]
KeptWords = Annotated[
    int | None,
    option("With --world-from: number of most probable words to keep (default 500).", WORLD, min=1, max=WIDEST),
]


def world_of(folder: Path | None, words: int | None) -> language.TopicWorld | None:
    """The world of a folder of topics, where one is named."""
    refuse((words is not None and folder is None, "--words says how many words of --world-from are kept; give both"))
    if folder is None:
        return None
    topics = language.Topics.load(folder)
    return language.topic_world(topics) if words is None else language.topic_world(topics, words)


def in_world(world: language.TopicWorld | None, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Settings on top of a world. A prior of their own takes the place of the corpus's mixtures, not of its lengths.

    The kind 'infinite' is a length as well, and takes the place of both.
    """
    if world is None:
        return dict(settings)
    given, documents = dict(world.settings), settings.get("documents")
    if isinstance(documents, Mapping) and "kind" in documents:
        own = given.pop("documents")
        if documents["kind"] != "infinite":
            given["documents"] = {"length": own["length"]}
    return merged(given, settings)
