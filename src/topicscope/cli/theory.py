"""`topicscope theory`: one command per theorem, for any setting; `landscape`, the loss over attention once W_V is
frozen; and `verify`, which prints certificates of every claim.

A command asks for the shared options by the names of its parameters: `setting` stands for topics, words_per_topic,
topics_per_document and the masking probabilities, `convention` and `as_json` for themselves.
"""

import inspect
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any, get_type_hints

import typer
from rich.table import Column, Table

from topicscope import pages, training
from topicscope.cli import consoles
from topicscope.cli.optimum import dynamics_command, is_run, optimum_command
from topicscope.cli.options import AsJson, Force, Option, Out, with_options
from topicscope.ground import InputError, progress_shown
from topicscope.theory import (
    ATTENTION_THEOREMS,
    OPTIMUM_THEOREMS,
    AttentionLandscape,
    AttentionTheorem,
    Certificate,
    Convention,
    OptimumTheorem,
    SecondStage,
    Setting,
    ValueMatrix,
    attention_landscape,
    second_stage,
    verify as all_certificates,
)
from topicscope.world import read_matrix

app = typer.Typer()  # its help is said in main.py

SETTING: dict[str, Any] = {
    "topics": Annotated[int, typer.Option(help="T, number of topics.")],
    "words_per_topic": Annotated[int, typer.Option(help="v, words per topic.")],
    "topics_per_document": Annotated[int, typer.Option(help="tau, topics per document.")],
    "p_mask": Annotated[float, typer.Option(help="p_m, share of positions that are masked.")],
    "p_correct": Annotated[float, typer.Option(help="p_c, share of masked positions that show their word.")],
    "p_random": Annotated[float, typer.Option(help="p_r, share of masked positions that show a random word.")],
}
"""What `Setting.of` takes, which has the defaults."""

LETTERS = dict(zip(SETTING, ("T", "v", "tau", "p_m", "p_c", "p_r"), strict=True))  # of the paper

SHARED: dict[str, Option] = {
    "convention": (
        Annotated[
            Convention,
            typer.Option(
                help="exact: MASK is a word of its own topic. "
                "paper: words share all attention, positions showing MASK are left out."
            ),
        ],
        "exact",
    ),
    "as_json": (AsJson, False),
}
LANDSCAPE: dict[str, Option] = {
    "value_matrix": (
        Annotated[ValueMatrix, typer.Option(help="W_V frozen at Theorem 2's blocks or at the diagonal optimum.")],
        "blocks",
    ),
    "cap": (
        Annotated[
            bool | None,
            typer.Option(
                "--cap/--no-cap", help="Cap predictions at 1 (default: only for diagonal in the paper convention)."
            ),
        ],
        None,
    ),
    "out": (Out, None),
    "force": (Force, False),
}

DRAWN = 2000  # words of the largest matrix that is drawn


def command(
    run: Callable[..., int],
    name: str,
    text: str,
    example: str,
    own: dict[str, Option] | None = None,
    *,
    tau: bool = True,
) -> None:
    """Register `run` as a command: its `own` options first, then the shared ones that it has parameters for.

    Without `tau` the setting's topics_per_document is 1 and no option: Theorems 1 and 2 do not depend on it.
    """
    asked = inspect.signature(run).parameters
    defaults = inspect.signature(Setting.of).parameters
    sizes = [key for key in SETTING if "setting" in asked and (tau or key != "topics_per_document")]
    options = (
        (own or {})
        | {key: (SETTING[key], defaults[key].default) for key in sizes}
        | {key: option for key, option in SHARED.items() if key in asked}
    )

    def with_setting(**values: Any) -> int:
        numbers = {key: values.pop(key) for key in sizes}
        if sizes:
            values["setting"] = Setting.of(**({} if tau else {"topics_per_document": 1}) | numbers)
        return run(**values)

    help_ = f"{text}\n\nExample: [bold]topicscope theory {name} {example}".rstrip() + "[/bold]"
    app.command(name=name, help=help_)(with_options(options)(with_setting))


def emit(payload: dict[str, Any], as_json: bool, lines: list[Any]) -> int:
    if as_json:
        consoles.print_json(payload)
    else:
        for line in lines:
            consoles.print_lines([line]) if isinstance(line, str) else consoles.results().print(line)
    return 0


def first_stage_command(theorem: Callable[[Setting], OptimumTheorem]) -> None:
    """The command of a first-stage theorem: its numbers, its matrix, and how far a given matrix is from it."""
    kind = get_type_hints(theorem)["return"]
    text = f"The {kind.given} to test: a .npy, .csv or .safetensors file, or the folder of a training run."
    own = {"given": (Annotated[str | None, typer.Option(f"--{kind.given}", help=text)], None)}

    def run(setting: Setting, given: str | None, as_json: bool) -> int:
        optimum = theorem(setting)
        payload: dict[str, Any] = {"settings": optimum.settings(), **optimum.numbers()}
        table = consoles.table("entry", "value", "meaning")
        for name, value, meaning in optimum.entries():
            table.add_row(name, f"{value:.7g}", meaning)
        small = setting.topic_model.vocabulary <= DRAWN
        sizes = [setting.v] * setting.T
        picture = [consoles.word_map(optimum.matrix(), optimum.picture, sizes)] if small else []
        lines: list[Any] = [table, *picture, *optimum.summary()]
        if given is not None:
            check_world(given, setting, kind.given)
            examined = optimum.examine(read_matrix(given, kind.given, kind.part))
            payload[examined.name] = examined.numbers
            lines.append(f"{given}: {examined.sentence}")
        return emit(payload, as_json, lines)

    command(run, theorem.__name__, summary_of(theorem), "--topics 20 --words-per-topic 5", own, tau=False)


