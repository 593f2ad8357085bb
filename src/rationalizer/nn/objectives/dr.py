"""DR: the predictor learns more slowly than the generator."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rationalizer.nn.objectives.base import ModelPart, register
from rationalizer.nn.objectives.full_text_loss import FullTextObjective
from rationalizer.ranges import Share, Weight


@register("dr")
class DecoupledRationalization(FullTextObjective):
    """The joint loss, with the predictor's learning rate multiplied by the selected share (DR; Liu et al., 2023).

    The predictor's rate is the generator's times max(`slowest`, share of the words selected in the batch): a predictor
    that learns slowly cannot adapt to poor selections before they improve. By default the encoder's `predictor_rate`
    equals its `generator_rate`.

    Args:
        slowest: smallest factor on the predictor's rate.
        full_text_weight: weight of the predictor's loss on whole texts.
    """

    needs_selection = True
    shares_encoder = False
    uses_selected_share = True

    def __init__(self, *, slowest: Share = 0.05, full_text_weight: Weight = 0.0, **settings: Any) -> None:
        super().__init__(full_text_weight=full_text_weight, **settings)
        self.slowest = slowest

    @classmethod
    def encoder_defaults(cls, options: Mapping[str, Any]) -> dict[str, Any]:
        return super().encoder_defaults(options) | equal_rates(options)

    def rate_factor(self, part: ModelPart, generator: int, selected: float) -> float:
        return max(self.slowest, selected) if part == "predictor" else 1.0


def equal_rates(options: Mapping[str, Any]) -> dict[str, Any]:
    """The predictor's rate is the generator's, for encoders with separate rates."""
    return {"predictor_rate": options["generator_rate"]} if "predictor_rate" in options else {}
