"""Random graphs, built in the engine and, independently, by enumeration."""

from __future__ import annotations

import numpy as np
import torch
from local_polytope import Enumerated

from rationalizer import graph as rg


class AtLeastTwoInARow(rg.Factor):
    """A user's factor for the tests: ones come in runs of at least two; each run earns a bonus."""

    def __init__(self, literals, bonus):
        super().__init__(literals, dim=-1)
        self.bonus = bonus
        every = (torch.arange(2**self.size)[:, None] >> torch.arange(self.size)) & 1
        padded = torch.nn.functional.pad(every, (1, 1))
        alone = (padded[:, 1:-1] == 1) & (padded[:, :-2] == 0) & (padded[:, 2:] == 0)
        self.allowed = every[~alone.any(1)].double()

    def map(self, scores):
        table = self.allowed.expand(self.rows, -1, -1)
        values = (table * scores[:, None]).sum(-1) + self.extra(table)
        return self.allowed[values.argmax(1)]

    def extra(self, configurations):
        starts = configurations.clone()
        starts[..., 1:] *= 1 - configurations[..., :-1]
        return self.bonus * starts.sum(-1)


def runs(y):
    return int(y[0] + ((y[1:] == 1) & (y[:-1] == 0)).sum())


def no_loner(y):
    p = np.r_[0, y, 0]
    return not any(p[i] == 1 and p[i - 1] == 0 and p[i + 1] == 0 for i in range(1, len(p) - 1))


def random_graph(seed, variables, factors, structured=True, scale=1.0, batch=1):
    """Scores (batch, variables), a function that adds the factors to a graph, and the same factors enumerated."""
    random = np.random.default_rng(seed)
    scores = torch.from_numpy(random.standard_normal((batch, variables)) * scale)
    kinds = ["Xor", "AtMostOne", "Or", "Budget", "Imply", "XorOut", "OrOut", "AndOut", "Pair", "Pair"]
    if structured:
        kinds += ["Sequence", "SequenceBudget", "Own"]
    steps, enumerated = [], []
    for _ in range(factors):
        kind = random.choice(kinds)
        size = {"Imply": 2, "Pair": 2, "Sequence": 6}.get(kind) or int(random.integers(2, 6))
        picked = random.choice(variables, size, replace=False)
        negated = random.random(size) < 0.3
        if kind in ("Xor", "Sequence"):
            negated[:] = False  # else most graphs have no solution
        literals = [(int(v), bool(s)) for v, s in zip(picked, negated, strict=True)]
        bonus = float(random.standard_normal() * scale)
        budget = int(random.integers(1, size))
        steps.append((kind, literals, bonus, budget))
        enumerated.append(_enumerated(kind, literals, bonus, budget))

    def build(g, z):
        for kind, literals, bonus, budget in steps:
            _add(g, z, kind, literals, bonus, budget)

    return scores, build, enumerated


def _enumerated(kind, literals, bonus, budget):
    if kind == "Pair":
        return Enumerated(literals, lambda y: True, lambda y: bonus * y[0] * y[1])
    if kind == "Sequence":  # three positions of two states, transition = bonus · (state, next state)
        return Enumerated(
            literals,
            lambda y: all(y[2 * i] + y[2 * i + 1] == 1 for i in range(3)),
            lambda y: sum(bonus * y[2 * i + 1] * y[2 * i + 2] for i in range(2)),
        )
    if kind == "SequenceBudget":
        return Enumerated(literals, lambda y: y.sum() <= budget, lambda y: bonus * (y[1:] * y[:-1]).sum())
    if kind == "Own":
        return Enumerated(literals, no_loner, lambda y: bonus * runs(y))
    allowed = {
        "Xor": lambda y: y.sum() == 1,
        "AtMostOne": lambda y: y.sum() <= 1,
        "Or": lambda y: y.sum() >= 1,
        "Budget": lambda y: y.sum() <= budget,
        "Imply": lambda y: y[0] <= y[1],
        "XorOut": lambda y: y[:-1].sum() == y[-1],
        "OrOut": lambda y: y[:-1].max() == y[-1],
        "AndOut": lambda y: y[:-1].min() == y[-1],
    }
    return Enumerated(literals, allowed[kind])


def _add(g, z, kind, literals, bonus, budget):
    each = [~z[:, v] if negated else z[:, v] for v, negated in literals]
    if kind == "Pair":
        g.add(rg.Pair(*each, bonus))
    elif kind == "Imply":
        g.add(rg.Imply(*each))
    elif kind == "Budget":
        g.add(rg.Budget(each, budget))
    elif kind.endswith("Out"):
        g.add(getattr(rg, kind)(each[:-1], each[-1]))
    elif kind == "Sequence":
        chain = z[:, torch.tensor([v for v, _ in literals]).reshape(3, 2)]
        g.add(rg.Sequence(chain, torch.tensor([[0.0, 0.0], [bonus, 0.0]], dtype=torch.float64)))
    elif kind in ("SequenceBudget", "Own"):
        signs = torch.tensor([s for _, s in literals])
        chain = z[:, [v for v, _ in literals]]
        chain.negated = chain.negated ^ signs.numpy()
        g.add(rg.SequenceBudget(chain, budget, bonus) if kind == "SequenceBudget" else AtLeastTwoInARow(chain, bonus))
    else:
        g.add(getattr(rg, kind)(each))
