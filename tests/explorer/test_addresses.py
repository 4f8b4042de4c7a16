"""A server that was killed: the next one in its workspace answers at the same address. One that ended does not."""

from __future__ import annotations

import secrets
import signal
import stat
from pathlib import Path

import pytest

from tests.explorer.serving import explorer, start
from topicscope.explorer.server import Addresses

TOKEN = secrets.token_urlsafe(24)


def test_an_address_is_for_this_user_alone_and_gone_when_the_server_ends(tmp_path: Path) -> None:
    kept = Addresses(tmp_path / "runs" / ".explorer")
    with kept.kept(8000, TOKEN):
        (file,) = kept.folder.iterdir()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert (kept.ports(), kept.token(8000), kept.token(8001)) == ([8000], TOKEN, None)
    assert (kept.ports(), kept.token(8000)) == ([], None)
    assert not (tmp_path / "runs").exists()  # nothing was written there


def test_what_others_have_written_is_left(tmp_path: Path) -> None:
    kept = Addresses(tmp_path / "runs" / ".explorer")
    with kept.kept(8000, TOKEN):
        (kept.folder / "a.log").touch()
    assert [path.name for path in kept.folder.iterdir()] == ["a.log"]


@pytest.mark.parametrize("how", ["readable", "link", "folder", "short", "markup", "long", "binary"])
def test_a_token_that_is_not_as_it_was_made_is_not_believed(tmp_path: Path, how: str) -> None:
    file = tmp_path / "server-8000"
    content = {"short": "x", "markup": "<" * 32, "long": "x" * 200}.get(how, TOKEN)
    target = tmp_path / "elsewhere" if how == "link" else file
    if how == "folder":
        file.mkdir()
    else:
        target.touch(0o600)
        target.write_bytes(b"\xff" * 32 if how == "binary" else content.encode())
    if how == "link":
        file.symlink_to(target)
    if how == "readable":
        file.chmod(0o640)
    assert Addresses(tmp_path).token(8000) is None
    with Addresses(tmp_path).kept(8001, TOKEN):
        assert Addresses(tmp_path).token(8001) == TOKEN


def test_a_folder_that_cannot_be_written_is_no_reason_not_to_serve(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with Addresses(tmp_path / "file" / "x").kept(8000, TOKEN):
        pass


pytestmark = pytest.mark.process


def test_the_next_server_after_a_kill_has_its_address(tmp_path: Path) -> None:
    with explorer(tmp_path / "runs") as first:
        with explorer(tmp_path / "runs") as second:  # as long as the first goes on
            assert second.port != first.port
            assert second.token != first.token
            assert second.end(signal.SIGTERM) == 0
        first.process.send_signal(signal.SIGKILL)
        first.process.wait()
    with explorer(tmp_path / "runs", "--read-only") as other:
        assert other.token != first.token
        assert other.end() == 0
    with explorer(tmp_path / "elsewhere", "--port", str(first.port)) as other:
        assert (other.port, other.token != first.token) == (first.port, True)
        assert other.end() == 0
    with explorer(tmp_path / "runs") as third:
        assert third.url == first.url
        assert third.ask("/api/folders")[0] == 200
        assert third.end() == 0
    fourth = start(tmp_path / "runs")  # the third has ended in order
    assert fourth.token != first.token
    assert fourth.end() == 0
