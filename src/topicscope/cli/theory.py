"""`topicscope theory`: one command per theorem, for any setting; `landscape`, the loss over attention once W_V is
frozen; `verify`, which prints certificates of every claim; `optimum` and `dynamics`: what is learnt in any world, and
when.
"""

import inspect
import io
import re
from collections.abc import Callable, Iterator
from dataclasses import asdict
from functools import wraps
from itertools import chain
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import numpy as np
import typer
from rich.table import Column, Table

from topicscope import pages, theory, training
from topicscope.cli import shell
from topicscope.cli.shell import WORLD, option
from topicscope.ground import InputError, files, flat, gather, progress_shown, read_about, refuse_if
from topicscope.world import World, checked_word_topics, read_matrix

app = typer.Typer()  # its help is said in main.py

# What `Setting.of` takes, which has the defaults
SETTING: dict[str, object] = {
    "topics": Annotated[int, typer.Option(help="T, number of topics.")],
    "words_per_topic": Annotated[int, typer.Option(help="v, words per topic.")],
    "topics_per_document": Annotated[int, typer.Option(help="tau, topics per document.")],
    "p_mask": Annotated[float, typer.Option(help="p_m, share of positions that are masked.")],
    "p_correct": Annotated[float, typer.Option(help="p_c, share of masked positions that show their word.")],
    "p_random": Annotated[float, typer.Option(help="p_r, share of masked positions that show a random word.")],
}
LETTERS = dict(zip(SETTING, ("T", "v", "tau", "p_m", "p_c", "p_r"), strict=True))  # of the paper

ConventionOption = Annotated[
    theory.Convention,
    typer.Option(
        help="exact: MASK is a word of its own topic. "
        "paper: words share all attention, positions showing MASK are left out."
    ),
]

DRAWN = 2000  # words of the largest matrix that is drawn


def with_setting(run: Callable[..., int], *without: str) -> Callable[..., int]:
    """A command that has the options of a `Setting` in place of its parameter `setting`.

    `without` topics_per_document, that is 1: Theorems 1 and 2 do not depend on it.
    """
    hints = {name: hint for name, hint in SETTING.items() if name not in without}
    defaults = inspect.signature(theory.Setting.of).parameters
    sizes = [defaults[name].replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[name]) for name in hints]
    own = inspect.signature(run).parameters.values()

    @wraps(run)
    def command(**values: Any) -> int:
        numbers = {name: values.pop(name) for name in hints}
        return run(setting=theory.Setting.of(**dict.fromkeys(without, 1) | numbers), **values)

    command.__annotations__ |= hints
    command.__signature__ = inspect.Signature(  # type: ignore[attr-defined]
        list(chain.from_iterable(sizes if one.name == "setting" else [one] for one in own))
    )
    return command


def first_stage_command(theorem: Callable[[theory.Setting], theory.OptimumTheorem]) -> None:
    """The command of a first-stage theorem: its numbers, its matrix, and how far a given matrix is from it."""
    kind = get_type_hints(theorem)["return"]
    text = f"The {kind.given} to test: a .npy, .csv or .safetensors file, or the folder of a training run."

    def run(
        given: Annotated[str | None, typer.Option(f"--{kind.given}", help=text)] = None,
        *,
        setting: theory.Setting,
        as_json: shell.AsJson = False,
    ) -> int:
        proven = theorem(setting)
        payload: dict[str, object] = {"settings": proven.settings(), **proven.numbers()}
        compared = []
        if given is not None:
            check_world(given, proven)
            examined = proven.examine(read_matrix(given, kind.given, kind.part))
            payload[examined.name] = examined.numbers
            compared = [f"{given}: {examined.sentence}"]
        return shell.emit(payload, chain(theorem_printed(proven), compared), as_json=as_json)

    register(theorem, with_setting(run, "topics_per_document"), "--topics 20 --words-per-topic 5")


