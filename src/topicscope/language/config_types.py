"""Types of the settings of this room, each with its range; and what all settings of text have in common."""

from collections.abc import Sequence
from dataclasses import KW_ONLY
from pathlib import PurePath
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, PlainSerializer

from topicscope.ground import LONGEST_LIST, Config, Count, Seed, Text, number_only, section
from topicscope.language.readers import Split

Embedding = Literal["matrix", "layer"]
TopicsPerWord = Literal["one", "many"]


def _plain(value: Any) -> Any:
    return str(value) if isinstance(value, PurePath) else value


def _several(value: Any) -> Any:
    """A single value stands for a list of one."""
    return tuple(map(_plain, value if isinstance(value, list | tuple) else [value]))


def groups_of(value: Any) -> Any:
    listed = isinstance(value, list | tuple) and all(isinstance(group, list | tuple) for group in value)
    return tuple(map(tuple, value)) if listed else value


def _each_once(counts: Sequence[int]) -> Sequence[int]:
    twice = next((count for count in counts if counts.count(count) > 1), None)
    if twice is not None:
        raise ValueError(f"topics = {twice} is given more than once; give every number of topics once")
    return counts


Name = Annotated[Text, BeforeValidator(_plain)]
Names = Annotated[Sequence[Text], BeforeValidator(_several), Field(max_length=LONGEST_LIST)]
SomeNames = Annotated[Names, Field(min_length=1)]
Threshold = Annotated[float, Field(gt=0, lt=1), number_only]
Thresholds = Annotated[Sequence[Threshold], BeforeValidator(_several), Field(min_length=1, max_length=1000)]
Ways = Annotated[Sequence[TopicsPerWord], BeforeValidator(_several), Field(min_length=1, max_length=2)]
TopicCount = Annotated[int, Field(ge=2, le=100_000), number_only]
TopicCounts = Annotated[
    Sequence[TopicCount],
    BeforeValidator(_several),
    Field(min_length=1, max_length=100),
    AfterValidator(_each_once),
    PlainSerializer(lambda counts: counts[0] if len(counts) == 1 else list(counts)),  # one is written as one
]
Group = Annotated[Sequence[Text], Field(max_length=1000)]


@section
class TextConfig(Config):
    """The text, its words, and the topics that are fitted to it."""

    _: KW_ONLY
    text_field: Text = "text"  # of JSON lines, CSV and Parquet
    split_text: Split = "auto"
    stop_words: Name = "english"
    iterations: Annotated[int, Field(ge=1, le=10**6), number_only] = 120
    max_documents: Count | None = 2500  # that topics are fitted to, sampled; None: all
    seed: Seed = 0
