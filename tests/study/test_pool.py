"""What happens when a run's process dies under it."""

import os
import signal
from pathlib import Path

from rationalizer.data import Source
from rationalizer.study import parse_methods, plan, pool


def dies_on_seed_0(connection, threads, trainer):
    """A worker that is killed while it runs seed 0, as by the system when memory is short."""
    while True:
        try:
            job = connection.recv()
        except EOFError:
            return
        if job.config.seed == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        connection.send((pool.Outcome(job, {"threads": threads, **trainer}), None))


def test_a_killed_worker_costs_its_run_only(monkeypatch):
    monkeypatch.setattr(pool, "_work", dies_on_seed_0)
    jobs = plan([Source.of("reviews")], parse_methods("full-text"), [0, 1, 2, 3], None, {}, Path("out"))
    outcomes = list(pool.run_all(jobs, workers=2, threads=3, trainer={"precision": "32-true"}))
    assert sorted(outcome.job.config.seed for outcome in outcomes) == [0, 1, 2, 3]
    for outcome in outcomes:
        if outcome.job.config.seed == 0:
            assert (outcome.record, outcome.error) == (None, "its process ended with code -9")
        else:
            assert outcome.record == {"threads": 3, "precision": "32-true"}


def dies_after_one_job(connection, threads, trainer):
    """A worker that ends between two jobs, maybe before the next one is sent, maybe after."""
    connection.send((pool.Outcome(connection.recv(), {}), None))
    connection.close()
    os._exit(3)


def test_a_worker_that_dies_between_jobs_costs_one_run(monkeypatch):
    monkeypatch.setattr(pool, "_work", dies_after_one_job)
    jobs = plan([Source.of("reviews")], parse_methods("full-text"), range(6), None, {}, Path("out"))
    outcomes = {one.job.config.seed: one for one in pool.run_all(jobs, workers=2, threads=1, trainer={})}
    assert sorted(outcomes) == list(range(6))
    failed = [one.error for one in outcomes.values() if one.record is None]
    assert set(failed) == {"its process ended with code 3"}
    assert len(failed) in (2, 3)  # every other job, of those that one worker is given after the other
