"""`topicscope pretrain`: Figure 5 for any text."""

from __future__ import annotations

import json
import math
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from topicscope.cli import consoles

if TYPE_CHECKING:
    from topicscope.figures import Curves
    from topicscope.pretraining import PretrainRun


def command(
    corpus: Annotated[
        list[str] | None, typer.Option("--corpus", help="Files, patterns, folders or hf:NAME; may be repeated.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", "-c", help="YAML file of settings; flags and --set override it.")
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option(
            "--set",
            metavar="KEY=VALUE",
            help="Any setting, for example --set model.init_scale.value=usual; may be repeated.",
        ),
    ] = None,
    architecture: Annotated[str | None, typer.Option(help="bert, roberta, albert, electra or bart.")] = None,
    layers: Annotated[int | None, typer.Option(help="Layers (default 4).")] = None,
    heads: Annotated[int | None, typer.Option(help="Heads of each layer (default 4).")] = None,
    dim: Annotated[int | None, typer.Option(help="Width (default 128).")] = None,
    init_scale: Annotated[
        str | None,
        typer.Option(help="Standard deviation that W_K, W_Q, W_V start with, a list (one a layer), or usual."),
    ] = None,
    tokenizer: Annotated[str | None, typer.Option(help="An existing tokenizer: folder or hub id.")] = None,
    train_tokenizer: Annotated[
        str | None, typer.Option(help="Train one on the corpus: wordpiece (default), bpe or unigram.")
    ] = None,
    vocab_size: Annotated[int | None, typer.Option(help="Tokens of a trained tokenizer (default 8000).")] = None,
    steps: Annotated[int | None, typer.Option(help="Training steps (default 400).")] = None,
    batch_size: Annotated[int | None, typer.Option(help="Rows a step (default 32).")] = None,
    length: Annotated[int | None, typer.Option(help="Tokens of a row (default 64).")] = None,
    optimizer: Annotated[str | None, typer.Option(help="adamw or sgd.")] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate (default 0.001).")] = None,
    warmup: Annotated[int | None, typer.Option(help="Steps of warm-up.")] = None,
    dropout: Annotated[str | None, typer.Option(help="A probability, or usual.")] = None,
    checkpoints: Annotated[
        str | None,
        typer.Option(help="Steps at which the model is kept: log (default), none, or a list such as '[0,10,100]'."),
    ] = None,
    text_field: Annotated[
        str | None, typer.Option(help="Field of JSON lines, CSV and Parquet that holds the text.")
    ] = None,
    split_text: Annotated[
        str | None, typer.Option(help="What a document of a plain text file is: line, paragraph, file, or auto.")
    ] = None,
    bf16: Annotated[bool, typer.Option("--bf16", help="Mixed precision; GPUs only.")] = False,
    seed: Annotated[int | None, typer.Option(help="Seed of every random draw.", min=0)] = None,
    runs: Annotated[
        int, typer.Option(help="Train this many runs, with seeds SEED, SEED + 1, ..., one after another.", min=1)
    ] = 1,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda.")] = None,
    out: Annotated[Path | None, typer.Option("--out", "-o", help="Run folder to write (must be new or empty).")] = None,
    resume: Annotated[bool, typer.Option("--resume", help="Go on with the run in --out.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the run in --out.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON to stdout.")] = False,
) -> int:
    """Train a small transformer on any text, its attention matrices started near zero, and follow them step by step (Figure 5).

    On several processes: accelerate launch --num_processes 2 -m topicscope pretrain ...

    Example: [bold]topicscope pretrain --corpus articles.txt --steps 400 --out runs/pretrain[/bold]
    """
    from topicscope.figures import curves_of
    from topicscope.ground import InputError, apply_settings, load_settings
    from topicscope.pretraining import build_config, pretrain, resume_configs, seeds

    flags = {
        "text.corpus": corpus,
        "text.text_field": text_field,
        "text.split": split_text,
        "model.architecture": architecture,
        "model.layers": layers,
        "model.heads": heads,
        "model.dim": dim,
        "tokenizer.existing": tokenizer,
        "tokenizer.train": train_tokenizer,
        "tokenizer.vocab_size": vocab_size,
        "steps": steps,
        "batch_size": batch_size,
        "length": length,
        "optimizer.name": optimizer,
        "optimizer.lr": lr,
        "optimizer.warmup": warmup,
        "bf16": bf16 or None,
        "seed": seed,
        "device": device,
    }
    given = [f"{key}={json.dumps(flag)}" for key, flag in flags.items() if flag is not None]
    words = {"model.init_scale": init_scale, "model.dropout": dropout, "checkpoints": checkpoints}
    given += [f"{key}={flag}" for key, flag in words.items() if flag is not None]
    if tokenizer is not None and train_tokenizer is not None:
        raise InputError("--tokenizer and --train-tokenizer are both given: use one that exists, or train one?")
    if resume:
        if out is None:
            raise InputError("--resume needs --out, the folder of the run to go on with")
        if config or set_ or [flag for flag in given if not flag.startswith("device=")] or runs > 1 or force:
            raise InputError(
                "--resume takes all settings from the folder; leave the other options (but --device) out (--force starts a run anew)"
            )
        what = resume_configs(out)
    else:
        one = build_config(
            absolute(apply_settings(load_settings(config) if config is not None else {}, given + (set_ or [])))
        )
        what = seeds(one, runs) if runs > 1 else one
    configs = what if isinstance(what, list) else [what]
    with progress_bar([c.steps for c in configs]) as progress:
        result = pretrain(what, out, resume=resume, force=force, device=device if resume else None, progress=progress)
    found = result if isinstance(result, list) else [result]
    if not is_main():
        return 0
    if out is not None:
        write(out, [curves_of(run) for run in found], found[0].config.as_dict())
    if as_json:
        payload: Any = [run.results for run in found]
        print(json.dumps(payload if isinstance(result, list) else payload[0], allow_nan=False))
    else:
        show(found, out)
    return 1 if any(run.status == "diverged" for run in found) else 0


