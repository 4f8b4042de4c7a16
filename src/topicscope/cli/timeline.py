"""`topicscope timeline`: at which step of training does topic structure appear?"""

from __future__ import annotations

import json
from typing import Annotated

import typer

from topicscope.cli import consoles, text_options as text
from topicscope.cli.engine_options import AddressOption, EngineOption, WorkersOption, chosen_engine
from topicscope.cli.options import AsJson, Assignments, ConfigFile, Device, option


def command(
    snapshots: Annotated[
        list[str] | None,
        typer.Argument(help="A folder of 'pretrain' or 'train --snapshots', model folders, or hub ids NAME@step1000."),
    ] = None,
    corpus: text.Corpus = None,
    text_field: text.TextField = None,
    split_text: text.SplitText = None,
    stop_words: text.StopWords = None,
    documents: text.Documents = None,
    topics: text.Topics = None,
    topics_from: text.TopicsFrom = None,
    iterations: text.Iterations = None,
    max_documents: text.MaxDocuments = None,
    threshold: Annotated[
        float | None,
        option("theta: words of a topic as a share of the vocabulary.", text.MEASURES, show_default="0.002"),
    ] = None,
    topics_per_word: Annotated[
        str | None, option("one or many topics per word.", text.MEASURES, show_default="one")
    ] = None,
    windows: text.Windows = None,
    embedding: text.Embedding = None,
    bootstrap: text.Bootstrap = None,
    matched: text.Matched = None,
    seed: text.Seed = None,
    device: Device = None,
    config: ConfigFile = None,
    set_: Assignments = None,
    engine: EngineOption = "serial",
    address: AddressOption = None,
    workers: WorkersOption = None,
    out: text.OutReplaced = None,
    as_json: AsJson = False,
) -> int:
    """At which step of training does topic structure appear: in the embeddings, and in the attention?

    A run of 'topicscope train --snapshots log' is measured against its true topics, without a corpus.

    Example: [bold]topicscope timeline runs/pretrain --corpus articles.txt --out runs/timeline[/bold]
    """
    from topicscope.figures import moment_table
    from topicscope.ground import InputError, check_engine, gather, progress_shown
    from topicscope.language import TimelineConfig, check_inputs, timeline
    from topicscope.training import is_sandbox, sandbox_timeline

    check_engine(engine, workers=workers, address=address)
    flags = {
        "snapshots": snapshots or None,
        "corpus": corpus,
        "text_field": text_field,
        "split_text": split_text,
        "stop_words": stop_words,
        "documents": documents,
        "topics": topics,
        "topics_from": topics_from,
        "iterations": iterations,
        "max_documents": max_documents,
        "threshold": threshold,
        "topics_per_word": topics_per_word,
        "windows": windows,
        "embedding": embedding,
        "bootstrap": bootstrap,
        "matched": matched,
        "seed": seed,
        "device": device,
    }
    settings = TimelineConfig.of(gather(config, flags, set_ or ()))
    sandbox = next((name for name in settings.snapshots if is_sandbox(name)), None)
    if sandbox is not None:
        if len(settings.snapshots) > 1:
            raise InputError(f"{sandbox} is a run of 'topicscope train'; give it alone")
        if settings.corpus or settings.topics_from or engine != "serial":
            raise InputError(
                f"{sandbox} is a run of 'topicscope train', which has topics and texts of its own and is measured in "
                "a moment; leave corpus, topics_from and engine out"
            )
        result = sandbox_timeline(sandbox, out, bootstrap=settings.bootstrap, seed=settings.seed)
    else:
        check_inputs(settings)  # before an engine is started
        with progress_shown() as progress, chosen_engine(engine, address, workers, device=settings.device) as opened:
            result = timeline(settings, out, engine=opened, progress=progress)
    if as_json:
        print(json.dumps(result.as_dict(), allow_nan=False))
    else:
        consoles.print_table(moment_table(result))
    consoles.finish(result, out, quiet=as_json)
    return 0
