"""A trained model with all that is needed to use it, and the directory it is kept in.

    config.json        settings, task, classes, size and kind of the word vectors
    vocabulary.json    the words
    model.safetensors  the weights
    metrics.json       one row per epoch, the best epoch, how long training took

While a run is under way there are also `checkpoint.safetensors` (see `checkpoint.py`) and, with pretrained
word vectors, `vectors.safetensors`. `logs/` has CSV and TensorBoard files, in a new folder each time the run
was taken up. A run is finished when it has `metrics.json`.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal

import torch

from rationalizer.data import Vocabulary
from rationalizer.data.corpus import Task
from rationalizer.learn.config import Config
from rationalizer.learn.files import read_json, read_tensors, write_json, write_tensors
from rationalizer.nn import HighlightModel, Model, PairModel, check_budget

LabelType = Literal["str", "int", "float", "bool"]

FORMAT = 1
CONFIG, VOCABULARY, MODEL, METRICS = "config.json", "vocabulary.json", "model.safetensors", "metrics.json"
CHECKPOINT, VECTORS, LOGS = "checkpoint.safetensors", "vectors.safetensors", "logs"


@dataclass(frozen=True)
class Description:
    """What the weights are weights of."""

    config: Config
    task: Task
    classes: tuple[str, ...]
    vector_size: int
    frozen_vectors: bool
    target: dict[str, Any] = field(default_factory=dict)  # arguments of `nn.Regression`
    label_type: LabelType = "str"  # what the user's class labels were before they became names

    @property
    def pairs(self) -> bool:
        return self.config.pairs

    def build(self, vocabulary: Vocabulary) -> Model:
        config = self.config
        settings: dict[str, Any] = {
            "vocabulary": len(vocabulary),
            "embedding": self.vector_size,
            "frozen": self.frozen_vectors,
            "method": config.method,
            "method_options": config.options,
            "classes": len(self.classes),
            "target": self.target,
            "encoder": config.encoder,
            "hidden": config.hidden,
            "dropout": config.dropout,
            "pooling": config.pooling,
        }
        return PairModel(**settings, faithful=config.faithful) if self.pairs else HighlightModel(**settings)

    def to_json(self) -> dict[str, Any]:
        return {
            "format": FORMAT,
            "task": self.task,
            "classes": list(self.classes),
            "vector_size": self.vector_size,
            "frozen_vectors": self.frozen_vectors,
            "target": self.target,
            "label_type": self.label_type,
            "config": self.config.to_json(),
        }

    @classmethod
    def from_json(cls, stored: Any, path: Path) -> Description:
        if not isinstance(stored, dict) or stored.get("format") != FORMAT:
            raise ValueError(
                f"{path} is not of format {FORMAT}, the one this version reads; train again, or use the "
                "version that wrote it"
            )
        return cls(
            config=Config.from_json(stored["config"]),
            task=stored["task"],
            classes=tuple(stored["classes"]),
            vector_size=stored["vector_size"],
            frozen_vectors=stored["frozen_vectors"],
            target=stored["target"],
            label_type=stored["label_type"],
        )


@dataclass(frozen=True)
class TrainedModel:
    """A model ready for use."""

    description: Description
    vocabulary: Vocabulary
    model: Model
    metrics: dict[str, Any]

    @property
    def config(self) -> Config:
        return self.description.config

    @property
    def task(self) -> Task:
        return self.description.task

    @property
    def classes(self) -> tuple[str, ...]:
        return self.description.classes

    @property
    def pairs(self) -> bool:
        """Whether it reads pairs of texts."""
        return self.description.pairs

    @property
    def seconds(self) -> float:
        """How long its epochs took, together."""
        return round(sum(row["seconds"] for row in self.metrics["epochs"]), 3)

    @property
    def device(self) -> torch.device:
        return self.model.embedding.weight.device

    def with_budget(self, budget: float | int) -> TrainedModel:
        """The same weights, other selections."""
        budget = check_budget(budget)
        if budget != self.config.budget and not self.model.extractor.follows_budget:
            others = "budget or ot-exact-k" if self.pairs else "spectra, pair-budget, or one decoded by 'top-k'"
            raise ValueError(f"what {self.config.method} selects does not follow a budget; use the method {others}")
        config = replace(self.config, budget=budget)
        return replace(self, description=replace(self.description, config=config))

    def save(self, directory: str | Path) -> None:
        directory = Path(directory)
        write_json(directory / CONFIG, self.description.to_json())
        write_json(directory / VOCABULARY, self.vocabulary.to_json())
        write_tensors(directory / MODEL, self.model.state_dict())
        write_json(directory / METRICS, self.metrics)

    @classmethod
    def load(cls, directory: str | Path, device: str | torch.device = "cpu") -> TrainedModel:
        directory = Path(directory)
        missing = [name for name in (CONFIG, VOCABULARY, MODEL, METRICS) if not (directory / name).is_file()]
        if missing:
            if (directory / CHECKPOINT).is_file():
                raise FileNotFoundError(
                    f"{directory} holds an unfinished run; finish it by the command it was started with and --resume, "
                    "in Python by resume=True"
                )
            raise FileNotFoundError(f"{directory} holds no trained model: {', '.join(missing)} missing")
        description = Description.from_json(read_json(directory / CONFIG), directory / CONFIG)
        vocabulary = Vocabulary.from_json(read_json(directory / VOCABULARY))
        model = description.build(vocabulary)
        weights, _ = read_tensors(directory / MODEL)
        try:
            model.load_state_dict(weights)
        except RuntimeError as error:
            raise ValueError(f"{directory / MODEL} does not fit {directory / CONFIG}: {error}") from None
        return cls(description, vocabulary, model.to(device).eval(), read_json(directory / METRICS))
