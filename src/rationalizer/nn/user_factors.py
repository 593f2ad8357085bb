"""User-defined factors in the graph of a method."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from rationalizer.constraints import ConstraintConflict, LayerConstraints, PairLayerConstraints
from rationalizer.graph import FactorGraph, InfeasibleError, Solution, Variable


def solve_with_user_factors(
    graph: FactorGraph,
    z: Variable,
    constraints: LayerConstraints | PairLayerConstraints,
    solve: Callable[[FactorGraph], Solution],
) -> Tensor:
    """Add the user's factors to the graph and solve for z; raise `ConstraintConflict` if a text has no solution."""
    examples = [text.example for text in constraints.texts]
    for constraint in constraints.factors:
        for factor in constraint.factors(z, examples):
            graph.add(factor)
    try:
        return solve(graph)[z]
    except InfeasibleError as error:
        problem, remedy = f"no selection satisfies all factors: {error}", "leave a constraint out, or change it"
        if error.instance is None:
            raise ConstraintConflict(problem, remedy) from None
        raise constraints.texts[error.instance].conflict(constraints.factors, problem, remedy) from None
