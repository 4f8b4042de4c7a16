"""`topicscope topics`: fit the topics of a corpus, and show them."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Column, Table

from topicscope.cli import consoles
from topicscope.cli.engine_options import AddressOption, EngineOption, WorkersOption, check_engine, chosen_engine

if TYPE_CHECKING:
    from topicscope.figures import TableData
    from topicscope.ground import Engine
    from topicscope.language import Topics

CorpusOption = Annotated[
    list[str],
    typer.Argument(
        help="Files, patterns, folders (.txt .jsonl .csv .parquet, packed or not), or hf:NAME/CONFIG:SPLIT."
    ),
]
FieldOption = Annotated[str, typer.Option(help="Field of JSON lines, CSV and Parquet that holds the text.")]
SplitOption = Annotated[
    str, typer.Option(help="What a document of a plain text file is: line, paragraph, file, or auto.")
]
StopOption = Annotated[str, typer.Option(help="english, none, or a file with a word a line.")]


def command(
    corpus: CorpusOption,
    tokenizer: Annotated[str, typer.Option("--tokenizer", help="Model whose tokenizer is used: folder or hub id.")],
    topics: Annotated[int, typer.Option(help="Number of topics.", min=2)] = 100,
    backend: Annotated[str, typer.Option(help="tomotopy, sklearn or gensim.")] = "tomotopy",
    iterations: Annotated[int, typer.Option(help="Gibbs sweeps (other backends: ten for a pass).", min=1)] = 120,
    text_field: FieldOption = "text",
    split_text: SplitOption = "auto",
    max_documents: Annotated[int | None, typer.Option(help="A random sample of so many documents.", min=1)] = 2500,
    min_documents: Annotated[int, typer.Option(help="Words of fewer documents are left out.", min=1)] = 5,
    stop_words: StopOption = "english",
    seed: Annotated[int, typer.Option(help="Of the sample and the fit.", min=0)] = 0,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder for the topics; 'topicscope probe --topics' reads it.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON to stdout.")] = False,
    engine: EngineOption = "serial",
    address: AddressOption = None,
    workers: WorkersOption = None,
) -> int:
    """Fit topics (LDA) to a corpus, on the whole words of a model's tokenizer, and show them.

    Example: [bold]topicscope topics articles.jsonl.gz --tokenizer bert-base-uncased --topics 50 --out runs/topics[/bold]
    """
    from topicscope.ground import one_thread
    from topicscope.language import fit_topics, load_tokenizer, read_stop_words, whole_words

    check_out(out, "topics.json")
    check_engine(engine, address)
    source = open_corpus(corpus, text_field, split_text)
    with one_thread(), chosen_engine(engine, address, workers) as chosen:
        vocabulary = whole_words(load_tokenizer(tokenizer), read_stop_words(stop_words))
        texts = source.sample(max_documents, seed)
        with bar("fitting topics") as progress:
            found = fit_topics(
                texts,
                vocabulary,
                topics,
                backend=backend,
                iterations=iterations,
                min_documents=min_documents,
                seed=seed,
                progress=lambda done, total, ll: progress(done, total, f"log-likelihood {ll:.3f}"),
                engine=chosen,
            )
    found.about["corpus"] = source.summary()
    if out is not None:
        found.save(out)
    if as_json:
        listed = [
            {"topic": k, "words": found.top_words(k), "coherence": found.about["coherence"][k]}
            for k in range(len(found))
        ]
        print(
            json.dumps(
                {
                    "topics": listed,
                    **{key: value for key, value in found.about.items() if key not in ("coherence", "topics")},
                },
                allow_nan=False,
            )
        )
    else:
        show(found)
        typer.echo(f"corpus: {source.summary()}" + (f"; written: {out}" if out else "; --out DIR keeps them"))
    return 0


def check_out(out: Path | None, own: str) -> None:
    """A folder of the same kind may be replaced; anything else is left alone."""
    from topicscope.ground import InputError

    if out is None or not out.exists() or (out.is_dir() and not any(out.iterdir())):
        return
    try:
        mine = json.loads((out / own).read_text(encoding="utf-8"))["made_by"] == "topicscope"
    except (OSError, ValueError, KeyError, TypeError):
        mine = False
    if not mine:
        raise InputError(f"--out {out} holds something else; choose a folder that is new or empty")


def open_corpus(sources: list[str], text_field: str, split_text: str) -> Any:
    from topicscope.ground import InputError
    from topicscope.language import Corpus

    if split_text not in ("auto", "line", "paragraph", "file"):
        raise InputError(f"--split-text {split_text}: expected auto, line, paragraph or file")
    return Corpus(sources, text_field, split_text)  # type: ignore[arg-type]


def show(topics: Topics) -> None:
    table = Table("topic", "share", "c_npmi", Column("top words", ratio=1))
    share = topics.document_topics.mean(0)
    for k in range(len(topics)):
        table.add_row(
            str(k), f"{100 * share[k]:.1f}%", f"{topics.about['coherence'][k]:.3f}", " ".join(topics.top_words(k))
        )
    console = consoles.results()
    console.print(table, markup=False)
    coherence = topics.about["coherence"]
    console.print(
        f"mean coherence (c_npmi) {sum(coherence) / len(coherence):.3f}, {topics.about['documents']} documents, {topics.about['tokens']:,} words"
    )


@contextmanager
def bar(what: str) -> Iterator[Any]:
    """A progress bar on stderr: call with what is done, the total, and a remark."""
    console = consoles.progress()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TimeRemainingColumn(),
        TextColumn("{task.fields[note]}"),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(what, total=None, note="")
        yield lambda done, total, note="", name=what: progress.update(
            task, completed=done, total=total, note=note, description=name
        )


def fit(
    source: Any,
    vocabulary: Any,
    number: int,
    iterations: int,
    max_documents: int,
    seed: int,
    out: Path | None,
    count: int,
    engine: Engine,
) -> Any:
    from topicscope.language import fit_corpus

    with bar("fitting topics") as progress:
        note = lambda done, total, ll: progress(done, total, f"log-likelihood {ll:.3f}")  # noqa: E731
        found = fit_corpus(source, vocabulary, number, iterations, max_documents, seed, note, engine)
    if out is not None:
        found.save(out / f"topics-{count + 1}")
    return found


def print_table(data: TableData) -> None:
    table = Table(*data.columns, title=data.title, title_justify="left")
    for row in data.rows:
        table.add_row(*row)
    consoles.results().print(table, markup=False)