def is_main() -> bool:
    """Of several processes one prints."""
    return os.environ.get("RANK", "0") == "0"


def absolute(settings: dict[str, Any]) -> dict[str, Any]:
    """File names in full, so that a run can be resumed from anywhere."""
    text, tokenizer = settings.get("text"), settings.get("tokenizer")
    if isinstance(text, dict) and isinstance(text.get("corpus"), list):
        text["corpus"] = [
            name if str(name).startswith("hf:") else str(Path(str(name)).resolve()) for name in text["corpus"]
        ]
    if isinstance(tokenizer, dict) and isinstance(name := tokenizer.get("existing"), str) and Path(name).exists():
        tokenizer["existing"] = str(Path(name).resolve())
    return settings


@contextmanager
def progress_bar(steps: list[int]) -> Iterator[Any]:
    """Loss, tokens a second and time left, on stderr."""
    console = consoles.progress()
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f}%"),
        TextColumn("loss {task.fields[loss]:.3f}"),
        TextColumn("{task.fields[rate]:,.0f} tokens/s"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal or not is_main()) as bar:
        task = bar.add_task("reading text", total=sum(steps), loss=math.nan, rate=0.0)

        def progress(run: int, done: int, loss: float, rate: float) -> None:
            what = "pretraining" if len(steps) == 1 else f"run {run + 1} of {len(steps)}"
            bar.update(task, description=what, completed=sum(steps[:run]) + done, loss=loss, rate=rate)

        yield progress


def show(found: list[PretrainRun], out: Path | None) -> None:
    from topicscope.figures import curves_of, stage_table

    consoles.print_table(stage_table([curves_of(run) for run in found]))
    for run in found:
        last = run.results["loss"]
        end = "diverged" if run.status == "diverged" else "loss " + (f"{last:.4f}" if last is not None else "-")
        tokens, vocabulary = run.results["tokens"], run.results["vocabulary"]
        typer.echo(
            f"seed {run.config.seed}: {end} after {run.results['steps']} steps ({tokens:,} tokens, a vocabulary of {vocabulary})"
        )
    if out is not None:
        home = found[0].folder
        assert home is not None
        text = str(json.loads((home / "environment.json").read_text(encoding="utf-8")).get("text", ""))
        if "broken" in text or "encoding" in text:
            typer.echo(f"of the text not all could be read: {text}")
        typer.echo(
            f"page: {out / 'report.html'}; probe it with: topicscope probe {home / 'model'} --corpus ..., or --checkpoints {home}"
        )
    else:
        typer.echo("--out DIR keeps the model, its checkpoints, metrics and a page")


def write(out: Path, found: list[Curves], config: dict[str, Any]) -> None:
    """Figure 5 as PNG, SVG and CSV, and the page."""
    from topicscope.figures import Section, dynamics_figure, loss_figure, stage_table
    from topicscope.report import write_report

    section = Section(
        "Do key and query start later than value?",
        "A norm has started when it has made a tenth of its rise from start to plateau (the mean of the run's last tenth); t50: half of it. "
        "Separation: the earlier t50 of key and query over that of value. Rotation: (1 - cos) / 2 between W_V now and ten steps before.",
        f"topicscope pretrain --config {out / 'config.yaml'}",
        [dynamics_figure(found), loss_figure(found)],
        [stage_table(found)],
        config=config,
    )
    write_report(
        out,
        "topicscope pretrain",
        f"Masked language modelling, W_K, W_Q and W_V started at scale {config['model']['init_scale']}: norms and rotation, layer by layer.",
        [section],
    )


def rebuild(folder: Path) -> None:
    """The page again, from what is stored."""
    from topicscope.figures import Curves
    from topicscope.ground import InputError, load_settings
    from topicscope.pretraining import members, stored_metrics

    try:
        homes = members(folder)
        for home in homes:
            json.loads((home / "results.json").read_text(encoding="utf-8"))  # finished
        configs = [load_settings(home / "config.yaml") for home in homes]
        write(
            folder,
            [
                Curves(f"seed {c['seed']}", c["seed"], stored_metrics(home))
                for c, home in zip(configs, homes, strict=True)
            ],
            configs[0],
        )
    except (OSError, ValueError, KeyError) as error:
        raise InputError(
            f"{folder} holds no finished pretraining run ({type(error).__name__}: {error}); go on with 'topicscope pretrain --resume'"
        ) from None
