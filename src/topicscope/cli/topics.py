"""`topicscope topics`: fit the topics of a corpus, and show them."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from topicscope.cli import consoles, text_options as text
from topicscope.cli.engine_options import AddressOption, EngineOption, WorkersOption, chosen_engine
from topicscope.cli.options import AsJson, Assignments, ConfigFile, option


def command(
    corpus: Annotated[
        list[str] | None,
        typer.Argument(help="Files, patterns, folders (.txt .jsonl .csv .parquet, packed or not), or hf:NAME."),
    ] = None,
    tokenizer: Annotated[
        str | None, option("Model whose tokenizer is used: folder or hub id.", text.TEXT, "--tokenizer")
    ] = None,
    text_field: text.TextField = None,
    split_text: text.SplitText = None,
    stop_words: text.StopWords = None,
    topics: text.Topics = None,
    backend: Annotated[str | None, option("tomotopy, sklearn or gensim.", text.TOPICS, show_default="tomotopy")] = None,
    iterations: text.Iterations = None,
    max_documents: text.MaxDocuments = None,
    min_documents: Annotated[
        int | None, option("Words of fewer documents are left out.", text.TOPICS, show_default="5")
    ] = None,
    seed: text.Seed = None,
    config: ConfigFile = None,
    set_: Assignments = None,
    engine: EngineOption = "serial",
    address: AddressOption = None,
    workers: WorkersOption = None,
    out: text.OutReplaced = None,
    as_json: AsJson = False,
) -> int:
    """Fit topics (LDA) to a corpus, on the whole words of a model's tokenizer, and show them.

    'topicscope probe --topics-from' reads the folder.

    Example: [bold]topicscope topics articles.jsonl.gz --tokenizer bert-base-uncased --out runs/topics[/bold]
    """
    from topicscope.figures import topic_model_table
    from topicscope.ground import check_engine, gather, progress_shown
    from topicscope.language import TopicsConfig, check_inputs, fit_corpus

    check_engine(engine, workers=workers, address=address)
    flags = {
        "corpus": corpus or None,
        "tokenizer": tokenizer,
        "text_field": text_field,
        "split_text": split_text,
        "stop_words": stop_words,
        "topics": topics,
        "backend": backend,
        "iterations": iterations,
        "max_documents": max_documents,
        "min_documents": min_documents,
        "seed": seed,
    }
    settings = TopicsConfig.of(gather(config, flags, set_ or ()))
    check_inputs(settings)  # before an engine is started
    with progress_shown() as progress, chosen_engine(engine, address, workers) as opened:
        result = fit_corpus(settings, out, engine=opened, progress=progress)
    if as_json:
        print(json.dumps(result.as_dict(), allow_nan=False))
    else:
        consoles.print_table(topic_model_table(result))
    consoles.finish(result, out, quiet=as_json)
    return 0
