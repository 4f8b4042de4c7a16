"""`topicscope pretrain`: Figure 5 for any text."""

from contextlib import nullcontext
from typing import Annotated

import typer

from topicscope import pages, pretraining
from topicscope.cli import consoles
from topicscope.cli.options import (
    OUTPUT,
    AsJson,
    Assignments,
    ConfigFile,
    Device,
    Force,
    Out,
    Resume,
    Yes,
    option,
    run_configs,
)
from topicscope.ground import InputError, folders, progress_shown, silent

TEXT, MODEL, TRAINING = "Text", "Model", "Training"


def command(
    corpus: Annotated[list[str] | None, option("Files, patterns, folders or hf:NAME; may be repeated.", TEXT)] = None,
    text_field: Annotated[str | None, option("Field of JSON lines, CSV or Parquet with the text.", TEXT)] = None,
    split_text: Annotated[str | None, option("What a document is: line, paragraph, file or auto.", TEXT)] = None,
    tokenizer: Annotated[str | None, option("An existing tokenizer: folder or hub id.", TEXT)] = None,
    train_tokenizer: Annotated[str | None, option("Train one: wordpiece (default), bpe or unigram.", TEXT)] = None,
    vocab_size: Annotated[int | None, option("Tokens of a trained tokenizer (default 8000).", TEXT)] = None,
    architecture: Annotated[str | None, option("bert (default), roberta, albert, electra or bart.", MODEL)] = None,
    layers: Annotated[int | None, option("Layers (default 4).", MODEL)] = None,
    heads: Annotated[int | None, option("Heads per layer (default 4).", MODEL)] = None,
    dim: Annotated[int | None, option("Width (default 128).", MODEL)] = None,
    init_scale: Annotated[
        str | None, option("Scale at which W_K, W_Q, W_V start: a number, a list with one per layer, or usual.", MODEL)
    ] = None,
    dropout: Annotated[str | None, option("Dropout probability, or usual (the architecture's own).", MODEL)] = None,
    steps: Annotated[int | None, option("Training steps (default 400).", TRAINING)] = None,
    batch_size: Annotated[int | None, option("Rows per step (default 32).", TRAINING)] = None,
    length: Annotated[int | None, option("Tokens per row (default 64).", TRAINING)] = None,
    optimizer: Annotated[str | None, option("adamw (default) or sgd.", TRAINING)] = None,
    lr: Annotated[float | None, option("Learning rate (default 0.001).", TRAINING)] = None,
    warmup: Annotated[int | None, option("Steps of warm-up.", TRAINING)] = None,
    held_out: Annotated[
        float | None,
        option("Share of documents kept out of training, to measure the loss on (default 0.02).", TRAINING),
    ] = None,
    bf16: Annotated[bool, option("Mixed precision; GPUs only.", TRAINING, "--bf16")] = False,
    seed: Annotated[int | None, option("Seed of every random draw.", TRAINING, min=0)] = None,
    runs: Annotated[int, option("Number of seeds to train, one after another.", TRAINING, min=1)] = 1,
    config: ConfigFile = None,
    set_: Assignments = None,
    device: Device = None,
    out: Out = None,
    snapshots: Annotated[
        str | None, option("Steps at which the model is kept: log (default), none, or '[0,10,100]'.", OUTPUT)
    ] = None,
    resume: Resume = False,
    force: Force = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> int:
    """Train a small transformer on any text, with attention started near zero, and measure every layer (Figure 5).

    On several processes: accelerate launch --num_processes 2 -m topicscope pretrain ...

    Example: [bold]topicscope pretrain --corpus articles.txt --steps 400 --out runs/pretrain[/bold]
    """
    flags = {
        "text.corpus": corpus,
        "text.text_field": text_field,
        "text.split": split_text,
        "tokenizer.existing": tokenizer,
        "tokenizer.train": train_tokenizer,
        "tokenizer.vocab_size": vocab_size,
        "model.architecture": architecture,
        "model.layers": layers,
        "model.heads": heads,
        "model.dim": dim,
        "steps": steps,
        "batch_size": batch_size,
        "length": length,
        "optimizer.name": optimizer,
        "optimizer.lr": lr,
        "optimizer.warmup": warmup,
        "held_out.share": held_out,
        "bf16": bf16 or None,
        "seed": seed,
        "device": None if resume else device,  # a run may go on elsewhere
    }
    given_as_yaml = {"model.init_scale": init_scale, "model.dropout": dropout, "snapshots": snapshots}
    assignments = [f"{name}={value}" for name, value in given_as_yaml.items() if value is not None] + (set_ or [])
    if tokenizer is not None and train_tokenizer is not None:
        raise InputError(
            "--tokenizer and --train-tokenizer are both given; give one: an existing tokenizer, or the kind to train"
        )
    configs = run_configs(
        pretraining.PretrainConfig,
        pretraining.stored_configs,
        flags,
        config,
        assignments,
        runs,
        out,
        resume=resume,
        force=force,
        kept="all settings but --device",
    )
    with progress_shown() if pretraining.is_main() else nullcontext(silent) as progress:
        result = pretraining.pretrain(
            configs, out, resume=resume, force=force, device=device, progress=progress, yes=yes
        )
    if not pretraining.is_main():
        return 0
    several = result if isinstance(result, list) else [result]
    sections = result.sections()
    if out is not None:
        with folders.lock(out):
            pages.write_report(out, f"topicscope pretrain: {out.name}", "\n\n".join(result.summary()), sections)
    if as_json:
        results = [run.results.as_dict() for run in several]
        consoles.print_json(results if isinstance(result, list) else results[0])
    else:
        consoles.print_tables(table for section in sections for table in section.tables)
        consoles.print_lines(result.summary())
        kept = "--out DIR keeps the model, its snapshots, metrics and a page"
        probe = f"probe it with: topicscope probe {several[0].folder}/model --corpus ..."
        consoles.print_lines([f"page: {out / 'report.html'}; {probe}" if out is not None else kept])
    for run in several:
        if run.status == "diverged":
            typer.echo(f"topicscope: {run.summary()[0]}", err=True)
    return 1 if result.status == "diverged" else 0
