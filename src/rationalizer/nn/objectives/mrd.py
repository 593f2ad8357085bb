"""MRD: what remains of a text without its rationale must not tell what the whole text tells."""

from __future__ import annotations

from typing import Any

from torch import Tensor

from rationalizer.nn.base_model import Model, Output
from rationalizer.nn.highlight_model import HighlightModel
from rationalizer.nn.objectives.base import TrainingStep, register, train_generator_on
from rationalizer.nn.objectives.full_text_loss import FullTextObjective
from rationalizer.ranges import Weight


@register("mrd")
class MaximalRemainingDiscrepancy(FullTextObjective):
    """The generator maximises KL(p(y|x) ‖ p(y|1 − z)), the prediction from the remaining words (MRD; Liu et al., 2024).

    The predictor minimises its loss on selections, plus `complement_weight` times its loss on the remaining words, plus
    `full_text_weight` times its loss on whole texts. Selections are constants to it. For regression the squared
    difference of the predictions takes the place of the KL.

    Args:
        complement_weight: weight of the predictor's loss on the words that are not selected.
        full_text_weight: weight of the predictor's loss on whole texts.
    """

    needs_selection = True
    needs_gradient = True

    def __init__(self, *, complement_weight: Weight = 1.0, full_text_weight: Weight = 1.0, **settings: Any) -> None:
        super().__init__(full_text_weight=full_text_weight, **settings)
        self.complement_weight = complement_weight

    def extra_loss(self, model: Model, output: Output, step: TrainingStep) -> Tensor | float:
        assert isinstance(model, HighlightModel)
        (words,) = step.texts
        whole = model.full_text_outputs(words)
        assert whole is not None
        real = words.mask.to(output.z.dtype)
        remaining = model.predict_from((real if output.z.dim() == 2 else real[:, None]) - output.z, words)
        train_generator_on(-model.head.divergence(whole.detach(), remaining).mean(), output, step)
        loss = self.full_text_weight * model.head.loss(whole, step.labels).mean()
        return loss + self.complement_weight * model.head.loss(remaining, step.labels).mean()
