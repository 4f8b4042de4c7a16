"""How the commands of this room begin and end: input checked, cost announced, folder opened, result stored."""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from typing import TypeVar

from topicscope.ground import Folder, Kind, Progress, afford, open_folder, watched, write_csv
from topicscope.language.configs import ProbeConfig, TimelineConfig, TopicsConfig, WordsConfig
from topicscope.language.cost import cost_of, settings_that_cost
from topicscope.language.inputs import check_inputs
from topicscope.language.labels import LabelWords
from topicscope.language.probes import Probe
from topicscope.language.topics import Topics
from topicscope.language.word_maps import WordMap
from topicscope.measure import Timeline

ANNOUNCED = 10.0  # seconds from which on the estimate is printed
Out = str | os.PathLike[str] | None
AnyResult = TypeVar("AnyResult", Topics, Probe, Timeline, WordMap)


@contextmanager
def opened_folder(
    kind: Kind,
    config: TopicsConfig | ProbeConfig | TimelineConfig | WordsConfig,
    out: Out,
    progress: Progress | None,
    yes: bool = False,
) -> Iterator[tuple[Folder | None, Progress]]:
    """The folder of a command, where it has one, and its progress. Bad input is refused before both.

    So is what does not fit into memory or on the disk, unless `yes`.
    """
    check_inputs(config)
    if not isinstance(config, WordsConfig):
        afford(cost_of(config), lambda: settings_that_cost(config), out, yes=yes, announced=ANNOUNCED)
    with (
        open_folder(out, kind, config.as_dict(), force=True) if out is not None else nullcontext() as folder,
        watched(progress) as shown,
    ):
        yield folder, shown


def stored(
    result: AnyResult,
    folder: Folder | None,
    fitted: Sequence[tuple[TopicsConfig, Topics]] = (),
    names: Sequence[str] = (),
    labelled: Sequence[LabelWords] = (),
) -> AnyResult:
    """A result, written where it has a folder; fitted topics become folders inside, which `topics_from` takes.

    They are topics-NAME, or topics-1, topics-2, ... where they have no names. Words of labels become tables.
    """
    if folder is not None:
        folder.begin()
        for number, (fit, topics) in enumerate(fitted, start=1):
            topics.save(folder.file(f"topics-{names[number - 1] if names else number}"), fit.as_dict())
        for number, words in enumerate(labelled, start=1):
            write_csv(folder.file(f"label-words-{number}.csv"), words.records())
        result.write(folder)
    return result
