"""The annotation file of a model's texts, for people who correct them."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rationalizer.data.annotation_file import AnnotationFile, text_row
from rationalizer.models.trained_model import TrainedModel
from rationalizer.text import AnyExample


def open_corrections(
    path: str | Path, trained: TrainedModel, texts: Sequence[AnyExample] = (), labels: Sequence[Any] = ()
) -> AnnotationFile:
    """Open or create an annotation file with the model's classes, and add texts with their labels."""
    rule, classes = trained.encoder.rule, list(trained.classes)
    header = {"pairs": trained.pairs, "rule": rule, "task": trained.task, "classes": classes}
    given = labels or [None] * len(texts)
    rows = [text_row(text, label, tokenized=rule == "spaces") for text, label in zip(texts, given, strict=True)]
    return AnnotationFile.open(path, {**header, "multi": trained.task.startswith("multi")}, rows)
