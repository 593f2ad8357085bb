"""Recognise graphs whose problem an op of `rationalizer.ops` solves, and call it: the same solution, faster."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor

from rationalizer import ops
from rationalizer.graph.factors import AtMostOne, Budget, Factor, Pair, Xor
from rationalizer.graph.literals import FactorGroup, Variable
from rationalizer.graph.sequence_factors import SequenceBudget
from rationalizer.ops._convergence import Info

_SUMS: dict[type[Factor], str] = {Xor: "exactly_one", AtMostOne: "at_most_one"}


def dispatch_to_op(variables: list[Variable], factors: list[Factor], temperature: float) -> tuple[Tensor, Info] | None:
    """Return z (batch, variables) and convergence if one op solves the whole graph, otherwise None."""
    if len(variables) != 1 or not factors:
        return None
    z = variables[0]
    scores, mask = z.scores, z.mask
    budgets = [f for f in factors if type(f) is Budget]
    others = [f for f in factors if type(f) is not Budget]
    if len(budgets) > 1 or (budgets and not _covers(budgets[0].group, z.ids.reshape(1, 1, -1))):
        return None
    limit = budgets[0].budget.to(scores.device) if budgets else None
    if limit is not None and not others:
        flat = ops.budget(_flat(scores), limit, mask=_flat(mask), temperature=temperature)
        return flat, _closed_form(flat)
    if len(others) == 1 and scores.dim() == 2:
        other = others[0]
        if type(other) is SequenceBudget and limit is None and _covers(other.group, z.ids[:, None]):
            options: dict[str, Any] = {"transition": other.transition, "mask": mask, "temperature": temperature}
            answer: tuple[Tensor, Info] = ops.sequence_budget(scores, other.budget, return_info=True, **options)
            return answer
        neighbours = np.stack([z.ids[:, :-1], z.ids[:, 1:]], axis=-1)
        if type(other) is Pair and limit is not None and _covers(other.group, neighbours):
            # Across gaps in the mask the op pairs neighbours; Pair does not.
            gaps = (mask[:, 1:] & ~mask[:, :-1]).any()
            if not gaps and (other.scores >= 0).all():
                flat = ops.pair_budget(scores, limit, transition=other.scores, mask=mask, temperature=temperature)
                return flat, _closed_form(flat)
    if scores.dim() == 3:
        return _matching(z, others, limit, temperature)
    return None


def _matching(
    z: Variable, others: list[Factor], limit: Tensor | None, temperature: float
) -> tuple[Tensor, Info] | None:
    sides: dict[str, str] = {}
    for factor in others:
        kind = _SUMS.get(type(factor))
        if kind is None:
            return None
        for side, ids in (("rows", z.ids), ("columns", z.ids.swapaxes(1, 2))):
            if _covers(factor.group, ids) and side not in sides:
                sides[side] = kind
                break
        else:
            return None
    if len(sides) != 2:
        return None
    row_mask, column_mask = z.mask.any(-1), z.mask.any(-2)
    if not torch.equal(z.mask, row_mask[:, :, None] & column_mask[:, None, :]):
        return None
    counts = {"rows": row_mask.sum(-1), "columns": column_mask.sum(-1)}
    for side, other in (("rows", "columns"), ("columns", "rows")):
        # Infeasible problems go to the general solver, which names the conflicting factors.
        if sides[side] == "exactly_one" and (limit is not None or (counts[side] > counts[other]).any()):
            return None
    matched, info = ops.matching(
        z.scores,
        rows=sides["rows"],
        columns=sides["columns"],
        budget=limit,
        row_mask=row_mask,
        column_mask=column_mask,
        temperature=temperature,
        return_info=True,
    )
    return _flat(matched), info


def _covers(group: FactorGroup, ids: Any) -> bool:
    return not group.negated.any() and group.ids.shape == ids.shape and bool((group.ids == ids).all())


def _flat(values: Tensor) -> Tensor:
    return values.reshape(values.shape[0], -1)


def _closed_form(z: Tensor) -> Info:
    batch = z.shape[0]
    return Info(
        torch.ones(batch, dtype=torch.bool, device=z.device),
        torch.zeros(batch, dtype=torch.int64, device=z.device),
        torch.zeros(batch, dtype=torch.float64, device=z.device),
    )
