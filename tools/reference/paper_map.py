"""The map from the paper to the code, and the gallery: made from the registry and a stored reproduction.

docs/gallery holds that reproduction in small: `outcomes.json` and one thumbnail per figure (`tools/gallery.py`).
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from tools.reference.commands import cell, escaped
from tools.reference.paper_sources import SOURCES, WITHOUT_EXPERIMENT, Source
from topicscope.paper import EXPERIMENTS
from topicscope.paper.reproduction import MODULES

DOCS = Path(__file__).parents[2] / "docs"
GALLERY = DOCS / "gallery"
OUTCOMES = GALLERY / "outcomes.json"


def stored() -> dict[str, Any]:
    return dict(json.loads(OUTCOMES.read_text(encoding="utf-8")))


def paper_pages() -> dict[str, str]:
    """Text by path below docs/reference."""
    ids = {beyond: [name for name, one in EXPERIMENTS.items() if one.beyond is beyond] for beyond in (False, True)}
    return {
        "paper.md": map_page("The paper, claim by claim", PAPER, ids[False]) + "\n".join(more_statements()),
        "beyond.md": map_page("Beyond the paper, claim by claim", BEYOND, ids[True]),
        "gallery.md": gallery_page(ids),
    }


PAPER = (
    "Every theorem, figure and table of *How Do Transformers Learn Topic Structure* (Li, Li, Risteski, ICML 2023),\n"
    "with its equation, the formula, the files that compute it, the command that re-measures it, and the verdict."
)
BEYOND = (
    "Claims that the paper does not make, in the same form. A verdict reads 'as predicted' where the rule, which was\n"
    "fixed before the run, holds."
)


def title_of(name: str) -> str:
    """A heading: Figure 10 of figure10; ids of other kinds are their own name."""
    match = re.fullmatch(r"(figure|table|theorem)(\d+)", name)
    return f"{match[1].capitalize()} {match[2]}" if match else name.replace("-", " ").capitalize()


def verdict_of(name: str) -> str:
    return EXPERIMENTS[name].verdict_name(stored()["outcomes"][name]["verdict"])


def sizes(name: str) -> str:
    """Why the pattern is reproduced, but not the paper's number; '' where nothing is to be said."""
    outcome = stored()["outcomes"][name]
    return EXPERIMENTS[name].number.sizes(outcome["verdict"], outcome["ours"])


def map_page(title: str, text: str, names: list[str]) -> str:
    """A table to look up, then one section per claim."""
    kept = stored()
    lines = [f"# {title}", "", text, ""]
    lines += [
        f"Verdicts and numbers are those of `topicscope reproduce --scale {kept['scale']} --seed {kept['seed']}`,",
        f"version {kept['version']}. Yours are in `runs/reproduce/report.html` after `make reproduce`.",
        "",
        "| id | claim | verdict | number | paper | ours |",
        "|---|---|---|---|---|---|",
    ]
    for name in names:
        experiment, outcome = EXPERIMENTS[name], kept["outcomes"][name]
        both = experiment.number.compared(outcome["ours"])
        judged = verdict_of(name) + ("*" if sizes(name) else "")
        row = [cell(text) for text in (experiment.claim, judged, both.name, both.paper, both.ours)]
        lines += [f"| [{name}](#{name}) | {' | '.join(row)} |"]
    if any(map(sizes, names)):
        lines += [
            "",
            "\\* The pattern is reproduced; the number is more than 10% away from the paper's. The claim says why.",
        ]
    lines += [""]
    for name in names:
        lines += claim_section(name, kept["outcomes"][name])
    return "\n".join(lines)


def claim_section(name: str, outcome: dict[str, Any]) -> list[str]:
    experiment, source = EXPERIMENTS[name], SOURCES[name]
    own = f"paper/{MODULES[name]}.py"
    rows = {
        **source_rows(source._replace(files=(own, *source.files))),
        "command": f"`topicscope reproduce {name}`",
        "rule": escaped(experiment.rule),
        "compared": f"{escaped(experiment.number.name)}: {escaped(experiment.number.what)}",
        "the paper": escaped(outcome["paper"]),
        "theory": escaped(outcome["theory"]),
        "measured": escaped(outcome["measured"]),
        "verdict": f"**{verdict_of(name)}**: {escaped(outcome['reason'])}",
        "sizes": escaped(sizes(name)),
    }
    lines = [f"({name})=", "", f"## {title_of(name)}", "", escaped(experiment.claim), ""]
    lines += [f":{what}: {' '.join(text.split())}" for what, text in rows.items() if text and text != "-"]
    pictures = [f"[{escaped(one['title'])}](gallery.md#picture-{one['file']})" for one in outcome["figures"]]
    lines += [f":figures: {', '.join(pictures)}"] if pictures else []
    return [*lines, ""]


def source_rows(source: Source) -> dict[str, str]:
    rows = {
        "where": escaped(source.where),
        "formula": f"`{source.formula}`",
        "files": ", ".join(f"`src/topicscope/{file}`" for file in source.files),
    }
    return rows | ({"explained": f"[{source.page}](../{source.page})"} if source.page else {})


def more_statements() -> list[str]:
    lines = ["", "## Statements without training", ""]
    lines += ["`topicscope theory verify` derives these again by computation, and reports the error.", ""]
    for name, source in WITHOUT_EXPERIMENT.items():
        lines += [f"### {name}", "", *(f":{what}: {text}" for what, text in source_rows(source).items()), ""]
    return lines


def gallery_page(ids: dict[bool, list[str]]) -> str:
    """Thumbnails by claim, with the lines that make them."""
    kept = stored()
    lines = [
        "# Gallery",
        "",
        f"Every figure of `topicscope reproduce --scale {kept['scale']}`, small. The commands below the figures",
        "of a claim draw them in full size, as PNG, SVG and CSV, and on a page in which you can zoom.",
        "",
    ]
    for beyond, names in sorted(ids.items()):
        lines += [f"## {'Beyond the paper' if beyond else 'The paper'}", ""]
        for name in names:
            if figures := kept["outcomes"][name]["figures"]:
                lines += exhibit(name, figures, "beyond.md" if beyond else "paper.md")
    return "\n".join(lines)


def exhibit(name: str, figures: list[dict[str, str]], page: str) -> list[str]:
    """The figures of one claim."""
    claim = escaped(EXPERIMENTS[name].claim)
    lines = [f"### {title_of(name)}", "", f"{claim} [{verdict_of(name).capitalize()}]({page}#{name}).", ""]
    for figure in figures:
        lines += [
            f"(picture-{figure['file']})=",
            "",
            f"```{{figure}} ../gallery/{figure['file']}.png",
            f":alt: {' '.join(figure['alt'].split())}",
            ":figclass: thumbnail",
            "",
            escaped(figure["title"]),
            "```",
            "",
        ]
    return [
        *lines,
        "```sh",
        f"topicscope reproduce {name} --out runs/{name}",
        "```",
        "",
        "```python",
        "from topicscope.paper import Context, chosen, reproduce",
        "",
        f'reproduce(chosen(["{name}"]), Context(), "runs/{name}").plot()',
        "```",
        "",
    ]
