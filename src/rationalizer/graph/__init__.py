"""Factor graphs: differentiable layers under any constraint that has a MAP oracle."""

from rationalizer.graph.factors import AndOut, AtMostOne, Budget, Factor, Imply, Or, OrOut, Pair, Xor, XorOut
from rationalizer.graph.graph import FactorGraph, Solution
from rationalizer.graph.literals import Literals, Variable
from rationalizer.graph.sequence_factors import Sequence, SequenceBudget
from rationalizer.ops import InfeasibleError

__all__ = [
    "AndOut",
    "AtMostOne",
    "Budget",
    "Factor",
    "FactorGraph",
    "Imply",
    "InfeasibleError",
    "Literals",
    "Or",
    "OrOut",
    "Pair",
    "Sequence",
    "SequenceBudget",
    "Solution",
    "Variable",
    "Xor",
    "XorOut",
]