def check_world(given: str, setting: Setting, name: str) -> None:
    """Raise InputError where a matrix is from a run in another world than that of the theorem."""
    if not is_run(given):
        return
    config = training.stored_configs(given)
    one = config[0] if isinstance(config, list) else config
    theirs = {"topics": one.topic_model.topics, "words_per_topic": one.topic_model.words_per_topic}
    theirs |= {key: getattr(one.masking, key) for key in ("p_mask", "p_correct", "p_random")}
    ours = {"topics": setting.T, "words_per_topic": setting.v}
    ours |= {key: getattr(setting.masking, key) for key in ("p_mask", "p_correct", "p_random")}
    missing = [f"--{key.replace('_', '-')} {theirs[key]}" for key in ours if theirs[key] != ours[key]]
    if missing and one.topic_model.uniform:
        raise InputError(f"--{name}: the run in {given} has another world; add {' '.join(missing)}")


def second_stage_command(theorem: Callable[[Setting], AttentionTheorem]) -> None:
    """The command of a second-stage theorem: the best attention, and whether the theorem's bounds contain it."""

    def run(setting: Setting, convention: Convention, as_json: bool) -> int:
        numbers = theorem(setting)  # refuses a setting for which it is not defined
        stage = second_stage(setting, numbers.value_matrix, convention, theorem=theorem)
        return emit(stage.as_dict() | numbers.numbers(), as_json, [attention_table(stage), *stage.summary()])

    command(
        run,
        theorem.__name__,
        summary_of(theorem),
        "--topics 1000000 --words-per-topic 1000 --topics-per-document 100",
    )


def summary_of(theorem: Callable[..., object]) -> str:
    """The first paragraph of a docstring: arguments and examples are for Python."""
    return inspect.cleandoc(theorem.__doc__ or "").split("\n\n")[0]


def attention_table(stage: SecondStage) -> Table:
    best = stage.optimum
    table = consoles.table("", "alpha (same topic)", "beta (same word)", "gamma (average)", "loss")
    table.add_row("uniform attention", "1", "1", "1", f"{stage.uniform_loss:.6f}")
    table.add_row("best attention", f"{best.alpha:.4g}", f"{best.beta:.4g}", f"{best.gamma:.4g}", f"{best.loss:.6f}")
    return table


def landscape(
    setting: Setting,
    value_matrix: ValueMatrix,
    convention: Convention,
    cap: bool | None,
    out: Path | None,
    force: bool,
    as_json: bool,
) -> int:
    result = attention_landscape(setting, value_matrix, convention, cap=cap, out=out, force=force, draw=draw_landscape)
    lines: list[Any] = [
        consoles.heat_map(
            -result.grid.loss[::-1],
            "loss: the fuller a cell, the lower; beta grows from 1e-4 to the right, alpha from 1e-4 upwards",
        ),
        attention_table(result.stage),
        *result.summary(),
    ]
    if out is not None:
        lines.append(f"written to {out}: landscape.png, .svg, .npz, .csv, results.json")
    return emit(result.as_dict(), as_json, lines)


def draw_landscape(result: AttentionLandscape, folder: Path) -> None:
    pages.draw_figure(result.sections()[0].figures[0], folder)


def verify(as_json: bool) -> int:
    with progress_shown() as progress:
        certificates = all_certificates(progress)
    failed = [c for c in certificates if c.should_hold and not c.holds]
    if as_json:
        consoles.print_json({"certificates": [asdict(c) for c in certificates], "failed": len(failed)})
    else:
        print_certificates(certificates, failed)
    return 1 if failed else 0


def print_certificates(certificates: list[Certificate], failed: list[Certificate]) -> None:
    """One row per claim, then notes on the cases that need one."""
    claims: dict[tuple[str, bool], list[Certificate]] = {}
    for c in certificates:
        claims.setdefault((c.claim, c.should_hold), []).append(c)
    table = consoles.table(
        Column("claim", ratio=1), "cases", "error", "tolerance", "holds", title="theory verify", title_justify="left"
    )
    for (claim, should), group in claims.items():
        good = sum(c.holds for c in group)
        table.add_row(
            claim,
            str(len(group)),
            f"{max(c.error for c in group):.2g}",
            f"{group[0].tolerance:g}",
            ("yes" if good == len(group) else "NO") if should else f"not claimed ({good}/{len(group)})",
        )
    out = consoles.results()
    out.print(table)
    out.print(
        "Details: one example per claim; all cases in which a theorem's assumptions are strained or a claim failed"
    )
    shown: set[str] = set()
    for c in certificates:
        needed = "strained" in c.note or c in failed or c.claim not in shown
        if c.note and needed and (not c.should_hold or c in failed or "exponent" in c.note):
            shown.add(c.claim)
            settings = " ".join(f"{LETTERS.get(key, key)}={value}" for key, value in c.settings.items())
            consoles.print_lines([f"- {c.claim}, {settings}: {c.note}"])


command(
    landscape,
    "landscape",
    "Find and draw the best attention for any finite setting (Figures 7 and 8).",
    "--value-matrix diagonal --topics 100 --words-per-topic 300 --topics-per-document 20 "
    "--convention paper --out runs/figure7",
    LANDSCAPE,
)
for optimum_theorem in OPTIMUM_THEOREMS:
    first_stage_command(optimum_theorem)
for attention_theorem in ATTENTION_THEOREMS:
    second_stage_command(attention_theorem)
app.command(name="optimum")(optimum_command)
app.command(name="dynamics")(dynamics_command)
command(
    verify,
    "verify",
    "Derive every claim again by computation and report its error. Exit code 1 if one that should hold does not.",
    "",
)
