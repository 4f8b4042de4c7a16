"""`topicscope topics`, `probe`, `timeline` and `words`: topics of text, and how models hold them."""

import inspect
from collections.abc import Callable, Mapping
from itertools import groupby
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Any, TypedDict, TypeVar, Unpack

import typer

from topicscope import language, pages, training
from topicscope.cli import shell
from topicscope.cli.shell import SETTINGS, option, out_option
from topicscope.ground import InputError, check_engine, gather, progress_shown, refuse_if

TEXT, TOPICS, MEASURES, CONTROLS = "Text", "Topics", "Measures", "Controls"

Embedding = Annotated[
    str | None,
    option("matrix (word embeddings) or layer (with position, type and norm).", MEASURES, show_default="matrix"),
]
OutReplaced = Annotated[
    Path | None, out_option("Folder to write: new, empty, or an earlier one of this command, which is replaced.")
]


class Common(TypedDict):
    """The options that no setting stands for. A command gets them together with its settings."""

    config: shell.ConfigFile
    set_: shell.Assignments
    engine: shell.EngineOption
    address: shell.AddressOption
    workers: shell.WorkersOption
    out: OutReplaced
    yes: shell.Yes
    as_json: shell.AsJson


def setting(kind: Any, text: str, panel: str, default: str | None = None, *names: str, **more: object) -> object:
    """An option for a setting; `default` is the config's, as the help shows it."""
    return Annotated[kind | None, option(text, panel, *names, show_default=default or True, **more)]


OPTIONS: dict[str, object] = {
    "corpus": setting(list[str], "Files, patterns, folders or hf:NAME/CONFIG:SPLIT; may be repeated.", TEXT),
    "tokenizer": setting(str, "Model whose tokenizer is used: folder or hub id.", TEXT),
    "text_field": setting(str, "Field of JSON lines, CSV and Parquet that holds the text.", TEXT, "text"),
    "split_text": setting(
        str, "What a document of a plain text file is: line, paragraph, file, or auto.", TEXT, "auto"
    ),
    "stop_words": setting(str, "english, none, or a file with one word per line.", TEXT, "english"),
    "documents": setting(int, "Documents to measure attention on, sampled.", TEXT, "250"),
    "quick": Annotated[
        bool,
        option(
            "A first look: fewer topics, documents, sweeps and resamples, unless you set them.", SETTINGS, "--quick"
        ),
    ],
    "topics": setting(int, "Number of topics to fit.", TOPICS, "100"),
    "topics_from": setting(
        str, "Use given topics: a folder of 'topicscope topics', or a CSV or JSON file of words and topics.", TOPICS
    ),
    "label_field": setting(
        str, "Field of the corpus with one label per document: labels serve as topics, none are fitted.", TOPICS
    ),
    "backend": setting(str, "tomotopy, sklearn or gensim.", TOPICS, "tomotopy"),
    "iterations": setting(int, "Gibbs sweeps of the fit (other backends: ten per pass).", TOPICS, "120"),
    "stability": setting(
        bool, "Fit a second time, with another seed: for stability and held-out perplexity.", TOPICS, "stability"
    ),
    "max_documents": setting(int, "Documents that topics are fitted to, sampled.", TOPICS, "2500"),
    "min_documents": setting(int, "Words found in fewer documents are left out.", TOPICS, "5"),
    "thresholds": setting(
        list[float],
        "theta: words of a topic as a share of the vocabulary; may be repeated.",
        MEASURES,
        "0.0005, 0.001, 0.002",
        "--threshold",
    ),
    "threshold": setting(float, "theta: words of a topic as a share of the vocabulary.", MEASURES, "0.002"),
    "topics_per_word": setting(
        *(str, "one (Table 1), many (Table 5) or both.", MEASURES, "one"),
        callback=lambda ways: ["one", "many"] if ways == "both" else ways,
    ),
    "windows": setting(int, "Pieces, each as long as the model's input, taken from each document.", MEASURES, "2"),
    "embedding": Embedding,
    "bootstrap": setting(int, "Bootstrap resamples for the intervals.", MEASURES, "1000"),
    "shuffles": setting(
        int, "Shuffles of topics among words (a tenth as many for attention); 0: none.", CONTROLS, "1000"
    ),
    "matched": setting(bool, "Also compare pairs of equal word frequencies.", CONTROLS, "matched"),
    "random": setting(bool, "Also probe the same architecture with random weights.", CONTROLS, "random"),
    "cooccurrence": setting(bool, "Compare with the top co-occurring pairs (Table 2).", CONTROLS, "cooccurrence"),
    "states": setting(bool, "Also measure hidden states, layer by layer.", MEASURES, "states"),
    "ablation": setting(bool, "Also measure the loss without topical heads.", MEASURES, "ablation"),
    "show_documents": setting(
        int,
        "Documents to show on the page: those of highest and lowest contrast, and random ones; 0: none.",
        MEASURES,
        "5",
    ),
    "seed": setting(int, "Seed of every random draw.", SETTINGS, "0"),
    "device": shell.Device,
}
DEFAULTS = {"quick": False, "engine": "serial", "yes": False, "as_json": False}  # all others: None


def with_options(*without: str, **own: object) -> Callable[[Any], Callable[..., int]]:
    """A function as typer reads it: with all options but some, those of its `own` in their place or after them."""
    hints = {name: hint for name, hint in (OPTIONS | own).items() if name not in without} | Common.__annotations__

    def declared(run: Any) -> Callable[..., int]:
        run.__annotations__ = hints
        run.__signature__ = inspect.Signature(
            [
                inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, default=DEFAULTS.get(name), annotation=hint)
                for name, hint in hints.items()
            ]
        )
        return run

    return declared


