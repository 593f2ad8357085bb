"""A trained model with everything needed to use it, and its folder.

    config.json          settings, task, classes
    encoder.json         how texts become words: the rule, the vocabulary
    vectors.safetensors  the encoder's pretrained word vectors, if it has any
    model.safetensors    the weights
    history.json         one row per epoch, the best epoch, the time of the training
    examples.json        a few texts to try, unless keep_examples was 0

Each file has a checksum; a damaged or edited file is refused. In a compact model (see `compact_weights.py`)
`vectors.safetensors` may hold only the name of word vectors of the package.

The folder of a finished run also has `data.json`, the origin of its texts, and `scores.json`, the evaluation after the
training (see `runs.py`). While a training runs there is `checkpoint.safetensors` (see `checkpoint.py`). `history.csv`
and, if TensorBoard is installed, `logs/` hold the history for other programs. The training is finished when
`history.json` exists.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from numbers import Real
from pathlib import Path
from typing import Any, get_args

import torch

from rationalizer.constraints import parse_constraints
from rationalizer.data.corpus import Task
from rationalizer.models.atomic_files import (
    RECOPY_REMEDY,
    read_json,
    read_record,
    read_tensors,
    write_record,
    write_tensors,
)
from rationalizer.models.compact_weights import compact_weights, name_tables, resolve_tables, restore_weights
from rationalizer.models.config import Config
from rationalizer.models.description import Description
from rationalizer.models.devices import check_device
from rationalizer.models.format_upgrade import (
    find_file,
    upgrade_settings,
    upgrade_weights,
)
from rationalizer.models.json_schema import find_mismatch, find_tensor_mismatch
from rationalizer.models.sample_texts import SampleText
from rationalizer.models.setting_conflicts import with_budget, with_constraints
from rationalizer.nn import (
    Encoder,
    Model,
    Punctuation,
    encoder_class,
)
from rationalizer.suggestions import did_you_mean
from rationalizer.text import Budget, SentenceRule, SplitRule
from rationalizer.text.language import Languages

CONFIG, ENCODER_FILE, MODEL, HISTORY = "config.json", "encoder.json", "model.safetensors", "history.json"
VECTORS, CHECKPOINT = "vectors.safetensors", "checkpoint.safetensors"
HISTORY_CSV, LOGS = "history.csv", "logs"
EXAMPLES = "examples.json"

EPOCH = {"seconds": float, str: float}
ALARM = {"epoch": int, "kind": str, "message": str, "value": float}
HISTORY_SCHEMA = {
    "score": {"macro_f1", "micro_f1", "mse", "token_f1", "alignment_f1"},
    "best": (float, None),
    "best_epoch": (int, None),
    "warnings?": [str],  # about the predictions of the best epoch on dev; older models lack it
    "steps": int,
    "seconds_per_epoch": float,
    "epochs": [EPOCH],
    "data": str,
    "versions": {str: str},
    # Multipliers of an average budget and the mean shares that they give on dev, under the bounds of the training, and
    # under the default bounds of each average; older models lack the latter.
    "calibration?": {
        "shares": [float],
        "multipliers": [float],
        "least": float,
        "most": float,
        "default_bounds?": {"shares": [float], "multipliers": [float]},
    },
    "thresholds?": [float],  # of several labels: the probability from which a text has the label, calibrated on dev
    "threads?": (int, None),  # number of CPU threads; older models lack it
    "alarms?": [ALARM],  # signs of degeneration on dev; older models lack it
    "languages?": {"codes": [str], "common_words": [str]},  # of the training texts; older models lack it
}
EXAMPLES_SCHEMA = {"examples": [[str]]}  # one text each, or two


ENCODER_CHOICES = {
    "rule": get_args(SplitRule),
    "punctuation": get_args(Punctuation),
    "sentences": get_args(SentenceRule),
}


def write_encoder_files(directory: Path, encoder: Encoder, *, compact: bool = False) -> None:
    if tables := encoder.tables():
        name = name_tables(tables) if compact else None
        write_tensors(directory / VECTORS, tables if name is None else {}, name)
    write_record(directory / ENCODER_FILE, encoder.description())


def read_encoder_files(directory: Path, description: Description) -> Encoder:
    kind = encoder_class(description.config.encoder)
    path = find_file(directory, ENCODER_FILE)
    stored = upgrade_settings(read_record(path))
    tables, name = read_tensors(directory / VECTORS) if (directory / VECTORS).is_file() else ({}, None)
    try:
        tables = dict(resolve_tables(tables, name))
        for key, known in ENCODER_CHOICES.items():
            if stored.get(key) not in known:
                raise ValueError(f"{key} is {stored.get(key)!r}, not one of {', '.join(known)}")
        encoder = kind.restore(stored, tables, description.build_encoder_options(), **description.network())
        written = {key: None if value is None else type(value) for key, value in encoder.description().items()}
        if problem := find_mismatch(stored, written):
            raise ValueError(problem)
        return encoder
    except ImportError:
        raise
    except Exception as error:  # tokenizers and transformers raise exceptions of many types
        said = f"{error} is missing" if isinstance(error, KeyError) else (str(error).splitlines() or [repr(error)])[0]
        raise ValueError(
            f"{path} (with {VECTORS}) does not describe an encoder: {said}; copy the folder again"
        ) from None


@dataclass(frozen=True)
class TrainedModel:
    """A model ready for use."""

    description: Description
    model: Model
    history: dict[str, Any]
    examples: tuple[SampleText, ...] = ()  # texts to try

    @property
    def config(self) -> Config:
        return self.description.config

    @property
    def encoder(self) -> Encoder:
        return self.model.encoder

    @property
    def task(self) -> Task:
        return self.description.task

    @property
    def classes(self) -> tuple[str, ...]:
        return self.description.classes

    @property
    def pairs(self) -> bool:
        """Whether the model is for pairs of texts."""
        return self.description.pairs

    @cached_property
    def languages(self) -> Languages:
        """The languages of its training texts; none for models of earlier versions."""
        return Languages.from_json(self.history.get("languages"))

    @property
    def seconds(self) -> float:
        """The time of all epochs."""
        return round(sum(row["seconds"] for row in self.history["epochs"]), 3)

    @property
    def is_single(self) -> bool:
        """Whether it predicts one label, from one rationale."""
        return not self.description.labels.names and self.description.rationales == "shared"

    def require_single(self, what: str) -> None:
        """Raise ValueError if the model predicts several labels or targets, or has a rationale for each class."""
        if not self.is_single:
            several = "several labels" if self.description.labels.names else "a rationale for each class"
            raise ValueError(f"{what} needs a model with one label and one rationale, but this one has {several}")

    @property
    def thresholds(self) -> tuple[float, ...]:
        """For models with several labels: the probability from which a text has each label."""
        return tuple(self.history.get("thresholds") or (0.5,) * len(self.classes))

    def with_thresholds(self, thresholds: Mapping[str, float] | Sequence[float] | float) -> TrainedModel:
        """Return the model with other thresholds of its labels: for some by name, for each, or one for all."""
        if self.task != "multi-label":
            raise ValueError(
                f"thresholds are for models with several labels, but this is a {self.task}; leave them out"
            )
        if isinstance(thresholds, Mapping):
            for name in thresholds:
                if name not in self.classes:
                    raise ValueError(f"the label {name!r} is unknown; {did_you_mean(name, self.classes)}")
            own = [thresholds.get(name, old) for name, old in zip(self.classes, self.thresholds, strict=True)]
        else:
            own = [thresholds] * len(self.classes) if isinstance(thresholds, float | int) else list(thresholds)
        numbers = all(isinstance(limit, Real) and 0 <= limit <= 1 for limit in own)
        if len(own) != len(self.classes) or not numbers:
            raise ValueError(f"expected a probability for each of {len(self.classes)} labels, got {thresholds!r}")
        return replace(self, history={**self.history, "thresholds": [float(limit) for limit in own]})

    @property
    def device(self) -> torch.device:
        return next(self.model.parameters()).device

    def with_budget(self, budget: Budget | float | str) -> TrainedModel:
        """Return the model with another budget and the same weights."""
        budget = Budget.parse(budget)
        if budget != self.config.budget and not self.model.method.follows_budget:
            others = "budget or ot-exact-k" if self.pairs else "spectra, pair-budget, or one decoded by 'top-k'"
            raise ValueError(f"{self.config.method} does not follow a budget; use {others}")
        config = with_budget(self.config, budget)
        if budget.kind == "average" and "calibration" not in self.history:
            raise ValueError(
                f"this model was trained with the budget {self.config.budget}, which is not an average, and has no "
                "multipliers; use a fixed share, or train it with an average"
            )
        return replace(self, description=replace(self.description, config=config))

    def with_constraints(self, constraints: Any) -> TrainedModel:
        """Return the model with these constraints instead of those of the training, and the same weights."""
        config = with_constraints(self.config, parse_constraints(constraints), in_use=True)
        return replace(self, description=replace(self.description, config=config))

    def save(self, directory: str | Path, *, compact: bool = False) -> None:
        """Write the model's files; `compact` saves space by rounding weights (see `compact_weights.py`)."""
        directory = Path(directory)
        weights = self.model.state_dict()
        write_record(directory / CONFIG, self.description.to_json())
        write_encoder_files(directory, self.encoder, compact=compact)
        write_tensors(directory / MODEL, *(compact_weights(weights) if compact else (weights, None)))
        if self.examples:
            texts = [[text] if isinstance(text, str) else list(text) for text in self.examples]
            write_record(directory / EXAMPLES, {"examples": texts})
        else:
            (directory / EXAMPLES).unlink(missing_ok=True)  # may be left by an earlier model in this folder
        write_record(directory / HISTORY, self.history)

    @classmethod
    def load(cls, directory: str | Path, device: str | torch.device = "auto") -> TrainedModel:
        device = check_device(device) if isinstance(device, str) else device
        directory = Path(directory)
        if (directory / CONFIG).is_file():  # says first if the format is too old
            description = Description.from_json(read_json(directory / CONFIG), directory / CONFIG)
        missing = [name for name in (CONFIG, ENCODER_FILE, MODEL, HISTORY) if not find_file(directory, name).is_file()]
        if missing:
            if (directory / "manifest.json").is_file():
                raise FileNotFoundError(
                    f"{directory} holds an exported model, without PyTorch's weights; use it with explain, serve or "
                    "ExportedModel.load, and this function with the model that was exported"
                )
            if (directory / CHECKPOINT).is_file():
                raise FileNotFoundError(
                    f"{directory} holds an unfinished run; finish it with the command it was started with and "
                    "--resume, in Python with resume=True"
                )
            raise FileNotFoundError(f"{directory} holds no trained model: {', '.join(missing)} missing")
        model = description.build(read_encoder_files(directory, description))
        weights = restore_weights(*upgrade_weights(*read_tensors(directory / MODEL)))
        if problem := find_tensor_mismatch(weights, model.state_dict()):
            raise ValueError(
                f"{directory / MODEL} does not fit {directory / CONFIG}: {problem}; copy the folder again, or train "
                "again"
            )
        model.load_state_dict(weights)
        history = read_record(find_file(directory, HISTORY), HISTORY_SCHEMA)
        return cls(description, model.to(device).eval(), history, _read_examples(directory, description))


def _read_examples(directory: Path, description: Description) -> tuple[SampleText, ...]:
    path = directory / EXAMPLES
    stored = read_record(path, EXAMPLES_SCHEMA)["examples"] if path.is_file() else []
    expected = 2 if description.pairs else 1
    if any(len(texts) != expected for texts in stored):
        raise ValueError(
            f"{path}: an example is not {'a pair of texts' if description.pairs else 'one text'}; {RECOPY_REMEDY}"
        )
    return tuple((texts[0], texts[1]) if description.pairs else texts[0] for texts in stored)
