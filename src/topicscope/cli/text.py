"""`topicscope topics`, `probe`, `timeline` and `words`: topics of text, and how models hold them."""

from typing import Annotated, Any

import typer

from topicscope import figures, language, training
from topicscope.cli import consoles
from topicscope.cli.options import (
    AnyConfig,
    AsJson,
    chosen_engine,
    option,
    with_options,
)
from topicscope.cli.text_options import (
    MEASURES,
    NO_SETTINGS,
    TOPICS,
    Embedding,
    OutReplaced,
    options_of,
)
from topicscope.ground import InputError, check_engine, gather, progress_shown


def settings_of(kind: type[AnyConfig], values: dict[str, Any]) -> AnyConfig:
    """The configuration that the options, `--set` and a file make."""
    check_engine(values["engine"], workers=values["workers"], address=values["address"])
    flags = {name: value for name, value in values.items() if name not in (*NO_SETTINGS, "quick") and value != []}
    usual = getattr(kind, "QUICK", {}) if values.get("quick") else {}  # --quick: whatever is given wins over it
    return kind.of({**usual, **gather(values["config"], flags, values["set_"] or ())})


def run_on_engine(work: Any, settings: Any, values: dict[str, Any]) -> Any:
    """What `work` makes of the settings, on the engine that was chosen."""
    if values["engine"] != "serial":
        language.check_inputs(settings)  # before processes are started; the command itself checks them as well
    engine = chosen_engine(
        values["engine"], values["address"], values["workers"], device=getattr(settings, "device", "cpu")
    )
    with progress_shown() as progress, engine as opened:
        return work(settings, values["out"], engine=opened, progress=progress, yes=values["yes"])


@with_options(
    options_of(
        *("documents", "topics_from", "label_field", "thresholds", "threshold", "topics_per_word", "windows"),
        *("embedding", "bootstrap", "shuffles", "matched", "random", "cooccurrence", "states", "ablation"),
        *("show_documents", "device"),
        corpus=Annotated[
            list[str] | None,
            typer.Argument(help="Files, patterns, folders (.txt .jsonl .csv .parquet, compressed or not), or hf:NAME."),
        ],
        topics=Annotated[
            list[int] | None,
            option("Number of topics to fit; if repeated, all are fitted and compared.", TOPICS, show_default="100"),
        ],
    )
)
def topics(**values: Any) -> int:
    """Fit topics (LDA) to a corpus, using the whole words of a model's tokenizer; show them and how good they are.

    'topicscope probe --topics-from' reads the folder. With --topics 25 --topics 50 the folder holds the better fit, and
    its folders topics-25 and topics-50 hold each.

    Example: [bold]topicscope topics articles.jsonl.gz --tokenizer bert-base-uncased --out runs/topics[/bold]
    """
    result = run_on_engine(language.fit_corpus, settings_of(language.TopicsConfig, values), values)
    tables = [figures.topic_model_table(result)]
    if result.compared:
        tables.append(figures.compared_table(result.compared))
    return consoles.finish(result, values["out"], tables, as_json=values["as_json"])


@with_options(
    options_of(
        *("tokenizer", "backend", "min_documents", "threshold", "stability"),
        models=Annotated[list[str] | None, typer.Argument(help="Model folders or hub ids.")],
        checkpoints=Annotated[list[str] | None, typer.Option("--checkpoints", hidden=True)],
    )
)
def probe(checkpoints: list[str] | None, **values: Any) -> int:
    """Test if a model encodes topics, in which layers and heads, and if chance, frequency or co-occurrence explains it.

    Example: [bold]topicscope probe bert-base-uncased --corpus articles.jsonl.gz --out runs/probe[/bold]
    """
    if checkpoints:
        raise InputError("probe has no option --checkpoints; use: topicscope timeline SNAPSHOTS --corpus FILES")
    if values["topics_per_word"] == "both":
        values["topics_per_word"] = ["one", "many"]
    result = run_on_engine(language.probe, settings_of(language.ProbeConfig, values), values)
    tables = [figures.verdict_table(result.verdicts), figures.ratio_table(result.rows)]  # the page has all of them
    if result.heads:
        tables.append(figures.head_table(result.heads, 5))
    if result.cooccurrence:
        tables.append(figures.cooccurrence_table(result.cooccurrence))
    if result.states:
        tables.append(figures.state_table(result.states))
    if result.labels:
        tables.append(figures.label_table(result.labels))
    return consoles.finish(result, values["out"], tables, as_json=values["as_json"])


@with_options(
    options_of(
        *("tokenizer", "backend", "min_documents", "thresholds", "shuffles", "random", "cooccurrence", "states"),
        *("ablation", "stability", "quick", "show_documents"),
        topics_per_word=Annotated[str | None, option("one or many topics per word.", MEASURES, show_default="one")],
        snapshots=Annotated[
            list[str] | None,
            typer.Argument(
                help="A folder of 'pretrain' or 'train --snapshots', model folders, or hub ids NAME@step1000."
            ),
        ],
    )
)
def timeline(**values: Any) -> int:
    """At which step of training does topic structure appear: in the embeddings, and in the attention?

    A run of 'topicscope train --snapshots log' is measured against its true topics, without a corpus.

    Example: [bold]topicscope timeline runs/pretrain --corpus articles.txt --out runs/timeline[/bold]
    """
    settings = settings_of(language.TimelineConfig, values)
    sandbox = next((name for name in settings.snapshots if training.is_sandbox(name)), None)
    if sandbox is None:
        result = run_on_engine(language.timeline, settings, values)
    elif len(settings.snapshots) > 1:
        raise InputError(f"{sandbox} is a run of 'topicscope train'; give it alone")
    elif values["engine"] != "serial" or settings != language.TimelineConfig(
        settings.snapshots, bootstrap=settings.bootstrap, seed=settings.seed
    ):
        raise InputError(
            f"{sandbox} is a run of 'topicscope train', which has its own topics and texts and is measured in this "
            "process; leave out --corpus, --topics and all other options except --bootstrap, --seed, --out and --json"
        )
    else:
        result = training.sandbox_timeline(sandbox, values["out"], bootstrap=settings.bootstrap, seed=settings.seed)
    return consoles.finish(result, values["out"], [figures.moment_table(result)], as_json=values["as_json"])


def words(
    model: Annotated[str, typer.Argument(help="Model folder or hub id.")],
    words: Annotated[list[str], typer.Argument(help="Words; a / starts the next group.")],
    embedding: Embedding = None,
    out: OutReplaced = None,
    as_json: AsJson = False,
) -> int:
    """Draw the cosines between words (Figure 3). A word of several tokens is averaged over them and marked.

    Example: [bold]topicscope words bert-base-uncased frog toad lizard / mozart beethoven schubert[/bold]
    """
    groups: list[list[str]] = [[]]
    for word in words:
        groups.append([]) if word == "/" else groups[-1].append(word)
    flags = {"model": model, "groups": [group for group in groups if group], "embedding": embedding}
    settings = language.WordsConfig.of(gather(None, flags))
    with progress_shown() as progress:
        result = language.map_words(settings, out, progress=progress)
    return consoles.finish(result, out, [figures.word_table(result)], as_json=as_json)
