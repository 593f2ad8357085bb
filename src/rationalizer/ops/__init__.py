"""Structured layers: tensors in, tensors out.

Every layer takes any number of leading dimensions, a `mask` that is True on real tokens (masked means absent, in value
and in gradient) and any floating dtype, computes in float64, and works under autograd, `torch.compile`, CUDA graphs and
DDP. The device follows the input: compiled loops on CPU and CUDA, plain torch or the host elsewhere.

What has no answer raises an error that names the value: a score that is not finite, a negative budget. On CUDA raising
would mean waiting for the device, so there such rows come out as NaN, and solvers that stop short do not warn: ask with
`return_info=True`.
"""

from rationalizer.ops._convergence import ConvergenceWarning, Info
from rationalizer.ops.budget import budget
from rationalizer.ops.decoding import contiguous, top_k
from rationalizer.ops.fusedmax import fusedmax
from rationalizer.ops.gumbel_matching import GumbelMatching, gumbel_matching
from rationalizer.ops.matching import matching
from rationalizer.ops.matching_map import matching_map
from rationalizer.ops.monotone_matching import monotone_matching
from rationalizer.ops.monotone_matching_map import monotone_matching_map
from rationalizer.ops.pair_budget import pair_budget
from rationalizer.ops.sequence_budget import sequence_budget
from rationalizer.ops.sequence_budget_map import sequence_budget_map
from rationalizer.ops.sinkhorn import sinkhorn
from rationalizer.ops.spans import spans
from rationalizer.ops.spans_map import spans_map
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
    "monotone_matching",
    "monotone_matching_map",
    "pair_budget",
    "sequence_budget",
    "sequence_budget_map",
    "sinkhorn",
    "spans",
    "spans_map",
    "sparsemax",
    "top_k",
]
