"""Dropout that costs little on a CPU."""

from __future__ import annotations

import torch
from torch import Tensor, nn

_LEVELS = 1 << 16
_LEAST = torch.iinfo(torch.int64).min


class Dropout(nn.Dropout):
    """`torch.nn.Dropout`, about three times as fast on a CPU.

    There, PyTorch draws a random number for each element, one at a time. Sixteen random bits are enough: each draw of
    64 bits serves four elements, and the probability of a drop is `p` rounded to a multiple of 2⁻¹⁶. The scale is that
    of the rounded probability, so the expectation is exact.
    """

    def forward(self, values: Tensor) -> Tensor:
        if not self.training or values.device.type != "cpu" or self.p in (0, 1):
            return super().forward(values)
        dropped = min(max(round(self.p * _LEVELS), 1), _LEVELS - 1)
        return values * self._kept(values.shape, dropped).to(values.dtype).mul_(_LEVELS / (_LEVELS - dropped))

    @staticmethod
    def _kept(shape: torch.Size, dropped: int) -> Tensor:
        size = shape.numel()
        bits = torch.empty(-(-size // 4), dtype=torch.int64).random_(_LEAST, None)
        return bits.view(torch.int16)[:size].view(shape) >= dropped - _LEVELS // 2
