"""Batching: texts of many requests go through the model together, in one worker thread."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from rationalizer.server.fair_queue import FairQueue

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
Result = TypeVar("Result")
STOP_SECONDS = 5  # that the batch in progress may take on exit; all requests have been answered or cancelled by then

log = logging.getLogger("rationalizer")


class QueueFullError(RuntimeError):
    """The queue is full, or the server is stopping; try again later."""


@dataclass(eq=False)
class _Job(Generic[Key, Item, Result]):
    key: Key
    items: Sequence[Item]
    costs: Sequence[int]
    future: asyncio.Future[list[Result]]
    started: int = 0  # items that are in a batch already
    results: list[Result] = field(default_factory=list)

    def add_results(self, results: list[Result]) -> None:
        self.results += results
        if len(self.results) == len(self.items) and not self.future.done():
            self.future.set_result(self.results)

    def fail(self, error: Exception) -> None:
        if not self.future.done():  # the caller may have been cancelled
            self.future.set_exception(error)


_Parts = dict[_Job[Key, Item, Result], list[Item]]


class Batcher(Generic[Key, Item, Result]):
    """Run submitted items in batches outside the event loop; the next batch collects while one runs.

    Each batch takes items from all callers in turn (see `FairQueue`), so a small submission is in the next batch
    however much is waiting. Items of one call of `run` have the same key (model, budget and constraints). An exception
    affects only the job that caused it. Use as `async with Batcher(...)`: accepted items are still run on exit.

    Args:
        run: returns one result per item, in order; called in one thread, never concurrently.
        cost: estimated cost of an item.
        max_items: maximum number of items of a batch.
        max_cost: maximum cost of a batch; a single item may exceed it.
        capacity: maximum number of waiting items; beyond it `submit` raises `QueueFullError`.
        reserved: items that each client may have waiting even if the queue is full, so that one busy client cannot
            lock out the others.
        is_slow: whether items of a key may take long; a batch contains at most one such key.
        on_batch: called with the number of items of each call of `run`.
        on_end: called if the task that runs the batches fails; all waiting submissions have failed by then.
        on_hung: called if a batch is still running `STOP_SECONDS` after the exit.
    """

    def __init__(
        self,
        run: Callable[[Key, Sequence[Item]], list[Result]],
        *,
        cost: Callable[[Item], int] = lambda item: 1,
        max_items: int = 64,
        max_cost: int = 2048,
        capacity: int = 1024,
        reserved: int = 0,
        is_slow: Callable[[Key], bool] = lambda key: False,
        on_batch: Callable[[int], None] = lambda items: None,
        on_end: Callable[[], None] = lambda: None,
        on_hung: Callable[[], None] = lambda: None,
    ) -> None:
        self._run, self._cost, self._is_slow, self._on_batch = run, cost, is_slow, on_batch
        self._on_end, self._on_hung = on_end, on_hung
        self._max_items, self._max_cost, self._capacity, self._reserved = max_items, max_cost, capacity, reserved
        self._queue: FairQueue[_Job[Key, Item, Result]] = FairQueue()
        self._jobs: set[_Job[Key, Item, Result]] = set()  # accepted and not yet answered
        self._unanswered: Counter[Hashable] = Counter()  # their items, by client
        self._submitted = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._worker: asyncio.Task[None] | None = None
        self._closed = False

    @property
    def waiting(self) -> int:
        """The number of items accepted and not yet answered."""
        return self._unanswered.total()

    @property
    def is_running(self) -> bool:
        """Whether the task that runs the batches exists and has not ended."""
        return self._worker is not None and not self._worker.done()

    @property
    def is_full(self) -> bool:
        return self.waiting >= self._capacity

    async def __aenter__(self) -> Batcher[Key, Item, Result]:
        self._worker = asyncio.create_task(self._run_batches())
        self._worker.add_done_callback(self._handle_end)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._closed = True
        self._submitted.set()
        if self._worker is not None:
            await asyncio.wait([self._worker], timeout=STOP_SECONDS)
            if not self._worker.done():
                log.critical("a batch is still running %s seconds after the server stopped", STOP_SECONDS)
                self._on_hung()
                await asyncio.wait([self._worker])
        self._thread.shutdown()

    def _handle_end(self, worker: asyncio.Task[None]) -> None:
        if worker.cancelled() or (error := worker.exception()) is None:
            return
        log.critical("the task that runs the batches has ended", exc_info=error)
        for job in self._jobs:
            job.fail(_ended())
        self._on_end()

    async def submit(self, key: Key, items: Sequence[Item], client: Hashable = None) -> list[Result]:
        """Queue the items and wait until they are processed; return their results.

        Raises what `run` raised for them, or `QueueFullError` immediately. Cancel it to drop the items that are not in
        a batch yet.
        """
        if self._closed:
            raise QueueFullError("the server is stopping")
        if not self.is_running:
            raise _ended()
        waiting = self.waiting
        if waiting and waiting + len(items) > self._capacity and self._unanswered[client] + len(items) > self._reserved:
            raise QueueFullError(f"{waiting} texts are waiting, the maximum is {self._capacity}")
        # Everything that may fail for these items fails here, in the caller's task: an exception in the worker's task
        # would end it, and no request would be answered any more.
        hash(key)
        costs = list(map(self._cost, items))
        job = _Job(key, items, costs, asyncio.get_running_loop().create_future())
        self._queue.push(client, job)
        self._jobs.add(job)
        self._unanswered[client] += len(items)
        self._submitted.set()
        try:
            return await job.future
        finally:
            self._jobs.discard(job)
            self._unanswered[client] -= len(items)
            if not self._unanswered[client]:
                del self._unanswered[client]

    async def _run_batches(self) -> None:
        while True:
            await self._submitted.wait()
            self._submitted.clear()
            while self._queue:
                for key, parts in self._next_batch().items():
                    await self._run_parts(key, parts)
            if self._closed:
                return

    def _next_batch(self) -> dict[Key, _Parts[Key, Item, Result]]:
        """Return the items of the next batch, by key and job."""
        batch: dict[Key, _Parts[Key, Item, Result]] = {}
        items = total = 0
        while self._queue and items < self._max_items:
            job = self._queue.peek()
            if job.future.done():  # cancelled or failed
                self._queue.charge(0, remove=True)
                continue
            cost = job.costs[job.started]
            if items and total + cost > self._max_cost:
                break
            if job.key not in batch and self._is_slow(job.key) and any(map(self._is_slow, batch)):
                break
            batch.setdefault(job.key, {}).setdefault(job, []).append(job.items[job.started])
            job.started += 1
            self._queue.charge(cost, remove=job.started == len(job.items))
            items, total = items + 1, total + cost
        return batch

    async def _run_parts(self, key: Key, parts: _Parts[Key, Item, Result]) -> None:
        items = [item for part in parts.values() for item in part]
        try:
            self._on_batch(len(items))
            results = await asyncio.get_running_loop().run_in_executor(self._thread, self._run, key, items)
            if len(results) != len(items):
                raise RuntimeError(f"{len(items)} items have {len(results)} results")
        except Exception as error:
            if len(parts) == 1:
                next(iter(parts)).fail(error)
                return
            for job, part in parts.items():  # run each job alone: only the failing one gets the exception
                await self._run_parts(key, {job: part})
            return
        start = 0
        for job, part in parts.items():
            job.add_results(results[start : start + len(part)])
            start += len(part)


def _ended() -> RuntimeError:
    return RuntimeError("the task that runs the batches has ended")
