"""Serving: one address on this machine, until SIGINT or SIGTERM."""

import asyncio
import contextlib
import errno
import ipaddress
import os
import signal
import socket
from collections.abc import Callable, Iterator, Sequence

import uvicorn

from topicscope.explorer.addresses import Addresses
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
    """Serve until a signal ends it. `ready` gets the URL, which has the token, and the port, once it answers.

    Where a server of the workspace was killed, its port (unless another one is asked for) and its token are taken up.
    Not so if others could have read the token on its way, or if this one may do less: `read_only` writes nothing.
    """
    keeps = is_loopback(host) and not read_only and hasattr(os, "getuid")
    addresses = Addresses(workspace.own) if keeps else None
    listening = first_free(host, [*addresses.ports(), 0] if addresses and port == 0 else [port])
    port = listening.getsockname()[1]
    token = (addresses and addresses.token(port)) or new_token()
    own = f"[{host}]" if ":" in host else host
    explorer = Explorer(workspace, answer, read_only=read_only)
    guard = Guard(application(explorer), token, port, {own, LOOPBACK, "localhost"} | names_of_machine(host))
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
    with addresses.kept(port, token) if addresses else contextlib.nullcontext():
        asyncio.run(Server(config, lambda: ready(url, port), explorer.end).serve([listening]))


def first_free(host: str, ports: Sequence[int]) -> socket.socket:
    *wanted, last = ports
    for port in wanted:
        with contextlib.suppress(InputError):
            return bound(host, port)
    return bound(host, last)


def bound(host: str, port: int) -> socket.socket:
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listening = socket.socket(family)
    listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        listening.bind((host, port))
        listening.listen()
    except (OSError, OverflowError) as error:
        listening.close()
        elsewhere = isinstance(error, socket.gaierror) or getattr(error, "errno", None) == errno.EADDRNOTAVAIL
        other = "--host, such as 127.0.0.1" if elsewhere else "--port, or 0 for a free one"
        raise InputError(f"cannot listen on {host}:{port}: {one_line(error)}; choose another {other}") from None
    return listening


def names_of_machine(host: str) -> set[str]:
    """What other machines call this one, where the server listens on all its addresses: its names and addresses."""
    if host not in ("0.0.0.0", "::"):
        return set()
    name = socket.gethostname()
    found = {name, socket.getfqdn()}
    with contextlib.suppress(OSError):
        found |= {str(info[4][0]) for info in socket.getaddrinfo(name, None)}
    with contextlib.suppress(OSError), socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as towards:
        towards.connect(("192.0.2.1", 9))  # sends nothing; says from which address it would be sent
        found.add(towards.getsockname()[0])
    return {f"[{one}]" if ":" in one else one for one in found}


def is_loopback(host: str) -> bool:
    """Whether only this machine can reach a server on this address.

    Args:
        host: A name or an address.

    Returns:
        True for 'localhost' and addresses that lead back to this machine; False for all others.

    Example:
        >>> is_loopback("localhost"), is_loopback("127.0.0.1"), is_loopback("0.0.0.0")
        (True, True, False)
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
