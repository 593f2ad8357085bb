"""Factors: constraints and scores on a graph's variables."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from rationalizer.graph.literals import FactorGroup, Literals, group_literals, require_literals, stack
from rationalizer.ops import _inputs

if TYPE_CHECKING:
    from rationalizer.graph.program import Builder

Dim = int | Sequence[int] | None


class Factor:
    """A hard constraint on a set of literals, given by its MAP oracle. Subclass it to write your own.

    A factor's literals have shape (batch, *shape). With `dim` there is one factor for every position of the other
    dimensions, over the literals along `dim`; without it one factor over all literals of an instance. Inside, the
    factors of all instances are rows: row b · count + i is factor i of instance b.

    A subclass defines `map`, and `extra` if its configurations have scores of their own. The solver derives marginals
    and gradients from these.
    """

    def __init__(self, literals: Literals | Sequence[Literals], dim: Dim = None) -> None:
        self.group: FactorGroup = group_literals(literals, dim, type(self).__name__)

    @property
    def rows(self) -> int:
        """The number of factors in the whole batch."""
        return self.group.graph.batch * self.group.count

    @property
    def size(self) -> int:
        """The number of literals of each factor."""
        return self.group.size

    @cached_property
    def mask(self) -> Tensor:
        """(rows, size) bool, False on padding."""
        graph = self.group.graph
        return torch.from_numpy(graph.present(self.group.ids).reshape(self.rows, self.size)).to(graph.device)

    def map(self, scores: Tensor) -> Tensor:
        """Return the best allowed configuration: argmax scores·y + extra(y), row by row.

        Args:
            scores: (rows, size), float64. Padding has score 0; its values in the result are ignored.

        Returns:
            (rows, size), 0 or 1.
        """
        raise NotImplementedError(f"{type(self).__name__} must define map(scores), its MAP oracle")

    def extra(self, configurations: Tensor) -> Tensor:
        """Return the scores of configurations beyond those of their literals; 0 by default.

        Use differentiable torch operations, so that parameters get gradients.

        Args:
            configurations: (rows, k, size), 0 or 1; 0 on padding.

        Returns:
            (rows, k).
        """
        return configurations.new_zeros(configurations.shape[:2])

    def compile(self, builder: Builder) -> None:
        builder.structured(self)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.group.count} over {self.group.size} literals each)"


class _SumFactor(Factor):
    """lower <= Σ literals <= upper. Padding does not count; a factor of only padding is dropped."""

    lower: float = -np.inf
    upper: float = np.inf

    def compile(self, builder: Builder) -> None:
        present = builder.present(self.group)
        builder.literal_rows(self, self.group, 1.0, self.lower, self.upper, present.any(-1))


class Xor(_SumFactor):
    """Exactly one literal is 1."""

    lower = upper = 1.0


class AtMostOne(_SumFactor):
    """At most one literal is 1."""

    upper = 1.0


class Or(_SumFactor):
    """At least one literal is 1."""

    lower = 1.0


class Budget(_SumFactor):
    """At most `budget` literals are 1; an int, or an int tensor (batch,)."""

    def __init__(self, literals: Literals | Sequence[Literals], budget: int | Tensor, dim: Dim = None) -> None:
        super().__init__(literals, dim)
        self.budget = _inputs.as_budget(budget, torch.Size([self.group.graph.batch]), torch.device("cpu"))
        _inputs.require_budget(self.budget)
        self.upper = self.budget.numpy().astype(np.float64)[:, None]  # type: ignore[assignment]


class Imply(Factor):
    """`premise` implies `conclusion`: literals of one shape, one factor each. Dropped if one is padding."""

    def __init__(self, premise: Literals, conclusion: Literals) -> None:
        super().__init__([premise, conclusion])

    def compile(self, builder: Builder) -> None:
        both = builder.present(self.group).all(-1)
        builder.literal_rows(self, self.group, np.array([1.0, -1.0]), -np.inf, 0.0, both)


class _OutputFactor(Factor):
    """A factor that defines the literal `out` by its inputs.

    `out` has the inputs' shape without `dim` (if `dim` is None: one `out` per instance). Padded inputs are ignored; if
    `out` or all inputs are padding the factor is dropped.
    """

    def __init__(self, inputs: Literals | Sequence[Literals], out: Literals, dim: Dim = None) -> None:
        super().__init__(inputs, dim)
        name = type(self).__name__
        if not isinstance(out, Literals):
            raise TypeError(f"{name}: out must be literals, got {type(out).__name__}")
        if out.graph is not self.group.graph:
            raise ValueError(f"{name} mixes variables of two graphs; make them all with one FactorGraph")
        if out.ids[0].size != self.group.count:
            raise ValueError(f"{name} needs {self.group.count} outputs, got literals of shape {tuple(out.shape)}")
        lead = max(out.ids.shape[0], self.group.ids.shape[0])

        def append(inputs: Any, outs: Any) -> Any:
            inputs = np.broadcast_to(inputs, (lead, *inputs.shape[1:]))
            outs = np.broadcast_to(outs, (lead, *outs.shape[1:])).reshape(lead, -1, 1)
            return np.concatenate([inputs, outs], axis=-1)

        self.group = FactorGroup(out.graph, append(self.group.ids, out.ids), append(self.group.negated, out.negated))
        require_literals(self.group, name)

    def _is_active(self, builder: Builder) -> Any:
        present = builder.present(self.group)
        return present[..., :-1].any(-1) & present[..., -1]


class XorOut(_OutputFactor):
    """At most one input is 1, and `out` is 1 if one input is: Σ inputs = out."""

    def compile(self, builder: Builder) -> None:
        signs = np.r_[np.ones(self.group.size - 1), -1.0]
        builder.literal_rows(self, self.group, signs, 0.0, 0.0, self._is_active(builder))


class OrOut(_OutputFactor):
    """`out` is 1 if any input is 1: inputs <= out <= Σ inputs."""

    negate = False

    def compile(self, builder: Builder) -> None:
        active = self._is_active(builder)
        whole = FactorGroup(self.group.graph, self.group.ids, self.group.negated ^ self.negate)
        signs = np.r_[-np.ones(whole.size - 1), 1.0]
        builder.literal_rows(self, whole, signs, -np.inf, 0.0, active)
        inputs, outs = whole.ids[..., :-1], np.broadcast_to(whole.ids[..., -1:], whole.ids[..., :-1].shape)
        each = np.stack([inputs, outs], axis=-1)
        flags = [whole.negated[..., :-1], np.broadcast_to(whole.negated[..., -1:], inputs.shape)]
        shape = (whole.ids.shape[0], -1, 2)
        pairs = FactorGroup(whole.graph, each.reshape(shape), np.stack(flags, axis=-1).reshape(shape))
        both = builder.present(pairs).all(-1)
        builder.literal_rows(self, pairs, np.array([1.0, -1.0]), -np.inf, 0.0, both)


class AndOut(OrOut):
    """`out` is 1 if all inputs are 1: the negated OR of negations."""

    negate = True


class Pair(Factor):
    """Adds `scores` · first · second, of either sign: a score for two literals that are both 1.

    `first` and `second` have one shape, one factor each; `scores` is a number or a differentiable tensor that
    broadcasts to it. Dropped if one literal is padding.
    """

    def __init__(self, first: Literals, second: Literals, scores: float | Tensor) -> None:
        super().__init__([first, second])
        shape = stack([first, second], "Pair").shape[:-1]
        self.scores = broadcast_scores(scores, shape, self, "scores")

    def compile(self, builder: Builder) -> None:
        present = builder.present(self.group).all(-1)
        scores = self.scores.reshape(builder.batch, -1)
        values = scores.detach().cpu().numpy()
        # first · second is min(first, second) = (first + second)/2 − |first − second|/2 if its score is positive,
        # otherwise max(0, first + second − 1). A score of 0 counts as positive in the gradient.
        attract, repel = present & (values >= 0), present & (values < 0)
        if attract.any():
            halves = 0.5 * scores.where(torch.from_numpy(attract).to(scores.device), 0.0)
            builder.add_costs(self.group, halves[:, :, None].expand(-1, -1, 2))
            builder.soft_rows(self, self.group, np.array([1.0, -1.0]), halves, attract)
        if repel.any():
            negative = scores.where(torch.from_numpy(repel).to(scores.device), 0.0)
            ids = builder.auxiliary(negative, repel, upper=1.0)
            builder.literal_rows(self, self.group, 1.0, -np.inf, 1.0, repel, (ids[:, None], -1.0))


def broadcast_scores(scores: float | Tensor, shape: Sequence[int], factor: Factor, name: str) -> Tensor:
    """Scores of a factor as a float64 tensor of `shape`, checked."""
    kind = type(factor).__name__
    graph = factor.group.graph
    if not isinstance(scores, Tensor):
        if isinstance(scores, bool) or not isinstance(scores, (int, float)):
            raise TypeError(f"{kind}: {name} must be a number or a tensor, got {type(scores).__name__}")
        scores = torch.tensor(float(scores), dtype=torch.float64)
    if not scores.is_floating_point():
        raise TypeError(f"{kind}: {name} must be floating point, got {scores.dtype}; use {name}.float()")
    try:
        spread = scores.to(device=graph.device, dtype=torch.float64).expand(*shape)
    except RuntimeError:
        raise ValueError(f"{kind}: {name} of shape {tuple(scores.shape)} do not broadcast to {tuple(shape)}") from None
    _inputs.require_finite(spread.detach(), None, f"{kind}: {name}", "scores must be finite")
    return spread
