"""Many callers, one worker thread: no item is lost, mixed up or blocked."""

import asyncio
import threading
import time

import pytest

from rationalizer.server import batching
from rationalizer.server.batching import Batcher, QueueFullError
from rationalizer.server.fair_queue import FairQueue


class Recorder:
    """Doubles numbers, and records its calls."""

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


def submit_all(run, submissions, **options):
    async def main():
        async with Batcher(run, **options) as batcher:
            tasks = [asyncio.create_task(batcher.submit(*submission)) for submission in submissions]
            return await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)

    return asyncio.run(main())


def test_callers_share_a_call_and_get_their_own_answers():
    run = Recorder()
    submissions = [("a", [k, k + 100]) for k in range(50)]
    assert submit_all(run, submissions, max_items=1000) == [[2 * k, 2 * k + 200] for k in range(50)]
    assert len(run.calls) == 1
    assert run.threads.isdisjoint({threading.get_ident()})


def test_keys_are_not_mixed():
    run = Recorder()
    answers = submit_all(run, [(k % 3, [k]) for k in range(30)], max_items=1000)
    assert answers == [[2 * k] for k in range(30)]
    assert sorted(key for key, _ in run.calls) == [0, 1, 2]
    assert all(item % 3 == key for key, items in run.calls for item in items)


def test_a_batch_has_one_slow_key_at_most():
    """Each of them may take a second: between two of them another client has its turn."""
    run = Recorder(seconds=0.1)

    async def main():
        async with Batcher(run, is_slow=lambda key: key.startswith("slow")) as batcher:
            first = [asyncio.create_task(batcher.submit(f"slow{k}", [k], "first")) for k in range(5)]
            while not run.calls:
                await asyncio.sleep(0.001)
            await batcher.submit("b", [7], "second")
            await asyncio.gather(*first)

    asyncio.run(main())
    order = [key for key, _ in run.calls]
    assert sorted(order) == ["b", *(f"slow{k}" for k in range(5))]
    assert order.index("b") <= 2


def test_maximum_number_of_items():
    run = Recorder()
    submit_all(run, [("a", [k]) for k in range(50)], max_items=8)
    assert max(len(items) for _, items in run.calls) == 8
    assert sum(len(items) for _, items in run.calls) == 50


def test_maximum_cost_of_a_batch():
    run = Recorder()
    submit_all(run, [("a", [30, 30, 30, 200, 30]), ("a", [1] * 20)], cost=lambda item: item, max_cost=100)
    assert all(sum(items) <= 100 or items == [200] for _, items in run.calls)
    assert sorted(item for _, items in run.calls for item in items) == sorted([30, 30, 30, 200, 30] + [1] * 20)


@pytest.mark.parametrize("clients", [("many", "few"), ("same", "same")])
def test_small_submission_is_in_the_next_batch(clients):
    """Also if both come from one address, as behind a proxy."""
    many, few = clients
    batches = []

    async def main():
        def run(key, items):
            batches.append(set(items))
            time.sleep(0.01)
            return list(items)

        async with Batcher(run, cost=lambda item: 100, max_cost=800) as batcher:
            large = [asyncio.create_task(batcher.submit("a", ["large"] * 64, many)) for _ in range(5)]
            while len(batches) < 3:
                await asyncio.sleep(0.001)
            before = len(batches)
            small = [asyncio.create_task(batcher.submit("a", [f"small {k}"], few)) for k in range(4)]
            await asyncio.gather(*small)
            waiting = batcher.waiting
            await asyncio.gather(*large)
        return before, waiting

    before, waiting = asyncio.run(main())
    assert waiting == 5 * 64
    assert {"small 0", "small 1", "small 2", "small 3"} <= set.union(*batches[before : before + 2])


def test_client_with_many_requests_gets_the_same_share():
    served = []

    async def main():
        def run(key, items):
            served.extend(items)
            return list(items)

        async with Batcher(run, max_items=10, capacity=5000) as batcher:
            tasks = [asyncio.create_task(batcher.submit("a", ["many"] * 64, "many")) for _ in range(20)]
            tasks.append(asyncio.create_task(batcher.submit("a", ["one"] * 64, "one")))
            await asyncio.gather(*tasks)

    asyncio.run(main())
    last = max(k for k, client in enumerate(served) if client == "one")
    assert last < 130


