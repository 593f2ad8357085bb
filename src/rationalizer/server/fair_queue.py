"""Fair queueing: the client that has used the least compute goes first."""

from __future__ import annotations

from collections.abc import Hashable
from heapq import heappop, heappush
from itertools import count
from typing import Generic, TypeVar

Entry = TypeVar("Entry")


class LeastCostQueue(Generic[Entry]):
    """Entries ordered by the cost charged to them so far; a new entry starts at the level of the one charged last."""

    def __init__(self) -> None:
        self._heap: list[tuple[int, int, Entry]] = []
        self._number = count()  # breaks ties: first come, first served
        self._level = 0

    def __len__(self) -> int:
        return len(self._heap)

    def push(self, entry: Entry) -> None:
        heappush(self._heap, (self._level, next(self._number), entry))

    def peek(self) -> Entry:
        return self._heap[0][2]

    def charge(self, cost: int, *, remove: bool) -> None:
        """Charge the first entry, and remove it or queue it again."""
        self._level, _, entry = heappop(self._heap)
        if not remove:
            heappush(self._heap, (self._level + cost, next(self._number), entry))


class FairQueue(Generic[Entry]):
    """Fair among clients, and among the jobs of each client: neither many jobs nor a large one delay the others."""

    def __init__(self) -> None:
        self._clients: LeastCostQueue[Hashable] = LeastCostQueue()
        self._jobs: dict[Hashable, LeastCostQueue[Entry]] = {}

    def __bool__(self) -> bool:
        return bool(self._jobs)

    def push(self, client: Hashable, job: Entry) -> None:
        if client not in self._jobs:
            self._jobs[client] = LeastCostQueue()
            self._clients.push(client)
        self._jobs[client].push(job)

    def peek(self) -> Entry:
        return self._jobs[self._clients.peek()].peek()

    def charge(self, cost: int, *, remove: bool) -> None:
        """Charge the first job and its client; `remove` the job or queue it again."""
        client = self._clients.peek()
        jobs = self._jobs[client]
        jobs.charge(cost, remove=remove)
        self._clients.charge(cost, remove=not jobs)
        if not jobs:
            del self._jobs[client]
