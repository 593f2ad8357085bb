"""Comparisons of small models on a user's folder."""

import json

from rationalizer.compare import parse_methods, plan_runs
from rationalizer.data import DataSource

SMALL = {"hidden": 8, "vector_size": 8, "epochs": 2, "min_epochs": 1, "batch_size": 16, "learning_rate": 0.02}


def plan_small(folder, out, methods="pair-budget,sparsemax", seeds=(0, 1), **changed):
    return plan_runs([DataSource.resolve(str(folder))], parse_methods(methods), seeds, None, {**SMALL, **changed}, out)


def timeless(record):
    """Return a record without its times."""
    scores = {
        split: {name: value for name, value in found.items() if name != "seconds_per_epoch"}
        for split, found in record["scores"].items()
    }
    return {**record, "seconds": None, "scores": scores, "checksum": None}


def learned(directory):
    """Return the scores and the weights of a run."""
    record = json.loads((directory / "scores.json").read_text())
    return timeless(record), (directory / "model.safetensors").read_bytes()
