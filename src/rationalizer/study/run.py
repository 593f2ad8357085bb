"""One run of a study: train, score, keep both in one folder, and go on with what an earlier call left there.

Beside what `learn` keeps (see `learn/trained.py`) the folder has `data.json`, where the texts came from, and
`scores.json`, what was measured after the training: a study's run is finished when it has the latter.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rationalizer.data import Corpus
from rationalizer.learn import Config, TrainedModel, evaluate
from rationalizer.learn.checkpoint import FREE, require_same
from rationalizer.learn.files import read_json, write_json
from rationalizer.learn.inference import Done
from rationalizer.metrics import Finding, Scores
from rationalizer.nn import EXTRACTORS
from rationalizer.study.grid import Job
from rationalizer.study.source import Source

DATA, SCORES = "data.json", "scores.json"
Record = dict[str, Any]


def train_run(
    corpus: Corpus, source: Source, config: Config, directory: Path, *, resume: bool, **trainer: Any
) -> TrainedModel:
    """Trains into `directory`, which then also says where the texts came from."""
    from rationalizer.learn.training import train

    trained = train(corpus, config, directory, resume=resume, **trainer)
    if is_first_process():
        write_json(directory / DATA, source.to_json())
    return trained


def is_first_process() -> bool:
    """Of those that Lightning starts for one training on several devices."""
    return int(os.environ.get("LOCAL_RANK", 0)) == 0


def score(trained: TrainedModel, corpus: Corpus, *, done: Done | None = None) -> dict[str, Scores]:
    """The scores on dev and test, where the corpus has them; `done` is told of every batch's size."""
    splits = {"dev": corpus.dev, "test": corpus.test}
    return {name: evaluate(trained, examples, done=done) for name, examples in splits.items() if examples}


def keep_scores(directory: Path, trained: TrainedModel, source: Source, scores: Mapping[str, Scores]) -> Record:
    """Writes the scores beside the model, with what they are of."""
    record: Record = {
        "data": source.to_json(),
        "config": _settings(trained.config),
        "task": trained.task,
        "epochs": len(trained.metrics["epochs"]),
        "seconds": trained.seconds,
        "scores": {split: found.as_dict() for split, found in scores.items()},
        "findings": {
            split: [asdict(finding) for finding in suspicions(trained.config.method, found)]
            for split, found in scores.items()
        },
    }
    write_json(directory / SCORES, record)
    return record


def suspicions(method: str, scores: Scores) -> list[Finding]:
    """The signs of degeneration, without what a method that reads everything shows by nature."""
    everything = method in EXTRACTORS and not EXTRACTORS[method].reads_text
    expected = ("full_rationales", "ignores_text") if everything else ()
    return [finding for finding in scores.findings if finding.kind not in expected]


def source_of(directory: Path) -> Source | None:
    """Where a run's texts came from, if it says so."""
    path = directory / DATA
    return Source.from_json(read_json(path)) if path.is_file() else None


def finished(job: Job) -> Record | None:
    """The record of a job that is done; an error if it was done with other settings."""
    path = job.directory / SCORES
    if not path.is_file():
        return None
    record: Record = read_json(path)
    require_same(record["config"], _settings(job.config), path)
    require_same(record["data"], job.source.to_json(), path)
    return record


def run_job(job: Job, **trainer: Any) -> Record:
    """Trains and scores, from where an earlier call stopped."""
    corpus = job.source.load()
    trained = train_run(corpus, job.source, job.config, job.directory, resume=True, **trainer)
    return keep_scores(job.directory, trained, job.source, score(trained, corpus))


def _settings(config: Config) -> dict[str, Any]:
    return {key: value for key, value in config.to_json().items() if key not in FREE}
