"""Everything is selected: the yardstick without a rationale."""

from __future__ import annotations

from torch import Tensor

from rationalizer.nn.extractors.base import Extraction, Extractor, register


@register("full-text")
class FullText(Extractor):
    """z = 1 on every token; there is no generator."""

    reads_text = False
    uses_budget = False

    def forward(self, states: Tensor, mask: Tensor, budget: Tensor) -> Extraction:
        z = mask.to(states.dtype)
        return Extraction(z, z)

    def decode(self, states: Tensor, mask: Tensor, budget: Tensor) -> Extraction:
        return self(states, mask, budget)