def theorem_printed(theorem: theory.OptimumTheorem) -> Iterator[shell.Printed]:
    yield shell.table(
        ["entry", "value", "meaning"], ([name, f"{value:.7g}", meaning] for name, value, meaning in theorem.entries())
    )
    setting = theorem.setting
    if setting.topic_model.vocabulary <= DRAWN:
        yield shell.word_map(theorem.matrix(), theorem.picture, [setting.v] * setting.T)
    yield from theorem.summary()


def register(described: Callable[..., object], run: Callable[..., int], example: str) -> None:
    """The help is the first paragraph of a docstring: arguments and examples of a theorem are for Python."""
    text, name = inspect.cleandoc(described.__doc__ or "").split("\n\n")[0], described.__name__
    app.command(name, help=f"{text}\n\nExample: [bold]topicscope theory {name} {example}[/bold]")(run)


def is_run(path: str) -> bool:
    about = read_about(path) if Path(path).is_dir() else None
    return about is not None and about.kind == "train"


def check_world(given: str, theorem: theory.OptimumTheorem) -> None:
    """Raise InputError where a matrix is from a run in another world than that of the theorem."""
    if not is_run(given):
        return
    config = training.stored_configs(given)
    one = config[0] if isinstance(config, list) else config
    sizes = {"topics": one.topic_model.topics, "words_per_topic": one.topic_model.words_per_topic}
    theirs, ours = sizes | vars(one.masking), theorem.settings()
    missing = [f"--{key.replace('_', '-')} {theirs[key]}" for key in ours if theirs[key] != ours[key]]
    refuse_if(
        missing and one.topic_model.uniform,
        f"--{theorem.given}: the run in {given} has another world; add {' '.join(missing)}",
    )


def second_stage_command(theorem: Callable[[theory.Setting], theory.AttentionTheorem]) -> None:
    def run(*, setting: theory.Setting, convention: ConventionOption = "exact", as_json: shell.AsJson = False) -> int:
        proven = theorem(setting)  # refuses a setting for which it is not defined
        stage = theory.second_stage(setting, proven.value_matrix, convention, theorem=theorem)
        printed: list[shell.Printed] = [attention_table(stage), *stage.summary()]
        return shell.emit(stage.as_dict() | proven.numbers(), printed, as_json=as_json)

    register(theorem, with_setting(run), "--topics 1000000 --words-per-topic 1000 --topics-per-document 100")


def attention_table(stage: theory.SecondStage) -> Table:
    best = stage.optimum
    found = [*(f"{x:.4g}" for x in (best.alpha, best.beta, best.gamma)), f"{best.loss:.6f}"]
    return shell.table(
        ["", "alpha (same topic)", "beta (same word)", "gamma (average)", "loss"],
        [["uniform attention", "1", "1", "1", f"{stage.uniform_loss:.6f}"], ["best attention", *found]],
    )


def landscape(
    value_matrix: Annotated[
        theory.ValueMatrix, typer.Option(help="W_V frozen at Theorem 2's blocks or at the diagonal optimum.")
    ] = "blocks",
    cap: Annotated[
        bool | None,
        typer.Option(
            "--cap/--no-cap", help="Cap predictions at 1 (default: only for diagonal in the paper convention)."
        ),
    ] = None,
    out: shell.Out = None,
    force: shell.Force = False,
    *,
    setting: theory.Setting,
    convention: ConventionOption = "exact",
    as_json: shell.AsJson = False,
) -> int:
    """Find and draw the best attention for any finite setting (Figures 7 and 8)."""
    result = theory.attention_landscape(
        setting,
        value_matrix,
        convention,
        cap=cap,
        out=out,
        force=force,
        draw=lambda result, folder: pages.draw_figure(result.sections()[0].figures[0], folder),
    )
    heading = "loss: the fuller a cell, the lower; beta grows from 1e-4 to the right, alpha from 1e-4 upwards"
    printed: list[shell.Printed] = [
        shell.heat_map(-result.grid.loss[::-1], heading),
        attention_table(result.stage),
        *result.summary(),
        *([] if out is None else [f"written to {out}: landscape.png, .svg, .npz, .csv, results.json"]),
    ]
    return shell.emit(result.as_dict(), printed, as_json=as_json)


