"""The server: its contract, who may ask, and that the answers are those of the commands."""

import json
import secrets
import signal
import socket
import stat
import subprocess
from html import escape
from itertools import product
from pathlib import Path
from typing import Any

import pytest
import typer

from tests.command import error_line, started, topicscope
from tests.explorer.serving import Served, explorer, start
from topicscope.cli import theory
from topicscope.cli.results import ASKED
from topicscope.explorer.app import FILLED_BY
from topicscope.explorer.server import Addresses, bound, names_of_machine
from topicscope.ground import InputError

pytestmark = pytest.mark.process


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_it_says_where_it_is_and_ends_with_zero(tmp_path: Path, number: int) -> None:
    given = ("explore", "--no-open", "--port", "0", "--json", "--workspace", str(tmp_path / "runs"))
    with started(*given, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        said = json.loads(process.stdout.readline())
        served = Served(process, said["url"], said["port"], Path(said["workspace"]))
        assert served.url == f"http://127.0.0.1:{served.port}/?token={served.token}"
        assert served.workspace == (tmp_path / "runs").resolve()
        assert len(served.token) >= 24
        assert served.ask("/")[0] == 200
        assert served.end(number) == 0


QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("theorem1", {"topics": 7, "words_per_topic": 3}),
    ("theorem2", {"topics": 10, "words_per_topic": 10}),
    ("theorem3", {"topics": 50, "words_per_topic": 20, "topics_per_document": 5, "convention": "paper"}),
    ("theorem5", {"topics": 50, "words_per_topic": 20, "topics_per_document": 5}),
    ("optimum", {"topics": 4, "words_per_topic": 3, "prior": "fixed", "topics_per_document": 2, "length": 30}),
    ("dynamics", {"topics": 5, "words_per_topic": 4, "topics_per_document": 2, "optimizer": "sgd", "lr": 4}),
]


@pytest.mark.parametrize(("name", "options"), QUESTIONS)
def test_answers_are_those_of_the_commands(served: Served, name: str, options: dict[str, Any]) -> None:
    flags = [part for key, value in options.items() for part in (f"--{key.replace('_', '-')}", str(value))]
    printed = topicscope("theory", name, *flags, "--json").stdout
    assert served.json(f"/api/theory/{name}", options) == json.loads(printed)


@pytest.mark.parametrize(
    ("name", "options", "words"),
    [
        ("theorem2", {"topics": 0}, "topics = 0: expected a number from 1"),
        ("theorem2", {"topics": "ten"}, "'--topics'"),
        ("theorem2", {"topic": 3}, "theorem2 has no option 'topic'"),
        ("theorem9", {}, "did you mean"),
        ("optimum", {"matrix": "/etc/passwd"}, "optimum has no option 'matrix'"),
        ("optimum", {"word_topics": "/etc/passwd"}, "no option 'word_topics'"),
        ("optimum", {"set_": "documents.kind=given"}, "no option 'set_'"),
        ("landscape", {"out": "/tmp/x"}, "no option 'out'"),
    ],
)
def test_bad_questions_get_one_line(served: Served, name: str, options: dict[str, Any], words: str) -> None:
    why = served.refusal(f"/api/theory/{name}", options)
    assert words in why
    assert "\n" not in why


def test_every_option_of_theory_is_known_to_be_safe_or_not() -> None:
    """A new option that names a file must not be taken; one that does not should be."""
    group: Any = typer.main.get_command(theory.app)
    options = {str(one.name) for command in group.commands.values() for one in command.params}
    files = {"matrix", "word_topics", "world_from", "words", "config", "set_", "out", "force", "given", "as_json"}
    assert options == ASKED | files


def test_nothing_is_answered_without_the_token(served: Served) -> None:
    for path in ("/", "/theory", "/static/plots.js", "/plotly.js", "/api/folders", "/api/theory/theorem2", "/nowhere"):
        assert served.ask(path, token=None)[0] == 403, path
        assert served.ask(path, token="x" * 32)[0] == 403, path
    assert served.ask("/", token=None, headers={"Cookie": f"topicscope-{served.port}=wrong"})[0] == 403


def test_the_token_of_the_address_becomes_a_cookie(served: Served) -> None:
    status, _, headers = served.ask("/", {"token": served.token}, token=None)
    assert status == 200
    cookie = headers["set-cookie"]
    assert cookie == f"topicscope-{served.port}={served.token}; Path=/; HttpOnly; SameSite=Strict"
    assert served.ask("/theory", token=None, headers={"Cookie": cookie.split(";")[0]})[0] == 200
    assert "set-cookie" not in served.ask("/theory")[2]


def test_other_names_of_the_host_and_other_origins_are_refused(served: Served) -> None:
    for host in ("example.org", "127.0.0.1", f"localhost.evil.org:{served.port}", "127.0.0.1:1", ""):
        assert served.ask("/", headers={"Host": host})[0] == 421, host
    for origin in ("http://example.org", "null", f"https://127.0.0.1:{served.port}", "http://127.0.0.1:1"):
        sent = {"Origin": origin}
        assert served.ask("/api/folders", headers=sent)[0] == 403, origin
        assert served.ask("/api/runs", method="POST", body={"settings": {}}, headers=sent)[0] == 403, origin
    assert served.ask("/api/folders", headers={"Origin": f"http://127.0.0.1:{served.port}"})[0] == 200


