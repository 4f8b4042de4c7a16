"""`topicscope theory optimum` and `theory dynamics`: what is learnt in any world, and when."""

import io
from pathlib import Path
from typing import Annotated, Any

import numpy as np

from topicscope import pages, training
from topicscope.cli import consoles
from topicscope.cli.options import (
    WORLD,
    AsJson,
    Assignments,
    ConfigFile,
    KeptWords,
    WorldFrom,
    in_world,
    option,
    world_of,
)
from topicscope.ground import InputError, files, gather, read_about, refuse
from topicscope.theory import (
    Dynamics,
    Embedding,
    Loss,
    Optimizer,
    SymmetricOptimum,
    ValueOptimum,
    Weighting,
    dynamics,
    optimum,
)
from topicscope.world import World, checked_word_topics, read_matrix

MASKING, OUTPUT = "Masking", "Output"
DISTANCES = {
    "optimum": "W*",
    "theorem2": "Theorem 2 for these topics (infinite documents, flow from zero)",
    "limit": "the limit of W* as documents grow",
    "own_documents": "the optimum of the run's own documents",
    "predicted": "the predicted W(t) at its last step (gradient flow from its start, without the noise of batches)",
}
ENTRIES = ("same_topic", "different_topic", "diagonal", "mask_column")
MOST_MODES = 20  # rows of the table; JSON has all
DRAWN = 2000  # words of the largest matrix that is drawn
MOST_PRINTED = 2000  # words of the largest matrix that JSON holds


def optimum_command(
    topics: Annotated[int | None, option("T, number of topics (default 10).", WORLD)] = None,
    words_per_topic: Annotated[int | None, option("v, words per topic (default 10).", WORLD)] = None,
    word_topics: Annotated[
        str | None,
        option(
            "File of the topics A instead: one row per word, one column per topic (.csv, .npy, .safetensors).", WORLD
        ),
    ] = None,
    world_from: WorldFrom = None,
    words: KeptWords = None,
    prior: Annotated[
        str | None, option("dirichlet (default), fixed, groups or another prior of 'train'.", WORLD)
    ] = None,
    topics_per_document: Annotated[
        int | None, option("tau, for the priors fixed (default 3) and groups (default 2).", WORLD)
    ] = None,
    alpha: Annotated[float | None, option("Concentration, for the prior dirichlet (default 0.1).", WORLD)] = None,
    groups: Annotated[int | None, option("Number of groups of topics; the prior groups needs it.", WORLD)] = None,
    rho: Annotated[
        float | None, option("Share of documents with topics of one group, for the prior groups (default 0.5).", WORLD)
    ] = None,
    length: Annotated[
        str | None, option("Words per document: N, LOW-HIGH or infinite (default 100-150).", WORLD)
    ] = None,
    weighting: Annotated[
        Weighting,
        option(
            "run: as 'train' weighs documents. documents: only those with masks. positions: masked positions equally.",
            WORLD,
        ),
    ] = "run",
    p_mask: Annotated[float | None, option("p_m, share of positions masked (default 0.15).", MASKING)] = None,
    p_correct: Annotated[float | None, option("p_c, share of them showing their word (default 0.1).", MASKING)] = None,
    p_random: Annotated[float | None, option("p_r, share showing a random word (default 0.1).", MASKING)] = None,
    matrix: Annotated[
        str | None,
        option("Compare W* with this: a training run's folder (its world is used), or a matrix file.", OUTPUT),
    ] = None,
    config: ConfigFile = None,
    set_: Assignments = None,
    out: Annotated[Path | None, option("File to write W* to: .csv or .npy.", OUTPUT, "--out", "-o")] = None,
    as_json: AsJson = False,
) -> int:
    """The exact optimum W* under uniform attention and squared loss: any topics, prior, length and masking.

    Example: [bold]topicscope theory optimum --prior fixed --topics-per-document 3 --length 125[/bold]
    """
    flags = {
        "topic_model.topics": topics,
        "topic_model.words_per_topic": words_per_topic,
        "documents.kind": prior,
        "documents.topics_per_document": topics_per_document,
        "documents.alpha": alpha,
        "documents.groups": groups,
        "documents.rho": rho,
        "documents.length": None if length is None else parsed_length(length),
        "masking.p_mask": p_mask,
        "masking.p_correct": p_correct,
        "masking.p_random": p_random,
    }
    check_file(out, ".csv", ".npy")
    if matrix is not None and is_run(matrix):
        asked = [
            value for value in (*flags.values(), word_topics, world_from, words, config, set_, out) if value is not None
        ]
        refuse(
            (
                bool(asked) or weighting != "run",
                "--matrix RUN takes the world from the run; leave the other options out",
            )
        )
        return compare_run(matrix, as_json=as_json)
    settings = in_world(world_of(world_from, words), gather(config, flags, set_ or []))
    best = asked_optimum(settings, word_topics, weighting, whole=as_json and out is None)
    compared = {} if matrix is None else best.distances(read_matrix(matrix, "--matrix"))
    payload = best.numbers() | ({"distances": compared} if compared else {})
    if out is not None:
        write_matrix(out, best.matrix())
        payload["written"] = str(out)
    if as_json:
        if out is None and not isinstance(best, SymmetricOptimum):
            payload["matrix"] = best.matrix().tolist()
        consoles.print_json(payload)
        return 0
    print_optimum(best)
    consoles.print_lines(sentences(f"{matrix} is", compared))
    if out is not None:
        consoles.print_lines([f"W* is written to {out}"])
    return 0


