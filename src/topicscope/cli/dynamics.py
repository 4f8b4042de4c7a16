"""`topicscope theory dynamics`: when value, then key and query are learnt, predicted for any setting."""

from pathlib import Path
from typing import Annotated

from topicscope import pages
from topicscope.cli import consoles
from topicscope.cli.optimum import MASKING, OUTPUT, parsed_length
from topicscope.cli.options import AsJson, option
from topicscope.cli.worlds import WORLD
from topicscope.ground import InputError, files, gather
from topicscope.theory import Dynamics, Embedding, Loss, Optimizer, dynamics
from topicscope.world import World

TRAINING = "Training"
UNKNOWN = "not covered"


def command(
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
    check_file(out)
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


def check_file(out: Path | None) -> None:
    if out is not None and (out.suffix not in (".png", ".svg") or out.is_dir() or not out.absolute().parent.is_dir()):
        raise InputError(f"--out {out}: expected a file ending in .png or .svg, in an existing folder")


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