def test_every_answer_has_the_policy(served: Served) -> None:
    for path in ("/", "/static/plots.js", "/api/folders", "/nowhere"):
        _, _, headers = served.ask(path)
        assert headers["content-security-policy"].startswith("default-src 'self'; script-src 'self'; style-src 'self';")
        assert "unsafe" not in headers["content-security-policy"]
        assert headers["x-content-type-options"] == "nosniff"
        assert "access-control-allow-origin" not in headers


@pytest.mark.parametrize(
    "path",
    [
        *("/static/../page.py", "/static/%2e%2e/page.py", "/static/..%2fpage.py", "/explorer/../app.py"),
        *("/explorer/%2e%2e%2fapp.py", "/static//etc/passwd", "/api/live/..%2f../step/0"),
    ],
)
def test_paths_do_not_lead_out(served: Served, path: str) -> None:
    status, content, _ = served.ask(path)
    assert status in (400, 404)
    assert b"import" not in content
    assert b"root:" not in content


def test_only_json_of_a_bounded_size_is_taken(served: Served) -> None:
    text = {"Content-Type": "text/plain"}
    status, content, _ = served.ask("/api/runs", method="POST", body={"settings": {}}, headers=text)
    assert (status, json.loads(content)["error"]) == (400, "expected application/json")
    assert served.ask("/api/runs", method="POST", body={"settings": {"x": "y" * 1_100_000}})[0] == 413
    assert served.ask("/api/runs", method="POST", headers={"Transfer-Encoding": "chunked"})[0] == 413


def test_other_methods_are_not_allowed(served: Served) -> None:
    for path, method in product(("/api/runs", "/api/folders", "/"), ("DELETE", "PUT", "PATCH", "TRACE")):
        status, _, headers = served.ask(path, method=method)
        assert (status, headers["allow"]) == (405, "GET, HEAD, POST")
        assert served.ask(path, method=method, token=None)[0] == 403


def test_the_first_page_names_the_workspace(tmp_path: Path) -> None:
    with explorer(tmp_path / "<b>runs", str(tmp_path)) as served:
        page = served.ask("/")[1].decode()
    assert f"<code>{escape(str(served.workspace))}</code>" in page
    assert f"<code>{tmp_path.resolve()}</code>" in page  # and what else may be read
    assert "<b>runs" not in page


def test_rooms_name_the_command_that_fills_them(served: Served) -> None:
    assert {room: command.split(" --out")[0] for room, command in FILLED_BY.items()} == {
        "models": "topicscope probe MODEL --corpus TEXT", "maps": "topicscope sweep GRID.yaml",
        "time": "topicscope train --snapshots log",
    }  # fmt: skip
    for room, command in FILLED_BY.items():
        assert command.format(folder=served.workspace / "NAME") in served.ask(f"/{room}")[1].decode()


def test_a_port_that_is_taken_is_bad_input(served: Served, tmp_path: Path) -> None:
    options = ("--no-open", "--port", str(served.port), "--workspace", str(tmp_path / "x"))
    done = topicscope("explore", *options, code=2)
    assert f"cannot listen on 127.0.0.1:{served.port}" in error_line(done.stderr)
    with pytest.raises(InputError, match=r"choose another --host, such as 127\.0\.0\.1"):
        bound("192.0.2.1", 0)  # of no machine: RFC 5737


def test_a_folder_that_is_not_there_is_bad_input(tmp_path: Path) -> None:
    done = topicscope("explore", str(tmp_path / "none"), "--no-open", "--workspace", str(tmp_path / "x"), code=2)
    assert "is not a folder" in error_line(done.stderr)


def test_parts_of_theory_are_drawn_from_the_same_numbers(served: Served) -> None:
    status, content, _ = served.ask("/api/view/theory/theorems", {"topics": 4, "words_per_topic": 3})
    assert status == 200
    same = served.json("/api/theory/theorem2", {"topics": 4, "words_per_topic": 3})["same_topic"]
    assert f"{same:.7g}" in content.decode()
    assert "Not covered" in served.ask("/api/view/theory/theorems", {"overlap": 0.2})[1].decode()
    assert "unknown key 'topix'" in served.refusal("/api/view/theory/value", {"topix": 4})
    assert "greater than or equal to 1" in served.refusal("/api/view/theory/value", {"topics": 0})


def test_a_view_is_kept_as_a_page_and_as_files(served: Served) -> None:
    query = {"topics": 4, "words_per_topic": 3}
    status, page, headers = served.ask("/api/keep/theory", query)
    assert status == 200
    assert headers["content-disposition"] == 'attachment; filename="topicscope-theory.html"'
    assert page.startswith(b"<!doctype html>")
    assert b"Plotly" in page
    for form, start_bytes in (("png", b"\x89PNG"), ("svg", b"<?xml"), ("csv", b"PK")):
        assert served.ask(f"/api/keep/theory/optimum.{form}", query)[1].startswith(start_bytes)
    assert "there is no figure 'x'" in served.refusal("/api/keep/theory/x.png", query)
    assert "figures are kept as" in served.refusal("/api/keep/theory/optimum.exe", query)


def test_a_server_for_other_machines_answers_to_the_names_of_this_one() -> None:
    name = socket.gethostname()
    assert name in names_of_machine("0.0.0.0")
    assert names_of_machine("127.0.0.1") == set()
    assert "example.org" not in names_of_machine("0.0.0.0")


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
