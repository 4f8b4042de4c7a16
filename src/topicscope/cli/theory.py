"""`topicscope theory`: one command per theorem, for any setting; and `verify`, which prints certificates of every
claim.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from typing import Annotated, Any, get_type_hints

import typer
from rich.table import Column, Table

from topicscope.cli import consoles
from topicscope.cli.pictures import heat_map
from topicscope.cli.theory_attention import attention_table
from topicscope.cli.theory_options import command, emit, example
from topicscope.theory import (
    ATTENTION_THEOREMS,
    OPTIMUM_THEOREMS,
    AttentionTheorem,
    Certificate,
    Convention,
    OptimumTheorem,
    Setting,
    Theorem,
)

DRAWN = 2000
"""Words of the largest matrix that is drawn."""


def entries_table(theorem: Theorem) -> Table:
    table = Table("entry", "value", "meaning")
    for name, value, meaning in theorem.entries():
        table.add_row(name, f"{value:.7g}", meaning)
    return table


def optimum_command(theorem: Callable[[Setting], OptimumTheorem]) -> None:
    """The command of a first-stage theorem: its numbers, its matrix, and how far a given matrix is from it."""
    name, kind = theorem.__name__, get_type_hints(theorem)["return"]
    text = f"The {kind.given} to test: a .npy, .csv or .safetensors file, or the folder of a training run."
    own = {"given": (Annotated[str | None, typer.Option(f"--{kind.given}", help=text)], None)}

    def run(setting: Setting, given: str | None, as_json: bool) -> int:
        from topicscope.world import read_matrix

        optimum = theorem(setting)
        payload: dict[str, Any] = {"settings": optimum.settings(), **optimum.numbers()}
        lines: list[Any] = [entries_table(optimum)]
        if setting.topic_model.vocabulary <= DRAWN:
            lines.append(heat_map(optimum.matrix(), optimum.picture))
        lines += optimum.summary()
        if given is not None:
            examined = optimum.examine(read_matrix(given, kind.given, kind.part))
            payload[examined.name] = examined.numbers
            lines.append(f"{given}: {examined.sentence}")
        emit(payload, as_json, lines)
        return 0

    help_ = example(theorem.__doc__ or "", f"{name} --topics 20 --words-per-topic 5")
    command(run, name, help_=help_, own=own, tau=False)


def attention_command(theorem: Callable[[Setting], AttentionTheorem]) -> None:
    """The command of a second-stage theorem: the best attention, and whether the theorem's bounds contain it."""
    name = theorem.__name__

    def run(setting: Setting, convention: Convention, as_json: bool) -> int:
        from topicscope.theory import second_stage

        numbers = theorem(setting)  # refuses a setting for which it is not defined
        stage = second_stage(setting, numbers.value_matrix, convention, theorem=theorem)
        emit(stage.as_dict() | numbers.numbers(), as_json, [attention_table(stage), *stage.summary()])
        return 0

    sizes = "--topics 1000000 --words-per-topic 1000 --topics-per-document 100"
    command(run, name, help_=example(theorem.__doc__ or "", f"{name} {sizes}"))


def verify(as_json: bool) -> int:
    from topicscope.ground import progress_shown
    from topicscope.theory import verify as all_certificates

    with progress_shown() as progress:
        certificates = all_certificates(progress)
    failed = [c for c in certificates if c.should_hold and not c.holds]
    if as_json:
        print(json.dumps({"certificates": [asdict(c) for c in certificates], "failed": len(failed)}, allow_nan=False))
    else:
        print_certificates(certificates, failed)
    return 1 if failed else 0


def print_certificates(certificates: list[Certificate], failed: list[Certificate]) -> None:
    """One row per claim, then notes on the cases that need one."""
    claims: dict[tuple[str, bool], list[Certificate]] = {}
    for c in certificates:
        claims.setdefault((c.claim, c.should_hold), []).append(c)
    table = Table(
        Column("claim", ratio=1), "cases", "error", "tolerance", "holds", title="theory verify", title_justify="left"
    )
    for (claim, should), group in claims.items():
        good = sum(c.holds for c in group)
        word = ("yes" if good == len(group) else "NO") if should else f"not claimed ({good}/{len(group)})"
        table.add_row(claim, str(len(group)), f"{max(c.error for c in group):.2g}", f"{group[0].tolerance:g}", word)
    out = consoles.results()
    out.print(table)
    out.print(
        "[bold]Details[/bold]: one example per claim; "
        "all cases in which a theorem's assumptions are strained or a claim failed"
    )
    shown: set[str] = set()
    for c in certificates:
        needed = "strained" in c.note or c in failed or c.claim not in shown
        if c.note and needed and (not c.should_hold or c in failed or "exponent" in c.note):
            shown.add(c.claim)
            out.print(f"- {c.claim}, {short(c.settings)}: {c.note}", soft_wrap=True, highlight=False, markup=False)


def short(settings: dict[str, Any]) -> str:
    """Settings in the paper's letters."""
    names = ("topics", "words_per_topic", "topics_per_document", "p_mask", "p_correct", "p_random")
    letters = dict(zip(names, ("T", "v", "tau", "p_m", "p_c", "p_r"), strict=True))
    return " ".join(f"{letters.get(key, key)}={value}" for key, value in settings.items())


for optimum_theorem in OPTIMUM_THEOREMS:
    optimum_command(optimum_theorem)
for attention_theorem in ATTENTION_THEOREMS:
    attention_command(attention_theorem)
command(
    verify,
    "verify",
    help_=example(
        "Derive every claim again by computation and report its error. Exit code 1 if one that should hold does not.",
        "verify",
    ),
)
