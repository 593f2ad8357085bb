"""The factor graph: variables, factors, and the problems it solves."""

from __future__ import annotations

from typing import Literal

import numpy as np
import torch
from torch import Tensor

from rationalizer.graph.branch_and_bound import branch_and_bound, lp_vertex
from rationalizer.graph.factors import Factor
from rationalizer.graph.gradient import attach_gradient
from rationalizer.graph.literals import BoolArray, IntArray, Literals, Variable
from rationalizer.graph.op_dispatch import dispatch_to_op
from rationalizer.graph.program import Builder, Program, infeasible
from rationalizer.graph.solver import SolverResult, solve
from rationalizer.ops import _inputs
from rationalizer.ops._convergence import Info, warn_unless_converged

_REMEDY = "raise max_rounds, or raise the temperature"


class Solution:
    """The values of a graph's variables, and the solver's convergence, one entry per instance of the batch."""

    def __init__(
        self, graph: FactorGraph, values: Tensor, converged: Tensor, iterations: Tensor, residual: Tensor
    ) -> None:
        self._graph = graph
        self._values = values
        self.converged = converged
        self.iterations = iterations
        self.residual = residual

    @property
    def integral(self) -> Tensor:
        """Whether all values are 0 or 1."""
        values = self._values.detach()
        return ((values - values.round()).abs() <= 1e-8).all(-1)

    def __getitem__(self, literals: Literals) -> Tensor:
        """Return the values of a variable or of literals, in their shape; 1 − value for negated literals."""
        if not isinstance(literals, Literals) or literals.graph is not self._graph:
            raise KeyError("a solution is indexed by variables or literals of its own graph")
        if isinstance(literals, Variable):
            picked = self._values[:, literals.offset : literals.offset + literals.size]
            return picked.reshape(literals.shape).to(literals.scores.dtype)
        batch = self._graph.batch
        ids = torch.from_numpy(np.broadcast_to(literals.ids, literals.shape).reshape(batch, -1).copy())
        negated = torch.from_numpy(np.broadcast_to(literals.negated, literals.shape).copy())
        values = self._values.gather(1, ids.to(self._values.device)).reshape(literals.shape)
        values = torch.where(negated.to(values.device), 1 - values, values)
        return values.to(self._graph.variables[0].scores.dtype)


