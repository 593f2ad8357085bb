"""Around every request: who may ask, how long it may be, what is said when it fails, and what is noted of it."""

from __future__ import annotations

import asyncio
import logging
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rationalizer.server.access import Door
from rationalizer.server.http_errors import Refused
from rationalizer.server.monitoring import SECONDS, Metrics

HEADERS = (
    # Nothing is loaded from elsewhere, and no script runs but the page's own, whatever a text holds.
    (
        b"content-security-policy",
        b"default-src 'none'; connect-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data:; "
        b"frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
ARRIVING = 16  # the longest requests that may be arriving at the same time

log = logging.getLogger("rationalizer")
access_log = logging.getLogger("rationalizer.access")


class Guard:
    """ASGI middleware.

    Args:
        app: what answers.
        door: who may come in.
        limit: bytes of a request. A longer one is answered 413, whether or not it says how long it is, and not read.
        metrics: where requests are counted.
    """

    def __init__(self, app: ASGIApp, *, door: Door, limit: int, metrics: Metrics) -> None:
        self.app = app
        self.door, self.limit, self.metrics = door, limit, metrics
        self._arrived = 0  # bytes of all requests that are not complete yet

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = perf_counter(), 0
        # Whoever asks for the head of an answer gets that of a GET; uvicorn leaves out the rest.
        asked = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope

        async def headed(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *HEADERS]
            await send(message)

        async def refuse(*reason: str, code: int) -> None:
            if not status:
                await Refused(code, *reason).response()(scope, receive, headed)

        try:
            self.door.check(scope)
            body = await self._body(scope, receive)
            await self.app(asked, _again(body, receive), headed)
        except Refused as refused:
            await refused.response()(scope, receive, headed)
        except asyncio.CancelledError:  # the server stops, and has waited as long as it may
            await refuse("body", "the server is stopping", "try again in a second", code=503)
        except Exception:
            log.exception("%s %s failed", scope["method"], _path(scope))
            await refuse("body", "the server failed on this request", "report it with the server's log", code=500)
        finally:
            self._note(scope, status, perf_counter() - start)

    async def _body(self, scope: Scope, receive: Receive) -> bytes:
        announced = dict(scope["headers"]).get(b"content-length", b"0")
        if announced.isdigit() and int(announced[:20]) > self.limit:
            raise self._too_long()
        body = bytearray()
        more = True
        try:
            while more:
                message = await receive()
                if message["type"] == "http.disconnect":
                    raise Refused(408, "body", "the request ended before it was complete", "send it again")
                part = message.get("body", b"")
                more = message.get("more_body", False)
                body += part
                self._arrived += len(part)
                if len(body) > self.limit:
                    raise self._too_long()
                if self._arrived > ARRIVING * self.limit:
                    raise Refused(503, "body", "too many long requests are arriving", "try again in a second")
        finally:
            self._arrived -= len(body)
        return bytes(body)

    def _too_long(self) -> Refused:
        problem = f"the request has more than {self.limit} bytes"
        return Refused(413, "body", problem, "send fewer or shorter texts at once")

    def _note(self, scope: Scope, status: int, seconds: float) -> None:
        self.metrics.request(scope["path"], status)
        if scope["method"] == "POST" and status == 200:
            self.metrics.observe(SECONDS, seconds)
        host = scope["client"][0] if scope.get("client") else "-"
        access_log.info("%s %s %s %d %.1f ms", host, scope["method"], _path(scope), status, 1e3 * seconds)


def _path(scope: Scope) -> str:
    """As it was sent, percent signs and all: a line break in it must not begin a new line of a log."""
    return bytes(scope.get("raw_path") or scope["path"].encode("unicode_escape")).decode("latin-1")


def _again(body: bytes, receive: Receive) -> Receive:
    """What has been received already, then whatever comes."""
    given = False

    async def next_message() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return next_message
