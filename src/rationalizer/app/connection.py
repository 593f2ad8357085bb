"""A client's connection that does not wait for ever."""

from __future__ import annotations

import asyncio
from typing import Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from rationalizer.app.refusals import Refused


class Connection(H11Protocol):
    """uvicorn's, which has a limit for the pause between two requests only.

    Here a request must also be complete `seconds` after its first byte (the first one: after the connection was made),
    or it is answered 408 and the connection closed. Otherwise whoever sends a byte now and then holds it for ever.
    """

    def __init__(self, *args: Any, seconds: float, **options: Any) -> None:
        super().__init__(*args, **options)
        self._seconds = seconds
        self._deadline: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._watch()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        self._watch()

    def connection_lost(self, exc: Exception | None) -> None:
        self._unwatch()
        super().connection_lost(exc)

    def _watch(self) -> None:
        if self.conn.their_state not in (h11.IDLE, h11.SEND_BODY):
            self._unwatch()
        elif self._deadline is None:
            self._deadline = self.loop.call_later(self._seconds, self._give_up)

    def _unwatch(self) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
            self._deadline = None

    def _give_up(self) -> None:
        if self.conn.our_state not in (h11.IDLE, h11.SEND_RESPONSE):  # it has its answer, and still sends
            self.transport.abort()
            return
        problem = f"the request took more than {self._seconds:g} seconds to arrive"
        said = Refused(408, "body", problem, "send it faster, or in several requests").response()
        headers = [*said.raw_headers, (b"connection", b"close")]
        for event in (
            h11.Response(status_code=said.status_code, headers=headers, reason=b"Request Timeout"),
            h11.Data(data=bytes(said.body)),
            h11.EndOfMessage(),
        ):
            self.transport.write(self.conn.send(event) or b"")
        if self.cycle is not None:
            self.cycle.disconnected = True  # whatever waits for the rest must not answer, too
        self.transport.close()
