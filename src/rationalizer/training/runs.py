"""Training and evaluation in one call: from a corpus and a config to a folder with the model, its data and its scores.

The command line and the Python interface both train through `run`, so that all folders have the same content. Besides
the files of `trained_model.py` a folder has `data.json`, the origin of the texts, and `scores.json`, the evaluation
after the training; a run is finished when `scores.json` exists.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rationalizer.data import Corpus, DataSource
from rationalizer.inference.baselines import Baselines, compare_with_baselines
from rationalizer.inference.evaluate import evaluate
from rationalizer.inference.predict import OnBatch
from rationalizer.metrics import Finding, Scores
from rationalizer.models.atomic_files import read_record, write_record
from rationalizer.models.config import Config
from rationalizer.models.description import TASKS
from rationalizer.models.format_upgrade import upgrade_record
from rationalizer.models.trained_model import TrainedModel
from rationalizer.nn import methods_for
from rationalizer.training.alarms import unexpected_findings
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
    "stream?": (bool, None),  # older runs lack it
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
    "baselines?": {str: {str: {str: float}}},  # split -> baseline -> scores; older runs lack it
    "labels?": {str: {str: {str: float}}},  # split -> label or target -> scores, of several; older runs lack it
}
REWRITE_REMEDY = "copy it again, or delete it and write it again by resuming the run (--resume, in Python resume=True)"


@dataclass(frozen=True)
class Run:
    """A finished training and its evaluation."""

    trained: TrainedModel
    scores: dict[str, Scores]  # split (dev, test) -> scores, for the splits of the corpus
    baselines: dict[str, Baselines] = field(default_factory=dict)  # split -> scores of the baselines

    def record(self, origin: dict[str, Any]) -> RunRecord:
        config = self.trained.config
        return {
            "data": origin,
            "config": run_settings(config),
            "task": self.trained.task,
            "epochs": len(self.trained.history["epochs"]),
            "seconds": self.trained.seconds,
            "scores": {split: scores.as_dict() for split, scores in self.scores.items()},
            "findings": {
                split: [asdict(finding) for finding in degeneration_findings(config.method, scores)]
                for split, scores in self.scores.items()
            },
            "baselines": self.baselines,
            "labels": {
                split: {name: own.as_dict() for name, own in scores.by_label.items()}
                for split, scores in self.scores.items()
                if scores.by_label
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
    """Train and score a model, and save both in `directory`.

    Args:
        corpus: the texts; dev and test are scored.
        config: see `configure`.
        directory: the folder of the run; None saves nothing and scores nothing.
        source: the origin of the corpus, for a later `evaluate`; None if it comes from a Python program.
        on_batch: called with the size of each scored batch.
        training: further arguments of `train`, such as `resume`, `progress` and `devices`.
    """
    from rationalizer.models.devices import set_threads

    compile_ahead(config, training.get("device", "auto"))
    from rationalizer.training.distributed import is_first_process  # Lightning Fabric imports slowly
    from rationalizer.training.trainer import train

    trained = train(corpus, config, directory, **training)
    if directory is None or not is_first_process(training.get("devices", 1), training.get("num_nodes", 1)):
        return Run(trained, {})
    splits = {"dev": corpus.dev, "test": corpus.test}
    splits = {name: examples for name, examples in splits.items() if examples}
    with set_threads(trained.history.get("threads")):
        scores = {name: evaluate(trained, examples, on_batch=on_batch) for name, examples in splits.items()}
        baselines = {name: compare_with_baselines(trained, corpus.train, rows) for name, rows in splits.items()}
    finished = Run(trained, scores, baselines)
    origin = describe_origin(corpus, source)
    write_record(Path(directory) / DATA, origin)
    write_record(Path(directory) / SCORES, finished.record(origin))
    return finished


def compile_ahead(config: Config, device: str) -> None:
    """Start to compile what the first training step needs, while data are read and the model is built."""
    from rationalizer.models.devices import check_device

    if not config.constraints and not check_device(device).startswith("cuda"):
        methods_for(config.pairs)[config.method].compile_ahead()


def describe_origin(corpus: Corpus, source: DataSource | None) -> dict[str, Any]:
    """Return the origin of texts, with a digest of them."""
    return {"source": None if source is None else source.to_json(), "texts": corpus.digest}


def read_source(directory: Path) -> DataSource | None:
    """Return the origin of a run's texts, or None if it is not stored."""
    path = directory / DATA
    stored = read_record(path, ORIGIN, REWRITE_REMEDY)["source"] if path.is_file() else None
    return None if stored is None else DataSource.from_json(stored)


def read_digest(directory: Path) -> str | None:
    """Return the digest of a run's texts, or None if it is not stored."""
    path = directory / DATA
    digest: str | None = read_record(path, ORIGIN, REWRITE_REMEDY)["texts"] if path.is_file() else None
    return digest


def read_run_record(directory: Path) -> RunRecord | None:
    """Return the evaluation of a run, or None if the run is not finished."""
    path = directory / SCORES
    if not path.is_file():
        return None
    record: RunRecord = read_record(path, RECORD, REWRITE_REMEDY)
    if record["scores"].keys() != record["findings"].keys():
        raise ValueError(f"{path}: scores and findings have different splits; {REWRITE_REMEDY}")
    return {**record, "config": upgrade_record(record["config"])}


def degeneration_findings(method: str, scores: Scores) -> list[Finding]:
    """Return the signs of degeneration, except the signs that every method without a generator shows."""
    return unexpected_findings(method, scores.findings)
