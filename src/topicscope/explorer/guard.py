"""Who may ask: this machine's browser with the token of the opening URL, under the server's own name, and nobody else.

A page of another site can send requests to a server on this machine. It has no token: the cookie is SameSite=Strict. It
may have made its own host name point here: names are checked. And it may not read what comes back: no CORS header is
ever sent.
"""

import hmac
import secrets
from collections.abc import Iterable
from urllib.parse import parse_qsl

from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import cookie_parser
from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

LONGEST_BODY = 1_000_000  # bytes of a request
METHODS = ("GET", "HEAD", "POST")
POLICY = (
    "default-src 'self'; script-src 'self'; style-src 'self'; img-src 'self' data: blob:; connect-src 'self'; "
    "object-src 'none'; base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
)
HEADERS = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "cache-control": "no-store",
}


def new_token() -> str:
    return secrets.token_urlsafe(24)


class Guard:
    """Lets through what has the token and names this server; adds the headers that keep pages to themselves."""

    def __init__(self, app: ASGIApp, token: str, port: int, hosts: Iterable[str]) -> None:
        self.app, self.token, self.cookie = app, token, f"topicscope-{port}"
        self.hosts = {f"{host}:{port}" for host in hosts}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            if scope["type"] == "lifespan":
                await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        asked = dict(parse_qsl(scope["query_string"].decode("latin-1"))).get("token", "")
        given = (asked, headers.get("authorization", "").removeprefix("Bearer "), self.cookie_of(headers))

        async def answer(message: Message) -> None:
            if message["type"] == "http.response.start":
                out = MutableHeaders(scope=message)
                for name, value in HEADERS.items():
                    out.setdefault(name, value)
                if self.is_token(asked):
                    out.append("set-cookie", f"{self.cookie}={self.token}; Path=/; HttpOnly; SameSite=Strict")
            await send(message)

        refusal = self.refusal(scope["method"], headers, any(map(self.is_token, given)))
        await (self.app if refusal is None else refusal)(scope, receive, answer)

    def cookie_of(self, headers: Headers) -> str:
        return cookie_parser(headers.get("cookie", "")).get(self.cookie, "")

    def is_token(self, given: str) -> bool:
        return hmac.compare_digest(given.encode(), self.token.encode())

    def refusal(self, method: str, headers: Headers, known: bool) -> PlainTextResponse | None:
        """Why a request is not answered; None where it is."""
        origin = headers.get("origin")
        if headers.get("host", "") not in self.hosts:
            return PlainTextResponse("This server does not answer to that name.", 421)
        if origin is not None and origin.removeprefix("http://") not in self.hosts:
            return PlainTextResponse("Requests from other pages are not answered.", 403)
        if not known:
            return PlainTextResponse("Open the address that 'topicscope explore' printed: it has the token.", 403)
        if method not in METHODS:
            return PlainTextResponse("Such requests are not answered.", 405, headers={"allow": ", ".join(METHODS)})
        length = headers.get("content-length", "0")
        bounded = length.isdecimal() and int(length) <= LONGEST_BODY and "transfer-encoding" not in headers
        if not bounded:
            return PlainTextResponse("Requests of this kind are not answered.", 413)
        return None
