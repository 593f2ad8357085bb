"""A model that trains in seconds, and texts for it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rationalizer.data import Corpus, DataSource, generated_reviews
from rationalizer.models import configure
from rationalizer.training import run as train_and_score

SETTINGS: dict[str, Any] = {
    "hidden": 8,
    "vector_size": 8,
    "embeddings": None,
    "epochs": 2,
    "min_epochs": 2,
    "batch_size": 16,
    "learning_rate": 0.02,
}


def corpus() -> Corpus:
    return generated_reviews(train=96, dev=24, test=24)


def train_small(folder: Path, method: str = "spectra") -> Path:
    train_and_score(corpus(), configure(method, SETTINGS), folder, source=DataSource.resolve("reviews"), progress=False)
    return folder


def texts(count: int) -> list[str]:
    return [example.text for example in generated_reviews(train=1, dev=1, test=count).test]
