"""A custom constraint for pairs: a maximum number of links between distant words."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from rationalizer.constraints import PairFactorConstraint, register
from rationalizer.graph import Budget
from rationalizer.ranges import Count


@register("few-far", "few-far=1")
@dataclass(frozen=True, repr=False)
class FewFar(PairFactorConstraint):
    """At most so many links between words whose places differ by more than one."""

    most: Count

    def factors(self, z, pairs):
        far = far_links(*z.shape[1:])
        return [Budget(z[:, far], self.most)] if far.any() else []


def far_links(m, n):
    return (torch.arange(m)[:, None] - torch.arange(n)).abs() > 1
