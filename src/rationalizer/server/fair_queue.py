"""Whose turn it is: the one who had least so far, so that a little need not wait for a lot."""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

Thing = TypeVar("Thing")


class Turns(Generic[Thing]):
    """Things that take turns by what they have had so far; one that joins is level with the one served last."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Thing]] = []
        self._number = count()  # of two that had the same, the one that came earlier is first
        self._level = 0

    def __len__(self) -> int:
        return len(self._heap)

    def join(self, thing: Thing) -> None:
        heappush(self._heap, (self._level, next(self._number), thing))

    def first(self) -> Thing:
        return self._heap[0][2]

    def serve(self, cost: int, *, stays: bool) -> None:
        """The first one has its turn, and then waits for another or leaves."""
        self._level, _, thing = heappop(self._heap)
        if stays:
            heappush(self._heap, (self._level + cost, next(self._number), thing))


class FairQueue(Generic[Thing]):
    """Clients take turns, and so do the jobs of each: neither many jobs nor a large one keep others out."""

    def __init__(self) -> None:
        self._clients: Turns[Hashable] = Turns()
        self._jobs: dict[Hashable, Turns[Thing]] = {}

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def join(self, client: Hashable, job: Thing) -> None:
        if client not in self._jobs:
            self._jobs[client] = Turns()
            self._clients.join(client)
        self._jobs[client].join(job)

    def first(self) -> Thing:
        return self._jobs[self._clients.first()].first()

    def serve(self, cost: int, *, stays: bool) -> None:
        """As of `Turns`, for the first job of the first client."""
        client = self._clients.first()
        jobs = self._jobs[client]
        jobs.serve(cost, stays=stays)
        self._clients.serve(cost, stays=bool(jobs))
        if not jobs:
            del self._jobs[client]
