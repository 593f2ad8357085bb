"""Texts as tensors: the output of an encoder's `collate`, and all that the layers see."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Self

import torch
from torch import Tensor

_MASKS = ("mask", "counted", "punctuation")


def closing_order(selected: Tensor) -> Tensor:
    """(batch, k) the positions of the selected words of each row in their order, before other positions."""
    order = (~selected).to(torch.uint8).argsort(dim=1, stable=True)
    if not selected.is_cuda:  # counting would make the host wait for the device
        order = order[:, : max(1, int(selected.sum(1).max()))]
    return order


def gather_words(values: Tensor, order: Tensor) -> Tensor:
    """The values (batch, n, ...) at these positions (batch, k)."""
    first = torch.arange(len(values), device=values.device)[:, None] * values.shape[1]
    rows = (order + first).flatten()  # whole vectors are copied, which is faster on a CPU than `gather`
    return values.flatten(0, 1).index_select(0, rows).view(*order.shape, *values.shape[2:])


@dataclass(frozen=True)
class WordBatch:
    """A batch of texts; a batch of pairs is two of them. An encoder adds its own tensors in a subclass."""

    mask: Tensor  # (batch, n) bool, True on all real tokens; padding comes last
    counted: Tensor  # (batch, n) bool, True on words that can be selected; they use up the budget
    punctuation: Tensor  # (batch, n) bool, True on punctuation that is read with the words around it

    def to(self, device: torch.device | str) -> Self:
        return self._map(lambda tensor: tensor.to(device))

    def take(self, rows: Tensor) -> Self:
        """These rows of the batch, possibly repeated."""
        return self._map(lambda tensor: tensor[rows])

    def only(self, visible: Tensor) -> Self:
        """The texts that consist of the visible words (batch, n) alone, without gaps."""
        order = closing_order(visible)
        closed = self._map(lambda tensor: gather_words(tensor, order))
        return replace(closed, **{name: getattr(closed, name) & visible.gather(1, order) for name in _MASKS})

    @property
    def masks(self) -> WordBatch:
        """The masks alone, without what an encoder adds."""
        return WordBatch(self.mask, self.counted, self.punctuation)

    def repeat(self, times: int) -> Self:
        """Each row several times, one after the other."""
        return self._map(lambda tensor: tensor.repeat_interleave(times, dim=0))

    def _map(self, change: Callable[[Tensor], Tensor]) -> Self:
        return replace(self, **{item.name: change(getattr(self, item.name)) for item in fields(self)})

    def __len__(self) -> int:
        return len(self.mask)

    def with_punctuation(self, z: Tensor, unit: Tensor | None = None) -> Tensor:
        """Extend a selection of words to the punctuation between them.

        Punctuation has z = min(z_before, z_after) of the words on both sides; at the ends of a text, and next to a word
        that cannot be selected, it has 0. If words are selected in units (equal numbers for the tokens of a unit),
        punctuation is also selected with an adjacent word of the same unit.
        """
        before, after = self._around(z, 0.0)
        selected = torch.minimum(before, after)
        if unit is not None:
            left, right = self._around(unit, -1)
            same_unit = torch.maximum(before * (left == unit), after * (right == unit))
            selected = torch.maximum(selected, same_unit)
        return torch.where(self.punctuation, selected, z)

    def ranked(self, scores: Tensor) -> Tensor:
        """Scores of counted words; punctuation gets the lower score of the words around it, all others the lowest."""
        lowest = scores.masked_fill(~self.counted, torch.inf).amin(-1, keepdim=True)
        known = torch.where(self.counted, scores, lowest)
        between = torch.minimum(*self._around(known, -torch.inf))
        return torch.where(self.punctuation, torch.maximum(between, lowest), known)

    def _around(self, values: Tensor, missing: float) -> tuple[Tensor, Tensor]:
        """For every position the values of the nearest words before and after it; `missing` if there is none."""
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
