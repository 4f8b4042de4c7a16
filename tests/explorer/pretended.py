"""A run that a test writes by hand, step by step, and a line to the server that can be cut."""

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from topicscope.ground import METRICS, folders
from topicscope.training import RunConfig
from topicscope.training.result import TRAIN

CONFIG = RunConfig.of(
    steps=1000,
    topic_model={"topics": 3, "words_per_topic": 2},
    data={"documents": 40, "dev_documents": 20},
    model={"embedding": "one-hot"},
    floors=False,
)


class PretendedRun:
    """What the folder of a run looks like while it is written; `write` adds steps."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.steps = folder, 0

    def write(self, count: int) -> None:
        lines = [json.dumps(self.row(step)) for step in range(self.steps, self.steps + count)]
        with (self.folder / METRICS).open("a") as stream:
            stream.write("\n".join(lines) + "\n")
        self.steps += count

    def row(self, step: int) -> dict[str, Any]:
        norms = {f"norm_{part}": 1.0 + step / 100 for part in ("key", "query", "value")}
        return {"step": step, "loss": 2.0 - step / 1000, **norms}


@contextmanager
def pretended_run(
    folder: Path, config: RunConfig = CONFIG, kind: type[PretendedRun] = PretendedRun
) -> Iterator[PretendedRun]:
    """It counts as running as long as the context lasts."""
    gone = suppress(FileNotFoundError)  # a test may have removed the folder
    with gone, folders.open_folder(folder, TRAIN, config.as_dict()) as home:
        run = kind(home.path)
        run.write(10)
        yield run


class Line:
    """Passes on what a browser and the server on `port` say to each other, until it is cut."""

    def __init__(self, port: int) -> None:
        self.to = port
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.open: list[socket.socket] = []
        self.is_cut = False
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self) -> None:
        with suppress(OSError):
            while True:
                here, _ = self.listening.accept()
                if self.is_cut:
                    here.close()
                    continue
                there = socket.create_connection(("127.0.0.1", self.to))
                self.open += [here, there]
                for one, other, is_browser in ((here, there, True), (there, here, False)):
                    threading.Thread(target=self.carry, args=(one, other, is_browser), daemon=True).start()

    def carry(self, one: socket.socket, other: socket.socket, is_browser: bool) -> None:
        """The browser names the port of this line, which the server would refuse: it gets its own."""
        mine, its = (f"127.0.0.1:{port}".encode() for port in (self.port, self.to))
        with suppress(OSError):
            while block := one.recv(65536):
                other.sendall(block.replace(mine, its) if is_browser else block)
        for end in (one, other):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def cut(self) -> None:
        self.is_cut = True
        for end in self.open:
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)

    def mend(self) -> None:
        self.is_cut = False

    def close(self) -> None:
        self.cut()
        with suppress(OSError):
            self.listening.shutdown(socket.SHUT_RDWR)  # wakes `accept`
        for end in (self.listening, *self.open):
            end.close()