def test_busy_client_cannot_lock_out_others():
    async def main():
        async with Batcher(Recorder(0.02), max_items=1, capacity=4, reserved=2) as batcher:
            tasks = [asyncio.create_task(batcher.submit("a", [k], "many")) for k in range(6)]
            await asyncio.sleep(0)
            assert batcher.is_full
            tasks.append(asyncio.create_task(batcher.submit("a", [7, 8], "other")))
            return await asyncio.gather(*tasks, return_exceptions=True)

    *many, other = asyncio.run(main())
    assert many[:4] == [[0], [2], [4], [6]]
    assert all(isinstance(answer, QueueFullError) for answer in many[4:])
    assert other == [14, 16]


def test_only_the_failing_job_gets_the_exception():
    run = Recorder()
    answers = submit_all(run, [("a", [1]), ("a", [-1]), ("a", [3])], max_items=10)
    assert answers[0] == [2]
    assert answers[2] == [6]
    assert isinstance(answers[1], ValueError)


def test_failed_submission_is_not_continued():
    run = Recorder()
    answers = submit_all(run, [("a", [-1] * 50)], max_items=5)
    assert isinstance(answers[0], ValueError)
    assert len(run.calls) == 1


def test_full_queue_rejects_and_recovers():
    async def main():
        async with Batcher(Recorder(0.05), max_items=1, capacity=3) as batcher:
            tasks = [asyncio.create_task(batcher.submit("a", [k])) for k in range(5)]
            answers = await asyncio.gather(*tasks, return_exceptions=True)
            return answers, await batcher.submit("a", [7]), batcher.waiting

    answers, later, waiting = asyncio.run(main())
    assert answers[:3] == [[0], [2], [4]]
    assert all(isinstance(answer, QueueFullError) for answer in answers[3:])
    assert later == [14]
    assert waiting == 0


def test_accepted_items_are_run_before_exit():
    async def main():
        batcher = Batcher(Recorder(0.05), max_items=1)
        async with batcher:
            tasks = [asyncio.create_task(batcher.submit("a", [k])) for k in range(4)]
            await asyncio.sleep(0.01)
        with pytest.raises(QueueFullError, match="stopping"):
            await batcher.submit("a", [1])
        return await asyncio.gather(*tasks)

    assert asyncio.run(main()) == [[0], [2], [4], [6]]


def test_event_loop_stays_free_and_callers_can_be_cancelled():
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


def test_worker_survives_any_exception_of_a_job():
    """Of the key, the cost, the run, the callback, or a wrong number of results."""

    def cost(item):
        if item == "cost":
            raise KeyError(item)
        return 1

    def on_batch(items):
        if items == 5:
            raise OSError("on_batch")

    def run(key, items):
        return [] if "results" in items else list(items)

    async def main():
        async with Batcher(run, cost=cost, on_batch=on_batch) as batcher:
            for key, items, error in (
                (["unhashable"], ["a"], TypeError),
                ("a", ["cost"], KeyError),
                ("a", ["b"] * 5, OSError),
                ("a", ["results"], RuntimeError),
            ):
                with pytest.raises(error):
                    await asyncio.wait_for(batcher.submit(key, items), 20)
                assert batcher.is_running
                assert await asyncio.wait_for(batcher.submit("a", ["b"]), 20) == ["b"]
            assert batcher.waiting == 0

    asyncio.run(main())


def test_all_submissions_fail_if_the_worker_ends(monkeypatch, caplog):
    """Those in a batch, those that wait and those that come later."""
    ended = []

    async def main():
        async with Batcher(Recorder(0.2), max_items=1, on_end=lambda: ended.append(True)) as batcher:
            tasks = [asyncio.create_task(batcher.submit("a", [k, k])) for k in range(3)]
            await asyncio.sleep(0.1)
            monkeypatch.setattr(FairQueue, "peek", lambda _: 1 / 0)
            answers = await asyncio.wait_for(asyncio.gather(*tasks, return_exceptions=True), 20)
            with pytest.raises(RuntimeError, match="ended"):
                await batcher.submit("a", [1])
            assert not batcher.is_running
            return answers, batcher.waiting

    answers, waiting = asyncio.run(main())
    assert [type(answer) for answer in answers] == [RuntimeError] * 3
    assert (ended, waiting) == ([True], 0)
    (logged,) = [record for record in caplog.records if record.name == "rationalizer"]
    assert isinstance(logged.exc_info[1], ZeroDivisionError)


def test_batch_that_hangs_is_reported_on_exit(monkeypatch, caplog):
    hung = []
    monkeypatch.setattr(batching, "STOP_SECONDS", 0.05)

    async def main():
        async with Batcher(Recorder(0.5), on_hung=lambda: hung.append(True)) as batcher:
            task = asyncio.create_task(batcher.submit("a", [1]))
            await asyncio.sleep(0.1)
        return await task

    assert asyncio.run(main()) == [2]
    assert hung == [True]
    assert "still running" in caplog.text
