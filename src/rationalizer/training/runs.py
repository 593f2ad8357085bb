"""The front door to training: from a corpus and a config to a folder with the model, its data's origin and its scores.

Whoever trains, in Python or on a command line, comes through here, and the folders are of one kind. Beside what
`trained.py` describes a folder has `data.json`, where the texts came from, and `scores.json`, what was measured after
the training; a run is finished when it has the latter.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from rationalizer.data import Corpus, DataSource
from rationalizer.inference.evaluate import evaluate
from rationalizer.inference.predict import OnBatch
from rationalizer.metrics import Finding, Scores
from rationalizer.models.atomic_files import read_record, write_record
from rationalizer.models.config import Config
from rationalizer.models.trained_model import TASKS, TrainedModel
from rationalizer.nn import EXTRACTORS
from rationalizer.training.checkpoint import run_settings

DATA, SCORES = "data.json", "scores.json"
RunRecord = dict[str, Any]

SOURCE = {
    "source": str,
    "data_dir": (str, None),
    "aspect": (str, None),
    "columns": {str: str},
    "task": (TASKS, None),
    "dialect": ({"delimiter": (str, None), "encoding": (str, None), "header": bool}, None),
    "skip_bad": bool,
    "hans": (str, None),
    "stream?": (bool, None),  # runs of before have not been asked
    "cache_dir?": (str, None),
}
ORIGIN = {"source": (SOURCE, None), "texts": str}
RECORD = {
    "data": ORIGIN,
    "config": dict,
    "task": TASKS,
    "epochs": int,
    "seconds": float,
    "scores": {str: {str: float}},
    "findings": {str: [{"kind": str, "message": str, "value": float}]},
}
REWRITE_REMEDY = (
    "copy it again, or delete it and finish the run by --resume (in Python resume=True), which makes it again"
)


@dataclass(frozen=True)
class Run:
    """A finished training and what was measured."""

    trained: TrainedModel
    scores: dict[str, Scores]  # by split: dev and test, where the corpus has them

    def record(self, origin: dict[str, Any]) -> RunRecord:
        config = self.trained.config
        return {
            "data": origin,
            "config": run_settings(config),
            "task": self.trained.task,
            "epochs": len(self.trained.history["epochs"]),
            "seconds": self.trained.seconds,
            "scores": {split: found.as_dict() for split, found in self.scores.items()},
            "findings": {
                split: [asdict(finding) for finding in degeneration_findings(config.method, found)]
                for split, found in self.scores.items()
            },
        }


def run(
    corpus: Corpus,
    config: Config,
    directory: str | Path | None = None,
    *,
    source: DataSource | None = None,
    on_batch: OnBatch | None = None,
    **training: Any,
) -> Run:
    """Trains, scores, and keeps both in `directory`.

    Args:
        corpus: what is learned from, and scored on: its dev and test splits.
        config: see `configure`.
        directory: where the run is kept; None keeps nothing, and nothing is scored.
        source: where the corpus came from, so that a later `evaluate` finds it again; None: from a Python program.
        on_batch: called with the size of each scored batch.
        training: further arguments of `train`, such as `resume`, `progress` and `devices`.
    """
    from rationalizer.training.distributed import is_first_process  # Lightning takes seconds to import
    from rationalizer.training.threads import set_threads
    from rationalizer.training.trainer import train

    trained = train(corpus, config, directory, **training)
    if directory is None or not is_first_process(training.get("devices", 1), training.get("num_nodes", 1)):
        return Run(trained, {})
    splits = {"dev": corpus.dev, "test": corpus.test}
    with set_threads(trained.history.get("threads")):
        scores = {name: evaluate(trained, examples, on_batch=on_batch) for name, examples in splits.items() if examples}
    finished = Run(trained, scores)
    origin = describe_origin(corpus, source)
    write_record(Path(directory) / DATA, origin)
    write_record(Path(directory) / SCORES, finished.record(origin))
    return finished


def describe_origin(corpus: Corpus, source: DataSource | None) -> dict[str, Any]:
    """Where texts came from, and a fingerprint of them."""
    return {"source": None if source is None else source.to_json(), "texts": corpus.digest}


def read_source(directory: Path) -> DataSource | None:
    """Where a run's texts came from, if it says so."""
    path = directory / DATA
    stored = read_record(path, ORIGIN, REWRITE_REMEDY)["source"] if path.is_file() else None
    return None if stored is None else DataSource.from_json(stored)


def read_run_record(directory: Path) -> RunRecord | None:
    """What was measured after a run's training, if it has come so far."""
    path = directory / SCORES
    if not path.is_file():
        return None
    record: RunRecord = read_record(path, RECORD, REWRITE_REMEDY)
    if record["scores"].keys() != record["findings"].keys():
        raise ValueError(f"{path}: scores and findings are of other splits; {REWRITE_REMEDY}")
    return record


def degeneration_findings(method: str, scores: Scores) -> list[Finding]:
    """The signs of degeneration, without what a method that reads everything shows by nature."""
    everything = method in EXTRACTORS and not EXTRACTORS[method].uses_generator
    expected = ("full_rationales", "ignores_text") if everything else ()
    return [finding for finding in scores.findings if finding.kind not in expected]