def verify(as_json: shell.AsJson = False) -> int:
    """Derive every claim again by computation and report its error. Exit code 1 if one that should hold does not.

    Example: [bold]topicscope theory verify[/bold]
    """
    with progress_shown() as progress:
        certificates = theory.verify(progress)
    failed = [c for c in certificates if c.should_hold and not c.holds]
    shell.emit(
        {"certificates": [asdict(c) for c in certificates], "failed": len(failed)},
        certificates_printed(certificates, failed),
        as_json=as_json,
    )
    return 1 if failed else 0


def certificates_printed(
    certificates: list[theory.Certificate], failed: list[theory.Certificate]
) -> Iterator[shell.Printed]:
    claims: dict[tuple[str, bool], list[theory.Certificate]] = {}
    for c in certificates:
        claims.setdefault((c.claim, c.should_hold), []).append(c)
    headings: list[str | Column] = [Column("claim", ratio=1), "cases", "error", "tolerance", "holds"]
    yield shell.table(headings, map(claim_row, claims.values()), "theory verify")
    yield "Details: one example per claim; all cases in which a theorem's assumptions are strained or a claim failed"
    shown: set[str] = set()
    for c in certificates:
        needed = "strained" in c.note or c in failed or c.claim not in shown
        if c.note and needed and (not c.should_hold or c in failed or "exponent" in c.note):
            shown.add(c.claim)
            settings = " ".join(f"{LETTERS.get(key, key)}={value}" for key, value in c.settings.items())
            yield f"- {c.claim}, {settings}: {c.note}"


def claim_row(cases: list[theory.Certificate]) -> list[str]:
    first, good, count = cases[0], sum(c.holds for c in cases), len(cases)
    holds = ("yes" if good == count else "NO") if first.should_hold else f"not claimed ({good}/{count})"
    return [first.claim, str(count), f"{max(c.error for c in cases):.2g}", f"{first.tolerance:g}", holds]


MASKING, OUTPUT, TRAINING = "Masking", "Output", "Training"
DISTANCES = {
    "optimum": "W*",
    "theorem2": "Theorem 2 for these topics (infinite documents, flow from zero)",
    "limit": "the limit of W* as documents grow",
    "own_documents": "the optimum of the run's own documents",
    "predicted": "the predicted W(t) at its last step (gradient flow from its start, without the noise of batches)",
}
ENTRIES = ("same_topic", "different_topic", "diagonal", "mask_column")
MOST_MODES = 20  # rows of the table; JSON has all
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
    world_from: shell.WorldFrom = None,
    words: shell.KeptWords = None,
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
        theory.Weighting,
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
    config: shell.ConfigFile = None,
    set_: shell.Assignments = None,
    out: Annotated[Path | None, option("File to write W* to: .csv or .npy.", OUTPUT, "--out", "-o")] = None,
    as_json: shell.AsJson = False,
) -> int:
    """The exact optimum W* under uniform attention and squared loss: any topics, prior, length and masking.

    Example: [bold]topicscope theory optimum --prior fixed --topics-per-document 3 --length 125[/bold]
    """
    documents = {"kind": prior, "topics_per_document": topics_per_document, "alpha": alpha}
    flags = flat(
        {
            "topic_model": {"topics": topics, "words_per_topic": words_per_topic},
            "documents": documents
            | {"groups": groups, "rho": rho, "length": None if length is None else parsed_length(length)},
            "masking": {"p_mask": p_mask, "p_correct": p_correct, "p_random": p_random},
        }
    )
    check_file(out, ".csv", ".npy")
    if matrix is not None and is_run(matrix):
        others = (*flags.values(), word_topics, world_from, words, config, set_, out)
        given = weighting != "run" or any(value is not None for value in others)
        refuse_if(given, "--matrix RUN takes the world from the run; leave the other options out")
        return compare_run(matrix, as_json=as_json)
    settings = shell.in_world(shell.world_of(world_from, words), gather(config, flags, set_ or []))
    best = asked_optimum(settings, word_topics, weighting, whole=as_json and out is None)
    compared = {} if matrix is None else best.distances(read_matrix(matrix, "--matrix"))
    numbers = best.numbers()
    payload = numbers | ({"distances": compared} if compared else {})
    if out is not None:
        write_matrix(out, best.matrix())
        payload["written"] = str(out)
    elif as_json and not isinstance(best, theory.SymmetricOptimum):
        payload["matrix"] = best.matrix().tolist()
    written = [] if out is None else [f"W* is written to {out}"]
    printed = chain(optimum_printed(best, numbers), sentences(f"{matrix} is", compared), written)
    return shell.emit(payload, printed, as_json=as_json)


