"""What all handlers of requests share."""

from collections.abc import Callable
from typing import Any

import anyio.to_thread
from starlette.requests import Request

from topicscope.ground import InputError, parse_json, refuse


async def in_thread(work: Callable[[], Any]) -> Any:
    """Computation, beside which the server goes on answering."""
    return await anyio.to_thread.run_sync(work)


async def json_body(request: Request) -> dict[str, Any]:
    """What a page sends. Only JSON is taken, which a form of another site cannot send."""
    refuse((request.headers.get("content-type") != "application/json", "expected application/json"))
    body = parse_json(await request.body(), "the request")
    return body if isinstance(body, dict) else {}


def plain_query(request: Request) -> dict[str, str]:
    """The query but for the token."""
    return {name: text for name, text in request.query_params.items() if name != "token"}


def whole_number(text: str | None) -> int | None:
    """Of a query; None where it is not given."""
    if text is None or text == "":
        return None
    if not text.isdecimal() or len(text) > 12:
        raise InputError("expected a whole number")
    return int(text)
