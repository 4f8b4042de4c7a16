"""A figure from outside is drawn wherever the project's own figures are."""

from pathlib import Path

import pytest

from tests.pages.outside_figure import Coins
from topicscope.ground import InputError
from topicscope.pages import notebook_view, write_report
from topicscope.pages.panels import BUILDERS

COINS = Coins([1.0, 0.0, 1.0, 1.0])


def test_a_builder_from_outside_makes_pictures_numbers_and_pages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(InputError, match="no figures for results of kind 'coins'"):
        COINS.sections()
    monkeypatch.setitem(BUILDERS, "coins", "tests.pages.outside_figure.coin_sections")
    write_report(tmp_path, "Coins", "\n\n".join(COINS.intro()), COINS.sections())
    figures = tmp_path / "figures"
    assert sorted(path.name for path in figures.iterdir()) == ["coins-1.csv", "coins.png", "coins.svg"]
    assert (figures / "coins.png").read_bytes().startswith(b"\x89PNG")
    assert "</svg>" in (figures / "coins.svg").read_text()
    assert (figures / "coins-1.csv").read_text().splitlines() == [
        "series,x,y,low,high",
        "coin,1.0,1.0,,",
        "coin,2.0,0.5,,",
        f"coin,3.0,{2 / 3},,",
        "coin,4.0,0.75,,",
    ]
    page = (tmp_path / "report.html").read_text()
    for words in ("<h1>Coins</h1>", "3 of 4 throws were heads.", "Is the coin fair?", "Throws of a coin", "0.666667"):
        assert words in page
    assert COINS.plot().get_suptitle() == "Throws of a coin"
    assert "data:image/png;base64," in COINS._repr_html_()
    assert "Is the coin fair?" in notebook_view(COINS, COINS.sections()).html
