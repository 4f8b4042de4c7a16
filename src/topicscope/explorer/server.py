"""Serving: one address on this machine, until SIGINT or SIGTERM."""

import asyncio
import contextlib
import ipaddress
import signal
import socket
from collections.abc import Callable, Iterator

import uvicorn

from topicscope.explorer.app import Answer, Explorer, application
from topicscope.explorer.guard import Guard, new_token
from topicscope.explorer.workspace import Workspace
from topicscope.ground import InputError, one_line

LOOPBACK = "127.0.0.1"
FAREWELL = 2  # seconds that open requests have at the end
MOST_CLIENTS = 100


class Server(uvicorn.Server):
    """Says when it answers, and ends at a signal without raising it again."""

    def __init__(self, config: uvicorn.Config, ready: Callable[[], None], ending: Callable[[], None]) -> None:
        super().__init__(config)
        self.ready, self.ending = ready, ending

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        self.ready()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self.ending()  # streams would go on as long as somebody listens
        await super().shutdown(sockets)

    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM):
            loop.add_signal_handler(number, self.handle_exit, number, None)
        yield


def serve(
    workspace: Workspace,
    answer: Answer,
    ready: Callable[[str, int], None],
    *,
    host: str = LOOPBACK,
    port: int = 0,
    read_only: bool = False,
) -> None:
    """Serve until a signal ends it. `ready` gets the URL, which has the token, and the port, once it answers."""
    listening = bound(host, port)
    port = listening.getsockname()[1]
    token = new_token()
    own = f"[{host}]" if ":" in host else host
    explorer = Explorer(workspace, answer, read_only=read_only)
    guard = Guard(application(explorer), token, port, {own, LOOPBACK, "localhost"})
    config = uvicorn.Config(
        guard,
        log_level="warning",
        access_log=False,
        server_header=False,
        lifespan="off",
        timeout_graceful_shutdown=FAREWELL,
        limit_concurrency=MOST_CLIENTS,
    )
    url = f"http://{own}:{port}/?token={token}"
    asyncio.run(Server(config, lambda: ready(url, port), explorer.end).serve([listening]))


def bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()
    except (OSError, OverflowError) as error:
        raise InputError(
            f"cannot listen on {host}:{port}: {one_line(error)}; choose another --port, or 0 for a free one"
        ) from None
    return listening


def is_loopback(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
