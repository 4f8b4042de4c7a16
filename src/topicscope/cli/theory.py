"""`topicscope theory theorem1`, `theorem2` and `verify`: optima for any setting in numbers, a small picture and words; certificates."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Annotated, Any

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn
from rich.table import Column, Table

from topicscope.cli import consoles
from topicscope.cli.pictures import heat_map
from topicscope.cli.theory_options import AsJson, PCorrect, PMask, PRandom, Topics, Words, app, describe, emit, setting


def entries_table(rows: list[tuple[str, float, str]]) -> Table:
    table = Table("entry", "value", "meaning")
    for name, value, meaning in rows:
        table.add_row(name, f"{value:.7g}", meaning)
    return table


@app.command()
def theorem1(
    topics: Topics = 10,
    words_per_topic: Words = 10,
    p_mask: PMask = 0.15,
    p_correct: PCorrect = 0.1,
    p_random: PRandom = 0.1,
    embedding: Annotated[
        str | None, typer.Option(help="An embedding (.npy or .csv, dim rows, a column a word) to test for membership.")
    ] = None,
    as_json: AsJson = False,
) -> int:
    """Only the embedding is trained: the family of optimal Gram matrices, its bias, and whether an embedding belongs to it.

    Example: [bold]topicscope theory theorem1 --topics 20 --words-per-topic 5[/bold]
    """
    from topicscope.theory import fit_embedding, identity_member, prediction_bias
    from topicscope.world import read_matrix

    s = setting(topics, words_per_topic, 1, p_mask, p_correct, p_random)
    c, bias = s.constants, float(prediction_bias(s.topic_model, s.masking)[1])
    payload: dict[str, Any] = {
        "settings": describe(s, tau=False),
        "bias": bias,
        "mask_bias": 0.0,
        "c2": c.c2,
        "c3": c.c3,
        "identity_diagonal": c.c3,
    }
    lines: list[Any] = [
        entries_table(
            [
                ("b_i", bias, "fixed prediction bias of every word; [MASK]'s is 0"),
                ("c3 = 1/k", c.c3, "by how much a word's own topic outweighs any other topic, summed over the topic"),
                ("c2", c.c2, "weight of the free u_i in the [MASK] column: E_i0 = -c2 u_i"),
            ]
        ),
        f"Theorem 1: with uniform attention, W_V = I and this bias, E = W_E'W_E is optimal exactly if in every row the entries sum to u_i v + {c.c3:.6g} "
        "over the word's own topic and to u_i v over any other topic, with E_i0 = -c2 u_i.",
        "How to read it: on average a word's embedding is closer to its own topic than to every other, by "
        f"{c.c3 / s.v:.6g} an entry. The simplest member is E = I / k (words know only themselves); blocks are another.",
    ]
    if s.topic_model.vocabulary <= 2000:
        lines.insert(1, heat_map(identity_member(s.topic_model, s.masking), "the identity member, E = I / k"))
    if embedding is not None:
        found = fit_embedding(read_matrix(embedding, "--embedding"), s.topic_model, s.masking)
        payload["membership"] = {"violation": found.violation, "u_mean": float(found.u.mean())}
        lines.append(
            f"{embedding}: the largest violation of the conditions is {found.violation:.4g} (0 for a member; c3 = {c.c3:.4g} is the scale)."
        )
    emit(payload, as_json, lines)
    return 0


@app.command()
def theorem2(
    topics: Topics = 10,
    words_per_topic: Words = 10,
    p_mask: PMask = 0.15,
    p_correct: PCorrect = 0.1,
    p_random: PRandom = 0.1,
    matrix: Annotated[
        str | None,
        typer.Option(help="A value matrix (.npy or .csv) to compare: distance, and membership in Lemma 1's family."),
    ] = None,
    as_json: AsJson = False,
) -> int:
    """The optimal value matrix under uniform attention and vanishing L2: its entries, a picture, and how to read it.

    Example: [bold]topicscope theory theorem2 --topics 20 --words-per-topic 5[/bold]
    """
    import numpy as np

    from topicscope.theory import fit_family, theorem2 as closed_form
    from topicscope.world import read_matrix

    s = setting(topics, words_per_topic, 1, p_mask, p_correct, p_random)
    optimum, c = closed_form(s.topic_model, s.masking), s.constants
    payload: dict[str, Any] = {
        **asdict(optimum),
        "c1": c.c1,
        "c2": c.c2,
        "c3": c.c3,
        "settings": describe(s, tau=False),
    }
    lines: list[Any] = [
        entries_table(
            [
                ("same topic", optimum.same_topic, "W_il, words i and l of one topic (the diagonal too)"),
                ("different topic", optimum.different_topic, "W_il, words of two topics"),
                ("[MASK] column", optimum.mask_column, "W_i0, what [MASK] adds to every word"),
                ("[MASK] row", optimum.mask_row, "W_0l: nothing predicts [MASK]"),
            ]
        ),
        f"Theorem 2: as lambda -> 0 the trained W_V is block-wise: {optimum.same_topic:.6g} inside a topic and {optimum.different_topic:.6g} between topics.",
        f"How to read it: a word seen in the document votes for all words of its topic, {c.c3 / s.v:.6g} (= c3 / v) more than for others; "
        "the small negative rest and the [MASK] column take away what random words and the masking put in.",
    ]
    if s.topic_model.vocabulary <= 2000:
        lines.insert(1, heat_map(optimum.matrix(s.topic_model), "W_V (first row and column: [MASK])"))
    if matrix is not None:
        given = read_matrix(matrix, "--matrix")
        found = fit_family(given, s.topic_model, s.masking)
        distance = float(np.abs(given - optimum.matrix(s.topic_model)).max())
        payload["comparison"] = {"largest_difference": distance, "family_violation": found.violation}
        lines.append(
            f"{matrix}: largest difference from Theorem 2 {distance:.4g}; largest violation of Lemma 1's conditions {found.violation:.4g}."
        )
    emit(payload, as_json, lines)
    return 0


@app.command()
def verify(as_json: AsJson = False) -> int:
    """Re-derive every claim numerically and say by how much it holds. Exit code 1 if one that should hold does not.

    Example: [bold]topicscope theory verify[/bold]
    """
    from topicscope.theory import verify as all_certificates

    console = consoles.progress()
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        console=console,
        transient=True,
        disable=not console.is_terminal,
    ) as bar:
        task = bar.add_task("verifying")
        certificates = all_certificates(lambda claim: bar.update(task, description=claim))
    failed = [c for c in certificates if c.should_hold and not c.holds]
    if as_json:
        print(json.dumps({"certificates": [asdict(c) for c in certificates], "failed": len(failed)}, allow_nan=False))
        return 1 if failed else 0
    claims: dict[tuple[str, bool], list[Any]] = {}
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
        "[bold]Details[/bold]: one example a claim; all where the theorem's assumptions are strained or a claim failed"
    )
    told: set[str] = set()
    for c in certificates:
        strained = "strained" in c.note
        if (
            c.note
            and (strained or c in failed or c.claim not in told)
            and (not c.should_hold or c in failed or "exponent" in c.note)
        ):
            told.add(c.claim)
            out.print(f"- {c.claim}, {short(c.settings)}: {c.note}", soft_wrap=True, highlight=False, markup=False)
    return 1 if failed else 0


def short(settings: dict[str, Any]) -> str:
    """Settings in the paper's letters."""
    letters = {
        "topics": "T",
        "words_per_topic": "v",
        "topics_per_document": "tau",
        "p_mask": "p_m",
        "p_correct": "p_c",
        "p_random": "p_r",
    }
    return " ".join(f"{letters.get(key, key)}={value}" for key, value in settings.items())
