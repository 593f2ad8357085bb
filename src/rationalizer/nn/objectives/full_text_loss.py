"""The joint objective with a predictor that also learns from whole texts."""

from __future__ import annotations

from typing import Literal

import torch
from torch import Tensor

from rationalizer.nn.base_model import Model, Output
from rationalizer.nn.objectives.base import Objective, ObjectiveLoss, TrainingStep, register
from rationalizer.text import Budget


@register("full-text")
class FullTextObjective(Objective):
    """The joint loss plus `full_text_weight` times the predictor's loss on whole texts.

    Full texts tie what words mean to the predictor to what they mean in texts. Without them generator and predictor
    can agree on a code, in which the choice of words carries information that the words do not. Predictions are
    always made from selections.

    Args:
        full_text_weight: weight of the loss on whole texts.
        full_text_epochs: number of first epochs that train on whole texts only.
        guide: "label": the generator learns from the loss on the selection. "full-text" (as in MCD): it learns from
            KL(p(y|z) ‖ p(y|x)) alone, and the predictor from the labels alone.
    """

    def __init__(
        self,
        *,
        budget: Budget,
        annotation_weight: float = 0.0,
        full_text_weight: float = 3.0,
        full_text_epochs: int = 0,
        guide: Literal["label", "full-text"] = "label",
    ) -> None:
        super().__init__(budget=budget, annotation_weight=annotation_weight)
        self.full_text_weight = full_text_weight
        self.warmup_epochs = full_text_epochs
        self.guide = guide

    def loss(self, model: Model, step: TrainingStep) -> ObjectiveLoss:
        if step.epoch < self.warmup_epochs:
            outputs = model.full_text_outputs(*step.texts)
            if outputs is not None:
                task_loss = model.head.loss(outputs, step.labels)
                return ObjectiveLoss(task_loss.mean(), task_loss)
        output, task_loss = self.select(model, step)
        loss = self.method_loss(model, output, task_loss, step) + self.full_text_loss(model, output, step)
        return ObjectiveLoss(loss + self.annotation_loss(model, output, step), task_loss, output)

    def full_text_loss(self, model: Model, output: Output, step: TrainingStep) -> Tensor | float:
        guided = self.guide == "full-text"
        outputs = model.full_text_outputs(*step.texts) if self.full_text_weight or guided else None
        if outputs is None:
            return 0.0
        if guided and output.z.requires_grad:
            divergence = step.gradient_scale * model.head.divergence(output.outputs, outputs.detach()).mean()
            (gradient,) = torch.autograd.grad(divergence, output.z, retain_graph=True)
            # The backward pass replaces the labels' gradient at z by this one.
            output.z.register_hook(lambda _: gradient)  # type: ignore[no-untyped-call]
        return self.full_text_weight * model.head.loss(outputs, step.labels).mean()
