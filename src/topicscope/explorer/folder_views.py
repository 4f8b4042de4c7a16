"""A folder as a view: whatever kind it is, what `show` and `report` say of it."""

from functools import lru_cache
from typing import Any

from topicscope import pages
from topicscope.explorer.views import View
from topicscope.explorer.workspace import Place, written
from topicscope.ground import shown
from topicscope.reading import read


def folder_view(place: Place) -> View:
    result = read_again(place)
    sections: list[pages.Section] = result.sections()
    return View(f"topicscope {place.kind}: {shown(place.name)}", sections, result.intro())


def read_again(place: Place) -> Any:
    """What a folder holds. It is kept until the folder is written anew, or others are asked for."""
    return _result(place, written(place.path))


@lru_cache(maxsize=8)
def _result(place: Place, _written: float) -> Any:
    return read(place.path)
