"""HardKuma variables with a Lagrangian on the rate of selection (Bastings et al., 2019)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Annotated, Any, Literal, get_args

import torch
from torch import Tensor, nn
from torch.nn import functional

from rationalizer.constraints import LayerConstraints
from rationalizer.nn.annotation_losses import per_annotated
from rationalizer.nn.extractors.base import Extraction, Extractor, neighbours, register
from rationalizer.nn.extractors.bernoulli import decode_to_budget, tightened
from rationalizer.nn.method import MethodLoss
from rationalizer.nn.precision import at_least_float32
from rationalizer.ranges import Fraction, Positive, Range, Weight

Decoding = Literal["deterministic", "top-k", "contiguous"]

# The support (0, 1) of the Kumaraswamy variable is stretched to this interval and then clipped to [0, 1].
LOW, HIGH = -0.1, 1.1
LEAK = 0.01  # small compared with the largest gradient of the rate, 1/e


class HardKumaDistribution:
    """z = min(1, max(0, LOW + (HIGH − LOW) k)), k ~ Kumaraswamy(a, b), P(k <= x) = 1 − (1 − xᵃ)ᵇ.

    0 and 1 have positive probability, values between have a density, and samples are differentiable in a and b.
    """

    def __init__(self, a: Tensor, b: Tensor) -> None:
        self.a = a
        self.b = b

    def sample(self) -> Tensor:
        u = torch.rand_like(self.a).clamp(1e-6, 1 - 1e-6)
        # k = (1 − (1 − u)^(1/b))^(1/a), by logarithms, so that no power over- or underflows on the way.
        log_k = torch.log(-torch.expm1(torch.log1p(-u) / self.b)) / self.a
        return (LOW + (HIGH - LOW) * log_k.exp()).clamp(0, 1)

    def log_above(self, value: float) -> Tensor:
        """log P(LOW + (HIGH − LOW) k > value)."""
        log_x = math.log((value - LOW) / (HIGH - LOW))
        return self.b * _log_complement(self.a * log_x)

    def most_likely(self) -> Tensor:
        """The likeliest of 0, 1 and the values between; for the last, the mean of the stretched variable."""
        zero, one = -torch.expm1(self.log_above(0.0)), self.log_above(1.0).exp()
        between = 1 - zero - one
        # E[k] = b B(1 + 1/a, b), B the beta function.
        first = 1 + 1 / self.a
        log_mean = self.b.log() + first.lgamma() + self.b.lgamma() - (first + self.b).lgamma()
        mean = (LOW + (HIGH - LOW) * log_mean.exp()).clamp(0, 1)
        rounded = (one > zero).to(mean.dtype)
        return torch.where((between > zero) & (between > one), mean, rounded)


def _log_complement(log_x: Tensor) -> Tensor:
    """log(1 − x) from log x < 0, accurate both near x = 0, where the result is small, and near x = 1."""
    near_one = torch.log(-torch.expm1(log_x.clamp(min=-1)))
    return torch.where(log_x > -1, near_one, torch.log1p(-log_x.clamp(max=-1).exp()))


@register("hardkuma")
class HardKuma(Extractor):
    """Selection by HardKuma variables. An augmented Lagrangian holds the average share of selected words at the budget.

    Minimises E[task loss] s.t. rate = target and changes <= fused_target, all means over the batch, with
    rate = Σ P(z_i ≠ 0)/length and changes = Σ P(exactly one of z_i, z_{i+1} is 0)/length. The loss gets λ c for each
    constraint with violation c, and penalty/2 · c² for the rate. Each multiplier follows the moving average of its
    violation: λ ← λ · exp(lagrangian_rate · c), within [lambda_min, lambda_max]. Without a fused_target changes are
    free, as in the code of Bastings et al.

    Multipliers alone, as first published, act too late: until they have grown, all words are selected with certainty,
    so that no gradient distinguishes them, and then all are dropped at once. The penalty therefore holds the rate at a
    target that falls from the whole text to the budget during the first `target_warmup` of the training, while the
    predictor learns. If learning is so fast that all words become certain nevertheless, the penalty still has a
    gradient (LEAK).

    `decoding="deterministic"` takes the likeliest of 0, 1 and the mean of each variable: the selection has the learned
    size and ignores the budget. "top-k" and "contiguous" follow the budget.

    Args:
        decoding: the likeliest values, or a selection up to the budget.
        penalty: weight of the squared deviation of the selected share from its target.
        target_warmup: share of the training in which the target falls from the whole text to the budget.
        fused_target: largest mean share of changes between selected and not selected; none: any.
        lagrangian_rate: how fast the multipliers follow the violations.
        lagrangian_momentum: decay of the moving average of the violations.
        lambda_init: the multipliers at the start.
        lambda_min: the smallest multiplier.
        lambda_max: the largest multiplier.
    """

    has_annotation_loss = True

    multipliers: Tensor
    violations: Tensor

    def __init__(
        self,
        size: int,
        *,
        decoding: Decoding = "deterministic",
        penalty: Weight = 10.0,
        target_warmup: Fraction = 0.25,
        fused_target: Annotated[float | None, Range(0, 1, none=True)] = None,
        lagrangian_rate: Annotated[float, Range(0, 10)] = 0.05,
        lagrangian_momentum: Fraction = 0.99,
        lambda_init: Positive = 1e-4,
        lambda_min: Positive = 1e-6,
        lambda_max: Positive = 1.0,
    ) -> None:
        super().__init__(size)
        if decoding not in get_args(Decoding):
            raise ValueError(f"decoding must be one of {', '.join(get_args(Decoding))}, got {decoding!r}")
        self.parameters_of = nn.Linear(size, 2)
        self.decoding: Decoding = decoding
        self.penalty = penalty
        self.target_warmup = target_warmup
        self.fused_target = fused_target
        self.rate = lagrangian_rate
        self.momentum = lagrangian_momentum
        self.bounds = (lambda_min, lambda_max)
        self.register_buffer("multipliers", torch.full((2,), lambda_init))
        self.register_buffer("violations", torch.zeros(2))

    @classmethod
    def check(cls, options: Mapping[str, Any]) -> None:
        super().check(options)
        low, high = options["lambda_min"], options["lambda_max"]
        if low > high:
            raise ValueError(f"lambda_min must be at most lambda_max, got {low} and {high}")

    @classmethod
    def supports_constraints(cls, options: Mapping[str, Any]) -> bool:
        return options["decoding"] != "deterministic"

    @property
    def is_warmed_up(self) -> bool:
        return self.progress >= self.target_warmup

    @property
    def follows_budget(self) -> bool:
        return self.decoding != "deterministic"

    def distribution(self, states: Tensor) -> HardKumaDistribution:
        a, b = functional.softplus(at_least_float32(self.parameters_of(states))).clamp(1e-6, 100).unbind(-1)
        return HardKumaDistribution(a, b)

    def forward(
        self, states: Tensor, mask: Tensor, budget: Tensor, constraints: LayerConstraints | None = None
    ) -> Extraction:
        variables = self.distribution(states)
        return Extraction(variables.sample() * mask, variables.log_above(0.0))

    @torch.no_grad()
    def decode(
        self, states: Tensor, mask: Tensor, budget: Tensor, constraints: LayerConstraints | None = None
    ) -> Extraction:
        variables = self.distribution(states)
        scores = variables.log_above(0.0)
        if self.decoding == "deterministic":
            return Extraction(variables.most_likely() * mask, scores)
        return Extraction(self.decode_scores(scores, mask, budget, constraints), scores)

    def decode_scores(
        self, scores: Tensor, mask: Tensor, budget: Tensor, constraints: LayerConstraints | None = None
    ) -> Tensor:
        assert self.decoding != "deterministic"
        return decode_to_budget(self.decoding, scores, mask, budget, constraints)

    def tightened(self, constraints: LayerConstraints) -> LayerConstraints:
        assert self.decoding != "deterministic"
        return tightened(self.decoding, constraints)

    def loss(self, extraction: Extraction, task_loss: Tensor, mask: Tensor, budget: Tensor) -> MethodLoss:
        excess = self.excess(extraction.scores, mask, budget)
        global_excess = self.global_mean(excess)
        violations = self.momentum * self.violations + (1 - self.momentum) * global_excess
        multipliers = (self.multipliers * torch.exp(self.rate * violations)).clamp(*self.bounds)
        # This has the gradient of penalty/2 · c², c of the whole batch, however many processes share it.
        quadratic = self.penalty * global_excess[0] * (excess[0] + self.leaked_rate(extraction.scores, mask))
        loss = task_loss.mean() + multipliers @ excess + quadratic
        return MethodLoss(loss, {"multipliers": multipliers, "violations": violations})

    def leaked_rate(self, scores: Tensor, mask: Tensor) -> Tensor:
        """Return a term with value 0 and the gradient of LEAK · mean(t), where t = −log(−log P(z ≠ 0)).

        The gradient of P = e^(−e^(−t)) vanishes as P approaches 1, so that a penalty on P alone could not lower it
        again. The gradient of t does not vanish.
        """
        steady = -(-scores).clamp(min=torch.finfo(scores.dtype).tiny).log()
        rate = ((steady * mask).sum(-1) / mask.sum(-1).clamp(min=1)).mean()
        return LEAK * (rate - rate.detach())

    def annotation_loss(self, extraction: Extraction, annotation: Tensor, mask: Tensor, budget: Tensor) -> Tensor:
        """−log P(z ≠ 0 exactly on the annotated words)."""
        selected = at_least_float32(extraction.scores).clamp(max=-1e-6)  # log P(z ≠ 0), short of certainty
        unselected = torch.log(-torch.expm1(selected))
        return per_annotated(-(torch.where(annotation, selected, unselected) * mask).sum(-1), annotation)

    def excess(self, scores: Tensor, mask: Tensor, budget: Tensor) -> Tensor:
        """(2,) the amounts by which the rate and the changes exceed their targets."""
        lengths = mask.sum(-1).clamp(min=1)
        selected = scores.exp() * mask
        # The share of the words beyond the budget that the current target still allows.
        above = 1 - self.progress / self.target_warmup if self.progress < self.target_warmup else 0.0
        rate = (selected.sum(-1) - budget - above * (lengths - budget)) / lengths
        if self.fused_target is None:
            return torch.stack([rate.mean(), rate.new_zeros(())])
        left, right, real = neighbours(selected, mask)
        changes = ((left * (1 - right) + (1 - left) * right) * real).sum(-1) / lengths
        return torch.stack([rate.mean(), changes.mean() - self.fused_target])
