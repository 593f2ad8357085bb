"""One run of a comparison: train and score, or find that it was done."""

from __future__ import annotations

from typing import Any

from rationalizer.learn import run
from rationalizer.learn.checkpoint import require_same, settings_of
from rationalizer.learn.runs import SCORES, Record, origin_of, record_of
from rationalizer.study.grid import Job


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


def run_job(job: Job, **trainer: Any) -> Record:
    """Trains and scores, from where an earlier call stopped."""
    corpus = job.source.load(job.config.cut)
    done = run(corpus, job.config, job.directory, source=job.source, resume=True, **trainer)
    return done.record(origin_of(corpus, job.source))
