"""The state of an unfinished run in one file, from which it continues as if it had never stopped.

`checkpoint.safetensors` holds the weights and buffers of the model (`model.*`), the best weights so far (`best.*`),
their average (`average.*`), Adam's moments (`optimizer.*`) and what the objective trains with beside the model
(`objective.*`). Its header holds, as JSON, the run's `Progress`, and the
description of the model and a digest of the data, which a resumed run is compared with. The states of random number
generators are not stored: every step seeds them from (seed, step). The encoder's words and tables, which do not change,
have files of their own (see `trained_model.py`).

The file's checksum detects damage, not forgery: whoever can write the file can compute a new checksum, and a run
continues from any weights of the right shapes. Contents that no run could have written are refused.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from rationalizer.data import Corpus
from rationalizer.models.atomic_files import read_tensors, write_tensors
from rationalizer.models.config import Config, flat_settings
from rationalizer.models.description import Description
from rationalizer.models.json_schema import find_mismatch, find_tensor_mismatch
from rationalizer.models.trained_model import ALARM, EPOCH
from rationalizer.text.errors import InputError

SETTINGS_WITHOUT_EFFECT = ("workers", "checkpoint_seconds", "keep_examples")  # these do not change the weights

RESTART_REMEDY = "copy it again, or delete it and start again with --resume, in Python with resume=True"
PARTS = ("model", "best", "average", "optimizer", "objective")
PROGRESS = {
    **dict.fromkeys(("epoch", "batch", "step", "epochs_without_improvement", "unconverged"), int),
    **dict.fromkeys(("loss", "seconds", "largest_gap"), float),
    **dict.fromkeys(("best", "best_value"), (float, None)),
    "best_epoch": (int, None),
    "best_warnings": [str],
    "history": [EPOCH],
    "alarms": [ALARM],
    "finished": bool,
    "threads": (int, None),
}
STATE = {"identity": dict, "progress": PROGRESS, "precision": dict}
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # state of Adam per weight
LARGEST_COUNT = 2**31  # of any count in `Progress`


@dataclass
class Progress:
    epoch: int = 0  # number of finished epochs, including their validation
    batch: int = 0  # number of finished batches in the unfinished epoch
    step: int = 0  # number of finished batches in the run
    loss: float = 0.0  # sum of the losses of the unfinished epoch's batches
    seconds: float = 0.0  # time spent on the unfinished epoch
    unconverged: int = 0  # number of selections in the unfinished epoch whose solver stopped early
    largest_gap: float = 0.0  # largest gap between a selection's objective and its optimum in the unfinished epoch
    best: float | None = None  # score of the best epoch, whose weights are kept
    best_value: float | None = None  # value by which the best epoch was selected: higher is better
    best_epoch: int | None = None
    best_warnings: list[str] = field(default_factory=list)  # about the best epoch's predictions on dev
    epochs_without_improvement: int = 0
    history: list[dict[str, float]] = field(default_factory=list)
    alarms: list[dict[str, Any]] = field(default_factory=list)  # signs of degeneration on dev
    finished: bool = False
    threads: int | None = None  # number of CPU threads; None: PyTorch's default

    def find_contradiction(self, epochs: int) -> str | None:
        """Describe why no run of so many epochs can be in this state; None if one can."""
        for name, value in asdict(self).items():
            if type(value) is int and not 0 <= value < LARGEST_COUNT:
                return f"progress.{name} is {value}"
        if self.epoch > epochs or (self.epoch == epochs and not self.finished):
            return f"progress.epoch is {self.epoch} of {epochs}, and progress.finished is {self.finished}"
        if len(self.history) != self.epoch:
            return f"progress.history has {len(self.history)} epochs, not {self.epoch}"
        if self.best_epoch is not None and not 1 <= self.best_epoch <= self.epoch:
            return f"progress.best_epoch is {self.best_epoch} after {self.epoch} epochs"
        return "progress.threads is 0" if self.threads == 0 else None


@dataclass(frozen=True)
class Checkpoint:
    progress: Progress
    model: dict[str, Tensor]
    best: dict[str, Tensor]
    average: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    objective: dict[str, Tensor]
    precision: dict[str, Any]  # the state of the loss scaler under 16-bit precision

    def find_mismatch(self, model: nn.Module, objective: nn.Module) -> str | None:
        """Describe why this is not a checkpoint of the model and its objective; None if it is."""
        weights, trained = model.state_dict(), dict(trained_parameters(model, objective))
        if self.progress.best_epoch is not None and not self.best:
            return "best is missing"
        moments: dict[str, Tensor] = {}
        for key in self.optimizer:
            name = key.rpartition(".")[0]
            if name in trained:  # weights without a gradient have no moments
                moments |= {f"{name}.{slot}": trained[name] for slot in MOMENTS}
                moments[f"{name}.step"] = torch.zeros(())
        averaged = {name: weight for name, weight in trained.items() if name in weights}
        expected = {
            "model": weights,
            "best": weights,
            "average": averaged,
            "optimizer": moments,
            "objective": objective.state_dict(),
        }
        for part, wanted in expected.items():
            stored = getattr(self, part)
            if (stored or part in ("model", "objective")) and (problem := find_tensor_mismatch(stored, wanted)):
                return f"{part}.{problem}"
        for key, moment in self.optimizer.items():
            if not key.endswith(".exp_avg") and bool((moment < 0).any()):
                return f"optimizer.{key} holds negative values"
        return None


@dataclass(frozen=True)
class CheckpointFile:
    """Reads and writes the checkpoint of one run."""

    path: Path
    identity: dict[str, Any]

    @classmethod
    def for_run(cls, path: Path, description: Description, corpus: Corpus) -> CheckpointFile:
        return cls(path, run_identity(description, corpus))

    def write(self, checkpoint: Checkpoint) -> None:
        tensors = {f"{part}.{name}": t for part in PARTS for name, t in getattr(checkpoint, part).items()}
        progress = asdict(checkpoint.progress)
        state = {"identity": self.identity, "progress": progress, "precision": checkpoint.precision}
        write_tensors(self.path, tensors, state)

    def read(self) -> Checkpoint | None:
        if not self.path.is_file():
            return None
        tensors, state = read_tensors(self.path, RESTART_REMEDY)
        if problem := find_mismatch(state, STATE):
            raise self.error(problem)
        require_same(state["identity"], self.identity, self.path)
        parts: dict[str, dict[str, Tensor]] = {part: {} for part in PARTS}
        for name, tensor in tensors.items():
            part, _, key = name.partition(".")
            if part not in parts:
                raise self.error(f"{name} is not known")
            parts[part][key] = tensor
        progress = Progress(**state["progress"])
        if problem := progress.find_contradiction(self.identity["epochs"]):
            raise self.error(problem)
        return Checkpoint(progress, **parts, precision=state["precision"])

    def error(self, problem: str) -> InputError:
        return InputError(f"{self.path} is not a checkpoint of this training: {problem}", RESTART_REMEDY)


def run_identity(description: Description, corpus: Corpus) -> dict[str, Any]:
    """Return what must be equal for a run to be resumed."""
    described = description.to_json()
    del described["config"], described["columns"]  # the weights do not depend on the names of columns
    return {**described, **run_settings(description.config), "data": data_digest(corpus, description.config)}


def run_settings(config: Config) -> dict[str, Any]:
    """Return the settings that a run's result depends on, in one flat dictionary."""
    settings = {"method": config.method, "pairs": config.pairs, **flat_settings(config.to_json())}
    return {key: value for key, value in settings.items() if key not in SETTINGS_WITHOUT_EFFECT}


