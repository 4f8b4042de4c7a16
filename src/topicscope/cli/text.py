"""`topicscope topics`, `probe`, `timeline` and `words`: topics of text, and how models hold them."""

from pathlib import Path
from typing import Annotated, Any

import typer

from topicscope import language, pages, training
from topicscope.cli import consoles
from topicscope.cli.options import (
    SETTINGS,
    AddressOption,
    AnyConfig,
    AsJson,
    Assignments,
    ConfigFile,
    Device,
    EngineOption,
    Option,
    WorkersOption,
    Yes,
    chosen_engine,
    option,
    out_option,
    with_options,
)
from topicscope.ground import InputError, check_engine, gather, progress_shown

TEXT, TOPICS, MEASURES, CONTROLS = "Text", "Topics", "Measures", "Controls"

Embedding = Annotated[
    str | None,
    option("matrix (word embeddings) or layer (with position, type and norm).", MEASURES, show_default="matrix"),
]
OutReplaced = Annotated[
    Path | None,
    out_option("Folder to write: new, empty, or an earlier one of this command, which is replaced."),
]
NO_SETTINGS: dict[str, Option] = {
    "config": (ConfigFile, None),
    "set_": (Assignments, None),
    "engine": (EngineOption, "serial"),
    "address": (AddressOption, None),
    "workers": (WorkersOption, None),
    "out": (OutReplaced, None),
    "yes": (Yes, False),
    "as_json": (AsJson, False),
}
SETTINGS_OF_TEXT: dict[str, Any] = {
    "corpus": Annotated[
        list[str] | None,
        option("Files, patterns, folders or hf:NAME/CONFIG:SPLIT; may be repeated.", TEXT, "--corpus"),
    ],
    "tokenizer": Annotated[str | None, option("Model whose tokenizer is used: folder or hub id.", TEXT, "--tokenizer")],
    "text_field": Annotated[
        str | None, option("Field of JSON lines, CSV and Parquet that holds the text.", TEXT, show_default="text")
    ],
    "split_text": Annotated[
        str | None,
        option("What a document of a plain text file is: line, paragraph, file, or auto.", TEXT, show_default="auto"),
    ],
    "stop_words": Annotated[
        str | None, option("english, none, or a file with one word per line.", TEXT, show_default="english")
    ],
    "documents": Annotated[int | None, option("Documents to measure attention on, sampled.", TEXT, show_default="250")],
    "quick": Annotated[
        bool,
        option(
            "A first look: fewer topics, documents, sweeps and resamples, unless you set them.", SETTINGS, "--quick"
        ),
    ],
    "topics": Annotated[int | None, option("Number of topics to fit.", TOPICS, show_default="100")],
    "topics_from": Annotated[
        str | None,
        option("Use given topics: a folder of 'topicscope topics', or a CSV or JSON file of words and topics.", TOPICS),
    ],
    "label_field": Annotated[
        str | None,
        option("Field of the corpus with one label per document: labels serve as topics, none are fitted.", TOPICS),
    ],
    "backend": Annotated[str | None, option("tomotopy, sklearn or gensim.", TOPICS, show_default="tomotopy")],
    "iterations": Annotated[
        int | None, option("Gibbs sweeps of the fit (other backends: ten per pass).", TOPICS, show_default="120")
    ],
    "stability": Annotated[
        bool | None,
        option(
            "Fit a second time, with another seed: for stability and held-out perplexity.",
            TOPICS,
            show_default="stability",
        ),
    ],
    "max_documents": Annotated[
        int | None, option("Documents that topics are fitted to, sampled.", TOPICS, show_default="2500")
    ],
    "min_documents": Annotated[
        int | None, option("Words found in fewer documents are left out.", TOPICS, show_default="5")
    ],
    "thresholds": Annotated[
        list[float] | None,
        option(
            "theta: words of a topic as a share of the vocabulary; may be repeated.",
            MEASURES,
            "--threshold",
            show_default="0.0005, 0.001, 0.002",
        ),
    ],
    "threshold": Annotated[
        float | None, option("theta: words of a topic as a share of the vocabulary.", MEASURES, show_default="0.002")
    ],
    "topics_per_word": Annotated[
        str | None, option("one (Table 1), many (Table 5) or both.", MEASURES, show_default="one")
    ],
    "windows": Annotated[
        int | None,
        option("Pieces, each as long as the model's input, taken from each document.", MEASURES, show_default="2"),
    ],
    "embedding": Embedding,
    "bootstrap": Annotated[int | None, option("Bootstrap resamples for the intervals.", MEASURES, show_default="1000")],
    "shuffles": Annotated[
        int | None,
        option(
            "Shuffles of topics among words (a tenth as many for attention); 0: none.", CONTROLS, show_default="1000"
        ),
    ],
    "matched": Annotated[
        bool | None, option("Also compare pairs of equal word frequencies.", CONTROLS, show_default="matched")
    ],
    "random": Annotated[
        bool | None,
        option("Also probe the same architecture with random weights.", CONTROLS, show_default="random"),
    ],
    "cooccurrence": Annotated[
        bool | None,
        option("Compare with the top co-occurring pairs (Table 2).", CONTROLS, show_default="cooccurrence"),
    ],
    "states": Annotated[
        bool | None, option("Also measure hidden states, layer by layer.", MEASURES, show_default="states")
    ],
    "ablation": Annotated[
        bool | None, option("Also measure the loss without topical heads.", MEASURES, show_default="ablation")
    ],
    "show_documents": Annotated[
        int | None,
        option(
            "Documents to show on the page: those of highest and lowest contrast, and random ones; 0: none.",
            MEASURES,
            show_default="5",
        ),
    ],
    "seed": Annotated[int | None, option("Seed of every random draw.", SETTINGS, show_default="0")],
    "device": Device,
}


def options_of(*without: str, **own: Any) -> dict[str, Option]:
    """All options but some, those of a command's `own` in their place or after them."""
    hints = {name: hint for name, hint in (SETTINGS_OF_TEXT | own).items() if name not in without}
    return {name: (hint, False if name == "quick" else None) for name, hint in hints.items()} | NO_SETTINGS


def config_from(kind: type[AnyConfig], values: dict[str, Any]) -> AnyConfig:
    check_engine(values["engine"], workers=values["workers"], address=values["address"])
    flags = {name: value for name, value in values.items() if name not in (*NO_SETTINGS, "quick") and value != []}
    usual = getattr(kind, "QUICK", {}) if values.get("quick") else {}  # --quick: whatever is given wins over it
    return kind.of({**usual, **gather(values["config"], flags, values["set_"] or ())})


def run_on_engine(work: Any, settings: Any, values: dict[str, Any]) -> Any:
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
    result = run_on_engine(language.fit_corpus, config_from(language.TopicsConfig, values), values)
    tables = [pages.topic_model_table(result)]
    if result.compared:
        tables.append(pages.compared_table(result.compared))
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
    result = run_on_engine(language.probe, config_from(language.ProbeConfig, values), values)
    tables = [pages.verdict_table(result.verdicts), pages.ratio_table(result.rows)]  # the page has all of them
    if result.heads:
        tables.append(pages.head_table(result.heads, 5))
    if result.cooccurrence:
        tables.append(pages.cooccurrence_table(result.cooccurrence))
    if result.states:
        tables.append(pages.state_table(result.states))
    if result.labels:
        tables.append(pages.label_table(result.labels))
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
    settings = config_from(language.TimelineConfig, values)
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
    return consoles.finish(result, values["out"], [pages.moment_table(result)], as_json=values["as_json"])


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
    return consoles.finish(result, out, [pages.word_table(result)], as_json=as_json)
