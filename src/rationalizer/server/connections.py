"""A client's connection that does not wait for ever."""

from __future__ import annotations

import asyncio
from typing import Any, Literal, cast

from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from rationalizer.server.http_errors import Refused

HEAD = 1 << 16  # bytes that may come before the head of a request is complete
GONE = "rationalizer.gone"  # among the extensions of a request's scope: whether the client has hung up


class Connection(HttpToolsProtocol):
    """uvicorn's, which has a limit for the pause between two requests only.

    Here a request must also be complete `seconds` after its first byte (the first one: after the connection was made),
    or it is answered 408 and the connection closed. Otherwise whoever sends a byte now and then holds it for ever. For
    the same reason its head must end.
    """

    def __init__(self, *args: Any, seconds: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self._seconds = seconds
        self._deadline: asyncio.TimerHandle | None = None
        self._arriving: Literal["head", "body", "nothing"] = "head"
        self._head = 0  # bytes of it so far

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._arriving == "nothing" and not self.cycle.response_complete:  # the model's time is its own
            self._unwatch()
            return
        self._watch()
        self._head = self._head + len(data) if self._arriving == "head" else 0
        if self._head > HEAD:
            self._close(431, f"the head of the request has more than {HEAD} bytes", "send fewer or shorter headers")

    def on_message_begin(self) -> None:
        self._arriving = "head"
        super().on_message_begin()

    def on_headers_complete(self) -> None:
        self._arriving = "body"
        super().on_headers_complete()
        cycle = self.cycle
        self.scope["extensions"] = cast(Any, {GONE: lambda: cycle.disconnected})

    def on_message_complete(self) -> None:
        self._arriving = "nothing"
        super().on_message_complete()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self._deadline is None:
            self._deadline = self.loop.call_later(self._seconds, self._give_up)

    def _unwatch(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        problem = f"the request took more than {self._seconds:g} seconds to arrive"
        self._close(408, problem, "send it faster, or in several requests")

    def _close(self, status: int, problem: str, remedy: str) -> None:
        if self.transport.is_closing():
            return
        if not self._may_answer():
            self.transport.abort()
            return
        said = Refused(status, "body", problem, remedy).response()
        headers = [b"%b: %b\r\n" % header for header in (*said.raw_headers, (b"connection", b"close"))]
        self.transport.write(b"".join([STATUS_LINE[status], *headers, b"\r\n", said.body]))
        if self.cycle is not None:
            self.cycle.disconnected = True  # whatever waits for the rest must not answer, too
        self.transport.close()

    def _may_answer(self) -> bool:
        """Not one that has its answer and still sends, nor one whose earlier request is being answered."""
        if self._arriving == "body":
            return not (self.cycle.response_started or self.pipeline)
        return self.cycle is None or self.cycle.response_complete
