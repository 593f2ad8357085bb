"""Texts as tensors: what a reader makes of them, and all that the layers above see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Self

import torch
from torch import Tensor


@dataclass(frozen=True)
class WordBatch:
    """One text of each row of a batch; a pair is two `WordBatch`. A reader adds tensors of its own in a subclass."""

    mask: Tensor  # (batch, n) bool, True on all real tokens; padding comes last
    counted: Tensor  # (batch, n) bool, True on words that can be selected, and then use up the budget
    punctuation: Tensor  # (batch, n) bool, True on punctuation that is read along with the words around it

    def to(self, device: torch.device | str) -> Self:
        return self._map(lambda tensor: tensor.to(device))

    def take(self, rows: Tensor) -> Self:
        """These rows of the batch, any of them several times."""
        return self._map(lambda tensor: tensor[rows])

    def _map(self, change: Callable[[Tensor], Tensor]) -> Self:
        return replace(self, **{item.name: change(getattr(self, item.name)) for item in fields(self)})

    def __len__(self) -> int:
        return len(self.mask)

    def with_punctuation(self, z: Tensor, unit: Tensor | None = None) -> Tensor:
        """A selection of words with the punctuation it takes along.

        A mark is read as far as the words on both of its sides are, z_mark = min(z_before, z_after); at the ends of a
        text, and beside a word that cannot be selected, it is not. Where words are selected in units (numbers, equal
        for the tokens of one), a mark is also read with the word beside it that is of the same unit.
        """
        before, after = self._around(z, 0.0)
        shown = torch.minimum(before, after)
        if unit is not None:
            left, right = self._around(unit, -1)
            alike = torch.maximum(before * (left == unit), after * (right == unit))
            shown = torch.maximum(shown, alike)
        return torch.where(self.punctuation, shown, z)

    def ranked(self, scores: Tensor) -> Tensor:
        """Scores of counted words; marks rank as the lower of the words around them, all others last."""
        lowest = scores.masked_fill(~self.counted, torch.inf).amin(-1, keepdim=True)
        known = torch.where(self.counted, scores, lowest)
        between = torch.minimum(*self._around(known, -torch.inf))
        return torch.where(self.punctuation, torch.maximum(between, lowest), known)

    def _around(self, values: Tensor, missing: float) -> tuple[Tensor, Tensor]:
        """For every position the values of the nearest words before and after it, `missing` where none is."""
        n = values.shape[-1]
        position = torch.arange(n, device=values.device).expand(values.shape)
        word = self.mask & ~self.punctuation
        before = torch.where(word, position, -1).cummax(-1).values
        after = torch.where(word, position, n).flip(-1).cummin(-1).values.flip(-1)
        absent = values.new_full((), missing)
        return (
            torch.where(before >= 0, values.gather(-1, before.clamp(min=0)), absent),
            torch.where(after < n, values.gather(-1, after.clamp(max=n - 1)), absent),
        )
