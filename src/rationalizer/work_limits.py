"""How much time and memory the work on one request may take. Without a server there are no limits of time."""

from __future__ import annotations

import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from rationalizer.text.errors import InputError

MOST_ENTRIES = 2**28  # of the table of one constrained selection, in float64: 2 GiB
SEARCH_SECONDS = 0.5  # of one search: some patterns take exponential time


class TimeLimitError(InputError):
    """The work on a request takes too long."""


class RequestTime:
    """The seconds that the work on one request may take.

    Args:
        searches: for all patterns in all texts.
        batch: for one batch of its texts; nobody else is answered in the meantime.
        total: for all its batches.
    """

    def __init__(self, *, searches: float = math.inf, batch: float = math.inf, total: float = math.inf) -> None:
        self._searches, self._batch, self._total = searches, batch, total
        self._deadline = math.inf

    @contextmanager
    def use(self) -> Iterator[None]:
        """Limit the work of the block, in this thread."""
        started = time.perf_counter()
        self._deadline = started + min(self._batch, self._total)
        token = _request_time.set(self)
        try:
            yield
        finally:
            _request_time.reset(token)
            self._total -= time.perf_counter() - started

    @contextmanager
    def search(self) -> Iterator[float]:
        """Count the duration of the block as a search; yield the seconds that it may take."""
        started = time.perf_counter()
        try:
            yield min(self._searches, SEARCH_SECONDS)
        finally:
            self._searches -= time.perf_counter() - started

    def check(self) -> None:
        if time.perf_counter() > self._deadline:
            raise TimeLimitError(
                "these texts take too long under this budget and these constraints",
                "use a fixed share, fewer constraints, or fewer and shorter texts",
            )


_request_time: ContextVar[RequestTime | None] = ContextVar("request_time", default=None)
_most_entries: ContextVar[int] = ContextVar("most_entries", default=MOST_ENTRIES)


def request_time() -> RequestTime:
    """Return the limits of the request that this thread works on."""
    return _request_time.get() or RequestTime()


def check_time() -> None:
    """Raise `TimeLimitError` if the request that this thread works on has taken too long. Loops that may take long call
    it."""
    request_time().check()


def most_entries() -> int:
    """Return how many entries the table of one constrained selection may have."""
    return _most_entries.get()


@contextmanager
def limit_entries(most: int) -> Iterator[None]:
    """Limit the tables of constrained selections in the block, in this thread."""
    token = _most_entries.set(most)
    try:
        yield
    finally:
        _most_entries.reset(token)
