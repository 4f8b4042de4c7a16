"""Which folders the explorer reads."""

import io
import os
import zipfile
from pathlib import Path

import pytest

from topicscope.explorer.runs import LiveRoom, Runs
from topicscope.explorer.workspace import DEEPEST, Place, View, Workspace, identity, place_of
from topicscope.ground import InputError, folders
from topicscope.ground.folders import Kind
from topicscope.pages import Figure, Lines, Section, Series

ANY = Kind("train", 4, (), (), resumes="asked")


def folder(path: Path, *, finished: bool = True) -> Path:
    with folders.open_folder(path, ANY, {"seed": 0}) as one:
        if finished:
            one.finish({"x": 1})
    return path


def test_folders_of_the_workspace_and_those_that_were_named_are_found(tmp_path: Path) -> None:
    folder(tmp_path / "runs" / "a")
    folder(tmp_path / "runs" / "deep" / "b")
    folder(tmp_path / "elsewhere" / "c")
    folder(tmp_path / "other" / "d")
    space = Workspace(tmp_path / "runs", [tmp_path / "elsewhere"])
    assert {place.name for place in space.places()} == {"a", "deep/b", "c"}
    assert {place.state for place in space.places()} == {"done"}


def test_links_are_not_followed(tmp_path: Path) -> None:
    secret = folder(tmp_path / "secret")
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs" / "link").symlink_to(secret)
    (tmp_path / "runs" / "up").symlink_to(tmp_path)
    space = Workspace(tmp_path / "runs")
    assert space.places() == []
    with pytest.raises(InputError, match="no such folder"):
        space.find(identity(secret))


@pytest.mark.parametrize("name", ["snapshots", "metrics.jsonl", "figures", "run-000/metrics.jsonl"])
def test_a_folder_with_a_link_inside_is_left_out(tmp_path: Path, name: str) -> None:
    """As a folder from elsewhere may have: what the link leads to would be shown."""
    path = folder(tmp_path / "runs" / "one")
    space = Workspace(tmp_path / "runs")
    assert [place.path for place in space.places()] == [path]
    (tmp_path / "elsewhere").mkdir()
    (path / name).parent.mkdir(exist_ok=True)
    (path / name).symlink_to(tmp_path / "elsewhere")
    assert space.places() == []
    with pytest.raises(InputError, match="no such folder"):
        space.find(identity(path))


def test_a_named_folder_may_be_a_link_and_its_neighbours_stay_closed(tmp_path: Path) -> None:
    """Whoever names a link means what it leads to, and no more."""
    one = folder(tmp_path / "far" / "one")
    folder(tmp_path / "far" / "two")
    (tmp_path / "link").symlink_to(one)
    [place] = Workspace(tmp_path / "runs", [tmp_path / "link"]).places()
    assert (place.name, place.path) == ("one", one)


def test_depth_is_bounded_and_what_is_damaged_is_left_out(tmp_path: Path) -> None:
    deep = tmp_path / "runs" / "/".join("abcdefg"[:DEEPEST])
    folder(deep)
    folder(tmp_path / "runs" / "/".join("hijklmn"[: DEEPEST + 1]))
    (tmp_path / "runs" / "bad").mkdir()
    (tmp_path / "runs" / "bad" / folders.ABOUT).write_text("{")
    folder(tmp_path / "runs" / ".hidden")
    assert [place.path for place in Workspace(tmp_path / "runs").places()] == [deep]


def test_runs_that_are_trained_together_are_as_the_whole_is(tmp_path: Path) -> None:
    space = Workspace(tmp_path / "runs")

    def states() -> dict[str, str]:
        return {place.name: place.state for place in space.places()}

    with folders.open_folder(tmp_path / "runs" / "two", ANY, {"runs": []}, runs=2) as whole:
        paths = folders.member_paths(whole.path, 2)
        first, _ = (folders.join_folder(path, ANY, {"seed": 0}, resume=True) for path in paths)
        first.finish({"x": 1})
        assert states() == {"two": "running", "two/run-000": "done", "two/run-001": "running"}
    assert states() == {"two": "interrupted", "two/run-000": "done", "two/run-001": "interrupted"}
    runs = Runs(space)
    found = space.find(identity(tmp_path / "runs" / "two" / "run-001"))
    assert (found.state, found.whole) == ("interrupted", found.path.parent)
    with pytest.raises(InputError, match="one of several runs"):
        runs.resume(found)


