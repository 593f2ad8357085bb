"""One run of a comparison: train and score it, or read the record of an earlier call."""

from __future__ import annotations

import json
import traceback
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from rationalizer.compare.grid import PlannedRun
from rationalizer.models.trained_model import LOGS
from rationalizer.subprocesses import Command, CommandResult
from rationalizer.text import DataError
from rationalizer.training import run as train_and_score
from rationalizer.training.checkpoint import require_same, run_settings
from rationalizer.training.data_defaults import with_settled
from rationalizer.training.runs import SCORES, RunRecord, describe_origin, read_run_record

# Errors in what all runs share (data, files, packages): the comparison stops. Any other error concerns one run.
FATAL_ERRORS = (DataError, OSError, ImportError)
SUCCEEDED, FAILED, FATAL = 0, 1, 2  # exit codes of a run's process
LOG = "process.log"


@dataclass(frozen=True)
class RunTask:
    """A run and the resources it runs with; can be sent to another process or machine as JSON."""

    run: PlannedRun
    threads: int = 1
    device: str = "auto"  # device on the machine that executes the run
    precision: str | None = None

    def command(self) -> Command:
        """The command for a subprocess. It starts in the current folder, so that relative paths stay valid."""
        log = self.run.directory / LOGS / LOG
        return Command("rationalizer.compare", json.dumps(self.to_json()), str(Path.cwd()), str(log))

    def to_json(self) -> dict[str, Any]:
        resources = {"threads": self.threads, "device": self.device, "precision": self.precision}
        return {"run": self.run.to_json(), **resources}

    @classmethod
    def from_json(cls, stored: Mapping[str, Any]) -> RunTask:
        return cls(**{**stored, "run": PlannedRun.from_json(stored["run"])})


@dataclass(frozen=True)
class RunOutcome:
    """The record of a run, or the error that prevented it."""

    run: PlannedRun
    record: RunRecord | None = None
    error: str | None = None
    is_fatal: bool = False  # whether the error concerns all runs

    @classmethod
    def from_result(cls, run: PlannedRun, result: CommandResult) -> RunOutcome:
        """Read the output of a run's subprocess."""
        if result.code == SUCCEEDED:
            return cls(run, json.loads(result.output))
        error = result.output or f"its process ended {result.describe()}; see {run.directory / LOGS / LOG}"
        return cls(run, error=error, is_fatal=result.code == FATAL)


def finished_record(run: PlannedRun) -> RunRecord | None:
    """Return the record of a finished run, or None. Other settings or other texts than the run's raise ValueError."""
    path, record = run.directory / SCORES, read_run_record(run.directory)
    if record is None:
        return None
    require_same(record["config"], with_settled(run_settings(run.config), record["config"]), path)
    require_same(record["data"]["source"] or {}, run.source.to_json(), path)
    if run.source.path is not None:  # files may have changed; generated corpora and the Hub's have not
        texts = describe_origin(run.source.load(run.config.word_splitting), run.source)["texts"]
        require_same({"data": record["data"]["texts"]}, {"data": texts}, path)
    return record


def execute(task: RunTask, *, in_subprocess: bool = False) -> RunOutcome:
    """Train and score a run in this process, resuming from its checkpoint. In a subprocess, stderr is a log file."""
    run, threads_before = task.run, torch.get_num_threads()
    torch.set_num_threads(task.threads)
    try:
        trainer: dict[str, Any] = {"device": task.device, "precision": task.precision, "threads": task.threads}
        corpus = run.source.load(run.config.word_splitting)
        trainer["progress"] = "lines" if in_subprocess else None
        finished = train_and_score(corpus, run.config, run.directory, source=run.source, resume=True, **trainer)
        return RunOutcome(run, finished.record(describe_origin(corpus, run.source)))
    except FATAL_ERRORS as error:
        return RunOutcome(run, error=str(error), is_fatal=True)
    except Exception as error:
        if in_subprocess:
            traceback.print_exc()
        last = traceback.extract_tb(error.__traceback__)[-1]
        return RunOutcome(run, error=f"{type(error).__name__}: {error} ({last.filename}, line {last.lineno})")
    finally:
        torch.set_num_threads(threads_before)
