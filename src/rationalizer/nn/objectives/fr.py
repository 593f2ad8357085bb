"""FR: generator and predictor share one encoder."""

from __future__ import annotations

from rationalizer.nn.objectives.base import register
from rationalizer.nn.objectives.full_text_loss import FullTextObjective
from rationalizer.ranges import Number, Weight
from rationalizer.text import Budget


@register("fr")
class FoldedRationalization(FullTextObjective):
    """The joint loss of a generator and a predictor that share one encoder (FR; Liu et al., 2022).

    The shared encoder sees whole texts as the generator and selections as the predictor, so that neither can learn an
    encoding that the other does not have. Sets the encoder's `shared`.

    Args:
        full_text_weight: weight of the predictor's loss on whole texts.
        full_text_epochs: first epochs, in which the predictor learns from whole texts and nothing is selected.
    """

    needs_selection = True
    shares_encoder = True

    def __init__(
        self,
        *,
        budget: Budget,
        annotation_weight: float = 0.0,
        full_text_weight: Weight = 0.0,
        full_text_epochs: Number = 0,
    ) -> None:
        super().__init__(
            budget=budget,
            annotation_weight=annotation_weight,
            full_text_weight=full_text_weight,
            full_text_epochs=full_text_epochs,
        )
