"""`topicscope probe --checkpoints`: at which step of training does topic structure appear?"""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from topicscope.cli import consoles
from topicscope.cli.topics import bar, print_table

if TYPE_CHECKING:
    from topicscope.figures import Effects
    from topicscope.ground import Engine
    from topicscope.language import Settings

NOTE = (
    "Difference: same-topic mean less different-topic mean. A measure appears at the first kept step from which on its 95% interval stays above zero; "
    "half of its rise: half of the way from the first to the last checkpoint, its interval from the same resamples. Step 0 is drawn at 1/2."
)


def is_sandbox(checkpoints: list[str]) -> bool:
    """Whether the folder is one of 'topicscope train'."""
    from topicscope.ground import InputError, load_settings

    of_train = [
        name
        for name in checkpoints
        if (config := Path(name) / "config.yaml").is_file() and "topic_model" in load_settings(config)
    ]
    if of_train and len(checkpoints) > 1:
        raise InputError(f"{of_train[0]} is a run of 'topicscope train'; give it alone")
    return bool(of_train)


def stopped_early(folder: Path) -> bool:
    try:
        return json.loads((folder / "results.json").read_text(encoding="utf-8"))["status"] == "diverged"
    except (OSError, ValueError, KeyError, TypeError):
        return False


def timeline_of_sandbox(folder: str, settings: Settings, out: Path | None, as_json: bool) -> int:
    from topicscope.training import read_snapshots, sandbox_effects

    config, snapshots = read_snapshots(Path(folder))
    found = sandbox_effects(config, snapshots, settings.bootstrap, settings.seed)
    about = {
        "checkpoints": [folder],
        "topics": "the true ones",
        "settings": {"bootstrap": settings.bootstrap, "seed": settings.seed},
    }
    return finish(found, about, f"{folder}, against its true topics; 95%: bootstrap over topics.", out, as_json)


def timeline_of_models(
    names: list[str],
    source: Any,
    stops: Any,
    topics: Path | None,
    fitting: Callable[[Any], Any],
    documents: int,
    settings: Settings,
    device: str,
    out: Path | None,
    as_json: bool,
    engine: Engine,
) -> int:
    from topicscope.language import assignments_of, find_checkpoints, load_tokenizer, read_topics, timeline, whole_words

    for name in names:
        if stopped_early(Path(name)):
            consoles.progress().print(
                f"{name} is a run that diverged: its last checkpoints may be no sound models",
                markup=False,
                highlight=False,
            )
    checkpoints = find_checkpoints(names)
    texts = source.sample(documents, settings.seed + 1)
    vocabulary = whole_words(load_tokenizer(checkpoints[0][1]), stops)
    mine = read_topics(topics, vocabulary, texts, engine) if topics is not None else fitting(vocabulary)
    assignment = assignments_of(mine, vocabulary, texts, settings)[0]
    with bar("probing checkpoints") as progress:
        found = timeline(checkpoints, texts, assignment, vocabulary, settings, device, progress, engine)
    about = {
        "checkpoints": [name for _, name in checkpoints],
        "corpus": source.summary(),
        "documents": len(texts),
        "settings": asdict(settings),
    }
    intro = f"{len(checkpoints)} checkpoints, {len(assignment.words)} words of {int((assignment.membership.sizes > 0).sum())} topics, {len(texts)} documents; "
    return finish(
        found, about, intro + "95%: bootstrap over topics (embeddings) or documents (attention).", out, as_json
    )


def finish(found: Effects, about: dict[str, Any], intro: str, out: Path | None, as_json: bool) -> int:
    """Results, table, figures and page."""
    from topicscope.figures import Section, flat, moment_table, moments, rows, sentence, timeline_figures
    from topicscope.ground import files, old_folders as folders
    from topicscope.report import write_report

    results: dict[str, Any] = {"timeline": rows(found), "moments": moments(found), "answer": sentence(found)}
    if out is not None:
        command = shlex.join(["topicscope", *sys.argv[1:]])
        folders.prepare(out)
        files.write_json(
            out / "probe.json",
            {"made_by": "topicscope", **about, "command": command, "environment": folders.environment()},
        )
        files.write_csv(out / "timeline.csv", [flat(row) for row in results["timeline"]])
        question = "When does topic structure appear?"
        section = Section(question, NOTE, command, timeline_figures(found), [moment_table(found)], config=about)
        write_report(out, "topicscope: a timeline", f"{intro}\n\n{results['answer']}", [section])
        files.write_json(out / "results.json", results)
    if as_json:
        print(json.dumps(results, allow_nan=False))
    else:
        print_table(moment_table(found))
        typer.echo(intro)
        typer.echo(results["answer"])
        typer.echo(f"page: {out / 'report.html'}" if out else "--out DIR writes a page, CSV and JSON")
    return 0
