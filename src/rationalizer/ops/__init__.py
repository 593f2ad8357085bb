"""Exact structured layers on tensors.

Every op accepts any number of leading dimensions, a `mask` that is True on words (masked positions are absent, in the
value and in the gradient) and any floating dtype. It computes in float64 and works under autograd, `torch.compile`,
CUDA graphs and DDP. Scores and budget are positional arguments; all others are keyword-only. The device follows the
input: compiled kernels on CPU and CUDA, plain PyTorch or a copy to the host elsewhere.

Inputs without a solution, such as a score that is not finite or a negative budget, raise an error that names the value.
On CUDA raising would make the host wait for the device, so these rows are NaN, and solvers that did not converge do not
warn: use `return_info=True`.
"""

from rationalizer.ops._convergence import ConvergenceWarning, Info
from rationalizer.ops._errors import InfeasibleError
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
from rationalizer.ops.sequence_budget_maps import sequence_budget_maps
from rationalizer.ops.sinkhorn import sinkhorn
from rationalizer.ops.spans import spans
from rationalizer.ops.spans_map import spans_map
from rationalizer.ops.sparsemax import sparsemax

__all__ = [
    "ConvergenceWarning",
    "GumbelMatching",
    "InfeasibleError",
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
    "sequence_budget_maps",
    "sinkhorn",
    "spans",
    "spans_map",
    "sparsemax",
    "top_k",
]