def compare_run(folder: str, *, as_json: bool) -> int:
    run = training.read_run(folder)
    if not isinstance(run, training.Run):
        raise InputError(f"--matrix: {folder} holds several runs; give the folder of one, such as {folder}/run-000")
    comparison = training.compare_with_optimum(run)
    best, compared = comparison.best, comparison.distances
    numbers = {} if best is None else best.numbers()
    notes = [*numbers.get("notes", ()), *comparison.notes]
    payload = numbers | {"distances": compared} | ({"notes": notes} if notes else {})
    printed = chain(
        () if best is None else optimum_printed(best, numbers),
        comparison.notes,
        sentences("The run's value matrix is", compared),
    )
    return shell.emit(payload, printed, as_json=as_json)


def sentences(subject: str, compared: dict[str, float]) -> list[str]:
    return [
        f"{subject} at relative distance {distance:.4g} from {DISTANCES[name]}." for name, distance in compared.items()
    ]


def parsed_length(text: str) -> int | list[int] | str:
    if text == "infinite":
        return text
    refuse_if(
        not re.fullmatch("[0-9]{1,9}(-[0-9]{1,9})?", text),
        f"--length {text!r:.60}: expected N, LOW-HIGH or infinite, for example 125 or 100-150",
    )
    low, *high = map(int, text.split("-"))
    return [low, *high] if high else low


def asked_optimum(
    settings: dict[str, object], word_topics: str | None, weighting: theory.Weighting, *, whole: bool
) -> theory.ValueOptimum:
    """W* of the world that settings describe, by the names of `train`; `whole`: to be printed entry by entry."""
    if word_topics is None:
        world = asked_world(settings)
        check_printed(0 if world.topic_model.uniform or not whole else world.topic_model.words)
        return theory.optimum(world, weighting=weighting)
    columns = checked_word_topics(read_matrix(word_topics, "--word-topics"), f"--word-topics: {word_topics}")
    refuse_if("topic_model" in settings, "--word-topics gives the topics; leave all other topics out")
    check_printed(len(columns) if whole else 0)
    world = asked_world(settings | {"topic_model": {"topics": columns.shape[1], "words_per_topic": 1}})
    return theory.optimum(columns, world.prior, world.masking, weighting=weighting)


def asked_world(settings: dict[str, object]) -> World:
    """The world that settings describe. A file or `--set` may describe a whole run, which may rule W* out."""
    if settings.keys() <= {"topic_model", "documents", "masking"}:
        return World.of(settings)
    return training.RunConfig.of(settings).world_for("optimum")


def check_printed(words: int) -> None:
    refuse_if(words > MOST_PRINTED, f"W* of {words:,} words is too large to print; --out FILE writes it")


def check_file(out: Path | None, *endings: str) -> None:
    usable = out is None or (out.suffix in endings and not out.is_dir() and out.absolute().parent.is_dir())
    refuse_if(not usable, f"--out {out}: expected a file ending in {' or '.join(endings)}, in an existing folder")


def write_matrix(path: Path, matrix: np.ndarray) -> None:
    if path.suffix == ".npy":
        stream = io.BytesIO()
        np.save(stream, matrix, allow_pickle=False)
        files.write(path, stream.getvalue())
    else:
        files.write(path, "".join(",".join(map(repr, row)) + "\n" for row in matrix.tolist()).encode())


