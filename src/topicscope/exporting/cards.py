"""The model card: README.md with YAML metadata, as the Hugging Face hub reads it.

It says how the model was trained and what a probe found: three verdicts, each with its controls. It has the names of
files and no other part of their paths. What comes from files, such as names and words, is escaped.
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any

import yaml

from topicscope.ground import shown
from topicscope.language import Probe, short
from topicscope.pretraining import PretrainRun

TAGS = ["topicscope", "topic-structure", "interpretability"]
TASKS = {"MaskedLM": "fill-mask", "CausalLM": "text-generation", "LMHeadModel": "text-generation"}
CLASSES = {"fill-mask": "AutoModelForMaskedLM", "text-generation": "AutoModelForCausalLM"}
READING = (
    "'yes': the difference passes all four controls. 'unsure': it passes some of them, or there is too little text. "
    "'no': there is no such difference. 'off': it was not measured."
)


def model_card(
    name: str, config: Mapping[str, Any], run: PretrainRun | None, probe: Probe | None, *, on_hub: bool
) -> str:
    """Write the card of a model (README.md with metadata), from its training, its probe, or both.

    Args:
        name: Name or folder of the model.
        config: Content of its config.json; empty where it is not known.
        run: The pretraining run that made it, or None.
        probe: A probe of it, or None.
        on_hub: Whether the name is one of the hub; then the card is of a probe of somebody else's model.

    Returns:
        Markdown, with YAML metadata at its head.

    Example:
        >>> card = model_card("runs/frogs", {"architectures": ["BertForMaskedLM"]}, None, None, on_hub=False)
        >>> [line for line in card.splitlines() if line.startswith(("#", "pipeline_tag", "model ="))]
        ['pipeline_tag: fill-mask', '# frogs', '## Use', 'model = AutoModelForMaskedLM.from_pretrained("FOLDER")']
    """
    task = task_of(config)
    metadata: dict[str, Any] = {"library_name": "transformers", "tags": TAGS}
    metadata |= {"pipeline_tag": task} if config else {}
    metadata |= {"base_model": name} if on_hub else {}
    lines = [f"# {plain(short(name))}", ""]
    lines += [] if run is None else training_part(run)
    lines += [] if probe is None else verdict_part(probe)
    if not on_hub:
        loader = CLASSES.get(task, "AutoModel")
        lines += ["## Use", "", "```python", f"from transformers import {loader}, AutoTokenizer", ""]
        lines += [f'model = {loader}.from_pretrained("FOLDER")']
        lines += ['tokenizer = AutoTokenizer.from_pretrained("FOLDER")', "```", ""]
    front = yaml.safe_dump(metadata, sort_keys=False, allow_unicode=True)
    return f"---\n{front}---\n\n" + "\n".join(lines).rstrip() + "\n"


def task_of(config: Mapping[str, Any]) -> str:
    named = config.get("architectures")
    architecture = str(named[0]) if isinstance(named, list) and named else ""
    return next((task for end, task in TASKS.items() if architecture.endswith(end)), "feature-extraction")


def training_part(run: PretrainRun) -> list[str]:
    config, results = run.config, run.results
    shape = config.model
    settings = {
        "architecture": f"{shape.architecture}, {shape.layers} layers of {shape.heads} heads, width {shape.dim}",
        "parameters": f"{results.parameters:,}",
        "vocabulary": f"{results.vocabulary:,} tokens",
        "text": names(config.text.corpus),
        "steps": f"{results.steps:,} of {config.batch_size} rows of {config.length} tokens",
        "optimiser": f"{config.optimizer.name}, learning rate {config.optimizer.lr:g}",
        "seed": str(results.seed),
    }
    facts = {name: f"{value:.5g}" if isinstance(value, float) else str(value) for name, value in run.facts().items()}
    return [
        *("## Training", "", "Masked language modelling with `topicscope pretrain`.", ""),
        *table(["setting", "value"], settings.items()),
        *(plain(run.course.sentence), ""),
        *table(["result", "value"], [(name, value) for name, value in facts.items() if value != "None"]),
    ]


def verdict_part(probe: Probe) -> list[str]:
    """The answers on one model. `probe` has no other."""
    [verdict] = probe.verdicts
    config: Any = probe.config
    rows = [
        (place, answer.answer, *(answer.controls.get(name, "-") for name in verdict.embeddings.controls))
        for place, answer in verdict.answers.items()
    ]
    topics = "given topics" if config.topics_from or config.label_field else f"{config.topics} fitted topics"
    return [
        *("## Does the model encode topics?", ""),
        *table(["where", "answer", *verdict.embeddings.controls], rows),
        *(f"- {plain(answer.sentence)}" for answer in verdict.answers.values() if answer.checks),
        *("", READING, ""),
        f"Measured with `topicscope probe` on {plain(names(config.corpus))}: {topics}, {config.documents:,} documents, "
        f"thresholds {', '.join(f'{one:g}' for one in config.thresholds)}, seed {config.seed}.",
        "",
    ]


def names(files: Sequence[str]) -> str:
    """The names of files, without the folders they are in; a corpus of the hub has its whole name."""
    return ", ".join(shown(file if file.startswith("hf:") else PurePath(file).name) for file in files)


def table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> list[str]:
    cells = [columns, ["---"] * len(columns), *([plain(cell) for cell in row] for row in rows)]
    return [*(f"| {' | '.join(row)} |" for row in cells), ""]


def plain(text: str) -> str:
    """Text that Markdown and HTML take as it is.

    >>> plain("a|b <b>*c*</b>")
    'a\\\\|b \\\\<b\\\\>\\\\*c\\\\*\\\\</b\\\\>'
    """
    return re.sub(r"([\\`*_{}\[\]<>|#!])", r"\\\1", " ".join(shown(text).split()))
