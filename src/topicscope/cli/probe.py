"""`topicscope probe`: does a model encode topics? `topicscope words`: the cosine map of some words."""

from __future__ import annotations

import json
import math
import shlex
import sys
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from topicscope.cli import consoles
from topicscope.cli.engine_options import AddressOption, EngineOption, WorkersOption, check_engine, chosen_engine
from topicscope.cli.timeline import is_sandbox, timeline_of_models, timeline_of_sandbox
from topicscope.cli.topics import FieldOption, SplitOption, StopOption, bar, check_out, fit, open_corpus, print_table

ABOUT = "probe.json"
"""What was asked, of what: beside the results."""

if TYPE_CHECKING:
    from topicscope.language import Probe


def command(
    models: Annotated[list[str] | None, typer.Argument(help="Model folders or hub ids.")] = None,
    corpus: Annotated[
        list[str] | None, typer.Option("--corpus", help="Files, patterns, folders or hf:NAME; may be repeated.")
    ] = None,
    checkpoints: Annotated[
        list[str] | None,
        typer.Option(
            help="A timeline instead: a folder of 'pretrain' or 'train --snapshots', model folders, or hub ids NAME@step1000; may be repeated."
        ),
    ] = None,
    threshold: Annotated[
        list[float] | None, typer.Option(help="theta: words of a topic as a share of the vocabulary; may be repeated.")
    ] = None,
    topics_per_word: Annotated[str, typer.Option(help="one (Table 1), many (Table 5) or both.")] = "one",
    topics: Annotated[
        Path | None,
        typer.Option(help="Fitted topics (folder of 'topicscope topics'), or a CSV/JSON file of words and topics."),
    ] = None,
    number: Annotated[int, typer.Option(help="Topics to fit where none are given.", min=2)] = 100,
    iterations: Annotated[int, typer.Option(help="Sweeps of that fit.", min=1)] = 120,
    max_documents: Annotated[int, typer.Option(help="Documents that topics are fitted to, sampled.", min=1)] = 2500,
    documents: Annotated[int, typer.Option(help="Documents of the attention pass, sampled.", min=1)] = 250,
    windows: Annotated[int, typer.Option(help="Pieces of the model's length taken of each document.", min=1)] = 2,
    embedding: Annotated[
        str, typer.Option(help="matrix (word embeddings) or layer (with position, type and norm).")
    ] = "matrix",
    text_field: FieldOption = "text",
    split_text: SplitOption = "auto",
    stop_words: StopOption = "english",
    bootstrap: Annotated[int, typer.Option(help="Resamples of the intervals.", min=2)] = 1000,
    shuffles: Annotated[
        int, typer.Option(help="Shuffles of topics among words (a tenth of them for attention); 0: none.", min=0)
    ] = 1000,
    matched: Annotated[bool, typer.Option(help="Compare pairs of the same word frequencies too.")] = True,
    random: Annotated[bool, typer.Option(help="Probe the same architecture with fresh weights too.")] = True,
    cooccurrence: Annotated[bool, typer.Option(help="Compare with the top co-occurring pairs (Table 2).")] = True,
    seed: Annotated[int, typer.Option(help="Of every random draw.", min=0)] = 0,
    device: Annotated[str, typer.Option(help="auto, cpu or cuda.")] = "auto",
    engine: EngineOption = "serial",
    address: AddressOption = None,
    workers: WorkersOption = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for results, CSV, topics and a page.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON to stdout.")] = False,
) -> int:
    """Does a model encode topics, in which layer and head, and is it more than chance, frequency or co-occurrence?

    With --checkpoints: at which step of training does it begin to?

    Example: [bold]topicscope probe bert-base-uncased --corpus articles.jsonl.gz --out runs/probe[/bold]
    """
    from topicscope.ground import InputError
    from topicscope.language import (
        THRESHOLDS,
        Probe,
        load_model,
        probe_model,
        probe_settings,
        read_stop_words,
        read_topics,
        usable_device,
        whole_words,
    )

    if topics_per_word not in ("one", "many", "both"):
        raise InputError(f"--topics-per-word {topics_per_word}: expected one, many or both")
    if embedding not in ("matrix", "layer"):
        raise InputError(f"--embedding {embedding}: expected matrix or layer")
    check_out(out, ABOUT)
    check_engine(engine, address)
    if checkpoints and (models or (threshold and len(threshold) > 1) or topics_per_word == "both"):
        raise InputError(
            "--checkpoints takes no models beside it, one --threshold (default 0.002) and one kind of --topics-per-word"
        )
    if not checkpoints and not models:
        raise InputError("no model is given; name model folders or hub ids, or --checkpoints DIR for a timeline")
    kinds: Any = ("one", "many") if topics_per_word == "both" else (topics_per_word,)
    thetas = tuple(threshold or (THRESHOLDS[-1:] if checkpoints else THRESHOLDS))
    settings = probe_settings(
        thetas,
        kinds,
        embedding=embedding,
        bootstrap=bootstrap,
        shuffles=shuffles,
        matched=matched,
        random=random,
        cooccurrence=cooccurrence,
        windows=windows,
        seed=seed,
    )
    if checkpoints and is_sandbox(checkpoints):
        if corpus or topics:
            raise InputError(
                f"{checkpoints[0]} is a run of 'topicscope train', which has topics and texts of its own; leave --corpus and --topics out"
            )
        if engine != "serial":
            raise InputError(
                f"{checkpoints[0]} is a run of 'topicscope train', which is measured in a moment; leave --engine {engine} out"
            )
        return timeline_of_sandbox(checkpoints[0], settings, out, as_json)
    if not corpus:
        raise InputError("no text is given; name files, a folder or hf:NAME with --corpus")
    source = open_corpus(corpus, text_field, split_text)
    stops = read_stop_words(stop_words)
    place = usable_device(device)
    found, fitted = Probe(), dict[str, Any]()
    with chosen_engine(engine, address, workers, gpus=int(place == "cuda")) as chosen:

        def fitting(vocabulary: Any) -> Any:
            return fit(source, vocabulary, number, iterations, max_documents, seed, out, len(fitted), chosen)

        if checkpoints:
            return timeline_of_models(
                checkpoints, source, stops, topics, fitting, documents, settings, place, out, as_json, chosen
            )
        loaded = [load_model(model, place) for model in models or []]  # all of them before the long work starts
        texts = source.sample(documents, seed + 1)
        for model in loaded:
            vocabulary = whole_words(model.tokenizer, stops)
            mine = (
                read_topics(topics, vocabulary, texts, chosen)
                if topics is not None
                else fitted.get(vocabulary.fingerprint)
            )
            if mine is None:
                mine = fitted[vocabulary.fingerprint] = fitting(vocabulary)
            with bar(model.name) as progress:
                if remark := getattr(mine, "remark", ""):
                    consoles.progress().print(f"{model.name}: {remark}", markup=False, highlight=False)
                found.extend(
                    probe_model(
                        model,
                        vocabulary,
                        texts,
                        mine,
                        settings,
                        lambda what, done, total: progress(done, total, "", what),
                        chosen,
                    )
                )
    if out is not None:
        about = {
            "made_by": "topicscope",
            "models": models,
            "corpus": corpus,
            "found_there": source.summary(),
            "settings": asdict(settings),
        }
        write(
            out,
            found,
            about
            | {"stop_words": stop_words, "documents": len(texts), "command": shlex.join(["topicscope", *sys.argv[1:]])},
        )
    if as_json:
        print(json.dumps(found.as_dict(), allow_nan=False))
    else:
        show(found)
        typer.echo(
            f"corpus: {source.summary()}"
            + (f"; page: {out / 'report.html'}" if out else "; --out DIR writes a page, CSV and JSON")
        )
    return 0


