"""The base class of objectives, and their registry."""

from __future__ import annotations

import inspect
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple

from torch import Tensor

from rationalizer.discovery import Registry
from rationalizer.nn.base_model import Model, Output
from rationalizer.text import Budget, WordBatch


@dataclass(frozen=True)
class TrainingStep:
    """A batch with labels, or one process' part of it, and its position in the training."""

    texts: tuple[WordBatch, ...]
    labels: Tensor
    constraints: Any = None  # the batch's `LayerConstraints` or `PairLayerConstraints`
    annotation: Tensor | None = None  # (batch, n) bool, or (batch, m, n) for pairs
    epoch: int = 0
    # The factor between the loss and what is differentiated: the part's weight, 1/accumulate, the fp16 loss scale.
    gradient_scale: float = 1.0
    # Turns the mean over this process' part into the mean over the whole batch.
    global_mean: Callable[[Tensor], Tensor] = lambda mean: mean


class ObjectiveLoss(NamedTuple):
    loss: Tensor  # scalar to minimise, a mean over this process' part of the batch
    task_loss: Tensor  # (batch,) the losses of the predictions, for the history
    output: Output | None = None  # the model's output; None if nothing was selected


class Objective(ABC):
    """The loss that training minimises.

    The arguments of a constructor are settings of the training (fields of `Config`) by name.

    Args:
        budget: the budget of selections.
        annotation_weight: weight of the loss of the scores against people's annotation, if there is any.
    """

    name: ClassVar[str]
    warmup_epochs: int = 0  # first epochs without selections; their weights are never kept

    def __init__(self, *, budget: Budget, annotation_weight: float = 0.0) -> None:
        self.budget = budget
        self.annotation_weight = annotation_weight

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
        return self.annotation_weight * model.annotation_loss(output, step.annotation).mean()


OBJECTIVES: Registry[type[Objective]] = Registry("objective")
register = OBJECTIVES.register


def make_objective(name: str, config: Any) -> Objective:
    """Build the objective of a run; its arguments are the fields of `config` with their names."""
    kind = OBJECTIVES[name]
    return kind(**{argument: getattr(config, argument) for argument in inspect.signature(kind).parameters})
