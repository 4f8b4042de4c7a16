"""Serving: one address on this machine, until SIGINT or SIGTERM; and who may ask.

Only this machine's browser with the token of the opening URL is answered, under the server's own name. A page of
another site can send requests to a server on this machine. It has no token: the cookie is SameSite=Strict. It may have
made its own host name point here: names are checked. And it may not read what comes back: no CORS header is sent.

A page knows its server by a port and a token. Both stay in a file of the workspace that only this user can read, and
that is removed when the server ends in order. So the next server takes up the address of one that was killed, and open
pages go on.
"""

import asyncio
import contextlib
import errno
import hmac
import ipaddress
import os
import re
import secrets
import signal
import socket
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from urllib.parse import parse_qsl

import uvicorn
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from topicscope.explorer.app import Answer, Explorer, application
from topicscope.explorer.workspace import Workspace
from topicscope.ground import InputError, one_line

LOOPBACK = "127.0.0.1"
FAREWELL = 2  # seconds that open requests have at the end
MOST_CLIENTS = 100
LONGEST_BODY = 1_000_000  # bytes of a request
METHODS = ("GET", "HEAD", "POST")
HEADERS = {
    "content-security-policy": "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; "
    "connect-src 'self'; object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}
PORT_FILE = "server-"  # how the names of files begin; the port follows
TOKEN = re.compile(r"[\w-]{32}", re.ASCII)


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
        for number in (signal.SIGINT, signal.SIGTERM):
            asyncio.get_running_loop().add_signal_handler(number, self.handle_exit, number, None)
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
    token = (addresses and addresses.token(port)) or secrets.token_urlsafe(24)
    own = f"[{host}]" if ":" in host else host
    explorer = Explorer(workspace, answer, read_only=read_only)
    config = uvicorn.Config(
        Guard(application(explorer), token, port, {own, LOOPBACK, "localhost"} | names_of_machine(host)),
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
    listening = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET)
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
    """Whether only this machine can reach a server on this address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """Lets through what has the token and names this server; adds the headers that keep pages to themselves."""

    def __init__(self, app: ASGIApp, token: str, port: int, hosts: Iterable[str]) -> None:
        self.app, self.token, self.cookie = app, token, f"topicscope-{port}"
        self.hosts = {f"{host}:{port}" for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        headers = Headers(scope=scope)
        asked = dict(parse_qsl(scope["query_string"].decode("latin-1"))).get("token", "")
        cookie = cookie_parser(headers.get("cookie", "")).get(self.cookie, "")
        given = (asked, headers.get("authorization", "").removeprefix("Bearer "), cookie)

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                out = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    out.setdefault(name, value)
                if self.is_token(asked):
                    out.append("set-cookie", f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict")
            await send(message)

        refusal = self.refusal(scope["method"], headers, any(map(self.is_token, given)))
        await (refusal or self.app)(scope, receive, answer)

    def is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())

    def refusal(self, method: str, headers: Headers, known: bool) -> PlainTextResponse | None:
        origin, length = headers.get("origin"), headers.get("content-length", "0")
        bounded = length.isdecimal() and int(length) <= LONGEST_BODY and "transfer-encoding" not in headers
        elsewhere = origin is not None and origin.removeprefix("http://") not in self.hosts
        checks = (
            (headers.get("host", "") not in self.hosts, 421, "This server does not answer to that name."),
            (elsewhere, 403, "Requests from other pages are not answered."),
            (not known, 403, "Open the address that 'topicscope explore' printed: it has the token."),
            (method not in METHODS, 405, "Such requests are not answered."),
            (not bounded, 413, "Requests of this kind are not answered."),
        )
        for wrong, status, text in checks:
            if wrong:
                return PlainTextResponse(text, status, {"allow": ", ".join(METHODS)} if status == 405 else {})
        return None


class Addresses:
    """The addresses that are noted in `folder`, the explorer's own one in a workspace."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def ports(self) -> list[int]:
        with contextlib.suppress(OSError), os.scandir(self.folder) as inside:
            found = [entry for entry in inside if re.fullmatch(rf"{PORT_FILE}\d{{1,5}}", entry.name, re.ASCII)]
            newest = sorted(found, key=lambda entry: -entry.stat(follow_symlinks=False).st_mtime)
            return [int(entry.name.removeprefix(PORT_FILE)) for entry in newest]
        return []

    def token(self, port: int) -> str | None:
        """The token of a server that was killed on this port, unless its file was changed."""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            number = os.open(self.folder / f"{PORT_FILE}{port}", os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
            with open(number) as stream:
                about = os.fstat(number)
                if stat.S_ISREG(about.st_mode) and about.st_uid == os.getuid() and not about.st_mode & 0o077:
                    text = stream.read(100)
                    return text if TOKEN.fullmatch(text) else None
        return None

    @contextlib.contextmanager
    def kept(self, port: int, token: str) -> Iterator[None]:
        """Keep an address as long as this lasts, or for good after a kill. A full disk is no reason not to serve."""
        path = self.folder / f"{PORT_FILE}{port}"
        missing = [place for place in (self.folder, *self.folder.parents) if not place.exists()]
        with contextlib.suppress(OSError):
            self.folder.mkdir(parents=True, exist_ok=True)
            path.unlink(missing_ok=True)
            with open(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
                stream.write(token)
        try:
            yield
        finally:
            with contextlib.suppress(OSError):
                path.unlink()
                for place in missing:  # nothing is left behind where nothing was written
                    place.rmdir()