def show(found: Probe) -> None:
    from topicscope.figures import answers, cooccurrence_table, head_table, ratio_table

    for table in (
        ratio_table(found.rows),
        *([head_table(found.heads, 5)] if found.heads else []),
        *([cooccurrence_table(found.cooccurrence)] if found.cooccurrence else []),
    ):
        print_table(table)
    for line in answers(found.rows, found.heads):
        typer.echo(line)


def write(out: Path, found: Probe, about: dict[str, Any]) -> None:
    """results.json, its numbers as CSV, figures, and the page."""
    from topicscope.figures import Section, probing
    from topicscope.ground import files, old_folders as folders
    from topicscope.report import write_report

    folders.prepare(out)
    files.write_json(out / ABOUT, about | {"environment": folders.environment()})
    models, corpus = about["models"], about["corpus"]
    tables = {"ratios": probing.ratio_table(found.rows), "effects": probing.difference_table(found.rows)}
    if found.heads:
        tables["heads"] = probing.head_table(found.heads, len(found.heads))
    if found.topics:
        tables["topics"] = probing.topic_table(found.topics)
    if found.cooccurrence:
        tables["cooccurrence"] = probing.cooccurrence_table(found.cooccurrence)
    for name, records in probing.records(found.as_dict()).items():
        files.write_csv(out / f"{name}.csv", records)
    figures = {
        "ratios": [probing.ratio_figure(found.rows)] if found.rows[0]["threshold"] is not None else [],
        "heads": probing.head_figures(found.heads),
    }
    figures["topics"] = probing.topic_figures(found.topics)
    sections = []
    claims = {
        "ratios": "Are words of a topic nearer, and do they attend each other more?",
        "effects": "Is it more than chance, or word frequency?",
        "heads": "Which heads carry topics?",
        "topics": "Which topics are tight, and which near each other?",
        "cooccurrence": "Topics against co-occurrence (Table 2).",
    }
    notes = {
        "ratios": "Same-topic mean over different-topic mean; 'undefined' over a mean that may be zero. Attention is that of the encoder where there is one.",
        "effects": "Difference: same-topic mean less different-topic mean. 95%: bootstrap over topics (embeddings) or documents (attention). "
        "Shuffled topics: the middle 95% of the difference when topics are handed to words at random; p: how often that does as well. "
        "Matched frequencies: the difference when the different-topic pairs have the word frequencies of the same-topic pairs. "
        "Random weights: the mean of five fresh models for embeddings, one for attention.",
        "heads": "Attention is debiased (weight x positions that can be attended / 100): without any preference every head has .01. Counted from 0.",
        "topics": "The tightest and the loosest topics, and the topics nearest to and farthest from them.",
        "cooccurrence": "As many pairs as a topic has, those that stand in the same fifty words of text most often.",
    }
    for name, table in tables.items():
        short = probing.head_table(found.heads) if name == "heads" else table
        sections.append(Section(claims[name], notes[name], about["command"], figures.get(name, []), [short]))
    files.write_json(out / "results.json", found.as_dict())
    intro = [
        f"Models: {', '.join(map(probing.short, models))}. Text: {', '.join(corpus)}.",
        *probing.answers(found.rows, found.heads),
    ]
    write_report(out, "topicscope probe", "\n\n".join(intro), sections)


