"""SPECTRA's objective."""

from __future__ import annotations

from rationalizer.nn.base_model import Model
from rationalizer.nn.objectives.base import Objective, ObjectiveLoss, TrainingStep, register


@register("joint")
class Joint(Objective):
    """Generator and predictor minimise the loss of the prediction from the selection."""

    def loss(self, model: Model, step: TrainingStep) -> ObjectiveLoss:
        output, task_loss = self.select(model, step)
        loss = self.method_loss(model, output, task_loss, step)
        return ObjectiveLoss(loss + self.annotation_loss(model, output, step), task_loss, output)
