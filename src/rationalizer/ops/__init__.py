"""Structured layers: tensors in, tensors out."""

from rationalizer.ops._info import ConvergenceWarning, Info
from rationalizer.ops.budget import budget
from rationalizer.ops.decoding import contiguous, top_k
from rationalizer.ops.fusedmax import fusedmax
from rationalizer.ops.gumbel_matching import GumbelMatching, gumbel_matching
from rationalizer.ops.matching import matching
from rationalizer.ops.matching_map import matching_map
from rationalizer.ops.pair_budget import pair_budget
from rationalizer.ops.sequence_budget import sequence_budget
from rationalizer.ops.sequence_budget_map import sequence_budget_map
from rationalizer.ops.sinkhorn import sinkhorn
from rationalizer.ops.sparsemax import sparsemax

__all__ = [
    "ConvergenceWarning",
    "GumbelMatching",
    "Info",
    "budget",
    "contiguous",
    "fusedmax",
    "gumbel_matching",
    "matching",
    "matching_map",
    "pair_budget",
    "sequence_budget",
    "sequence_budget_map",
    "sinkhorn",
    "sparsemax",
    "top_k",
]
