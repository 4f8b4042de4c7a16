"""The front-end: ES modules of `static/`, which a server hands out as they are and a page that opens from disk has
inside it, since a browser loads no modules from disk.
"""

import re
from functools import cache
from pathlib import Path

STATIC = Path(__file__).parent / "static"
IMPORT = re.compile(r'^import \{ ([^}]*) \} from "\./([\w-]+\.js)";\n', re.MULTILINE)
EXPORT = re.compile(r"^export const (\w+)", re.MULTILINE)


@cache
def bundled(name: str) -> str:
    """A module and all that it imports as one script: each a function of its own, in the order in which they need
    each other.
    """
    order: list[str] = []

    def visit(module: str) -> None:
        for _, needed in IMPORT.findall(source(module)):
            if needed not in order:
                visit(needed)
        order.append(module)

    visit(name)
    return "\n".join(wrapped(module) for module in order)


def wrapped(module: str) -> str:
    text = source(module)
    names = ", ".join(EXPORT.findall(text))
    body = EXPORT.sub(r"const \1", IMPORT.sub("", text)).strip()
    made = f"const {{ {names} }} = " if names else ""
    given = f"\nreturn {{ {names} }};" if names else ""
    return f"{made}(() => {{\n{body}{given}\n}})();"


@cache
def source(module: str) -> str:
    return (STATIC / module).read_text()
