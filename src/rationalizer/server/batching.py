"""What many callers ask is answered in small batches, in fair turns, by one worker thread."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Hashable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from rationalizer.server.fair_queue import FairQueue

Key = TypeVar("Key", bound=Hashable)
Item = TypeVar("Item")
Answer = TypeVar("Answer")


class Busy(RuntimeError):
    """More is waiting than the queue may hold, or the server is stopping; try again later."""


class Gone(RuntimeError):
    """Nobody waits for the answers any more."""


@dataclass(eq=False)
class _Job(Generic[Key, Item, Answer]):
    key: Key
    items: Sequence[Item]
    done: asyncio.Future[list[Answer]]
    gone: Callable[[], bool]
    asked: int = 0  # items that a batch has taken
    answers: list[Answer] = field(default_factory=list)

    def settle(self, outcome: list[Answer] | Exception) -> None:
        if self.done.done():  # its caller went away
            return
        if isinstance(outcome, Exception):
            self.done.set_exception(outcome)
            return
        self.answers += outcome
        if len(self.answers) == len(self.items):
            self.done.set_result(self.answers)


class Batcher(Generic[Key, Item, Answer]):
    """Runs what callers submit, outside the event loop, a batch at a time; the next one gathers meanwhile.

    Each batch takes from all callers in turn (see `FairQueue`), so that a small submission is in the next batch
    however much is waiting. Items of one call of `run` have the same key (the same model at the same budget). Use it
    as `async with Batcher(...)`: on leaving, what was accepted is still answered.

    Args:
        run: answers items, in their order; called in one thread, never twice at the same time.
        size: how much work an item is.
        max_items: items of a batch.
        max_size: of a batch; a single item may be larger.
        capacity: items that may wait; beyond it `submit` raises `Busy`.
        share: items that a client may have waiting even so: one who asks much must not shut others out.
        ran: told the number of items of each call of `run`.
    """

    def __init__(
        self,
        run: Callable[[Key, Sequence[Item]], list[Answer]],
        *,
        size: Callable[[Item], int] = lambda item: 1,
        max_items: int = 64,
        max_size: int = 2048,
        capacity: int = 1024,
        share: int = 0,
        ran: Callable[[int], None] = lambda items: None,
    ) -> None:
        self._run, self._size, self._ran = run, size, ran
        self._max_items, self._max_size, self._capacity, self._share = max_items, max_size, capacity, share
        self._queue: FairQueue[_Job[Key, Item, Answer]] = FairQueue()
        self._held: Counter[Hashable] = Counter()  # items accepted and not yet answered, by client
        self._news = asyncio.Event()
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._worker: asyncio.Task[None] | None = None
        self.open = False

    @property
    def waiting(self) -> int:
        """Items accepted and not yet answered."""
        return self._held.total()

    @property
    def ready(self) -> bool:
        """Whether one more item would be accepted of anybody."""
        return self.open and self.waiting < self._capacity

    async def __aenter__(self) -> Batcher[Key, Item, Answer]:
        self.open = True
        self._worker = asyncio.create_task(self._work())
        return self

    async def __aexit__(self, *_: object) -> None:
        self.open = False
        self._news.set()
        if self._worker is not None:
            await self._worker
        self._thread.shutdown()

    async def submit(
        self,
        key: Key,
        items: Sequence[Item],
        client: Hashable = None,
        gone: Callable[[], bool] = lambda: False,
    ) -> list[Answer]:
        """The answers to the items. Raises what `run` raised for them; `Busy` at once; or `Gone`, where `gone` says so
        before the last of them was in a batch."""
        if not self.open:
            raise Busy("the server is stopping")
        waiting = self.waiting
        if waiting and waiting + len(items) > self._capacity and self._held[client] + len(items) > self._share:
            raise Busy(f"{waiting} texts are waiting, and no more than {self._capacity} may")
        job = _Job(key, items, asyncio.get_running_loop().create_future(), gone)
        self._held[client] += len(items)
        self._queue.join(client, job)
        self._news.set()
        try:
            return await job.done
        finally:
            self._held[client] -= len(items)
            if not self._held[client]:
                del self._held[client]

    async def _work(self) -> None:
        while True:
            await self._news.wait()
            self._news.clear()
            while self._queue:
                for key, parts in self._next_batch().items():
                    await self._answer(key, parts)
            if not self.open:
                return

    def _next_batch(self) -> dict[Key, dict[_Job[Key, Item, Answer], list[Item]]]:
        """Items of the next batch, by key and job."""
        batch: dict[Key, dict[_Job[Key, Item, Answer], list[Item]]] = {}
        items = size = 0
        while self._queue and items < self._max_items:
            job = self._queue.first()
            if job.gone():
                job.settle(Gone("nobody waits for the answer"))
            if job.done.done():  # its caller went away, or it failed
                self._queue.serve(0, stays=False)
                continue
            item = job.items[job.asked]
            cost = self._size(item)
            if items and size + cost > self._max_size:
                break
            job.asked += 1
            self._queue.serve(cost, stays=job.asked < len(job.items))
            batch.setdefault(job.key, {}).setdefault(job, []).append(item)
            items, size = items + 1, size + cost
        return batch

    async def _answer(self, key: Key, parts: dict[_Job[Key, Item, Answer], list[Item]]) -> None:
        items = [item for part in parts.values() for item in part]
        self._ran(len(items))
        try:
            answers = await asyncio.get_running_loop().run_in_executor(self._thread, self._run, key, items)
        except Exception as error:
            if len(parts) == 1:
                next(iter(parts)).settle(error)
                return
            for job, part in parts.items():  # only the one at fault shall hear of it
                await self._answer(key, {job: part})
            return
        start = 0
        for job, part in parts.items():
            job.settle(answers[start : start + len(part)])
            start += len(part)
