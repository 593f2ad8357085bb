"""A custom constraint: a maximum number of sentences with selected words."""

from __future__ import annotations

from dataclasses import dataclass

import torch

from rationalizer.constraints import FactorConstraint, register
from rationalizer.graph import Factor
from rationalizer.ranges import Count
from rationalizer.text import sentence_numbers


class InFewSentences(Factor):
    """The selected words come from at most `most` sentences."""

    def __init__(self, z, texts, most):
        super().__init__(z, dim=-1)
        self.most = most
        self.sentence = torch.zeros(z.shape, dtype=torch.int64)
        for row, text in zip(self.sentence, texts, strict=True):
            row[: len(text.tokens)] = torch.from_numpy(sentence_numbers(text))

    def map(self, scores):
        # Of each sentence the words that gain; of the sentences those that gain most.
        gain = torch.where(self.mask, scores.clamp(min=0), 0.0)
        totals = gain.new_zeros(self.rows, int(self.sentence.max()) + 1).scatter_add(1, self.sentence, gain)
        best = totals.topk(min(self.most, totals.shape[1])).indices
        kept = torch.zeros_like(totals).scatter(1, best, 1.0)
        return kept.gather(1, self.sentence) * (gain > 0)


@register("few-sentences", "few-sentences=2")
@dataclass(frozen=True, repr=False)
class FewSentences(FactorConstraint):
    """Words of at most so many sentences."""

    most: Count

    def factors(self, z, texts):
        return [InFewSentences(z, texts, self.most)]
