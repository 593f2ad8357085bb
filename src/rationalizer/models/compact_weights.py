"""A trained model in less space, for models that come with the package or travel.

Large tables of weights take 8 bits a number with one scale a row, other weights half precision, and the English word
vectors of the package are named instead of copied. What is read again is used in single precision as ever.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from rationalizer.models.atomic_files import checksum
from rationalizer.models.json_schema import find_mismatch
from rationalizer.text import BUNDLED, load_vectors

LARGE = 1 << 18  # numbers of a table that is kept in 8 bits
LEVELS = 127  # codes go from -127 to 127
CODES, SCALES = ".codes", ".scales"
COMPACT = {"coded": [str]}
NAMED = {"vectors": {BUNDLED}, "checksum": str}


def compacted(weights: Mapping[str, Tensor]) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """The weights in less space, and what `restored` needs to know of them."""
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


def restored(tensors: Mapping[str, Tensor], state: Any) -> dict[str, Tensor]:
    """The weights as `compacted` was given them, about. Those of a file that is not compact come as they are, and so
    do codes without scales: the model they are loaded into has no place for them and says so."""
    if find_mismatch(state, COMPACT):
        return dict(tensors)
    weights = {name: tensor.float() if tensor.dtype == torch.float16 else tensor for name, tensor in tensors.items()}
    for name in state["coded"]:
        if weights.keys() >= {name + CODES, name + SCALES}:
            weights[name] = weights.pop(name + CODES).float() * weights.pop(name + SCALES)[:, None]
    return weights


def named(tables: Mapping[str, Tensor]) -> dict[str, Any] | None:
    """What stands for tables that are the package's own word vectors; None for others."""
    own = _bundled()
    if tables.keys() != own.keys() or not all(torch.equal(tables[name], own[name]) for name in own):
        return None
    return {"vectors": BUNDLED, "checksum": checksum(own, None)}


def tables_of(tables: Mapping[str, Tensor], state: Any) -> Mapping[str, Tensor]:
    """The tables that are stored, or those that are named in their place."""
    if state is None:
        return tables
    if wrong := find_mismatch(state, NAMED):
        raise ValueError(wrong)
    own = _bundled()
    if checksum(own, None) != state["checksum"]:
        raise ValueError(
            f"the model was made with other vectors than the {BUNDLED} of this version; use the version that wrote it"
        )
    return own


def _bundled() -> dict[str, Tensor]:
    return {name: torch.from_numpy(array) for name, array in load_vectors(BUNDLED).to_arrays().items()}
