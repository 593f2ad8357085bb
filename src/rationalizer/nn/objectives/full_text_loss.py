"""The joint objective with a predictor that also learns from whole texts."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from rationalizer.nn.base_model import Model, Output
from rationalizer.nn.objectives.base import Objective, ObjectiveLoss, TrainingStep, register
from rationalizer.ranges import Number, Weight


@register("full-text")
class FullTextObjective(Objective):
    """The joint loss plus `full_text_weight` times the predictor's loss on whole texts.

    Full texts tie what words mean to the predictor to what they mean in texts. Without them generator and predictor
    can agree on a code, in which the choice of words carries information that the words do not. Predictions are
    always made from selections.

    Args:
        full_text_weight: weight of the predictor's loss on whole texts.
        full_text_epochs: first epochs, in which the predictor learns from whole texts and nothing is selected.
    """

    def __init__(self, *, full_text_weight: Weight = 3.0, full_text_epochs: Number = 0, **common: Any) -> None:
        super().__init__(**common)
        self.full_text_weight = full_text_weight
        self.warmup_epochs = full_text_epochs

    def loss(self, model: Model, step: TrainingStep) -> ObjectiveLoss:
        if step.epoch < self.warmup_epochs:
            outputs = model.full_text_outputs(*step.texts)
            if outputs is not None:
                task_loss = model.head.loss(outputs, step.labels)
                return ObjectiveLoss(task_loss.mean(), task_loss)
        output, task_loss = self.select(model, step)
        loss = self.method_loss(model, output, task_loss, step) + self.extra_loss(model, output, step)
        return ObjectiveLoss(loss + self.annotation_loss(model, output, step), task_loss, output)

    def extra_loss(self, model: Model, output: Output, step: TrainingStep) -> Tensor | float:
        """What is minimised besides the loss on the selection: here the predictor's loss on whole texts."""
        outputs = model.full_text_outputs(*step.texts) if self.full_text_weight else None
        return 0.0 if outputs is None else self.full_text_weight * model.head.loss(outputs, step.labels).mean()
