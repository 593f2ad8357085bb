"""Stochastic selection after Lei et al. (2016): a Bernoulli variable per token, with penalties.

All minimise E_z[ task loss + λ0 Σ z_i + λ1 Σ |z_i − z_{i+1}| ] and differ in how they estimate its gradient.
The penalty does not fix the size of the selection, so they are decoded to the budget: the best tokens or the
best span. There, too, and only there, they keep to constraints.

λ1 is 0 unless asked for. Neighbours of probability p cost 2 λ1 p (1 − p), least where they are certain, and all words
come to be selected: nothing then teaches the order among them from which the best are decoded.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from rationalizer import ops
from rationalizer.constraints import LayerConstraints
from rationalizer.nn.annotation_losses import per_marked
from rationalizer.nn.extractors.base import Extraction, Extractor, best_of_most, neighbours, register
from rationalizer.nn.method import Objective
from rationalizer.nn.precision import single_or_more
from rationalizer.ranges import Share, Temperature, Weight

Decoding = Literal["top-k", "contiguous"]


def decode_to_budget(
    decoding: Decoding, scores: Tensor, mask: Tensor, budget: Tensor, limits: LayerConstraints | None = None
) -> Tensor:
    """The `budget` tokens with the highest scores, or the span of that length with the highest total.

    Under limits: of the selections (or single spans) with the most tokens that these allow, the one with the highest.
    """
    if limits is not None:
        return best_of_most(scores, mask, budget, limits if decoding == "top-k" else limits.at_most(spans=1))
    select = ops.top_k if decoding == "top-k" else ops.contiguous
    return select(scores, budget, mask=mask).to(scores.dtype)


def _negative_log(scores: Tensor, z: Tensor) -> Tensor:
    """−log P(z) of every word by itself."""
    scores = single_or_more(scores)
    return functional.binary_cross_entropy_with_logits(scores, z.to(scores), reduction="none")


class _Bernoulli(Extractor):
    imitates = True

    def __init__(
        self, size: int, *, sparsity: Weight = 0.01, fused: Weight = 0.0, decoding: Decoding = "top-k"
    ) -> None:
        super().__init__(size)
        if decoding not in get_args(Decoding):
            raise ValueError(f"decoding must be one of {', '.join(get_args(Decoding))}, got {decoding!r}")
        self.scorer = nn.Linear(size, 1)
        self.sparsity = sparsity
        self.fused = fused
        self.decoding: Decoding = decoding

    @classmethod
    def takes_constraints(cls, options: Mapping[str, Any]) -> bool:
        return True

    @torch.no_grad()
    def decode(
        self, states: Tensor, mask: Tensor, budget: Tensor, limits: LayerConstraints | None = None
    ) -> Extraction:
        scores = self.scorer(states).squeeze(-1)
        return Extraction(decode_to_budget(self.decoding, scores, mask, budget, limits), scores)

    def imitation(
        self,
        extraction: Extraction,
        marked: Tensor,
        mask: Tensor,
        budget: Tensor,
        limits: LayerConstraints | None = None,
    ) -> Tensor:
        """−log p(what is marked)."""
        return per_marked((_negative_log(extraction.scores, marked) * mask).sum(-1), marked)

    def penalty(self, z: Tensor, mask: Tensor) -> Tensor:
        """(batch,) λ0 Σ z_i + λ1 Σ |z_i − z_{i+1}|."""
        left, right, real = neighbours(z, mask)
        return self.sparsity * z.sum(-1) + self.fused * ((right - left).abs() * real).sum(-1)


@register("sfe")
class ScoreFunction(_Bernoulli):
    """The score function estimator (REINFORCE): the gradient of E[cost] is E[cost · ∇ log p(z)].

    z ~ Bernoulli(σ(score)) is exactly 0/1. The predictor learns from the task loss as it is; the generator
    from the surrogate (cost − baseline) · log p(z), with cost = task loss + penalty taken as a constant. Here
    the baseline is 0.
    """

    passes_gradient = False

    def forward(
        self, states: Tensor, mask: Tensor, budget: Tensor, limits: LayerConstraints | None = None
    ) -> Extraction:
        scores = self.scorer(states).squeeze(-1)
        with torch.no_grad():
            z = torch.bernoulli(single_or_more(scores).sigmoid()).to(scores.dtype) * mask
        return Extraction(z, scores)

    def objective(
        self,
        extraction: Extraction,
        task_loss: Tensor,
        mask: Tensor,
        budget: Tensor,
        limits: LayerConstraints | None = None,
    ) -> Objective:
        cost = task_loss.detach() + self.penalty(extraction.z, mask)
        surrogate = ((cost - self.baseline(cost)) * self.log_probability(extraction, mask)).mean()
        return Objective(task_loss.mean() + surrogate, self.moved(cost))

    def log_probability(self, extraction: Extraction, mask: Tensor) -> Tensor:
        """(batch,) log p(z) = Σ z_i log σ(s_i) + (1 − z_i) log σ(−s_i)."""
        return -(_negative_log(extraction.scores, extraction.z) * mask).sum(-1)

    def baseline(self, cost: Tensor) -> Tensor:
        return cost.new_zeros(())

    def moved(self, cost: Tensor) -> dict[str, Tensor]:
        return {}


@register("sfe-baseline")
class ScoreFunctionWithBaseline(ScoreFunction):
    """The score function estimator with the moving average of past costs as baseline, to reduce variance."""

    average: Tensor
    batches: Tensor

    def __init__(
        self,
        size: int,
        *,
        sparsity: Weight = 0.01,
        fused: Weight = 0.0,
        decoding: Decoding = "top-k",
        momentum: Share = 0.99,
    ) -> None:
        super().__init__(size, sparsity=sparsity, fused=fused, decoding=decoding)
        self.momentum = momentum
        self.register_buffer("average", torch.zeros(()))
        self.register_buffer("batches", torch.zeros(()))

    def baseline(self, cost: Tensor) -> Tensor:
        return self.average

    def moved(self, cost: Tensor) -> dict[str, Tensor]:
        # Early batches all count the same, so that the average starts at the first cost and not at 0.
        weight = (1 / (self.batches + 1)).clamp(min=1 - self.momentum)
        average = self.average + weight * (self.whole_batch_mean(cost.mean()) - self.average)
        return {"average": average, "batches": self.batches + 1}


@register("gumbel")
class Gumbel(_Bernoulli):
    """Binary Gumbel-softmax (binary concrete): relaxed Bernoulli samples, gradients by reparameterization.

    z = σ((score + log u − log(1 − u))/T), u uniform: log u − log(1 − u) is the difference of two Gumbel
    variables, and as T falls z becomes a Bernoulli(σ(score)) sample. In training every word keeps some
    weight; the penalty is that of the relaxed z.
    """

    def __init__(
        self,
        size: int,
        *,
        sparsity: Weight = 0.01,
        fused: Weight = 0.0,
        decoding: Decoding = "top-k",
        temperature: Temperature = 0.5,
    ) -> None:
        super().__init__(size, sparsity=sparsity, fused=fused, decoding=decoding)
        self.temperature = temperature

    def forward(
        self, states: Tensor, mask: Tensor, budget: Tensor, limits: LayerConstraints | None = None
    ) -> Extraction:
        scores = self.scorer(states).squeeze(-1)
        noise = torch.rand_like(scores, dtype=torch.float32).clamp(1e-6, 1 - 1e-6).logit()
        z = ((single_or_more(scores) + noise) / self.temperature).sigmoid()
        return Extraction(z.to(scores.dtype) * mask, scores)

    def objective(
        self,
        extraction: Extraction,
        task_loss: Tensor,
        mask: Tensor,
        budget: Tensor,
        limits: LayerConstraints | None = None,
    ) -> Objective:
        return Objective((task_loss + self.penalty(extraction.z, mask)).mean())
