"""Around every request: a limit of its length, and headers that keep the browser to this server."""

from __future__ import annotations

from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rationalizer.app.requests import Refused

HEADERS = {
    # Nothing is loaded from elsewhere, and no script runs but the page's own, whatever a text holds.
    "Content-Security-Policy": "default-src 'none'; connect-src 'self'; script-src 'self'; "
    "style-src 'self' 'unsafe-inline'; img-src data:; frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}


class Guard:
    """ASGI middleware. A request of more than `limit` bytes is answered 413, whether or not it says how long it is,
    and never held in memory."""

    def __init__(self, app: ASGIApp, limit: int) -> None:
        self.app = app
        self.limit = limit

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        read = int(announced) if announced.isdigit() else 0
        problem = f"the request has more than {self.limit} bytes"
        refused = Refused(413, "body", problem, "send fewer or shorter texts at once")

        async def counted() -> Message:
            nonlocal read
            message = await receive()
            read += len(message.get("body", b""))
            if read > self.limit:
                raise refused
            return message

        async def headed(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(HEADERS)
            await send(message)

        async def unless_too_long(message: Message) -> None:
            if read <= self.limit:
                await headed(message)

        if read <= self.limit:
            read = 0
            try:
                await self.app(scope, counted, unless_too_long)
            except Refused:
                if read <= self.limit:
                    raise
        if read > self.limit:
            await refused.response()(scope, receive, headed)
