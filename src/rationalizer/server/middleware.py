"""Middleware around every request: access control, size limit, error responses, metrics and the access log."""

from __future__ import annotations

import asyncio
import logging
import secrets
from time import perf_counter

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from rationalizer.server.access import AccessControl
from rationalizer.server.http_errors import RequestError
from rationalizer.server.monitoring import Metrics

SECURITY_HEADERS = (
    # The page loads nothing from other servers and runs no script but its own, whatever a text contains.
    (
        b"content-security-policy",
        b"default-src 'none'; connect-src 'self'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src data:; "
        b"frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
MAX_ARRIVING = 16  # requests of the maximum size that may arrive at the same time

log = logging.getLogger("rationalizer")
access_log = logging.getLogger("rationalizer.access")


class RequestMiddleware:
    """ASGI middleware.

    Args:
        app: the application.
        access: the access control.
        max_bytes: maximum size of a request. A larger one is answered 413 without reading it, with or without the
            header Content-Length.
        metrics: the metrics to update.
    """

    def __init__(self, app: ASGIApp, *, access: AccessControl, max_bytes: int, metrics: Metrics) -> None:
        self.app = app
        self.access, self.max_bytes, self.metrics = access, max_bytes, metrics
        self.arriving = 0  # bytes of all incomplete requests

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        start, status = perf_counter(), 0
        # HEAD is answered as GET; uvicorn leaves out the body.
        inner_scope = {**scope, "method": "GET"} if scope["method"] == "HEAD" else scope

        async def send_with_headers(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message["headers"], *SECURITY_HEADERS]
            await send(message)

        async def send_error(error: RequestError) -> None:
            if not status:
                await error.response()(scope, receive, send_with_headers)

        body = _BoundedBody(receive, self)
        try:
            await self.access.check(scope)
            length = dict(scope["headers"]).get(b"content-length", b"0")
            self.check_size(int(length[:20]) if length.isdigit() else 0)
            await self.app(inner_scope, body.receive, send_with_headers)
        except RequestError as error:
            await send_error(error)
        except asyncio.CancelledError:  # the server is stopping, and the time for graceful shutdown is over
            await send_error(RequestError(503, "body", "the server is stopping", "try again in a second"))
        except Exception:
            error_id = secrets.token_hex(4)
            log.exception("%s %s failed (error %s)", scope["method"], _raw_path(scope), error_id)
            problem = f"the server failed on this request (error {error_id})"
            remedy = "give this number to the operator, who finds the reason in the log"
            await send_error(RequestError(500, "body", problem, remedy))
        finally:
            self.arriving -= body.arrived
            self._record(scope, status, perf_counter() - start)

    def check_size(self, size: int) -> None:
        if size > self.max_bytes:
            problem = f"the request has more than {self.max_bytes} bytes"
            raise RequestError(413, "body", problem, "send fewer or shorter texts per request")
        if self.arriving > MAX_ARRIVING * self.max_bytes:
            raise RequestError(503, "body", "too many large requests are arriving", "try again in a second")

    def _record(self, scope: Scope, status: int, seconds: float) -> None:
        self.metrics.count_request(scope["path"], status)
        if scope["method"] == "POST" and status == 200:
            self.metrics.seconds.observe(seconds)
        client = scope["client"][0] if scope.get("client") else "-"
        access_log.info("%s %s %s %d %.1f ms", client, scope["method"], _raw_path(scope), status, 1e3 * seconds)


def _raw_path(scope: Scope) -> str:
    """Return the path with its percent escapes: a line break in it must not start a new line of the log.

    Some versions of Starlette's test client add the query.
    """
    return bytes(scope.get("raw_path") or scope["path"].encode("unicode_escape")).decode("latin-1").partition("?")[0]


class _BoundedBody:
    """The body of a request. Its size is checked while it arrives."""

    def __init__(self, receive: Receive, middleware: RequestMiddleware) -> None:
        self._receive, self._middleware = receive, middleware
        self.arrived, self._complete = 0, False  # bytes of an incomplete body

    async def receive(self) -> Message:
        message = await self._receive()
        if not self._complete:
            if message["type"] == "http.disconnect":
                raise RequestError(408, "body", "the request ended before it was complete", "send it again")
            size = len(message.get("body", b""))
            self.arrived += size
            self._middleware.arriving += size
            self._middleware.check_size(self.arrived)
            if not message.get("more_body", False):
                self._complete = True
                self._middleware.arriving -= self.arrived
                self.arrived = 0
        return message
