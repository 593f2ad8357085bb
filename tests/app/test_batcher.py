"""Many callers, one worker: nothing is lost, mixed up or blocked."""

import asyncio
import threading
import time

import pytest

from rationalizer.app.batcher import Batcher, Busy


class Recorder:
    """Doubles numbers, and remembers what it was asked together."""

    def __init__(self, seconds=0.0):
        self.calls = []
        self.threads = set()
        self.seconds = seconds

    def __call__(self, key, items):
        self.calls.append((key, list(items)))
        self.threads.add(threading.get_ident())
        time.sleep(self.seconds)
        if -1 in items:
            raise ValueError("minus one")
        return [2 * item for item in items]


def together(run, submissions, **options):
    async def main():
        async with Batcher(run, **options) as batcher:
            tasks = [asyncio.create_task(batcher.submit(*submission)) for submission in submissions]
            return await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)

    return asyncio.run(main())


def test_callers_get_their_own_answers_from_few_calls():
    run = Recorder()
    submissions = [("a", [k, k + 100]) for k in range(50)]
    assert together(run, submissions, max_batch=1000) == [[2 * k, 2 * k + 200] for k in range(50)]
    assert len(run.calls) == 1
    assert run.threads.isdisjoint({threading.get_ident()})


def test_keys_are_not_mixed():
    run = Recorder()
    answers = together(run, [(k % 3, [k]) for k in range(30)], max_batch=1000)
    assert answers == [[2 * k] for k in range(30)]
    assert sorted(key for key, _ in run.calls) == [0, 1, 2]
    assert all(item % 3 == key for key, items in run.calls for item in items)


def test_a_batch_is_no_larger_than_it_may_be():
    run = Recorder()
    together(run, [("a", [k]) for k in range(50)], max_batch=8)
    assert max(len(items) for _, items in run.calls) == 8
    assert sum(len(items) for _, items in run.calls) == 50


def test_only_the_caller_at_fault_hears_of_an_error():
    run = Recorder()
    answers = together(run, [("a", [1]), ("a", [-1]), ("a", [3])], max_batch=10)
    assert answers[0] == [2]
    assert answers[2] == [6]
    assert isinstance(answers[1], ValueError)


def test_a_full_queue_refuses_and_recovers():
    async def main():
        async with Batcher(Recorder(0.05), max_batch=1, capacity=3) as batcher:
            tasks = [asyncio.create_task(batcher.submit("a", [k])) for k in range(5)]
            answers = await asyncio.gather(*tasks, return_exceptions=True)
            return answers, await batcher.submit("a", [7]), batcher.waiting

    answers, later, waiting = asyncio.run(main())
    assert answers[:3] == [[0], [2], [4]]
    assert all(isinstance(answer, Busy) for answer in answers[3:])
    assert later == [14]
    assert waiting == 0


def test_what_was_accepted_is_answered_before_the_end():
    async def main():
        batcher = Batcher(Recorder(0.05), max_batch=1)
        async with batcher:
            tasks = [asyncio.create_task(batcher.submit("a", [k])) for k in range(4)]
            await asyncio.sleep(0.01)
        with pytest.raises(Busy, match="stopping"):
            await batcher.submit("a", [1])
        return await asyncio.gather(*tasks)

    assert asyncio.run(main()) == [[0], [2], [4], [6]]


def test_the_event_loop_stays_free_and_callers_may_leave():
    async def main():
        ticks = 0
        async with Batcher(Recorder(0.2)) as batcher:
            left = asyncio.create_task(batcher.submit("a", [1]))
            stayed = asyncio.create_task(batcher.submit("a", [2]))
            await asyncio.sleep(0.05)
            left.cancel()
            while not stayed.done():
                await asyncio.sleep(0.005)
                ticks += 1
            return ticks, stayed.result(), left.cancelled(), batcher.waiting

    ticks, answer, cancelled, waiting = asyncio.run(main())
    assert ticks > 5
    assert answer == [4]
    assert cancelled
    assert waiting == 0