class FactorGraph:
    """Binary variables with scores, and factors that restrict or score assignments.

    >>> g = FactorGraph()
    >>> z = g.variable(scores)                 # (batch, m, n)
    >>> g.add(Xor(z, dim=-1))                  # every row has exactly one 1
    >>> g.add(Budget(z, 4))                    # at most four 1s in all
    >>> solution = g.lp_sparsemap()
    >>> solution[z]                            # (batch, m, n), differentiable
    """

    def __init__(self) -> None:
        self.variables: list[Variable] = []
        self.factors: list[Factor] = []
        self.mask: BoolArray = np.zeros((0, 0), np.bool_)

    @property
    def batch(self) -> int:
        return self.mask.shape[0]

    @property
    def size(self) -> int:
        """The number of binary variables of an instance."""
        return self.mask.shape[1]

    @property
    def device(self) -> torch.device:
        return self.variables[0].scores.device

    def present(self, ids: IntArray) -> BoolArray:
        """Return whether the entries with these ids (1 or batch, ...) are real, not padding: (batch, ...)."""
        lead = np.arange(self.batch).reshape(-1, *[1] * (ids.ndim - 1))
        return self.mask[lead, ids]

    def variable(self, scores: Tensor, mask: Tensor | None = None) -> Variable:
        """Binary variables, one per entry of `scores` (batch, *shape).

        Args:
            scores: what each variable adds to the objective if it is 1. Differentiable.
            mask: bool, `scores`' shape (or a prefix of it, e.g. (batch, n) for (batch, n, k)), True on real entries.
                The others are absent: their value is exactly 0, they get no gradient, and factors apply to the rest
                (see each factor's docstring).
        """
        _inputs.check_scores(scores, dims=1, shape_hint="(batch, *shape)")
        if self.variables and scores.shape[0] != self.batch:
            raise ValueError(f"all variables of a graph share the batch size {self.batch}, got {scores.shape[0]}")
        if self.variables and scores.device != self.device:
            raise ValueError(f"all variables of a graph share the device {self.device}, got {scores.device}")
        if isinstance(mask, Tensor) and mask.shape == scores.shape[: mask.dim()]:
            mask = mask.reshape(*mask.shape, *[1] * (scores.dim() - mask.dim())).expand_as(scores)
        mask = _inputs.check_mask(mask, scores.shape, scores.device)
        _inputs.require_finite_scores(scores.detach(), mask)
        clean = torch.where(mask, scores, 0.0)
        variable = Variable(self, self.size, clean, mask)
        flat = mask.reshape(scores.shape[0], -1).cpu().numpy()
        self.mask = np.concatenate([self.mask, flat], axis=1) if self.variables else flat
        self.variables.append(variable)
        return variable

    def add(self, factor: Factor) -> None:
        """Add a factor, or one per position of its other dimensions (see `dim` of `Factor`)."""
        if not isinstance(factor, Factor):
            raise TypeError(f"add takes a factor such as Xor(z, dim=-1), got {type(factor).__name__}")
        if factor.group.graph is not self:
            raise ValueError(f"{factor!r} has variables of another graph")
        self.factors.append(factor)

    def lp_sparsemap(
        self, *, temperature: float = 1.0, solver: Literal["auto", "general"] = "auto", max_rounds: int = 500
    ) -> Solution:
        """argmax s·z + Σ factors' own scores − ½‖z‖² over the local polytope; scores divided by `temperature`.

        The local polytope is the set of z that are, for every factor, the marginals of a distribution over its allowed
        configurations. The solution is exact, and differentiable in the scores of variables and factors.

        Args:
            temperature: divides all scores; lower is sparser, in the limit `lp_map`.
            solver: "auto" uses the op of `rationalizer.ops` that solves the same problem (budget, pair_budget,
                sequence_budget, matching), if there is one; "general" always uses the general solver.
            max_rounds: largest number of queries to the oracles of structured factors.
        """
        _inputs.check_temperature(temperature)
        if solver not in ("auto", "general"):
            raise ValueError(f'solver must be "auto" or "general", got {solver!r}')
        self._require_variables()
        if solver == "auto" and (solved := dispatch_to_op(self.variables, self.factors, temperature)) is not None:
            return self._solution(*solved, "lp_sparsemap")
        program = self._program(temperature, quadratic=True)
        result = solve(program, temperature, max_rounds)
        self._require_feasible(program, result)
        return self._solution(attach_gradient(program, result, temperature), self._info(result), "lp_sparsemap")

    def lp_map(self, *, max_rounds: int = 500) -> Solution:
        """argmax s·z + Σ factors' own scores over the local polytope: a vertex, often but not always 0/1. No gradient.

        If `solution.integral`, it is the MAP.
        """
        program = self._program(1.0, quadratic=False)
        result, _ = lp_vertex(program, max_rounds)
        self._require_feasible(program, result)
        return self._solution(torch.from_numpy(result.x).to(self.device), self._info(result), "lp_map")

    def map(self, *, max_nodes: int = 2000, max_rounds: int = 500) -> Solution:
        """Return the best assignment, exactly 0/1: argmax s·z + Σ factors' own scores over the allowed assignments.

        Branch and bound on `lp_map`: immediate if that is 0/1, otherwise a search that may take too long on graphs with
        many loops. Raises RuntimeError after `max_nodes` programs for an instance.
        """
        program = self._program(1.0, quadratic=False)
        values, nodes = branch_and_bound(program, max_rounds, max_nodes)
        done = torch.ones(self.batch, dtype=torch.bool, device=self.device)
        return Solution(
            self,
            torch.from_numpy(values).to(self.device),
            converged=done,
            iterations=torch.from_numpy(nodes).to(self.device),
            residual=torch.zeros(self.batch, dtype=torch.float64, device=self.device),
        )

    def _program(self, temperature: float, quadratic: bool) -> Program:
        self._require_variables()
        builder = Builder(self)
        for factor in self.factors:
            factor.compile(builder)
        return builder.build(temperature, quadratic)

    def _require_variables(self) -> None:
        if not self.variables:
            raise ValueError("the graph has no variables; add one with graph.variable(scores)")

    def _require_feasible(self, program: Program, result: SolverResult) -> None:
        if not result.feasible.all():
            instance = int(np.argmin(result.feasible))
            blame = np.abs(result.multipliers[instance, : len(program.row_factor)])
            raise infeasible(instance, [program.row_factor[i] for i in (blame > 0.1 * blame.max()).nonzero()[0]])

    def _info(self, result: SolverResult) -> Info:
        arrays = (result.converged, result.iterations, result.residual)
        return Info(*(torch.from_numpy(values).to(self.device) for values in arrays))

    def _solution(self, values: Tensor, info: Info, name: str) -> Solution:
        warn_unless_converged(info, name, _REMEDY)
        return Solution(self, values[:, : self.size], *info)
