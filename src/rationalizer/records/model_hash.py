"""The identity of a model: a hash of everything that determines its predictions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from rationalizer.models.atomic_files import checksum
from rationalizer.models.trained_model import TrainedModel

# Names and paths of what a training started from. They differ between machines, and predictions do not depend on them.
ORIGINS = frozenset({"embeddings", "revision", "source", "_name_or_path"})


def model_hash(trained: TrainedModel) -> str:
    """Return the SHA-256 of a model's settings, encoder, word vectors and weights, as 64 hexadecimal digits.

    It is the same after `fit`, after `save` and after `load`, on any machine and device, and for a copy from the
    Hugging Face Hub. It differs for a compact copy: rounded weights predict other probabilities. Settings that
    only the training uses are not part of it. Neither are the budget and the constraints, which can be changed
    without training: a decision record stores them.
    """
    config, encoder, description = trained.config, trained.encoder, trained.description
    facts = {
        "task": description.task,
        "classes": list(description.classes),
        "target": description.target,
        "pairs": config.pairs,
        "method": config.method,
        "options": dict(config.options),
        "faithful": config.faithful,
        "premise_context": config.premise_context,
        "pooling": config.pooling,
        "threshold": config.pairs and config.annotation_weight > 0,  # whether links are compared with "no partner"
        "encoder": encoder.name,
        "encoder_options": _without_origins(config.encoder_options),
        "encoder_description": _without_origins(encoder.description()),
    }
    if description.targets:
        facts["targets"] = [[each.name, list(each.classes)] for each in description.targets]
        facts["target_settings"] = list(description.target_settings)
    if description.rationales != "shared":
        facts["rationales"] = description.rationales
    if "calibration" in trained.history:  # of an average budget
        facts["calibration"] = trained.history["calibration"]
    tensors = {
        **{f"tables.{name}": tensor for name, tensor in encoder.tables().items()},
        **{f"weights.{name}": tensor for name, tensor in trained.model.state_dict().items()},
    }
    return checksum({name: _stored(tensor) for name, tensor in tensors.items()}, facts)


def _stored(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor as a loaded model has it: on the host, floating-point numbers in single precision."""
    on_host = tensor.detach().cpu().contiguous()
    return on_host.float() if on_host.is_floating_point() else on_host


def _without_origins(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _without_origins(item) for key, item in value.items() if key not in ORIGINS}
    return [_without_origins(item) for item in value] if isinstance(value, list | tuple) else value
