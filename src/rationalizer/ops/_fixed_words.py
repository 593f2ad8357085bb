"""A problem with some words fixed, and no other constraint but the budget, is one on the free words alone."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from rationalizer.ops import _inputs
from rationalizer.ops._span_constraints import require_feasible, require_fixed


class FreeWords(NamedTuple):
    scores: Tensor
    transition: Tensor
    mask: Tensor
    budget: Tensor  # what the words that must be selected leave of it
    must: Tensor  # (rows, n) bool
    feasible: Tensor  # (rows,) bool; on the CPU always, as all else raises

    def with_fixed(self, z: Tensor) -> Tensor:
        return (z + self.must.to(z)).masked_fill(~self.feasible[:, None], 0.0)


def free_words(scores: Tensor, transition: Tensor, mask: Tensor, fixed: Tensor, budget: Tensor) -> FreeWords:
    """A word next to one that must be selected earns their transition by itself; across a fixed word there is none."""
    rows, n = scores.shape
    wanted = fixed.masked_fill(~mask, 0)
    places = torch.arange(n, device=scores.device).expand(rows, n)
    following = places.masked_fill(~mask, n).flip(-1).cummin(-1).values.flip(-1)
    following = torch.nn.functional.pad(following, (0, 1), value=n)[:, 1:]  # the next real word, n where there is none
    before = places.masked_fill(~mask, -1).cummax(-1).values
    before = torch.nn.functional.pad(before, (1, 0), value=-1)[:, :n]
    leaving = torch.nn.functional.pad(transition, (0, n - transition.shape[1]))
    wanted_next = torch.nn.functional.pad(wanted, (0, 1)).gather(-1, following)
    wanted_before = wanted.gather(-1, before.clamp(min=0)).masked_fill(before < 0, 0)
    entering = leaving.gather(-1, before.clamp(min=0))
    gained = leaving.masked_fill(wanted_next != 1, 0.0) + entering.masked_fill(wanted_before != 1, 0.0)
    edges = leaving.masked_fill(wanted_next != 0, 0.0)[:, : transition.shape[1]]
    must = wanted == 1
    musts = must.sum(-1)
    room = _room(budget, musts, fixed, mask)
    edges = edges.masked_fill((room <= 1)[:, None], 0.0)  # one word has no neighbour to be selected with
    feasible = (budget >= musts) | (budget < 0)
    return FreeWords(scores + gained, edges, mask & (wanted == 0), room, must, feasible)


@_inputs.opaque("spans_room")
def _room(budget: Tensor, musts: Tensor, fixed: Tensor, mask: Tensor) -> Tensor:
    return torch.where(budget < 0, budget, (budget - musts).clamp(min=0))


@_room.register_kernel("cpu")
def _(budget: Tensor, musts: Tensor, fixed: Tensor, mask: Tensor) -> Tensor:
    _inputs.require_budget(budget)
    require_fixed(fixed, mask)
    require_feasible(budget >= musts)
    return budget - musts


@_room.register_fake
def _(budget: Tensor, musts: Tensor, fixed: Tensor, mask: Tensor) -> Tensor:
    return torch.empty_like(budget)
