"""Requests that arrive together are answered together: many callers, one worker thread."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Busy(RuntimeError):
    """More is waiting than the queue may hold, or the server is stopping; try again later."""


@dataclass(frozen=True)
class _Job(Generic[Key, Item, Answer]):
    key: Key
    items: Sequence[Item]
    answers: asyncio.Future[list[Answer]]


class Batcher(Generic[Key, Item, Answer]):
    """Collects what callers submit for up to `max_wait` seconds and runs it at once, outside the event loop.

    Items of one call of `run` have the same key (the same model at the same budget). While a batch runs the
    next one gathers. Use it as `async with Batcher(...)`: on leaving, what was accepted is still answered.

    Args:
        run: answers items, in their order; called in one thread, never twice at the same time.
        max_batch: items after which collecting stops; a single submission may have more.
        max_wait: seconds a lone submission waits for others.
        capacity: items that may wait; beyond it `submit` raises `Busy`.
    """

    def __init__(
        self,
        run: Callable[[Key, Sequence[Item]], list[Answer]],
        *,
        max_batch: int = 64,
        max_wait: float = 0.005,
        capacity: int = 1024,
    ) -> None:
        self._run = run
        self._max_batch, self._max_wait, self._capacity = max_batch, max_wait, capacity
        self._queue: asyncio.Queue[_Job[Key, Item, Answer] | None] = asyncio.Queue()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._worker: asyncio.Task[None] | None = None
        self._open = False
        self.waiting = 0  # items accepted and not yet answered
        self.batches = 0  # calls of `run` so far

    async def __aenter__(self) -> Batcher[Key, Item, Answer]:
        self._open = True
        self._worker = asyncio.create_task(self._work())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._open = False
        self._queue.put_nowait(None)
        if self._worker is not None:
            await self._worker
        self._thread.shutdown()

    async def submit(self, key: Key, items: Sequence[Item]) -> list[Answer]:
        """The answers to the items. Raises what `run` raised for them, or `Busy` at once."""
        if not self._open:
            raise Busy("the server is stopping")
        if self.waiting and self.waiting + len(items) > self._capacity:
            raise Busy(f"{self.waiting} texts are waiting, and no more than {self._capacity} may")
        job = _Job(key, items, asyncio.get_running_loop().create_future())
        self.waiting += len(items)
        try:
            self._queue.put_nowait(job)
            return await job.answers
        finally:
            self.waiting -= len(items)

    async def _work(self) -> None:
        stopping = False
        while not stopping:
            jobs, stopping = await self._collect()
            groups: dict[Key, list[_Job[Key, Item, Answer]]] = {}
            for job in jobs:
                if not job.answers.cancelled():
                    groups.setdefault(job.key, []).append(job)
            for group in groups.values():
                await self._answer(group)

    async def _collect(self) -> tuple[list[_Job[Key, Item, Answer]], bool]:
        """The jobs of the next batch, and whether they are the last."""
        job = await self._queue.get()
        jobs: list[_Job[Key, Item, Answer]] = []
        count, deadline = 0, asyncio.get_running_loop().time() + self._max_wait
        while job is not None:
            jobs.append(job)
            count += len(job.items)
            if count >= self._max_batch:
                return jobs, False
            try:
                async with asyncio.timeout_at(deadline):
                    job = await self._queue.get()
            except TimeoutError:
                return jobs, False
        return jobs, True

    async def _answer(self, group: list[_Job[Key, Item, Answer]]) -> None:
        items = [item for job in group for item in job.items]
        self.batches += 1
        try:
            answers = await asyncio.get_running_loop().run_in_executor(self._thread, self._run, group[0].key, items)
        except Exception as error:
            if len(group) == 1:
                _settle(group[0], error)
                return
            for job in group:  # only the one at fault shall hear of it
                await self._answer([job])
            return
        start = 0
        for job in group:
            _settle(job, answers[start : start + len(job.items)])
            start += len(job.items)


def _settle(job: _Job[Key, Item, Answer], outcome: list[Answer] | Exception) -> None:
    if job.answers.done():  # its caller went away
        return
    if isinstance(outcome, Exception):
        job.answers.set_exception(outcome)
    else:
        job.answers.set_result(outcome)