def test_looking_does_not_keep_a_run_from_starting(tmp_path: Path) -> None:
    """The look takes the lock for an instant; who wants it waits a little."""
    path = folder(tmp_path / "runs" / "one", finished=False)
    space = Workspace(tmp_path / "runs")
    for _ in range(20):
        space.places()
        with folders.open_folder(path, ANY, {"seed": 0}, resume=True):
            assert space.places()[0].state == "running"
        assert space.places()[0].state == "interrupted"  # nobody writes it


def test_a_folder_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    path = folder(tmp_path / "runs" / "one")
    space = Workspace(tmp_path / "runs")
    found = space.find(identity(path))
    assert found.kind == "train"
    for entry in path.iterdir():
        os.remove(entry)
    with pytest.raises(InputError, match="no such folder any more"):
        space.find(found.id)


def test_a_folder_that_is_known_is_found_without_a_look_at_all_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A stream looks at its runs twice a second, however many folders there are."""
    paths = [folder(tmp_path / "runs" / f"run-{number}") for number in range(20)]
    space = Workspace(tmp_path / "runs")
    space.places()
    looked_at: list[Path] = []

    def counted(path: Path, root: Path) -> Place | None:
        looked_at.append(path)
        return place_of(path, root)

    monkeypatch.setattr("topicscope.explorer.workspace.place_of", counted)
    assert space.find(identity(paths[3])).path == paths[3]
    assert looked_at == [paths[3]]
    new = folder(tmp_path / "runs" / "new")
    assert space.find(identity(new)).path == new


@pytest.mark.parametrize("level", ["folder", "above"])
def test_a_known_folder_that_a_link_replaces_is_gone(tmp_path: Path, level: str) -> None:
    path = folder(tmp_path / "runs" / "group" / "one")
    space = Workspace(tmp_path / "runs")
    assert space.find(identity(path)).path == path
    moved = path if level == "folder" else path.parent
    moved.rename(tmp_path / "moved")
    moved.symlink_to(tmp_path / "moved")
    with pytest.raises(InputError, match="no such folder any more"):
        space.find(identity(path))


def test_a_folder_whose_results_are_cut_off_is_damaged(tmp_path: Path) -> None:
    path = folder(tmp_path / "runs" / "one")
    space = Workspace(tmp_path / "runs")
    assert [place.state for place in space.places()] == ["done"]
    results = path / folders.RESULTS
    whole = results.read_bytes()
    results.write_bytes(whole[: len(whole) // 2])
    [place] = space.places()
    assert place.state == "damaged"
    news = LiveRoom(Runs(space)).state(place.id, {})
    assert news["state"] == "damaged"
    assert "results.json is damaged" in news["why"]
    results.unlink()
    assert [place.state for place in space.places()] == ["damaged"]
    results.write_bytes(whole)
    assert [place.state for place in space.places()] == ["done"]


def test_a_figure_of_one_table_is_kept_as_it_and_one_of_several_as_an_archive() -> None:
    lines = [Lines(f"panel {n}", [Series("loss", [0.0, 1.0], [2.0, float(n)])]) for n in range(2)]

    def kept(panels: int) -> tuple[str, bytes]:
        figure = Figure("loss", "Loss", "Loss by step.", lines[:panels])
        return View("A view", [Section("Loss", figures=[figure])]).file("loss", "csv")

    name, content = kept(1)
    assert name == "loss.csv"
    assert content.decode().splitlines()[1:] == ["loss,0.0,2.0,,", "loss,1.0,0.0,,"]
    name, content = kept(2)
    assert name == "loss.zip"
    with zipfile.ZipFile(io.BytesIO(content)) as archive:
        assert archive.namelist() == ["loss-1.csv", "loss-2.csv"]
        assert archive.read("loss-2.csv").decode().splitlines()[-1] == "loss,1.0,1.0,,"