def require_same(stored: Mapping[str, Any], given: Mapping[str, Any], path: Path) -> None:
    for key in {**stored, **given}:
        if stored.get(key) != given.get(key):
            what = "other training data" if key == "data" else f"{key} = {stored.get(key)!r}, not {given.get(key)!r}"
            raise ValueError(
                f"{path.parent} holds a run with {what}; use the data and settings it was started with, or another "
                "folder"
            )


def data_digest(corpus: Corpus, config: Config) -> str:
    """Return a digest of what the run learns from."""
    return corpus.digest_with_annotations if config.annotation_weight else corpus.digest


def copy_to_host(tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    return {name: tensor.detach().cpu().clone() for name, tensor in tensors.items()}


def optimizer_state(model: nn.Module, objective: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Return Adam's moments and step counts by parameter name."""
    return {
        f"{name}.{slot}": value
        for name, parameter in trained_parameters(model, objective)
        for slot, value in optimizer.state[parameter].items()
    }


def restore_optimizer(
    model: nn.Module, objective: nn.Module, optimizer: torch.optim.Optimizer, stored: Mapping[str, Tensor]
) -> None:
    ordered = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    position = {parameter: i for i, parameter in enumerate(ordered)}
    index = {name: position[parameter] for name, parameter in trained_parameters(model, objective)}
    state: dict[int, dict[str, Tensor]] = {}
    for key, value in stored.items():
        name, _, slot = key.rpartition(".")
        state.setdefault(index[name], {})[slot] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": state, "param_groups": groups})


def trained_parameters(model: nn.Module, objective: nn.Module) -> list[tuple[str, nn.Parameter]]:
    """Return the parameters of the model and, under names with a prefix, of the objective."""
    own = ((f"objective.{name}", parameter) for name, parameter in objective.named_parameters())
    return [(name, parameter) for name, parameter in (*model.named_parameters(), *own) if parameter.requires_grad]
