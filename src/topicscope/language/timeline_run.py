"""A timeline from the snapshots to the answer, as `topicscope timeline` runs it.

result = timeline(TimelineConfig("runs/pretrain", corpus="articles.txt"), "runs/timeline")
result.moments, result.order, result.answer

Input is checked before PyTorch and transformers are loaded.
"""

from __future__ import annotations

import os
from contextlib import nullcontext

from topicscope.ground import Engine, Progress, open_folder, read_about, serial, usable_device, watched
from topicscope.language.assignment import assignments_of
from topicscope.language.configs import TimelineConfig
from topicscope.language.inputs import check_inputs
from topicscope.language.probe_run import TextSource
from topicscope.language.snapshots import find_snapshots
from topicscope.language.vocabulary import whole_words
from topicscope.measure import TIMELINE, Timeline, read_timeline as read_timeline


def timeline(
    config: TimelineConfig,
    out: str | os.PathLike[str] | None = None,
    *,
    engine: Engine = serial,
    progress: Progress | None = None,
) -> Timeline:
    """Finds the snapshots, fits or reads the topics, and probes every snapshot.

    `out`: a folder for the results; one that holds a timeline is replaced.
    """
    check_inputs(config)
    snapshots, source = find_snapshots(config.snapshots), TextSource(config)
    with (
        open_folder(out, TIMELINE, config.as_dict(), force=True) if out is not None else nullcontext() as folder,
        watched(progress) as shown,
    ):
        from topicscope.language.models import load_tokenizer  # PyTorch, once the input is known to be good
        from topicscope.language.timelines import timeline_of

        texts = source.probed_texts(shown)
        first = snapshots[0][1]
        vocabulary = whole_words(load_tokenizer(first), source.stop_words)
        topics = source.topics(first, vocabulary, texts, engine, shown)
        assignment = assignments_of(topics, vocabulary, [config.threshold], [config.topics_per_word])[0]
        notes = [f"{name}: its run diverged, so its last snapshots may be unusable" for name in diverged(config)]
        notes += [assignment.remark] if assignment.remark else []
        notes.append(
            f"{len(snapshots)} snapshots, {len(assignment.words)} words of "
            f"{int((assignment.membership.sizes > 0).sum())} topics, {len(texts)} documents; "
            "95%: bootstrap over topics (embeddings) or documents (attention)"
        )
        notes.append(f"corpus: {source.corpus.summary()}")
        result = timeline_of(
            snapshots,
            texts,
            assignment,
            vocabulary,
            config,
            notes=notes,
            device=usable_device(config.device),
            engine=engine,
            progress=shown,
        )
        if folder is not None:
            source.save_topics(folder)
            result.write(folder)
    return result


def diverged(config: TimelineConfig) -> list[str]:
    """The runs whose folders say that they diverged."""
    abouts = {name: read_about(name) for name in config.snapshots}
    return [name for name, about in abouts.items() if about is not None and about.status == "diverged"]
