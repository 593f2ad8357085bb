"""Mean and range of several values: over seeds, or over documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np


@dataclass(frozen=True)
class Summary:
    mean: float
    low: float
    high: float
    values: tuple[float, ...] = ()  # all values in their order, if known

    @classmethod
    def from_values(cls, values: Sequence[float]) -> Self:
        low, high = float(min(values)), float(max(values))
        # Rounding could put the mean of equal values outside their range.
        return cls(float(np.clip(np.mean(values), low, high)), low, high, tuple(map(float, values)))
