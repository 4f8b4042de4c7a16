"""Figures as files: the numbers of one panel are a table, those of several an archive of tables."""

from __future__ import annotations

import io
import zipfile

from topicscope.explorer.workspace import View
from topicscope.pages import Figure, Lines, Section, Series


def view(panels: int) -> View:
    lines = [Lines(f"panel {n}", [Series("loss", [0.0, 1.0], [2.0, float(n)])]) for n in range(panels)]
    return View("A view", [Section("Loss", figures=[Figure("loss", "Loss", "Loss by step.", lines)])])


def test_one_table_is_a_csv_file() -> None:
    name, content = view(1).file("loss", "csv")
    assert name == "loss.csv"
    assert content.decode().splitlines()[1:] == ["loss,0.0,2.0,,", "loss,1.0,0.0,,"]


def test_several_tables_are_an_archive() -> None:
    name, content = view(2).file("loss", "csv")
    assert name == "loss.zip"
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.namelist() == ["loss-1.csv", "loss-2.csv"]
        assert archive.read("loss-2.csv").decode().splitlines()[-1] == "loss,1.0,1.0,,"


def test_pictures_are_what_their_names_say() -> None:
    for form, start in (("png", b"\x89PNG"), ("svg", b"<?xml")):
        name, content = view(2).file("loss", form)
        assert (name, content[: len(start)]) == (f"loss.{form}", start)
