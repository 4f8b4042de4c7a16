"""The folders that the explorer may read, each under a name of its own, and what is shown of them.

No path of a request is ever opened. A view is HTML for the open page, a page to keep, pictures and numbers.
"""

import hashlib
import io
import os
import zipfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from topicscope import pages
from topicscope.ground import InputError, folders, is_held, read_about, refuse, refuse_if, shown
from topicscope.reading import read

DEEPEST = 3  # levels of folders below one that was named
MOST_FOLDERS = 5000
OWN = ".explorer"  # in the workspace: configs of new runs, what their processes print, addresses of servers


@dataclass(frozen=True)
class Place:
    """A folder that topicscope wrote. `state`: its status, or what has become of a run that nobody writes any more."""

    id: str
    name: str  # below the folder that was named
    path: Path
    kind: str
    state: str
    root: Path  # the folder that was named
    several: bool = False  # runs that are trained together; each is a place of its own
    whole: Path | None = None  # of one of these: the folder that holds it
    written: float = 0.0  # when about.json was written last: what was read of an older one is read again

    def as_dict(self) -> dict[str, object]:
        names = ("id", "kind", "state", "several")
        return {"name": shown(self.name)} | {name: getattr(self, name) for name in names}


class Workspace:
    """The folders that the explorer may write and read.

    The explorer notes things down in `own`, a folder in `home`. Links are not followed, and folders that have some are
    left out.
    """

    def __init__(self, home: Path, named: Sequence[Path] = ()) -> None:
        advice = "name folders that topicscope wrote, or that contain such folders"
        refuse(*((not folder.is_dir(), f"{shown(folder)} is not a folder; {advice}") for folder in named))
        self.home = home.resolve()
        self.own = self.home / OWN
        self.roots = tuple(dict.fromkeys((self.home, *(folder.resolve() for folder in named))))
        self._known: dict[str, Place] = {}

    def places(self) -> list[Place]:
        found = {place.id: place for root in self.roots for place in self._below(root)}
        self._known = found
        return sorted(found.values(), key=lambda place: (-place.written, place.name))

    def _below(self, root: Path) -> Iterator[Place]:
        waiting: list[tuple[Path, int, Place | None]] = [(root, 0, None)]
        seen = 0
        while waiting and seen < MOST_FOLDERS:
            folder, depth, together = waiting.pop()
            seen += 1
            if (place := place_of(folder, root)) is not None:
                yield place if together is None else member(place, together)
                if not place.several:
                    continue  # the folders inside are its own
            try:
                inside = [entry for entry in os.scandir(folder) if entry.is_dir(follow_symlinks=False)]
            except OSError:  # gone meanwhile, or not for us
                continue
            if depth < DEEPEST:
                hidden = (entry for entry in inside if not entry.name.startswith("."))
                waiting += [(Path(entry.path), depth + 1, place) for entry in hidden]

    def find(self, identity: str) -> Place:
        """The folder with this name of ours, as it is now. All folders are looked through only for an unknown name."""
        place = self._again(identity) or next((place for place in self.places() if place.id == identity), None)
        if place is None:
            raise InputError("there is no such folder any more; go back to the list")
        return place

    def _again(self, identity: str) -> Place | None:
        """A folder that was listed before; None if it has gone, or a link has taken its place."""
        known = self._known.get(identity)
        if known is None or known.path.resolve() != known.path:
            return None
        place = place_of(known.path, known.root)
        if place is None or known.whole is None:
            return place
        whole = place_of(known.whole, known.root)
        return None if whole is None else member(place, whole)


def identity(path: Path) -> str:
    return hashlib.sha256(os.fsencode(path)).hexdigest()[:16]


def has_links(folder: Path, *, deeper: bool = True) -> bool:
    """Topicscope writes no links; what is behind one was not named, and may be anything."""
    return any(
        entry.is_symlink() or (deeper and entry.is_dir() and has_links(Path(entry.path), deeper=False))
        for entry in list(os.scandir(folder))
    )


def place_of(folder: Path, root: Path) -> Place | None:
    try:
        about = None if has_links(folder) else read_about(folder)
    except (InputError, OSError):
        return None
    if about is None:
        return None
    state = str(about.status)
    if state in folders.UNFINISHED:
        state = state if is_held(folder) else "interrupted"
    elif damage(folder):
        state = "damaged"
    name = str(folder.relative_to(root)) if folder != root else folder.name
    return Place(
        identity(folder), name, folder, about.kind, state, root, about.runs is not None, written=written(folder)
    )


def damage(folder: Path) -> str:
    """What is wrong with the results of a finished folder; empty where they are as they were written."""
    try:
        both = [(folder / name).stat() for name in (folders.ABOUT, folders.RESULTS)]
    except OSError:
        return "its results are missing"
    return _damage(folder, tuple((one.st_mtime_ns, one.st_size) for one in both))


@lru_cache(maxsize=MOST_FOLDERS)
def _damage(folder: Path, _written: tuple[tuple[int, int], ...]) -> str:
    try:
        if (about := read_about(folder)) is not None:
            folders.check_digest(folder, about, folders.RESULTS)
    except InputError as error:
        return str(error)
    return ""


def member(place: Place, whole: Place) -> Place:
    """One of several runs. While they are trained, its state is that of the whole."""
    return replace(place, whole=whole.path, state=whole.state if place.state == "interrupted" else place.state)


def written(path: Path) -> float:
    """When a file, or about.json of a folder, was written last; 0 if it is not there."""
    try:
        return (path / folders.ABOUT if path.is_dir() else path).stat().st_mtime
    except OSError:
        return 0.0


MEDIA = {"png": "image/png", "svg": "image/svg+xml", "csv": "text/csv; charset=utf-8", "zip": "application/zip"}
FORMS = ("png", "svg", "csv")  # in which figures are kept


@dataclass(frozen=True)
class View:
    title: str
    sections: list[pages.Section]
    intro: list[str] = field(default_factory=list)
    pictures: Path | None = None  # a folder of drawn figures, from which claims have small ones

    def fragment(self, start: str = "") -> str:
        """HTML for a page that has the front-end's scripts already. Ids begin with `start`."""
        return pages.sections_html(self.sections, start, self.pictures)

    def page(self) -> str:
        return pages.page_html(self.title, "\n\n".join(self.intro), self.sections, self.pictures)

    def file(self, name: str, form: str) -> tuple[str, bytes]:
        """The name and content of a file: a figure as PNG or SVG, or its numbers as CSV (zipped for several panels)."""
        found = [figure for section in self.sections for figure in section.figures if figure.name == name]
        refuse_if(not found, f"there is no figure {name!r:.80} in this view any more; reload the page")
        figure = found[0]
        if form != "csv":
            return f"{name}.{form}", pages.canvas(figure).as_bytes(form)
        if len(figure.panels) == 1:
            return f"{name}.csv", pages.csv_of(figure.panels[0]).encode()
        stream = io.BytesIO()
        with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
            for number, panel in enumerate(figure.panels, start=1):
                archive.writestr(zipfile.ZipInfo(f"{name}-{number}.csv"), pages.csv_of(panel))
        return f"{name}.zip", stream.getvalue()


@lru_cache(maxsize=8)
def read_again(place: Place) -> Any:
    """What a folder holds, kept until the folder is written anew, or other folders are asked for."""
    return read(place.path)