def rebuild(folder: Path) -> None:
    """The page again, from what is stored."""
    from topicscope.ground import InputError
    from topicscope.language import Probe

    if (folder / "timeline.csv").is_file():
        raise InputError(
            f"{folder} holds a timeline, with its page and timeline.csv; to draw it again run 'topicscope probe --checkpoints' again"
        )
    try:
        found = Probe(**json.loads((folder / "results.json").read_text(encoding="utf-8")))
        about = json.loads((folder / ABOUT).read_text(encoding="utf-8"))
        write(folder, found, {key: about[key] for key in about if key != "environment"})
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InputError(
            f"{folder} holds no whole probe ({type(error).__name__}: {error}); run 'topicscope probe --out {folder}' again"
        ) from None


def words(
    model: Annotated[str, typer.Argument(help="Model folder or hub id.")],
    words: Annotated[list[str], typer.Argument(help="Words; a / starts the next group.")],
    embedding: Annotated[str, typer.Option(help="matrix or layer.")] = "matrix",
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Folder for the picture and its numbers.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON to stdout.")] = False,
) -> int:
    """Draw the cosines between words (Figure 3). Words that are not one token are averaged over their pieces, and marked.

    Example: [bold]topicscope words bert-base-uncased frog toad lizard / mozart beethoven schubert / algebra arithmetic calculus[/bold]
    """
    from topicscope.figures import word_figure
    from topicscope.ground import InputError, files
    from topicscope.language import load_model, word_map
    from topicscope.report import draw_figure, write_csv

    if embedding not in ("matrix", "layer"):
        raise InputError(f"--embedding {embedding}: expected matrix or layer")
    check_out(out, "words.json")
    groups: list[list[str]] = [[]]
    for word in words:
        groups.append([]) if word == "/" else groups[-1].append(word)
    found = word_map(load_model(model), [group for group in groups if group], layer=embedding == "layer")
    same, different = found.means()
    payload = {"words": found.words, "groups": found.groups, "pieces": found.pieces, "cosine": found.cosine.tolist()}
    payload |= {"same_group": none_if_nan(same), "different_group": none_if_nan(different)}
    if out is not None:
        figure = word_figure(found, model)
        draw_figure(figure, out)
        write_csv(figure, out)
        files.write_json(out / "words.json", {"made_by": "topicscope"} | payload)
    if as_json:
        print(json.dumps(payload))
        return 0
    table = Table("", *found.labels)
    for label, row in zip(found.labels, found.cosine, strict=True):
        table.add_row(label, *(f"{value:.2f}" for value in row))
    consoles.results().print(table, markup=False)
    if max(found.pieces) > 1:
        typer.echo("* not one token: the mean of its pieces")
    shown = ["-" if math.isnan(mean) else f"{mean:.3f}" for mean in (same, different)]
    typer.echo(
        f"mean cosine inside groups {shown[0]}, between groups {shown[1]}"
        + (f"; written: {out / 'figure3.png'}" if out else "")
    )
    return 0


def none_if_nan(value: float) -> float | None:
    return None if math.isnan(value) else value