def compare_run(folder: str, *, as_json: bool) -> int:
    run = training.read_run(folder)
    if not isinstance(run, training.Run):
        raise InputError(f"--matrix: {folder} holds several runs; give the folder of one, such as {folder}/run-000")
    comparison = training.compare_with_optimum(run)
    best, compared = comparison.best, comparison.distances
    if as_json:
        numbers = {} if best is None else best.numbers()
        notes = [*numbers.get("notes", ()), *comparison.notes]
        consoles.print_json(numbers | {"distances": compared} | ({"notes": notes} if notes else {}))
        return 0
    if best is not None:
        print_optimum(best)
    consoles.print_lines([*comparison.notes, *sentences("The run's value matrix is", compared)])
    return 0


def sentences(subject: str, compared: dict[str, float]) -> list[str]:
    return [
        f"{subject} at relative distance {distance:.4g} from {DISTANCES[name]}." for name, distance in compared.items()
    ]


def parsed_length(text: str) -> int | list[int] | str:
    parts = text.split("-")
    if text == "infinite":
        return text
    if len(parts) > 2 or not all(part.isascii() and part.isdigit() and len(part) < 10 for part in parts):
        raise InputError(f"--length {text!r:.60}: expected N, LOW-HIGH or infinite, for example 125 or 100-150")
    numbers = [int(part) for part in parts]
    return numbers[0] if len(numbers) == 1 else numbers


def asked_optimum(
    settings: dict[str, Any], word_topics: str | None, weighting: Weighting, *, whole: bool
) -> ValueOptimum:
    """W* of the world that settings describe, by the names of `train`; `whole`: to be printed entry by entry."""
    if word_topics is None:
        world = asked_world(settings)
        check_printed(0 if world.topic_model.uniform or not whole else world.topic_model.words)
        return optimum(world, weighting=weighting)
    columns = checked_word_topics(read_matrix(word_topics, "--word-topics"), f"--word-topics: {word_topics}")
    refuse(("topic_model" in settings, "--word-topics gives the topics; leave all other topics out"))
    check_printed(len(columns) if whole else 0)
    world = asked_world(settings | {"topic_model": {"topics": columns.shape[1], "words_per_topic": 1}})
    return optimum(columns, world.prior, world.masking, weighting=weighting)


def asked_world(settings: dict[str, Any]) -> World:
    """The world that settings describe. A file or `--set` may describe a whole run, which may rule W* out."""
    if settings.keys() <= {"topic_model", "documents", "masking"}:
        return World.of(settings)
    return training.RunConfig.of(settings).world_for("optimum")


def check_printed(words: int) -> None:
    refuse((words > MOST_PRINTED, f"W* of {words:,} words is too large to print; --out FILE writes it"))


def is_run(path: str) -> bool:
    about = read_about(path) if Path(path).is_dir() else None
    return about is not None and about.kind == "train"


def check_file(out: Path | None, *endings: str) -> None:
    if out is not None and (out.suffix not in endings or out.is_dir() or not out.absolute().parent.is_dir()):
        raise InputError(f"--out {out}: expected a file ending in {' or '.join(endings)}, in an existing folder")


def write_matrix(path: Path, matrix: np.ndarray) -> None:
    if path.suffix == ".npy":
        stream = io.BytesIO()
        np.save(stream, matrix, allow_pickle=False)
        files.write(path, stream.getvalue())
    else:
        files.write(path, "".join(",".join(map(repr, row)) + "\n" for row in matrix.tolist()).encode())


def print_optimum(best: ValueOptimum) -> None:
    consoles.print_lines([best.world])
    found = best.numbers()
    if "same_topic" in found:
        means = "mean entry" if "entries_are" in found else "entry"
        table = consoles.table(means, "W*", "limit of long documents", "Theorem 2")
        for name in ENTRIES:
            values = (found[name], found["limit"][name], found["theorem2"][name])
            table.add_row(name.replace("_", " "), *("no such pair" if x is None else f"{x:.7g}" for x in values))
        consoles.results().print(table)
    apart = consoles.table("relative distance", "limit of long documents", "Theorem 2 for these topics")
    between = {name: f"{distance:.4g}" for name, distance in found["distances_between"].items()}
    apart.add_row("W*", between["optimum_to_limit"], between["optimum_to_theorem2"])
    apart.add_row("limit of long documents", "", between["limit_to_theorem2"])
    consoles.results().print(apart)
    if best.vocabulary <= DRAWN:
        order = np.append(0, 1 + best.topic_order())
        title = "W*, words ordered by main topic (first row and column: [MASK])"
        consoles.results().print(consoles.heat_map(best.matrix()[np.ix_(order, order)], title))
    modes = consoles.table("mode", "count", "eigenvalue", "half-time", "norm of W* in the mode")
    for mode in best.modes[:MOST_MODES]:
        half = "never learnt" if mode.half_time is None else f"{mode.half_time:.5g}"
        modes.add_row(mode.name, f"{mode.count:,}", f"{mode.eigenvalue:.6g}", half, f"{mode.norm:.4g}")
    consoles.results().print(modes)
    consoles.print_lines(best.summary())


