"""Stochastic selection after Lei et al. (2016): one Bernoulli variable per word, with penalties.

All methods minimise E_z[ task loss + λ0 Σ z_i + λ1 Σ |z_i − z_{i+1}| ] and differ in how they estimate its gradient.
The penalty does not fix the size of the selection, so `decode` selects the best words, or the best span, of the
budget. Only `decode` satisfies constraints.

λ1 is 0 by default. For neighbours with selection probability p the λ1 term is 2 λ1 p (1 − p), which is smallest at
p = 0 and p = 1. In practice it drives all probabilities to 1, and training then learns no ranking of the words, which
decoding needs.
"""

from __future__ import annotations

from typing import Any, Literal, get_args

import torch
from torch import Tensor
from torch.nn import functional

from rationalizer import ops
from rationalizer.constraints import LayerConstraints
from rationalizer.nn.annotation_losses import per_annotated
from rationalizer.nn.extractors.base import Extraction, LinearExtractor, largest_selection, neighbours, register
from rationalizer.nn.method import MethodLoss
from rationalizer.nn.precision import at_least_float32
from rationalizer.ranges import Share, Temperature, Weight

Decoding = Literal["top-k", "contiguous"]


def decode_to_budget(
    decoding: Decoding, scores: Tensor, mask: Tensor, budget: Tensor, constraints: LayerConstraints | None = None
) -> Tensor:
    """The `budget` words with the highest scores, or the span of that length with the highest total.

    Under constraints: of the selections (or single spans) with the most words, the one with the highest total.
    """
    if constraints is not None:
        return largest_selection(scores, mask, budget, tightened(decoding, constraints))
    select = ops.top_k if decoding == "top-k" else ops.contiguous
    return select(scores, budget, mask=mask).to(scores.dtype)


def tightened(decoding: Decoding, constraints: LayerConstraints) -> LayerConstraints:
    return constraints if decoding == "top-k" else constraints.at_most(spans=1)


def _negative_log_likelihood(scores: Tensor, z: Tensor) -> Tensor:
    """−log P(z_i) of every word."""
    scores = at_least_float32(scores)
    return functional.binary_cross_entropy_with_logits(scores, z.to(scores), reduction="none")


class Bernoulli(LinearExtractor):
    """The settings that the stochastic methods share.

    Args:
        sparsity: penalty for each selected word in training.
        fused: penalty for each change between selected and not selected.
        decoding: the words with the highest scores, or the best single span, up to the budget.
    """

    def __init__(
        self, size: int, *, sparsity: Weight = 0.01, fused: Weight = 0.0, decoding: Decoding = "top-k"
    ) -> None:
        super().__init__(size)
        if decoding not in get_args(Decoding):
            raise ValueError(f"decoding must be one of {', '.join(get_args(Decoding))}, got {decoding!r}")
        self.sparsity = sparsity
        self.fused = fused
        self.decoding: Decoding = decoding

    def forward(
        self, states: Tensor, mask: Tensor, budget: Tensor, constraints: LayerConstraints | None = None
    ) -> Extraction:
        scores = self.score(states)
        return Extraction(self.sample(scores).to(scores.dtype) * mask, scores)

    def sample(self, scores: Tensor) -> Tensor:
        """z ~ Bernoulli(σ(score)), or a relaxation of it."""
        raise NotImplementedError

    @torch.no_grad()
    def decode(
        self, states: Tensor, mask: Tensor, budget: Tensor, constraints: LayerConstraints | None = None
    ) -> Extraction:
        scores = self.score(states)
        return Extraction(self.decode_scores(scores, mask, budget, constraints), scores)

    def decode_scores(
        self, scores: Tensor, mask: Tensor, budget: Tensor, constraints: LayerConstraints | None = None
    ) -> Tensor:
        return decode_to_budget(self.decoding, scores, mask, budget, constraints)

    def tightened(self, constraints: LayerConstraints) -> LayerConstraints:
        return tightened(self.decoding, constraints)

    def annotation_loss(self, extraction: Extraction, annotation: Tensor, mask: Tensor, budget: Tensor) -> Tensor:
        """−log p(annotation)."""
        losses = (_negative_log_likelihood(extraction.scores, annotation) * mask).sum(-1)
        return per_annotated(losses, annotation)

    def penalty(self, z: Tensor, mask: Tensor) -> Tensor:
        """(batch,) λ0 Σ z_i + λ1 Σ |z_i − z_{i+1}|."""
        left, right, real = neighbours(z, mask)
        return self.sparsity * z.sum(-1) + self.fused * ((right - left).abs() * real).sum(-1)


