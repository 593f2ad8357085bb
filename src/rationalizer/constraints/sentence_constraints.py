"""Constraints on sentences."""

from __future__ import annotations

from dataclasses import dataclass

from rationalizer.constraints.base import register
from rationalizer.constraints.layer_arguments import LayerConstraints, TextConstraint, TextRequirements
from rationalizer.plurals import count_of
from rationalizer.ranges import Count


@register("whole-sentences", "whole-sentences")
@dataclass(frozen=True, repr=False)
class WholeSentences(TextConstraint):
    """A sentence is selected as a whole or not at all; one that is longer than the budget never."""

    suggested = ("whole-sentences",)

    def describe(self) -> str:
        return "whole sentences"

    def update_text(self, text: TextRequirements) -> None:
        text.together |= text.sentence[1:] == text.sentence[:-1]


@register("per-sentence", "per-sentence=3")
@dataclass(frozen=True, repr=False)
class PerSentence(TextConstraint):
    """At most this many words of each sentence."""

    suggested = ("per-sentence=3",)
    most: Count

    def describe(self) -> str:
        return f"at most {count_of(self.most, 'word')} of a sentence"

    def update_layer(self, layer: LayerConstraints) -> LayerConstraints:
        return layer.at_most(per_group=self.most)
