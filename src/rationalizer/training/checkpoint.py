"""Where a run stands, in one file: enough to go on as if it had never stopped.

`checkpoint.safetensors` holds the trainable weights and the method's own state (`model.*`), the best
weights so far (`best.*`), their average (`average.*`) and Adam's moments (`optimizer.*`), and in its header, as
JSON, the run's `Progress` with the description of the model and a digest of the data, against which a resumed run is
checked. Random generators have no entry: every step starts them anew from (seed, step). The
encoder, which does not change, lies beside it (see `trained.py`).
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
from rationalizer.models.json_schema import find_mismatch, find_tensor_mismatch
from rationalizer.models.trained_model import EPOCH, Description

# Settings that do not change where a run goes, only how it gets there.
SETTINGS_WITHOUT_EFFECT_ON_RESULT = ("workers", "checkpoint_seconds", "keep_examples")

RESTART_REMEDY = "copy it again, or delete it and start anew by --resume, in Python by resume=True"
PROGRESS = {
    **dict.fromkeys(("epoch", "batch", "step", "waited", "short"), int),
    **dict.fromkeys(("loss", "seconds", "gap"), float),
    **dict.fromkeys(("best", "best_value"), (float, None)),
    "best_epoch": (int, None),
    "history": [EPOCH],
    "finished": bool,
    "threads?": (int, None),  # runs of before have not chosen
}
STATE = {"identity": dict, "progress": PROGRESS, "precision": dict}
MOMENTS = ("step", "exp_avg", "exp_avg_sq")  # Adam's


@dataclass
class Progress:
    epoch: int = 0  # epochs done, validation included
    batch: int = 0  # batches done of the next one
    step: int = 0
    loss: float = 0.0  # summed over the batches of the unfinished epoch
    seconds: float = 0.0  # spent on the unfinished epoch
    short: int = 0  # texts in it whose selection was left before the optimum,
    gap: float = 0.0  # and how far from it the objective of any text's was, at most
    best: float | None = None  # the score of the epoch whose weights are kept
    best_value: float | None = None  # by which it was chosen
    best_epoch: int | None = None
    waited: int = 0  # epochs since then
    history: list[dict[str, float]] = field(default_factory=list)
    finished: bool = False
    threads: int | None = None  # of the run, where it has chosen them


@dataclass(frozen=True)
class Checkpoint:
    progress: Progress
    model: dict[str, Tensor]
    best: dict[str, Tensor]
    average: dict[str, Tensor]
    optimizer: dict[str, Tensor]
    precision: dict[str, Any]  # the scaler's state under 16-bit precision

    def find_mismatch(self, model: nn.Module) -> str | None:
        """What keeps this from being a checkpoint of the model, in words."""
        weights, trained = model.state_dict(), dict(trained_parameters(model))
        if self.progress.best_epoch is not None and not self.best:
            return "best is missing"
        moments: dict[str, Tensor] = {}
        for key in self.optimizer:
            name = key.rpartition(".")[0]
            if name in trained:  # weights that nothing depends on have no moments
                moments |= {f"{name}.{slot}": trained[name] for slot in MOMENTS}
                moments[f"{name}.step"] = torch.zeros(())
        expected = {"model": weights, "best": weights, "average": trained, "optimizer": moments}
        for part, wanted in expected.items():
            stored = getattr(self, part)
            if (stored or part == "model") and (wrong := find_tensor_mismatch(stored, wanted)):
                return f"{part}.{wrong}"
        return None


@dataclass(frozen=True)
class CheckpointFile:
    """Reads and writes the checkpoint of one run."""

    path: Path
    identity: dict[str, Any]

    @classmethod
    def of(cls, path: Path, description: Description, corpus: Corpus) -> CheckpointFile:
        return cls(path, run_identity(description, corpus))

    def write(self, checkpoint: Checkpoint) -> None:
        parts = {
            "model": checkpoint.model,
            "best": checkpoint.best,
            "average": checkpoint.average,
            "optimizer": checkpoint.optimizer,
        }
        tensors = {f"{part}.{name}": t for part, named in parts.items() for name, t in named.items()}
        state = {
            "identity": self.identity,
            "progress": asdict(checkpoint.progress),
            "precision": checkpoint.precision,
        }
        write_tensors(self.path, tensors, state)

    def read(self) -> Checkpoint | None:
        if not self.path.is_file():
            return None
        tensors, state = read_tensors(self.path, RESTART_REMEDY)
        if wrong := find_mismatch(state, STATE):
            raise self.error(wrong)
        require_same(state["identity"], self.identity, self.path)
        parts: dict[str, dict[str, Tensor]] = {"model": {}, "best": {}, "average": {}, "optimizer": {}}
        for name, tensor in tensors.items():
            part, _, key = name.partition(".")
            if part not in parts:
                raise self.error(f"{name} is not known")
            parts[part][key] = tensor
        return Checkpoint(Progress(**state["progress"]), **parts, precision=state["precision"])

    def error(self, wrong: str) -> ValueError:
        return ValueError(f"{self.path} is not a checkpoint of this training: {wrong}; {RESTART_REMEDY}")


def run_identity(description: Description, corpus: Corpus) -> dict[str, Any]:
    """What must be the same for a run to be continued."""
    described = description.to_json()
    del described["config"], described["columns"]  # the weights do not depend on what columns were called
    return {**described, **run_settings(description.config), "data": data_digest(corpus, description.config)}


def run_settings(config: Config) -> dict[str, Any]:
    """What a run's result depends on, side by side."""
    stored = config.to_json()
    settings = {"method": config.method, "pairs": config.pairs, **flat_settings(stored)}
    return {key: value for key, value in settings.items() if key not in SETTINGS_WITHOUT_EFFECT_ON_RESULT}


def require_same(stored: Mapping[str, Any], given: Mapping[str, Any], path: Path) -> None:
    for key in {**stored, **given}:
        if stored.get(key) != given.get(key):
            what = "other training data" if key == "data" else f"{key} = {stored.get(key)!r}, not {given.get(key)!r}"
            raise ValueError(
                f"{path.parent} holds a run with {what}; give what it was started with, or another directory"
            )


def data_digest(corpus: Corpus, config: Config) -> str:
    """A fingerprint of what the run learns from."""
    return corpus.digest_with_annotations if config.annotation_weight else corpus.digest


def host_state(model: nn.Module) -> dict[str, Tensor]:
    """All weights and buffers, on the host. Frozen ones among them: some are drawn, and no file has them but this."""
    return {name: t.detach().cpu().clone() for name, t in model.state_dict().items()}


def optimizer_state(model: nn.Module, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """Adam's moments and step counts by parameter name."""
    return {
        f"{name}.{slot}": value
        for name, parameter in trained_parameters(model)
        for slot, value in optimizer.state[parameter].items()
    }


def restore_optimizer(model: nn.Module, optimizer: torch.optim.Optimizer, stored: Mapping[str, Tensor]) -> None:
    slots: dict[int, dict[str, Tensor]] = {}
    ordered = [parameter for group in optimizer.param_groups for parameter in group["params"]]
    place = {parameter: i for i, parameter in enumerate(ordered)}
    index = {name: place[parameter] for name, parameter in trained_parameters(model)}
    for key, value in stored.items():
        name, _, slot = key.rpartition(".")
        slots.setdefault(index[name], {})[slot] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": slots, "param_groups": groups})


def trained_parameters(model: nn.Module) -> list[tuple[str, nn.Parameter]]:
    return [(name, parameter) for name, parameter in model.named_parameters() if parameter.requires_grad]
