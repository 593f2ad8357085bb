"""Factors that users wrote, beside those of a method."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from rationalizer.constraints import ConstraintConflict, LayerConstraints, PairLayerConstraints
from rationalizer.graph import FactorGraph, InfeasibleError, Solution, Variable


def solve_with_own(
    graph: FactorGraph,
    z: Variable,
    limits: LayerConstraints | PairLayerConstraints,
    solve: Callable[[FactorGraph], Solution],
) -> Tensor:
    """z of a graph with the users' factors added; raise `ConstraintConflict` if they leave a text no selection."""
    examples = [text.example for text in limits.texts]
    for constraint in limits.factors:
        for factor in constraint.factors(z, examples):
            graph.add(factor)
    try:
        return solve(graph)[z]
    except InfeasibleError as error:
        problem, remedy = f"no selection satisfies all of them: {error}", "leave a constraint out, or change it"
        if error.instance is None:
            raise ConstraintConflict(problem, remedy) from None
        raise limits.texts[error.instance].conflict(limits.factors, problem, remedy) from None
