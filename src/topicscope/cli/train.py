"""`topicscope train`."""

import statistics
from functools import partial
from typing import Annotated

import typer

from topicscope import pages, training
from topicscope.cli import consoles
from topicscope.cli.options import (
    WORLD,
    AsJson,
    Assignments,
    ConfigFile,
    Device,
    Force,
    KeptWords,
    Out,
    Resume,
    WorldFrom,
    Yes,
    in_world,
    option,
    run_configs,
    world_of,
)
from topicscope.ground import parsed, progress_shown, refuse
from topicscope.world import PRIORS

MODEL, TRAINING = "Model", "Training"
MOST_COLUMNS = 3  # runs that are shown side by side; of more the table has one row each

COLUMNS = (
    *("status", "dev loss", "dev loss above Bayes", "phase", "W_V, same topic", "W_V, different topic"),
    *("W_V, diagonal", "W_E'W_E, same topic", "W_E'W_E, different topic"),
)


def command(
    topics: Annotated[int | None, option("T, number of topics.", WORLD)] = None,
    words_per_topic: Annotated[int | None, option("v, words in each topic.", WORLD)] = None,
    prior: Annotated[str | None, option(f"{', '.join(PRIORS)} or infinite.", WORLD)] = None,
    topics_per_document: Annotated[
        int | None, option("tau, for the priors fixed and infinite (default 3) and groups (default 2).", WORLD)
    ] = None,
    world_from: WorldFrom = None,
    words: KeptWords = None,
    embedding: Annotated[str | None, option("one-hot or trained.", MODEL)] = None,
    uniform_attention: Annotated[bool, option("Freeze key and query at zero.", MODEL, "--uniform-attention")] = False,
    value: Annotated[str | None, option("trained, identity, blocks, diagonal or given.", MODEL)] = None,
    loss: Annotated[str | None, option("cross-entropy, squared or squared-mean.", TRAINING)] = None,
    l2: Annotated[float | None, option("lambda of the L2 penalty, on all trained parts.", TRAINING)] = None,
    optimizer: Annotated[str | None, option(f"{training.optimiser_names()}.", TRAINING)] = None,
    lr: Annotated[float | None, option("Learning rate.", TRAINING)] = None,
    schedule: Annotated[str | None, option("joint, two-stage or alternating.", TRAINING)] = None,
    steps: Annotated[int | None, option("Training steps (default: 20 epochs, 5,000 steps).", TRAINING)] = None,
    batch_size: Annotated[int | None, option("Documents per step.", TRAINING)] = None,
    seed: Annotated[int | None, option("Seed of every random draw.", TRAINING)] = None,
    runs: Annotated[int, option("Number of seeds to train, in one batched program.", TRAINING, min=1)] = 1,
    snapshots: Annotated[
        str | None,
        option(
            "Steps at which weights are kept, for a timeline: log (spaced logarithmically), or '[0,10,100]'.", TRAINING
        ),
    ] = None,
    floors: Annotated[bool, option("Compute the floors (lowest possible losses) at the end.", TRAINING)] = True,
    config: ConfigFile = None,
    set_: Assignments = None,
    device: Device = None,
    out: Out = None,
    resume: Resume = False,
    force: Force = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> int:
    """Train the paper's one-layer transformer on the paper's data, with any part trained or frozen.

    Example: [bold]topicscope train --loss squared --uniform-attention --l2 1e-4 --steps 2000 --out runs/blocks[/bold]
    """
    zero = "zero" if uniform_attention else None
    flags = {
        "topic_model.topics": topics,
        "topic_model.words_per_topic": words_per_topic,
        "documents.kind": prior,
        "documents.topics_per_document": topics_per_document,
        "model.embedding": embedding,
        "model.key": zero,
        "model.query": zero,
        "model.value": value,
        "objective.loss": loss,
        "objective.l2": l2,
        "optimizer.name": optimizer,
        "optimizer.lr": lr,
        "schedule": schedule,
        "steps": steps,
        "batch_size": batch_size,
        "seed": seed,
        "snapshots": None if snapshots is None else parsed(snapshots),
        "floors": None if floors else False,
        "device": device,
    }
    refuse((resume and world_from is not None, "--resume takes the world from the folder; leave --world-from out"))
    world = world_of(world_from, words)
    what = run_configs(
        training.RunConfig,
        training.stored_configs,
        flags,
        config,
        set_ or (),
        runs,
        out,
        resume=resume,
        force=force,
        complete=partial(in_world, world),
    )
    model = (what[0] if isinstance(what, list) else what).model
    refuse(
        (
            uniform_attention and not resume and not model.key == model.query == "zero",
            f"--uniform-attention freezes key and query at zero, but --set makes key {model.key!r} and query "
            f"{model.query!r}; leave one of the two out",
        )
    )
    train = training.train  # PyTorch, once the input is known to be good
    with progress_shown() as progress:
        result = train(what, out, resume=resume, force=force, progress=progress, yes=yes)
    several = result if isinstance(result, list) else [result]
    if as_json:
        payload = [run.results for run in several]
        consoles.print_json(payload if isinstance(result, list) else payload[0])
    else:
        print_runs(several)
        consoles.print_lines(() if world is None else world.notes)
        consoles.print_lines(sentence for sentence in result.summary() if "diverged" not in sentence)
        if out is not None:
            consoles.print_lines([f"Written to {out}; 'topicscope report {out}' draws it."])
    diverged = [run for run in several if run.status == "diverged"]
    for run in diverged:
        typer.echo(f"topicscope: {run.summary()[0]}", err=True)
    return 1 if diverged else 0


def print_runs(runs: "list[training.Run]") -> None:
    """A few runs side by side; of many one row each, with mean and spread below."""
    facts = [run.facts() for run in runs]
    if len(runs) <= MOST_COLUMNS:
        consoles.print_side_by_side("topicscope train", [f"seed {run.config.seed}" for run in runs], facts)
        return
    columns = [name for name in COLUMNS if any(name in one for one in facts)]
    rows = [
        [str(run.config.seed), *(consoles.cell(one.get(name)) for name in columns)]
        for run, one in zip(runs, facts, strict=True)
    ]
    for name, statistic in (("mean", statistics.fmean), ("sd", statistics.stdev)):
        numbers = [[v for one in facts if isinstance(v := one.get(column), float)] for column in columns]
        rows.append([name, *(consoles.cell(statistic(n)) if len(n) > 1 else "" for n in numbers)])
    consoles.print_tables([pages.TableData("topicscope train", ["seed", *columns], rows)])
