"""Compact storage of a trained model, for the starters and for sharing.

Large tables of weights take 8 bits per number with one scale per row, other weights half precision, and the English
word vectors of the package are stored by name. Loaded weights have single precision.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rationalizer.models.atomic_files import checksum
from rationalizer.models.json_schema import find_mismatch
from rationalizer.text import BUNDLED, load_vectors

LARGE = 1 << 18  # numbers in a table, from which on it takes 8 bits
LEVELS = 127  # codes go from -127 to 127
CODES, SCALES = ".codes", ".scales"
COMPACT = {"coded": [str]}
NAMED = {"vectors": {BUNDLED}, "checksum": str}


def compact_weights(weights: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Return rounded weights, and the state that `restore_weights` needs."""
    small: dict[str, Tensor] = {}
    coded = []
    for name, tensor in weights.items():
        if not tensor.is_floating_point():
            small[name] = tensor
        elif tensor.ndim == 2 and tensor.numel() >= LARGE:
            table = tensor.detach().float()
            scales = table.abs().amax(1) / LEVELS
            rows = torch.where(scales > 0, scales, 1.0)[:, None]
            small[name + CODES] = (table / rows).round().to(torch.int8)
            small[name + SCALES] = scales
            coded.append(name)
        else:
            small[name] = tensor.detach().half()
    return small, {"coded": sorted(coded)}


def restore_weights(tensors: Mapping[str, Tensor], state: Any) -> dict[str, Tensor]:
    """Return the rounded weights in single precision.

    If the file is not compact, return its weights unchanged. 8-bit weights without their row scales are returned
    unchanged, too; loading the model then fails.
    """
    if find_mismatch(state, COMPACT):
        return dict(tensors)
    weights = {name: tensor.float() if tensor.dtype == torch.float16 else tensor for name, tensor in tensors.items()}
    for name in state["coded"]:
        if weights.keys() >= {name + CODES, name + SCALES}:
            weights[name] = weights.pop(name + CODES).float() * weights.pop(name + SCALES)[:, None]
    return weights


def name_tables(tables: Mapping[str, Tensor]) -> dict[str, Any] | None:
    """Return the name of tables that are the package's own word vectors; None for others."""
    own = _bundled()
    if tables.keys() != own.keys() or not all(torch.equal(tables[name], own[name]) for name in own):
        return None
    return {"vectors": BUNDLED, "checksum": checksum(own, None)}


def resolve_tables(tables: Mapping[str, Tensor], state: Any) -> Mapping[str, Tensor]:
    """Return the stored tables, or the tables that the state names."""
    if state is None:
        return tables
    if problem := find_mismatch(state, NAMED):
        raise ValueError(problem)
    own = _bundled()
    if checksum(own, None) != state["checksum"]:
        raise ValueError(
            f"the model needs another version of the vectors {BUNDLED}; use the version of the package that wrote it"
        )
    return own


def _bundled() -> dict[str, Tensor]:
    return {name: torch.from_numpy(array) for name, array in load_vectors(BUNDLED).to_arrays().items()}
