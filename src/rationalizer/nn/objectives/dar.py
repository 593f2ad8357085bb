"""DAR: a frozen classifier of whole texts must also classify the selection."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor

from rationalizer.nn.base_model import Model, Output
from rationalizer.nn.highlight_model import HighlightModel
from rationalizer.nn.objectives.base import TrainingStep, register
from rationalizer.nn.objectives.full_text_loss import FullTextObjective
from rationalizer.nn.shared_parts import Parts, copy_parts, predictor_names, with_parts
from rationalizer.ranges import Count, Weight
from rationalizer.text import WordBatch


@register("dar")
class DiscriminativeAlignment(FullTextObjective):
    """The joint loss plus the loss of a frozen full-text classifier on the selection (DAR; Liu et al., 2024).

    The predictor first learns from whole texts alone. Its weights are then copied to the classifier, which never
    changes again; the predictor goes on learning from selections. The generator must select words that both classify
    correctly.

    Args:
        classifier_weight: weight of the frozen classifier's loss on selections.
        full_text_epochs: first epochs, in which the classifier learns from whole texts and nothing is selected.
        full_text_weight: weight of the predictor's loss on whole texts, in later epochs.
    """

    needs_selection = True
    needs_gradient = True
    classifier: Parts

    def __init__(
        self,
        *,
        classifier_weight: Weight = 1.0,
        full_text_epochs: Count = 2,
        full_text_weight: Weight = 0.0,
        **settings: Any,
    ) -> None:
        super().__init__(full_text_epochs=full_text_epochs, full_text_weight=full_text_weight, **settings)
        self.classifier_weight = classifier_weight

    def prepare(self, model: Model, sample: Callable[[], tuple[WordBatch, ...]]) -> None:
        self.classifier = copy_parts(model, predictor_names(model)).requires_grad_(False)

    def start_epoch(self, model: Model, epoch: int) -> None:
        if epoch == self.warmup_epochs:
            self.classifier.load_state_dict(copy_parts(model, predictor_names(model)).state_dict())

    def extra_loss(self, model: Model, output: Output, step: TrainingStep) -> Tensor | float:
        classifier = with_parts(model, self.classifier)
        assert isinstance(classifier, HighlightModel)
        outputs = classifier.predict_from(output.z, *step.texts)
        loss = self.classifier_weight * classifier.head.loss(outputs, step.labels).mean()
        return loss + super().extra_loss(model, output, step)
