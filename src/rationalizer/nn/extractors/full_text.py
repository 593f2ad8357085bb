"""The baseline without a rationale."""

from __future__ import annotations

from torch import Tensor

from rationalizer.nn.extractors.base import Extraction, Extractor, register


@register("full-text")
class FullText(Extractor):
    """Select every word: z = 1. There is no generator."""

    uses_generator = False
    uses_budget = False

    def forward(self, states: Tensor, mask: Tensor, budget: Tensor) -> Extraction:
        z = mask.to(states.dtype)
        return Extraction(z, z)

    decode = forward
