"""`topicscope probe`: does a model encode topics?"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Annotated

import typer

from topicscope.cli import consoles, text_options as text
from topicscope.cli.engine_options import AddressOption, EngineOption, WorkersOption, chosen_engine
from topicscope.cli.options import AsJson, Assignments, ConfigFile, Device, option

if TYPE_CHECKING:
    from topicscope.language import Probe


def command(
    models: Annotated[list[str] | None, typer.Argument(help="Model folders or hub ids.")] = None,
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
        list[float] | None,
        option(
            "theta: words of a topic as a share of the vocabulary; may be repeated.",
            text.MEASURES,
            show_default="0.0005, 0.001, 0.002",
        ),
    ] = None,
    topics_per_word: Annotated[
        str | None, option("one (Table 1), many (Table 5) or both.", text.MEASURES, show_default="one")
    ] = None,
    windows: text.Windows = None,
    embedding: text.Embedding = None,
    bootstrap: text.Bootstrap = None,
    shuffles: Annotated[
        int | None,
        option(
            "Shuffles of topics among words (of attention a tenth of them); 0: none.",
            text.CONTROLS,
            show_default="1000",
        ),
    ] = None,
    matched: text.Matched = None,
    random: Annotated[
        bool | None,
        option("Probe the same architecture with random weights too.", text.CONTROLS, show_default="random"),
    ] = None,
    cooccurrence: Annotated[
        bool | None,
        option("Compare with the top co-occurring pairs (Table 2).", text.CONTROLS, show_default="cooccurrence"),
    ] = None,
    seed: text.Seed = None,
    device: Device = None,
    config: ConfigFile = None,
    set_: Assignments = None,
    engine: EngineOption = "serial",
    address: AddressOption = None,
    workers: WorkersOption = None,
    out: text.OutReplaced = None,
    as_json: AsJson = False,
    checkpoints: Annotated[list[str] | None, typer.Option("--checkpoints", hidden=True)] = None,
) -> int:
    """Does a model encode topics, in which layer and head, and is it more than chance, frequency or co-occurrence?

    Example: [bold]topicscope probe bert-base-uncased --corpus articles.jsonl.gz --out runs/probe[/bold]
    """
    from topicscope.ground import InputError, check_engine, gather, progress_shown
    from topicscope.language import ProbeConfig, check_inputs, probe

    if checkpoints:
        raise InputError("probe has no option --checkpoints; use: topicscope timeline SNAPSHOTS --corpus FILES")
    check_engine(engine, workers=workers, address=address)
    flags = {
        "models": models or None,
        "corpus": corpus,
        "text_field": text_field,
        "split_text": split_text,
        "stop_words": stop_words,
        "documents": documents,
        "topics": topics,
        "topics_from": topics_from,
        "iterations": iterations,
        "max_documents": max_documents,
        "thresholds": threshold,
        "topics_per_word": ["one", "many"] if topics_per_word == "both" else topics_per_word,
        "windows": windows,
        "embedding": embedding,
        "bootstrap": bootstrap,
        "shuffles": shuffles,
        "matched": matched,
        "random": random,
        "cooccurrence": cooccurrence,
        "seed": seed,
        "device": device,
    }
    settings = ProbeConfig.of(gather(config, flags, set_ or ()))
    check_inputs(settings)  # before an engine is started
    with progress_shown() as progress, chosen_engine(engine, address, workers, device=settings.device) as opened:
        result = probe(settings, out, engine=opened, progress=progress)
    if as_json:
        print(json.dumps(result.as_dict(), allow_nan=False))
    else:
        show(result)
    consoles.finish(result, out, quiet=as_json)
    return 0


def show(result: Probe) -> None:
    """The main tables; the page has all of them."""
    from topicscope.figures import cooccurrence_table, head_table, ratio_table

    consoles.print_table(ratio_table(result.rows))
    if result.heads:
        consoles.print_table(head_table(result.heads, 5))
    if result.cooccurrence:
        consoles.print_table(cooccurrence_table(result.cooccurrence))
