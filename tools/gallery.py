"""Renews docs/gallery from a folder of `topicscope reproduce`: one thumbnail per figure, and the outcomes in short.

python tools/gallery.py runs/reproduce

The documentation's paper map and gallery are made from these (`tools/reference/paper_map.py`).
"""

from __future__ import annotations

import argparse
import io
import json
import sys
from pathlib import Path
from typing import Any

from PIL import Image

from topicscope import __version__
from topicscope.ground import InputError
from topicscope.pages import Figure, canvas
from topicscope.paper import EXPERIMENTS, Reproduction, read_reproduction

GALLERY = Path(__file__).parents[1] / "docs" / "gallery"
WIDTHS = (560, 480, 420, 360, 300, 240)  # pixels: the first that is small enough
COLOURS = 255
LARGEST = 40_000  # bytes of a thumbnail
LARGEST_OF_ALL = 1_500_000
KEPT = ("paper", "theory", "measured", "verdict", "reason", "ours")


def thumbnail(figure: Figure) -> bytes:
    """The figure as a PNG of few colours, as wide as fits into LARGEST bytes."""
    picture = io.BytesIO()
    canvas(figure).savefig(picture, format="png", dpi=130)
    with Image.open(picture) as image:
        whole = image.convert("RGB")
    for width in WIDTHS:
        small = whole.resize((width, round(whole.height * width / whole.width)), Image.Resampling.LANCZOS)
        stream = io.BytesIO()  # the octree keeps the few colours of curves apart, where a median cut mixes them
        small.quantize(COLOURS, Image.Quantize.FASTOCTREE, dither=Image.Dither.NONE).save(stream, "PNG", optimize=True)
        if stream.tell() <= LARGEST:
            return stream.getvalue()
    raise InputError(f"{figure.name} does not fit into {LARGEST:,} bytes at {WIDTHS[-1]} pixels")


def in_short(reproduction: Reproduction) -> dict[str, Any]:
    """What the pages show of the outcomes: no tables, and of figures their names and texts."""
    return {
        "version": __version__,
        "scale": reproduction.context.scale,
        "seed": reproduction.context.seed,
        "outcomes": {
            name: {key: getattr(outcome, key) for key in KEPT}
            | {
                "figures": [
                    {"file": figure.name, "title": figure.title, "alt": figure.alt}
                    for figure in reproduction.figures(name)
                ]
            }
            for name, outcome in reproduction.outcomes.items()
        },
    }


def renew(folder: Path, gallery: Path = GALLERY) -> int:
    """Write the thumbnails and outcomes.json; returns the bytes of all thumbnails."""
    reproduction = read_reproduction(folder)
    missing = [name for name in EXPERIMENTS if name not in reproduction.outcomes]
    if missing:
        raise InputError(f"{folder} lacks {', '.join(missing)}; run: topicscope reproduce --out {folder}")
    thumbnails = {
        figure.name: thumbnail(figure) for name in reproduction.outcomes for figure in reproduction.figures(name)
    }
    total = sum(map(len, thumbnails.values()))
    if total > LARGEST_OF_ALL:
        raise InputError(f"{total:,} bytes of thumbnails; at most {LARGEST_OF_ALL:,} are kept")
    gallery.mkdir(parents=True, exist_ok=True)
    for old in gallery.glob("*.png"):
        old.unlink()
    for name, content in thumbnails.items():
        (gallery / f"{name}.png").write_bytes(content)
    text = json.dumps(in_short(reproduction), indent=1)
    (gallery / "outcomes.json").write_text(text + "\n", encoding="utf-8")
    return total


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path, help="of a finished 'topicscope reproduce'")
    try:
        print(f"{renew(parser.parse_args().folder):,} bytes of thumbnails in {GALLERY}")
    except InputError as error:
        sys.exit(f"gallery: {error}")
