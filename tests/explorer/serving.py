"""An explorer that serves, and requests to it."""

import http.client
import json
import signal
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

from tests.command import Forked

SMALL = {
    "topic_model.topics": "3",
    "topic_model.words_per_topic": "2",
    "data.documents": "40",
    "data.dev_documents": "20",
    "batch_size": "5",
    "floors": "false",
    "device": "cpu",
}
LONG = {**SMALL, "steps": "1000000", "snapshots": "[0]", "evaluate_every": "null"}

PREDICTED: dict[str, Any] = {
    "topic_model": {"topics": 3, "words_per_topic": 2},
    "documents": {"kind": "fixed", "topics_per_document": 2, "length": "infinite"},
    "model": {"prediction_bias": "none"},
    "objective": {"loss": "squared"},
    "data": {"documents": 40, "dev_documents": 20},
    "optimizer": {"name": "sgd", "lr": 1.0},
    "floors": False,
}
"""A run whose stages theory predicts."""


@dataclass
class Served:
    process: Forked | subprocess.Popen[str]
    url: str
    port: int
    workspace: Path

    @property
    def token(self) -> str:
        return parse_qs(urlsplit(self.url).query)["token"][0]

    def ask(
        self,
        path: str,
        query: Mapping[str, Any] | None = None,
        *,
        method: str = "GET",
        body: Any = None,
        headers: Mapping[str, str] | None = None,
        token: str | None = "",
    ) -> tuple[int, bytes, dict[str, str]]:
        """Status, body and headers of an answer; the token goes along unless it is None."""
        sent = {"Host": f"127.0.0.1:{self.port}"}
        if token is not None:
            sent["Authorization"] = f"Bearer {token or self.token}"
        data = None
        if body is not None:
            data, sent["Content-Type"] = json.dumps(body).encode(), "application/json"
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        try:
            whole = f"{path}?{urlencode(query)}" if query else path
            connection.request(method, whole, data, sent | dict(headers or {}))
            response = connection.getresponse()
            return response.status, response.read(), {k.lower(): v for k, v in response.getheaders()}
        finally:
            connection.close()

    def json(self, path: str, query: Mapping[str, Any] | None = None, **how: Any) -> Any:
        status, content, _ = self.ask(path, query, **how)
        assert status == 200, content
        return json.loads(content)

    def refusal(self, path: str, query: Mapping[str, Any] | None = None, **how: Any) -> str:
        status, content, _ = self.ask(path, query, **how)
        assert status == 400, (status, content)
        return str(json.loads(content)["error"])

    def end(self, number: int = signal.SIGINT) -> int:
        self.process.send_signal(number)
        return self.process.wait(30)


def start(workspace: Path, *options: str) -> Served:
    process = Forked("explore", "--no-open", "--port", "0", "--json", "--workspace", str(workspace), *options)
    said = json.loads(process.first_line())
    return Served(process, said["url"], said["port"], Path(said["workspace"]))


@contextmanager
def explorer(workspace: Path, *options: str) -> Iterator[Served]:
    served = start(workspace, *options)
    try:
        yield served
    finally:
        if served.process.poll() is None:
            served.process.kill()
        served.process.wait()


def begin(served: Served, settings: dict[str, Any], name: str = "a run") -> str:
    started = served.json("/api/runs", method="POST", body={"settings": settings, "name": name})
    return str(started["id"])


def state(served: Served, identity: str) -> str:
    return next((str(one["state"]) for one in served.json("/api/folders") if one["id"] == identity), "none")


def events(served: Served, identity: str, most: int = 200) -> Iterator[dict[str, Any]]:
    with closing(http.client.HTTPConnection("127.0.0.1", served.port, timeout=60)) as connection:
        connection.request(
            "GET",
            f"/api/live/events?id={identity}",
            headers={"Host": f"127.0.0.1:{served.port}", "Authorization": f"Bearer {served.token}"},
        )
        response = connection.getresponse()
        assert response.getheader("content-type", "").startswith("text/event-stream")
        for line in response:
            if line.startswith(b"data: "):
                yield json.loads(line[6:])
                most -= 1
                if most == 0:
                    return
