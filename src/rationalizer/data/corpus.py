"""A named dataset: its task, its classes, its three splits."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from rationalizer.data.example import Example

Task = Literal["classification", "regression"]


@dataclass(frozen=True)
class Corpus:
    """What a model is trained and judged on. `classes` is empty for regression; a split may be empty."""

    name: str
    task: Task
    classes: tuple[str, ...]
    train: Sequence[Example]
    dev: Sequence[Example]
    test: Sequence[Example]
    budget: float | int = 0.2

    def __post_init__(self) -> None:
        if self.task not in ("classification", "regression"):
            raise ValueError(f"task must be 'classification' or 'regression', got {self.task!r}")
        if (self.task == "regression") != (not self.classes):
            raise ValueError(f"a corpus for {self.task} cannot have the classes {self.classes!r}")