TRAINING = "Training"
UNKNOWN = "not covered"


def dynamics_command(
    topics: Annotated[int | None, option("T, number of topics (default 10).", WORLD)] = None,
    words_per_topic: Annotated[int | None, option("v, words per topic (default 10).", WORLD)] = None,
    topics_per_document: Annotated[
        int | None, option("tau, topics per document, for the prior fixed (default 3).", WORLD)
    ] = None,
    prior: Annotated[str | None, option("fixed (default), dirichlet, or another with all topics alike.", WORLD)] = None,
    alpha: Annotated[float | None, option("Concentration, for the prior dirichlet (default 0.1).", WORLD)] = None,
    length: Annotated[
        str | None, option("Words per document: N, LOW-HIGH or infinite (default); attention needs infinite.", WORLD)
    ] = None,
    p_mask: Annotated[float | None, option("p_m, share of positions that are masked.", MASKING)] = None,
    p_correct: Annotated[float | None, option("p_c, share of them that show their word.", MASKING)] = None,
    p_random: Annotated[float | None, option("p_r, share of them that show a random word.", MASKING)] = None,
    init_scale: Annotated[float, option("s, standard deviation of all weights at the start.", TRAINING)] = 1e-3,
    attention_dim: Annotated[int | None, option("d_a, rows of W_K and W_Q (default T v + 1).", TRAINING)] = None,
    loss: Annotated[Loss, option("The loss, summed over the outputs.", TRAINING)] = "squared",
    embedding: Annotated[
        Embedding, option("one-hot words, or an embedding that is trained too.", TRAINING)
    ] = "one-hot",
    width: Annotated[int | None, option("d, width of a trained embedding (default T v + 1).", TRAINING)] = None,
    optimizer: Annotated[Optimizer, option("flow is gradient flow; sgd and adam need --lr.", TRAINING)] = "flow",
    lr: Annotated[float | None, option("Learning rate.", TRAINING)] = None,
    eps: Annotated[float, option("Epsilon of adam.", TRAINING)] = 1e-8,
    loss_scale: Annotated[float, option("Factor on the loss: 1 / V if outputs are averaged.", TRAINING)] = 1.0,
    batch_noise: Annotated[
        float, option("For adam: |mean| / rms of a batch's gradient; 1 for full batches.", TRAINING)
    ] = 1.0,
    output_bias: Annotated[
        bool, option("For adam: predictions have a trained bias.", TRAINING, "--output-bias")
    ] = False,
    out: Annotated[Path | None, option("File for the predicted norms: .png or .svg.", OUTPUT, "--out", "-o")] = None,
    as_json: AsJson = False,
) -> int:
    """When each stage of learning comes: rates, plateaus and half-times of value, key and query, in time and steps.

    Example: [bold]topicscope theory dynamics --topics 5 --words-per-topic 4 --topics-per-document 2
    --optimizer sgd --lr 4[/bold]
    """
    check_file(out, ".png", ".svg")
    world = {
        "topic_model.topics": topics,
        "topic_model.words_per_topic": words_per_topic,
        "documents.kind": prior or "fixed",
        "documents.topics_per_document": topics_per_document,
        "documents.alpha": alpha,
        "documents.length": parsed_length(length or "infinite"),
        "masking.p_mask": p_mask,
        "masking.p_correct": p_correct,
        "masking.p_random": p_random,
    }
    found = dynamics(
        World.of(gather(None, world, [])),
        attention_dim=attention_dim,
        init_scale=init_scale,
        loss=loss,
        embedding=embedding,
        width=width,
        optimizer=optimizer,
        lr=lr,
        eps=eps,
        loss_scale=loss_scale,
        batch_noise=batch_noise,
        output_bias=output_bias,
    )
    written = {} if out is None else {"written": str(draw(found, out))}
    if as_json:
        consoles.print_json(found.as_dict() | written)
        return 0
    print_dynamics(found)
    consoles.print_lines([f"The predicted norms are drawn in {path}" for path in written.values()])
    return 0


def draw(found: Dynamics, out: Path) -> Path:
    figures = found.sections()[0].figures
    if not figures:
        raise InputError(f"--out {out}: no norms are predicted for this setting; run it without --out to see why")
    files.write(out, pages.canvas(figures[0]).as_bytes(out.suffix[1:]))
    return out


def print_dynamics(found: Dynamics) -> None:
    table = consoles.table("stage", "quantity", "value", "meaning")
    for row in found.table().to_pylist():
        value = UNKNOWN if row["value"] is None else f"{row['value']:.6g}"
        table.add_row(row["stage"], row["quantity"], value, row["meaning"])
    consoles.results().print(table)
    consoles.print_lines(found.summary())
