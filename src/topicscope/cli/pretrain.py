"""`topicscope pretrain`: Figure 5 for any text."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from topicscope.cli.topics import print_table

if TYPE_CHECKING:
    from topicscope.pretraining import PretrainRun, PretrainRuns

TEXT, MODEL, TRAINING, OUTPUT = "Text", "Model", "Training", "Output"
"""Panels of the help."""


def command(
    corpus: Annotated[
        list[str] | None,
        typer.Option(help="Files, patterns, folders or hf:NAME; may be repeated.", rich_help_panel=TEXT),
    ] = None,
    text_field: Annotated[
        str | None, typer.Option(help="Field of JSON lines, CSV or Parquet that holds the text.", rich_help_panel=TEXT)
    ] = None,
    split_text: Annotated[
        str | None,
        typer.Option(help="Documents of a plain text file: line, paragraph, file or auto.", rich_help_panel=TEXT),
    ] = None,
    tokenizer: Annotated[
        str | None, typer.Option(help="An existing tokenizer: folder or hub id.", rich_help_panel=TEXT)
    ] = None,
    train_tokenizer: Annotated[
        str | None, typer.Option(help="Train one: wordpiece (default), bpe or unigram.", rich_help_panel=TEXT)
    ] = None,
    vocab_size: Annotated[
        int | None, typer.Option(help="Tokens of a trained tokenizer (default 8000).", rich_help_panel=TEXT)
    ] = None,
    architecture: Annotated[
        str | None, typer.Option(help="bert (default), roberta, albert, electra or bart.", rich_help_panel=MODEL)
    ] = None,
    layers: Annotated[int | None, typer.Option(help="Layers (default 4).", rich_help_panel=MODEL)] = None,
    heads: Annotated[int | None, typer.Option(help="Heads per layer (default 4).", rich_help_panel=MODEL)] = None,
    dim: Annotated[int | None, typer.Option(help="Width (default 128).", rich_help_panel=MODEL)] = None,
    init_scale: Annotated[
        str | None,
        typer.Option(
            help="Standard deviation of W_K, W_Q, W_V at the start (default 0.0001): a number, a list with one per "
            "layer, or usual.",
            rich_help_panel=MODEL,
        ),
    ] = None,
    dropout: Annotated[str | None, typer.Option(help="A probability, or usual.", rich_help_panel=MODEL)] = None,
    steps: Annotated[int | None, typer.Option(help="Training steps (default 400).", rich_help_panel=TRAINING)] = None,
    batch_size: Annotated[
        int | None, typer.Option(help="Rows per step (default 32).", rich_help_panel=TRAINING)
    ] = None,
    length: Annotated[int | None, typer.Option(help="Tokens per row (default 64).", rich_help_panel=TRAINING)] = None,
    optimizer: Annotated[str | None, typer.Option(help="adamw (default) or sgd.", rich_help_panel=TRAINING)] = None,
    lr: Annotated[float | None, typer.Option(help="Learning rate (default 0.001).", rich_help_panel=TRAINING)] = None,
    warmup: Annotated[int | None, typer.Option(help="Steps of warm-up.", rich_help_panel=TRAINING)] = None,
    bf16: Annotated[bool, typer.Option("--bf16", help="Mixed precision; GPUs only.", rich_help_panel=TRAINING)] = False,
    seed: Annotated[
        int | None, typer.Option(help="Seed of every random draw.", min=0, rich_help_panel=TRAINING)
    ] = None,
    runs: Annotated[
        int, typer.Option(help="Runs, with seeds SEED, SEED + 1, ...", min=1, rich_help_panel=TRAINING)
    ] = 1,
    device: Annotated[str | None, typer.Option(help="auto, cpu or cuda.", rich_help_panel=TRAINING)] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", "-c", help="YAML file of settings; flags and --set override it."),
    ] = None,
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="KEY=VALUE", help="Any setting: --set model.init_scale.value=usual."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Folder to write, new or empty.", rich_help_panel=OUTPUT)
    ] = None,
    snapshots: Annotated[
        str | None,
        typer.Option(help="Steps at which to keep the model: log (default), none or '[0,10]'.", rich_help_panel=OUTPUT),
    ] = None,
    resume: Annotated[
        bool, typer.Option("--resume", help="Go on with the run in --out.", rich_help_panel=OUTPUT)
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace the run in --out.", rich_help_panel=OUTPUT)] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print only JSON to stdout.", rich_help_panel=OUTPUT)] = False,
) -> int:
    """Train a small transformer on any text, its attention started near zero, and measure every layer (Figure 5).

    On several processes: accelerate launch --num_processes 2 -m topicscope pretrain ...

    Example: [bold]topicscope pretrain --corpus articles.txt --steps 400 --out runs/pretrain[/bold]
    """
    from topicscope import pretraining
    from topicscope.ground import InputError, gather, progress_shown, silent

    flags = {"text.corpus": corpus, "text.text_field": text_field, "text.split": split_text}
    flags |= {"tokenizer.existing": tokenizer, "tokenizer.train": train_tokenizer, "tokenizer.vocab_size": vocab_size}
    flags |= {"model.architecture": architecture, "model.layers": layers, "model.heads": heads, "model.dim": dim}
    flags |= {"steps": steps, "batch_size": batch_size, "length": length, "bf16": bf16 or None, "seed": seed}
    flags |= {"optimizer.name": optimizer, "optimizer.lr": lr, "optimizer.warmup": warmup}
    yaml_flags = {"model.init_scale": init_scale, "model.dropout": dropout, "snapshots": snapshots}
    assignments = [f"{name}={value}" for name, value in yaml_flags.items() if value is not None] + (set_ or [])
    given = [value for value in flags.values() if value is not None]
    if tokenizer is not None and train_tokenizer is not None:
        raise InputError("tokenizer and train-tokenizer are both given: use one that exists, or train one?")
    if resume:
        if out is None:
            raise InputError("resume needs out, the folder of the run to go on with")
        if config or given or assignments or runs > 1 or force:
            raise InputError("resume takes all settings but the device from the folder; leave the other options out")
        configs = pretraining.stored_configs(out)
    else:
        one = pretraining.PretrainConfig.of(gather(config, flags | {"device": device}, assignments)).absolute()
        configs = one.with_seeds(runs) if runs > 1 else one
    pretraining.check_input(configs, out, resume=resume, force=force)
    with progress_shown() if pretraining.is_main() else nullcontext(silent) as progress:
        result = pretraining.pretrain(configs, out, resume=resume, force=force, device=device, progress=progress)
    if not pretraining.is_main():
        return 0
    if out is not None:
        write(result, out)
    if as_json:
        print(json.dumps(result.results_json(), allow_nan=False))
    else:
        show(result, out)
    return 1 if result.status == "diverged" else 0


def show(result: PretrainRun | PretrainRuns, out: Path | None) -> None:
    for table in (table for section in result.sections() for table in section.tables):
        print_table(table)
    for sentence in result.summary():
        typer.echo(sentence)
    if out is None:
        typer.echo("--out DIR keeps the model, its snapshots, metrics and a page")
    else:
        home = result.homes[0]
        probe = f"topicscope probe {home / 'model'} --corpus ..., or --checkpoints {home}"
        typer.echo(f"page: {out / 'report.html'}; probe it with: {probe}")


def write(result: PretrainRun | PretrainRuns, out: Path) -> None:
    """Figure 5 as PNG, SVG and CSV, and the page."""
    from topicscope.report import write_report

    write_report(out, "topicscope pretrain", "\n\n".join(result.summary()), result.sections())


def rebuild(folder: Path) -> None:
    """The page again, from what is stored."""
    from topicscope.pretraining import read_pretrain

    write(read_pretrain(folder), folder)