@register("sfe")
class ScoreFunction(Bernoulli):
    """The score function estimator (REINFORCE): the gradient of E[cost] is E[cost · ∇ log p(z)].

    z ~ Bernoulli(σ(score)) is exactly 0/1. The predictor learns from the task loss; the generator from the surrogate
    (cost − baseline) · log p(z), with cost = task loss + penalty taken as a constant. Here the baseline is 0.
    """

    passes_gradient = False

    @torch.no_grad()
    def sample(self, scores: Tensor) -> Tensor:
        return torch.bernoulli(at_least_float32(scores).sigmoid())

    def loss(self, extraction: Extraction, task_loss: Tensor, mask: Tensor, budget: Tensor) -> MethodLoss:
        cost = task_loss.detach() + self.penalty(extraction.z, mask)
        surrogate = ((cost - self.baseline(cost)) * self.log_probability(extraction, mask)).mean()
        return MethodLoss(task_loss.mean() + surrogate, self.updated_baseline(cost))

    def log_probability(self, extraction: Extraction, mask: Tensor) -> Tensor:
        """(batch,) log p(z) = Σ z_i log σ(s_i) + (1 − z_i) log σ(−s_i)."""
        return -(_negative_log_likelihood(extraction.scores, extraction.z) * mask).sum(-1)

    def baseline(self, cost: Tensor) -> Tensor:
        return cost.new_zeros(())

    def updated_baseline(self, cost: Tensor) -> dict[str, Tensor]:
        return {}


@register("sfe-baseline")
class ScoreFunctionWithBaseline(ScoreFunction):
    """The score function estimator with the moving average of past costs as baseline, to reduce variance.

    Args:
        momentum: decay of the moving average.
    """

    average: Tensor
    batches: Tensor

    def __init__(self, size: int, *, momentum: Share = 0.99, **settings: Any) -> None:
        super().__init__(size, **settings)
        self.momentum = momentum
        self.register_buffer("average", torch.zeros(()))
        self.register_buffer("batches", torch.zeros(()))

    def baseline(self, cost: Tensor) -> Tensor:
        return self.average

    def updated_baseline(self, cost: Tensor) -> dict[str, Tensor]:
        # Early batches have equal weights, so that the average starts at the first cost and not at 0.
        weight = (1 / (self.batches + 1)).clamp(min=1 - self.momentum)
        average = self.average + weight * (self.global_mean(cost.mean()) - self.average)
        return {"average": average, "batches": self.batches + 1}


@register("gumbel")
class Gumbel(Bernoulli):
    """Binary Gumbel-softmax (binary concrete): relaxed Bernoulli samples, gradients by reparameterization.

    z = σ((score + log u − log(1 − u))/T), u uniform: log u − log(1 − u) is the difference of two Gumbel
    variables, and as T falls z becomes a Bernoulli(σ(score)) sample. In training every word has a positive
    weight; the penalty is that of the relaxed z.

    Args:
        temperature: of the relaxed samples; near 0 they are 0 or 1, and gradients are noisy.
    """

    def __init__(self, size: int, *, temperature: Temperature = 0.5, **settings: Any) -> None:
        super().__init__(size, **settings)
        self.temperature = temperature

    def sample(self, scores: Tensor) -> Tensor:
        noise = torch.rand_like(scores, dtype=torch.float32).clamp(1e-6, 1 - 1e-6).logit()
        return ((at_least_float32(scores) + noise) / self.temperature).sigmoid()

    def loss(self, extraction: Extraction, task_loss: Tensor, mask: Tensor, budget: Tensor) -> MethodLoss:
        return MethodLoss((task_loss + self.penalty(extraction.z, mask)).mean())
