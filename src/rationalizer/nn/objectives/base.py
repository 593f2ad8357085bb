"""The base class of objectives, and their registry."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

import torch
from torch import Tensor, nn

from rationalizer.discovery import Registry
from rationalizer.nn.base_model import Model, Output
from rationalizer.nn.method import check_settings, constructor_settings
from rationalizer.text import Budget, WordBatch

ModelPart = Literal["generator", "predictor", "both"]


@dataclass(frozen=True)
class TrainingStep:
    """A batch with labels, or one process' part of it, and its position in the training."""

    texts: tuple[WordBatch, ...]
    labels: Tensor
    constraints: Any = None  # the batch's `LayerConstraints` or `PairLayerConstraints`
    annotation: Tensor | None = None  # (batch, n) bool, or (batch, m, n) for pairs
    removed: Tensor | None = None  # (batch, n) bool: words of a model's rationale that people unmarked
    epoch: int = 0
    # The factor between the loss and what is differentiated: the part's weight, 1/accumulate, the fp16 loss scale.
    gradient_scale: float = 1.0
    # Turns the mean over this process' part into the mean over the whole batch.
    global_mean: Callable[[Tensor], Tensor] = lambda mean: mean


class ObjectiveLoss(NamedTuple):
    loss: Tensor  # scalar to minimise, a mean over this process' part of the batch
    task_loss: Tensor  # (batch,) the losses of the predictions, for the history
    output: Output | None = None  # the model's output; None if nothing was selected


class Objective(nn.Module, ABC):
    """The loss that training minimises, and the learning rates of the parts relative to each other.

    The keyword-only arguments of a constructor are settings of the training, except the two below, which all
    objectives have and receive through `**common`. Annotate numbers with the types of `ranges.py`.

    Submodules are used in training only: they are in its checkpoints, but not in the trained model.

    Args:
        budget: the budget of selections.
        annotation_weight: weight of the loss of the scores against people's annotation, if there is any.
    """

    name: ClassVar[str]
    needs_selection: ClassVar[bool] = False  # whether the method must select words of single texts
    needs_gradient: ClassVar[bool] = False  # whether the predictor's gradient must reach the generator through z
    shares_encoder: ClassVar[bool | None] = None  # whether generator and predictor must share a network; None: may
    uses_selected_share: ClassVar[bool] = False  # whether `rate_factor` depends on `selected`
    warmup_epochs: int = 0  # first epochs without selections; their weights are never kept

    def __init__(self, *, budget: Budget, annotation_weight: float = 0.0) -> None:
        super().__init__()
        self.budget = budget
        self.annotation_weight = annotation_weight
        # Further generators that are trained beside the model's. Their parameters have the names of the model's.
        self.generators = nn.ModuleList()

    @classmethod
    def options(cls) -> dict[str, tuple[type, Any]]:
        """The objective's own settings: name -> (type, default)."""
        return {name: each for name, each in constructor_settings(cls).items() if name not in COMMON}

    @classmethod
    def check(cls, options: Mapping[str, Any]) -> None:
        """Raise ValueError if a setting is out of its range."""
        check_settings(cls, options)

    @classmethod
    def encoder_defaults(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        """The defaults of encoder settings under this objective, from the other settings of the encoder."""
        return {} if cls.shares_encoder is None or "shared" not in options else {"shared": cls.shares_encoder}

    def prepare(self, model: Model, sample: Callable[[], tuple[WordBatch, ...]]) -> None:
        """Build what the training needs beside the model. Called once, before the training or before a checkpoint is
        loaded; `sample` returns some of the training texts."""

    def start_epoch(self, model: Model, epoch: int) -> None:
        """Called before the first batch of every epoch, counted from 0."""

    def rate_factor(self, part: ModelPart, generator: int, selected: float) -> float:
        """The factor on the learning rate of a part.

        Args:
            part: "both" for parameters that generator and predictor share.
            generator: 1 for the model's own parameters, 2 for the first of `generators`, and so on.
            selected: the share of words selected in the last batch, if `uses_selected_share`.
        """
        return 1.0

    @abstractmethod
    def loss(self, model: Model, step: TrainingStep) -> ObjectiveLoss:
        """The loss of a batch. Run the model, and update the buffers of its method."""

    def select(self, model: Model, step: TrainingStep) -> tuple[Output, Tensor]:
        """Run the model: its output, and the (batch,) losses of its predictions."""
        output = model(*step.texts, budget=self.budget, constraints=step.constraints)
        return output, model.head.loss(output.outputs, step.labels)

    def method_loss(self, model: Model, output: Output, task_loss: Tensor, step: TrainingStep) -> Tensor:
        """The method's own loss on the selection; updates the method's buffers."""
        with model.method.synchronized(step.global_mean):
            loss, state = model.method_loss(output, task_loss)
        for name, value in state.items():
            setattr(model.method, name, value.detach())
        return loss

    def annotation_loss(self, model: Model, output: Output, step: TrainingStep) -> Tensor | float:
        """The weighted loss of the scores against the annotation; 0 without annotation."""
        if step.annotation is None:
            return 0.0
        # A mean over all texts: those without annotation add 0, and the others weigh the same in every batch.
        return self.annotation_weight * model.annotation_loss(output, step.annotation, step.removed).mean()


COMMON = frozenset(constructor_settings(Objective))  # arguments of all objectives
OBJECTIVES: Registry[type[Objective]] = Registry("objective")
register = OBJECTIVES.register


def train_generator_on(term: Tensor, output: Output, step: TrainingStep) -> None:
    """Let the generator minimise `term` through the selection, in place of the loss on the predictions.

    The backward pass of the loss replaces its gradient at z by that of `term`. The predictor's gradients, and those of
    the method's penalties, which do not pass through z, stay as they are.
    """
    if not output.z.requires_grad:
        return
    (gradient,) = torch.autograd.grad(step.gradient_scale * term, output.z, retain_graph=True)
    output.z.register_hook(lambda _: gradient)  # type: ignore[no-untyped-call]


def make_objective(name: str, config: Any) -> Objective:
    """Build the objective of a run from `config`: the arguments of all objectives, and its `objective_options`."""
    common = {argument: getattr(config, argument) for argument in COMMON}
    return OBJECTIVES[name](**common, **config.objective_options)
