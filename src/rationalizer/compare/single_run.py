"""One run of a comparison: train and score, or find that it was done."""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rationalizer.compare.grid import Job
from rationalizer.models.devices import trainer_device
from rationalizer.models.trained_model import LOGS
from rationalizer.subprocesses import Call, Ended
from rationalizer.text import DataError
from rationalizer.training import run
from rationalizer.training.checkpoint import require_same, settings_of
from rationalizer.training.runs import SCORES, Record, origin_of, record_of

# Something the runs share is missing or wrong: the study stops. Any other error concerns one run.
INPUT_ERRORS = (DataError, OSError, ImportError)


DONE, FAILED, STOPS = 0, 1, 2  # exit codes of a run's process
LOG = "process.log"


@dataclass(frozen=True)
class Order:
    """A job and what it is to run with, fit for being sent to another process or machine."""

    job: Job
    threads: int = 1
    device: str = "auto"  # of the machine that it runs on
    precision: str | None = None

    def call(self) -> Call:
        """The order for a process of its own; relative paths are of this process's folder there, too."""
        log = self.job.directory / LOGS / LOG
        return Call("rationalizer.compare", json.dumps(self.to_json()), str(Path.cwd()), str(log))

    def to_json(self) -> dict[str, Any]:
        own = {"threads": self.threads, "device": self.device, "precision": self.precision}
        return {**own, "job": self.job.to_json()}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> Order:
        return cls(Job.from_json(stored["job"]), stored["threads"], stored["device"], stored["precision"])


@dataclass(frozen=True)
class Outcome:
    """What became of a job: its record, or why there is none."""

    job: Job
    record: Record | None = None
    error: str | None = None
    stops: bool = False  # whether the error concerns all runs

    @classmethod
    def of(cls, job: Job, ended: Ended) -> Outcome:
        """What a run's process said at its end: the record, or why there is none."""
        if ended.code == DONE:
            return cls(job, json.loads(ended.said))
        why = ended.said or f"its process ended {ended.how}; see {job.directory / LOGS / LOG}"
        return cls(job, error=why, stops=ended.code == STOPS)


def finished(job: Job) -> Record | None:
    """The record of a job that is done; an error if it was done with other settings or other texts."""
    path, record = job.directory / SCORES, record_of(job.directory)
    if record is None:
        return None
    require_same(record["config"], settings_of(job.config), path)
    require_same(record["data"]["source"] or {}, job.source.to_json(), path)
    if job.source.place is not None:  # files may have changed since; the package and the Hub have not
        texts = origin_of(job.source.load(job.config.cut), job.source)["texts"]
        require_same({"data": record["data"]["texts"]}, {"data": texts}, path)
    return record


def carry_out(order: Order, *, apart: bool = False) -> Outcome:
    """Trains and scores in this process, from where an earlier call stopped. `apart`: its standard error is a log."""
    job, before = order.job, torch.get_num_threads()
    torch.set_num_threads(order.threads)
    try:
        trainer = {**trainer_device(order.device), "precision": order.precision, "threads": order.threads}
        corpus = job.source.load(job.config.cut)
        trainer["progress"] = "lines" if apart else None
        done = run(corpus, job.config, job.directory, source=job.source, resume=True, **trainer)
        return Outcome(job, done.record(origin_of(corpus, job.source)))
    except INPUT_ERRORS as error:
        return Outcome(job, error=str(error), stops=True)
    except Exception as error:
        if apart:
            traceback.print_exc()
        last = traceback.extract_tb(error.__traceback__)[-1]
        return Outcome(job, error=f"{type(error).__name__}: {error} ({last.filename}, line {last.lineno})")
    finally:
        torch.set_num_threads(before)
