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
