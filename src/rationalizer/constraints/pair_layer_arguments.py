"""From constraints on alignments to the arguments of the layers, for the pairs of texts of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from rationalizer.constraints.base import BatchItem, Constraint, Constraints
from rationalizer.constraints.layer_arguments import Mask

if TYPE_CHECKING:  # PyTorch takes seconds to import, and exported models do without it
    import torch
    from torch import Tensor

Link = tuple[int, int]  # the index of a token of the premise and of one of the hypothesis


@dataclass(frozen=True)
class PairLayerConstraints:
    """Constraints on a batch's alignments besides their method and budgets."""

    monotone: bool = False
    exactly: int | None = None  # the number of aligned pairs of words
    fixed: Tensor | None = None  # (batch, m, n) int8: 1 must be aligned, -1 must not
    # Not arguments of the ops: constraints that add factors of a graph, and the pairs they are for.
    factors: tuple[Any, ...] = ()
    texts: tuple[BatchItem, ...] = ()

    def to(self, device: torch.device | str) -> Self:
        return self if self.fixed is None else replace(self, fixed=self.fixed.to(device))

    def for_row(self, row: int) -> Self:
        """The constraints on one pair of the batch, without factors."""
        fixed = None if self.fixed is None else self.fixed[row : row + 1]
        return replace(self, fixed=fixed, factors=(), texts=())

    def allow_any(self, budget: Tensor, *counted: Tensor) -> Tensor:
        """(batch,) bool: whether any two words may be aligned."""
        free = counted[0][:, :, None] & counted[1][:, None, :]
        free = free if self.fixed is None else free & (self.fixed >= 0)
        return free.flatten(1).any(-1) & (budget > 0) & (self.exactly != 0)


class PairRequirements:
    """The requirements of all constraints on the alignment of one pair."""

    def __init__(self, item: BatchItem) -> None:
        self.item = item
        self.premise, self.hypothesis = (text.tokens for text in item.example.texts)
        self.must: dict[Link, Constraint] = {}  # and which constraint requires it
        self.never = np.zeros((len(self.premise), len(self.hypothesis)), dtype=bool)

    def find_conflict(self, *counted: Mask, monotone: bool) -> str | None:
        """Why the required links cannot all be aligned, if there is a simple reason."""
        for link in self.must:
            reason = "never may" if self.never[link] else None
            for mask, tokens, k in zip(counted, (self.premise, self.hypothesis), link, strict=True):
                if reason is None and not mask[k]:
                    reason = f"{tokens[k]!r} cannot be"
            if reason is not None:
                return f"{self._describe(link)}, but {reason}"
        links = list(self.must)
        array = np.array(links, dtype=np.int64).reshape(-1, 2)
        for k, one in enumerate(links):
            difference = array[:k] - array[k]
            shared = (difference == 0).any(-1)
            conflicting = shared | (difference.prod(-1) < 0) if monotone else shared
            if conflicting.any():
                first = int(conflicting.argmax())
                reason = "a word has one partner at most" if shared[first] else "they cross"
                return f"{self._describe(links[first], one)}, but {reason}"
        return None

    def _describe(self, *links: Link) -> str:
        names = ", ".join(dict.fromkeys(str(self.must[link]) for link in links))
        return f"{' and '.join(map(self._quote, links))} must be aligned ({names})"

    def _quote(self, link: Link) -> str:
        return f"{self.premise[link[0]]!r}–{self.hypothesis[link[1]]!r}"


class PairConstraint(Constraint):
    """A constraint on the alignment of two texts."""

    pairs = True

    def update_layer(self, layer: PairLayerConstraints) -> PairLayerConstraints:
        """Return the layer's arguments, tightened for all pairs."""
        return layer

    def update_pair(self, pair: PairRequirements) -> None:
        """Add constraints on the words of one pair, in place."""


def combine_pair_constraints(
    constraints: Constraints, pairs: Sequence[BatchItem]
) -> tuple[PairLayerConstraints, list[PairRequirements]]:
    """Return the layer's arguments that are the same for all pairs, and the requirements of each pair."""
    layer = PairLayerConstraints()
    requirements = [PairRequirements(pair) for pair in pairs]
    for constraint in constraints:
        assert isinstance(constraint, PairConstraint), constraint
        layer = constraint.update_layer(layer)
        for pair in requirements:
            constraint.update_pair(pair)
    return layer, requirements


def build_pair_layer_constraints(
    constraints: Constraints, pairs: Sequence[BatchItem], counted: Sequence[Tensor]
) -> tuple[PairLayerConstraints, list[PairRequirements]]:
    """The layer's arguments for a batch, and the requirements of each pair that they were made from.

    Args:
        constraints: all of them `PairConstraint`.
        pairs: the batch.
        counted: (batch, m) and (batch, n) bool, True on the words that can be aligned.
    """
    layer, requirements = combine_pair_constraints(constraints, pairs)
    if any(pair.must or pair.never.any() for pair in requirements):
        import torch

        fixed = torch.zeros(len(requirements), counted[0].shape[1], counted[1].shape[1], dtype=torch.int8)
        for row, pair in zip(fixed, requirements, strict=True):
            m, n = pair.never.shape
            row[:m, :n] = -torch.from_numpy(pair.never.astype(np.int8))
            for i, j in pair.must:
                row[i, j] = 1
        layer = replace(layer, fixed=fixed)
    if layer.factors:
        layer = replace(layer, texts=tuple(pairs))
    return layer, requirements
