"""MCD: the generator preserves the prediction from the whole text."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from rationalizer.nn.base_model import Model, Output
from rationalizer.nn.objectives.base import TrainingStep, register, train_generator_on
from rationalizer.nn.objectives.full_text_loss import FullTextObjective
from rationalizer.ranges import Weight


@register("mcd")
class MinimalConditionalDependence(FullTextObjective):
    """The generator minimises KL(p(y|x) ‖ p(y|z)) alone; the predictor learns from labels (MCD; Liu et al., 2023).

    The predictor minimises its loss on selections, which are constants to it, plus `full_text_weight` times its loss
    on whole texts. For regression the squared difference of the predictions takes the place of the KL.

    Args:
        full_text_weight: weight of the predictor's loss on whole texts.
    """

    needs_selection = True
    needs_gradient = True

    def __init__(self, *, full_text_weight: Weight = 1.0, **settings: Any) -> None:
        super().__init__(full_text_weight=full_text_weight, **settings)

    def extra_loss(self, model: Model, output: Output, step: TrainingStep) -> Tensor | float:
        outputs = model.full_text_outputs(*step.texts)
        assert outputs is not None
        train_generator_on(model.head.divergence(outputs.detach(), output.outputs).mean(), output, step)
        return self.full_text_weight * model.head.loss(outputs, step.labels).mean()