def optimum_printed(best: theory.ValueOptimum, numbers: dict[str, Any]) -> Iterator[shell.Printed]:
    yield best.world
    if "same_topic" in numbers:
        columns = (numbers, numbers["limit"], numbers["theorem2"])
        entries = {name.replace("_", " "): [column[name] for column in columns] for name in ENTRIES}
        yield shell.table(
            ["mean entry" if "entries_are" in numbers else "entry", "W*", "limit of long documents", "Theorem 2"],
            ([name, *("no such pair" if x is None else f"{x:.7g}" for x in row)] for name, row in entries.items()),
        )
    between = {name: f"{distance:.4g}" for name, distance in numbers["distances_between"].items()}
    yield shell.table(
        ["relative distance", "limit of long documents", "Theorem 2 for these topics"],
        [
            ["W*", between["optimum_to_limit"], between["optimum_to_theorem2"]],
            ["limit of long documents", "", between["limit_to_theorem2"]],
        ],
    )
    if best.vocabulary <= DRAWN:
        order = np.append(0, 1 + best.topic_order())
        title = "W*, words ordered by main topic (first row and column: [MASK])"
        yield shell.heat_map(best.matrix()[np.ix_(order, order)], title)
    modes = (
        [
            *(mode.name, f"{mode.count:,}", f"{mode.eigenvalue:.6g}"),
            *("never learnt" if mode.half_time is None else f"{mode.half_time:.5g}", f"{mode.norm:.4g}"),
        ]
        for mode in best.modes[:MOST_MODES]
    )
    yield shell.table(["mode", "count", "eigenvalue", "half-time", "norm of W* in the mode"], modes)
    yield from best.summary()


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
    loss: Annotated[theory.Loss, option("The loss, summed over the outputs.", TRAINING)] = "squared",
    embedding: Annotated[
        theory.Embedding, option("one-hot words, or an embedding that is trained too.", TRAINING)
    ] = "one-hot",
    width: Annotated[int | None, option("d, width of a trained embedding (default T v + 1).", TRAINING)] = None,
    optimizer: Annotated[theory.Optimizer, option("flow is gradient flow; sgd and adam need --lr.", TRAINING)] = "flow",
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
    as_json: shell.AsJson = False,
) -> int:
    """When each stage of learning comes: rates, plateaus and half-times of value, key and query, in time and steps.

    Example: [bold]topicscope theory dynamics --topics 5 --words-per-topic 4 --topics-per-document 2
    --optimizer sgd --lr 4[/bold]
    """
    check_file(out, ".png", ".svg")
    documents = {"kind": prior or "fixed", "topics_per_document": topics_per_document, "alpha": alpha}
    world = {
        "topic_model": {"topics": topics, "words_per_topic": words_per_topic},
        "documents": documents | {"length": parsed_length(length or "infinite")},
        "masking": {"p_mask": p_mask, "p_correct": p_correct, "p_random": p_random},
    }
    found = theory.dynamics(
        World.of(gather(None, flat(world))),
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
    written = {} if out is None else {"written": str(out)}
    if out is not None:
        figures = found.sections()[0].figures
        refuse_if(not figures, f"--out {out}: no norms are predicted for this setting; run it without --out to see why")
        files.write(out, pages.canvas(figures[0]).as_bytes(out.suffix[1:]))
    rows = (
        [row["stage"], row["quantity"], "not covered" if (x := row["value"]) is None else f"{x:.6g}", row["meaning"]]
        for row in found.table().to_pylist()
    )
    printed: list[shell.Printed] = [
        shell.table(["stage", "quantity", "value", "meaning"], rows),
        *found.summary(),
        *(f"The predicted norms are drawn in {path}" for path in written.values()),
    ]
    return shell.emit(found.as_dict() | written, printed, as_json=as_json)


register(
    landscape,
    with_setting(landscape),
    "--value-matrix diagonal --topics 100 --words-per-topic 300 --topics-per-document 20 "
    "--convention paper --out runs/figure7",
)
for optimum_theorem in theory.OPTIMUM_THEOREMS:
    first_stage_command(optimum_theorem)
for attention_theorem in theory.ATTENTION_THEOREMS:
    second_stage_command(attention_theorem)
app.command("optimum")(optimum_command)
app.command("dynamics")(dynamics_command)
app.command("verify")(verify)
