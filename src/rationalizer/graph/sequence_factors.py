"""Factors over whole sequences."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from rationalizer.graph.factors import Factor, broadcast_scores
from rationalizer.graph.literals import FactorGroup, Literals
from rationalizer.ops import _inputs
from rationalizer.ops.sequence_budget_map import sequence_budget_map

if TYPE_CHECKING:
    from rationalizer.graph.program import Builder


class Sequence(Factor):
    """A linear chain: each position has exactly one of k states, and neighbours score transition[state, next state].

    `literals` have shape (batch, ..., n, k); `transition` is a number or a differentiable tensor that broadcasts to
    (batch, ..., n − 1, k, k). A padded state cannot be taken; a position with only padded states is absent, together
    with its transitions.
    """

    def __init__(self, literals: Literals, transition: float | Tensor = 0.0) -> None:
        super().__init__(literals, dim=(-2, -1))
        shape = literals.shape
        self.length, self.states = shape[-2:]
        edges = (*shape[:-2], self.length - 1, self.states, self.states)
        self.transition = broadcast_scores(transition, edges, self, "transition")

    def compile(self, builder: Builder) -> None:
        n, k, count, batch = self.length, self.states, self.group.count, builder.batch
        graph, lead = self.group.graph, self.group.ids.shape[0]
        ids = self.group.ids.reshape(lead, count, n, k)
        negated = self.group.negated.reshape(lead, count, n, k)
        present = builder.present(self.group).reshape(batch, count, n, k)
        real = present.any(-1)
        starts = real.copy()
        starts[:, :, 1:] &= ~real[:, :, :-1]
        one_state = FactorGroup(graph, ids.reshape(lead, count * n, k), negated.reshape(lead, count * n, k))
        builder.literal_rows(self, one_state, 1.0, 1.0, 1.0, starts.reshape(batch, -1))
        if n == 1:
            return
        both = present[:, :, :-1, :, None] & present[:, :, 1:, None, :]
        edges = builder.auxiliary(self.transition.reshape(batch, -1), both.reshape(batch, -1), upper=2.0)
        edges = edges.reshape(count, n - 1, k, k)
        for side, sums in ((slice(None, -1), edges), (slice(1, None), edges.swapaxes(-1, -2))):
            other_side = slice(1, None) if side.start is None else slice(None, -1)
            shape = (lead, count * (n - 1) * k, 1)
            states = FactorGroup(graph, ids[:, :, side].reshape(shape), negated[:, :, side].reshape(shape))
            active = present[:, :, side] & real[:, :, other_side, None]
            auxiliary = (sums.reshape(-1, k), 1.0)
            builder.literal_rows(self, states, -1.0, 0.0, 0.0, active.reshape(batch, -1), auxiliary)


class SequenceBudget(Factor):
    """A binary sequence with at most `budget` ones, where two neighbours that are both 1 score `transition`.

    `literals` have shape (batch, ..., n), one sequence along the last dimension; `budget` is an int or an int tensor
    (batch,), `transition` a number or a differentiable tensor that broadcasts to (batch, ..., n − 1). Padding is
    skipped: between neighbours a < b the transition that leaves a counts.
    """

    def __init__(self, literals: Literals, budget: int | Tensor, transition: float | Tensor = 0.0) -> None:
        super().__init__(literals, dim=-1)
        batch = torch.Size([self.group.graph.batch])
        self.budget = _inputs.as_budget(budget, batch, self.group.graph.device)
        _inputs.require_budget(self.budget)
        edges = (*literals.shape[:-1], max(self.size - 1, 0))
        self.transition = broadcast_scores(transition, edges, self, "transition")
        real = self.mask.cpu().numpy()
        next_real = np.full((self.rows, self.size), self.size)
        for i in range(self.size - 2, -1, -1):
            next_real[:, i] = np.where(real[:, i + 1], i + 1, next_real[:, i + 1])
        self._next = torch.from_numpy(next_real).to(self.budget.device)

    def map(self, scores: Tensor) -> Tensor:
        budget = self.budget.repeat_interleave(self.group.count)
        transition = self.transition.detach().reshape(self.rows, -1)
        return sequence_budget_map(scores, budget, transition=transition, mask=self.mask)

    def extra(self, configurations: Tensor) -> Tensor:
        padded = torch.nn.functional.pad(configurations, (0, 1))
        index = self._next[:, None, :-1].expand(-1, configurations.shape[1], -1)
        both = configurations[..., :-1] * padded.gather(-1, index)
        return torch.einsum("rke,re->rk", both, self.transition.reshape(self.rows, -1))
