"""From constraints on alignments to the numbers that the layers take, for the pairs of texts of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from torch import Tensor

from rationalizer.constraints.base import Constraint, ConstraintConflict, Constraints
from rationalizer.constraints.layer_arguments import Flags
from rationalizer.text import PairExample
from rationalizer.text.errors import short_repr

Link = tuple[int, int]  # a token of the premise and one of the hypothesis, counted from 0


@dataclass(frozen=True)
class PairLayerConstraints:
    """What is asked of a batch's alignments beyond their method and budgets."""

    monotone: bool = False
    exactly: int | None = None  # how many pairs of words are aligned
    fixed: Tensor | None = None  # (batch, m, n) int8: 1 must be aligned, -1 never
    # What users' own factors ask, which is not for the ops: the constraints that make them, of these texts.
    factors: tuple[Any, ...] = ()
    texts: tuple[PairInBatch, ...] = ()

    def to(self, device: torch.device | str) -> Self:
        return self if self.fixed is None else replace(self, fixed=self.fixed.to(device))

    def of(self, row: int) -> Self:
        """Those of one pair of the batch, but for users' own factors."""
        fixed = None if self.fixed is None else self.fixed[row : row + 1]
        return replace(self, fixed=fixed, factors=(), texts=())

    def possible(self, budget: Tensor, *counted: Tensor) -> Tensor:
        """(batch,) bool: whether any two words may be aligned at all."""
        free = counted[0][:, :, None] & counted[1][:, None, :]
        free = free if self.fixed is None else free & (self.fixed >= 0)
        return free.flatten(1).any(-1) & (budget > 0) & (self.exactly != 0)


class PairInBatch(NamedTuple):
    """A pair among those at hand."""

    example: PairExample
    position: int
    of: int  # how many there are

    def __str__(self) -> str:
        return f"pair {self.position + 1} ({self._shown()})"

    def conflict(self, constraints: Constraints, reason: str, remedy: str) -> ConstraintConflict:
        problem = f"({self._shown()}) under {', '.join(map(str, constraints))}: {reason}"
        return ConstraintConflict(problem, remedy, unit="pair", index=self.position)

    def _shown(self) -> str:
        return " / ".join(short_repr(text.text) for text in self.example.texts)


class PairRequirements:
    """What is asked of one pair's alignment, as one constraint after the other adds to it."""

    def __init__(self, pair: PairInBatch) -> None:
        self.source = pair
        self.premise, self.hypothesis = (text.tokens for text in pair.example.texts)
        shape = (len(self.premise), len(self.hypothesis))
        self.must: dict[Link, Constraint] = {}  # which constraint asked for it
        self.never = np.zeros(shape, dtype=bool)

    def clash(self, *counted: Flags, monotone: bool) -> str | None:
        """What keeps the links from being aligned, as far as it can be said in plain words."""
        for (i, j), constraint in self.must.items():
            if self.never[i, j]:
                return f"{self._named((i, j))} must be aligned ({constraint}), but never may"
            for side, tokens, k in zip(counted, (self.premise, self.hypothesis), (i, j), strict=True):
                if not side[k]:
                    return f"{self._named((i, j))} must be aligned ({constraint}), but {tokens[k]!r} cannot be"
        links = list(self.must)
        for at, one in enumerate(links):
            for other in links[:at]:
                both = f"{self._named(other)} and {self._named(one)} must be aligned ({self._asked(other, one)})"
                if one[0] == other[0] or one[1] == other[1]:
                    return f"{both}, but a word has one partner at most"
                if monotone and (one[0] - other[0]) * (one[1] - other[1]) < 0:
                    return f"{both}, but they cross"
        return None

    def _named(self, link: Link) -> str:
        return f"{self.premise[link[0]]!r}–{self.hypothesis[link[1]]!r}"

    def _asked(self, *links: Link) -> str:
        return ", ".join(dict.fromkeys(str(self.must[link]) for link in links))


class PairConstraint(Constraint):
    """A constraint on the alignment of two texts."""

    pairs = True

    def update_layer(self, layer: PairLayerConstraints) -> PairLayerConstraints:
        """Tightens what is asked of all pairs alike."""
        return layer

    def update_pair(self, pair: PairRequirements) -> None:
        """Adds to what is asked of one pair's words."""


def build_pair_layer_constraints(
    constraints: Constraints, pairs: Sequence[PairInBatch], counted: Sequence[Tensor]
) -> tuple[PairLayerConstraints, list[PairRequirements]]:
    """The limits of a batch, and what they are made of.

    Args:
        constraints: all of them `PairConstraint`.
        pairs: the batch's.
        counted: (batch, m) and (batch, n) bool, True on the words that can be aligned.
    """
    limits = PairLayerConstraints()
    drafts = [PairRequirements(pair) for pair in pairs]
    for constraint in constraints:
        assert isinstance(constraint, PairConstraint), constraint
        limits = constraint.update_layer(limits)
        for draft in drafts:
            constraint.update_pair(draft)
    if any(draft.must or draft.never.any() for draft in drafts):
        fixed = torch.zeros(len(drafts), counted[0].shape[1], counted[1].shape[1], dtype=torch.int8)
        for row, draft in zip(fixed, drafts, strict=True):
            m, n = draft.never.shape
            row[:m, :n] = -torch.from_numpy(draft.never.astype(np.int8))
            for i, j in draft.must:
                row[i, j] = 1
        limits = replace(limits, fixed=fixed)
    if limits.factors:
        limits = replace(limits, texts=tuple(pairs))
    return limits, drafts
