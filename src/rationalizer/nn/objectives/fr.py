"""FR: generator and predictor share one encoder."""

from __future__ import annotations

from typing import Any

from rationalizer.nn.objectives.base import register
from rationalizer.nn.objectives.full_text_loss import FullTextObjective
from rationalizer.ranges import Weight


@register("fr")
class FoldedRationalization(FullTextObjective):
    """The joint loss of a generator and a predictor that share one encoder (FR; Liu et al., 2022).

    The shared encoder sees whole texts as the generator and selections as the predictor, so that neither can learn an
    encoding that the other does not have. Sets the encoder's `shared`.

    Args:
        full_text_weight: weight of the predictor's loss on whole texts.
    """

    needs_selection = True
    shares_encoder = True

    def __init__(self, *, full_text_weight: Weight = 0.0, **settings: Any) -> None:
        super().__init__(full_text_weight=full_text_weight, **settings)