TextConfig = TypeVar("TextConfig", "language.TopicsConfig", "language.ProbeConfig", "language.TimelineConfig")
Made = TypeVar("Made")


def config_from(
    kind: type[TextConfig], values: Common, usual: Mapping[str, object] = MappingProxyType({})
) -> TextConfig:
    """The config that options describe; whatever is given wins over the `usual` settings, of --quick."""
    check_engine(values["engine"], workers=values["workers"], address=values["address"])
    flags = {name: value for name, value in values.items() if name not in Common.__annotations__ and value != []}
    return kind.of({**usual, **gather(values["config"], flags, values["set_"] or ())})


def run_on_engine(work: Callable[..., Made], settings: TextConfig, values: Common) -> Made:
    if values["engine"] != "serial":
        language.check_inputs(settings)  # before processes are started; the command itself checks them as well
    device = getattr(settings, "device", "cpu")
    engine = shell.chosen_engine(values["engine"], values["address"], values["workers"], device=device)
    with progress_shown() as progress, engine as opened:
        return work(settings, values["out"], engine=opened, progress=progress, yes=values["yes"])


@with_options(
    *("documents", "topics_from", "label_field", "thresholds", "threshold", "topics_per_word", "windows"),
    *("embedding", "bootstrap", "shuffles", "matched", "random", "cooccurrence", "states", "ablation"),
    *("show_documents", "device"),
    corpus=Annotated[
        list[str] | None,
        typer.Argument(help="Files, patterns, folders (.txt .jsonl .csv .parquet, compressed or not), or hf:NAME."),
    ],
    topics=setting(list[int], "Number of topics to fit; if repeated, all are fitted and compared.", TOPICS, "100"),
)
def topics(*, quick: bool, **values: Unpack[Common]) -> int:
    """Fit topics (LDA) to a corpus, using the whole words of a model's tokenizer; show them and how good they are.

    'topicscope probe --topics-from' reads the folder. With --topics 25 --topics 50 the folder holds the better fit, and
    its folders topics-25 and topics-50 hold each.

    Example: [bold]topicscope topics articles.jsonl.gz --tokenizer bert-base-uncased --out runs/topics[/bold]
    """
    settings = config_from(language.TopicsConfig, values, language.TopicsConfig.QUICK if quick else {})
    result = run_on_engine(language.fit_corpus, settings, values)
    compared = [pages.compared_table(result.compared)] if result.compared else []
    return shell.finish(result, values["out"], [pages.topic_model_table(result), *compared], as_json=values["as_json"])


@with_options(
    *("tokenizer", "backend", "min_documents", "threshold", "stability"),
    models=Annotated[list[str] | None, typer.Argument(help="Model folders or hub ids.")],
    checkpoints=Annotated[list[str] | None, typer.Option("--checkpoints", hidden=True)],
)
def probe(*, quick: bool, checkpoints: list[str] | None, **values: Unpack[Common]) -> int:
    """Test if a model encodes topics, in which layers and heads, and if chance, frequency or co-occurrence explains it.

    Example: [bold]topicscope probe bert-base-uncased --corpus articles.jsonl.gz --out runs/probe[/bold]
    """
    refuse_if(checkpoints, "probe has no option --checkpoints; use: topicscope timeline SNAPSHOTS --corpus FILES")
    settings = config_from(language.ProbeConfig, values, language.ProbeConfig.QUICK if quick else {})
    result = run_on_engine(language.probe, settings, values)
    tables = [  # the page has all of them
        *(pages.verdict_table(result.verdicts), pages.ratio_table(result.rows)),
        *([pages.head_table(result.heads, 5)] if result.heads else []),
        *([pages.cooccurrence_table(result.cooccurrence)] if result.cooccurrence else []),
        *([pages.state_table(result.states)] if result.states else []),
        *([pages.label_table(result.labels)] if result.labels else []),
    ]
    return shell.finish(result, values["out"], tables, as_json=values["as_json"])


@with_options(
    *("tokenizer", "backend", "min_documents", "thresholds", "shuffles", "random", "cooccurrence", "states"),
    *("ablation", "stability", "quick", "show_documents"),
    topics_per_word=setting(str, "one or many topics per word.", MEASURES, "one"),
    snapshots=Annotated[
        list[str] | None,
        typer.Argument(help="A folder of 'pretrain' or 'train --snapshots', model folders, or hub ids NAME@step1000."),
    ],
)
def timeline(**values: Unpack[Common]) -> int:
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
    return shell.finish(result, values["out"], [pages.moment_table(result)], as_json=values["as_json"])


def words(
    model: Annotated[str, typer.Argument(help="Model folder or hub id.")],
    words: Annotated[list[str], typer.Argument(help="Words; a / starts the next group.")],
    embedding: Embedding = None,
    out: OutReplaced = None,
    as_json: shell.AsJson = False,
) -> int:
    """Draw the cosines between words (Figure 3). A word of several tokens is averaged over them and marked.

    Example: [bold]topicscope words bert-base-uncased frog toad lizard / mozart beethoven schubert[/bold]
    """
    groups = [list(group) for ends, group in groupby(words, lambda word: word == "/") if not ends]
    settings = language.WordsConfig.of(gather(None, {"model": model, "groups": groups, "embedding": embedding}))
    with progress_shown() as progress:
        result = language.map_words(settings, out, progress=progress)
    return shell.finish(result, out, [pages.word_table(result)], as_json=as_json)
