"""The states of texts under a frozen network, kept in memory for the time of a training."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

LARGEST = 2 << 30  # bytes; the states of further texts are computed each time


class StoredStates:
    """By text: the state of each word (n, size), and the global state (size,)."""

    def __init__(self) -> None:
        self._texts: dict[bytes, tuple[Tensor, Tensor]] = {}
        self.bytes = 0

    def __deepcopy__(self, _: Any) -> StoredStates:
        return self  # copies of a frozen encoder have the same states

    @staticmethod
    def keys(tokens: Tensor, sizes: Tensor) -> list[bytes]:
        """What the network reads of each text, from `SubwordBatch`."""
        real = torch.arange(tokens.shape[-1], device=tokens.device) < sizes[..., None]
        rows = zip(tokens.cpu(), sizes.cpu(), real.cpu(), strict=True)
        return [b"".join(part.numpy().tobytes() for part in (own[own > 0], row[used])) for row, own, used in rows]

    def find(self, keys: Sequence[bytes], length: int) -> tuple[Tensor, Tensor] | None:
        """(batch, length, size) and (batch, size); None if a text is missing."""
        found = [self._texts.get(key) for key in keys]
        known = [each for each in found if each is not None]
        if len(known) < len(found):
            return None
        states = known[0][0].new_zeros((len(known), length, known[0][0].shape[-1]))
        for row, (own, _) in zip(states, known, strict=True):
            row[: len(own)] = own
        return states, torch.stack([whole for _, whole in known])

    def add(self, keys: Sequence[bytes], mask: Tensor, states: Tensor, whole: Tensor) -> None:
        for row, key in enumerate(keys):
            own = states[row, : int(mask[row].sum())]
            size = own.numel() * own.element_size()
            if key not in self._texts and self.bytes + size <= LARGEST:
                self._texts[key] = own.detach().clone(), whole[row].detach().clone()
                self.bytes += size
