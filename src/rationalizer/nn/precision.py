"""Number formats."""

from __future__ import annotations

import torch
from torch import Tensor


def at_least_float32(values: Tensor) -> Tensor:
    """Cast half precision to float32, which losses and probabilities need; keep float64."""
    return values.to(torch.promote_types(values.dtype, torch.float32))
