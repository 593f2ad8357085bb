"""An HTTP connection with a deadline for the arrival of each request."""

from __future__ import annotations

import asyncio
from typing import Any, Literal

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from rationalizer.server.http_errors import RequestError

MAX_HEAD_BYTES = 1 << 16  # of a request line and its headers


class DeadlineProtocol(HttpToolsProtocol):
    """uvicorn's HTTP protocol, with a deadline for requests and a maximum size of their heads.

    uvicorn's own timeout (`timeout_keep_alive`) covers only the pause between two requests, and its maximum head size
    only the slower parser h11: a client that sends a byte now and then would keep its connection forever. Here a
    request must be complete `seconds` after its first byte (the first request: after the connection was made),
    otherwise it is answered 408 and the connection is closed.
    """

    def __init__(self, *args: Any, seconds: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self._seconds = seconds
        self._deadline: asyncio.TimerHandle | None = None
        self._arriving: Literal["head", "body", "nothing"] = "head"
        self._head_bytes = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._start_deadline()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._arriving == "nothing" and not self.cycle.response_complete:
            self._cancel_deadline()  # the request is complete; its answer may take any time
            return
        self._start_deadline()
        self._head_bytes = self._head_bytes + len(data) if self._arriving == "head" else 0
        if self._head_bytes > MAX_HEAD_BYTES:
            problem = f"the head of the request has more than {MAX_HEAD_BYTES} bytes"
            self._close(431, problem, "send fewer or shorter headers")

    def on_message_begin(self) -> None:
        self._arriving = "head"
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._arriving = "body"
        super().on_headers_complete()

    def on_message_complete(self) -> None:
        self._arriving = "nothing"
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._cancel_deadline()
        super().connection_lost(exc)

    def _start_deadline(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self._seconds, self._time_out)

    def _cancel_deadline(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _time_out(self) -> None:
        problem = f"the request took more than {self._seconds:g} seconds to arrive"
        self._close(408, problem, "send it faster, or in several requests")

    def _close(self, status: int, problem: str, remedy: str) -> None:
        if self.transport.is_closing():
            return
        if not self._can_answer():
            self.transport.abort()
            return
        response = RequestError(status, "body", problem, remedy).response()
        headers = [b"%b: %b\r\n" % header for header in (*response.raw_headers, (b"connection", b"close"))]
        self.transport.write(b"".join([STATUS_LINE[status], *headers, b"\r\n", response.body]))
        if self.cycle is not None:
            self.cycle.disconnected = True  # the application must not answer as well
        self.transport.close()

    def _can_answer(self) -> bool:
        """Return False if this request is answered already, or an earlier one is being answered."""
        if self._arriving == "body":
            return not (self.cycle.response_started or self.pipeline)
        return self.cycle is None or self.cycle.response_complete
