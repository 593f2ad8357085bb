"""With how many digits."""

from __future__ import annotations

import torch
from torch import Tensor


def single_or_more(values: Tensor) -> Tensor:
    """For what half precision has too few digits: losses, probabilities. What has more keeps them."""
    return values.to(torch.promote_types(values.dtype, torch.float32))
