"""Whole sentences, or a little of each."""

from __future__ import annotations

from dataclasses import dataclass

from rationalizer.constraints.base import register
from rationalizer.constraints.layer_arguments import Draft, LayerConstraints, TextConstraint
from rationalizer.ranges import Count


@register("whole-sentences", "whole-sentences")
@dataclass(frozen=True, repr=False)
class WholeSentences(TextConstraint):
    """A sentence is selected as a whole or not at all. One that is longer than the budget cannot be."""

    offered = ("whole-sentences",)

    def in_words(self) -> str:
        return "whole sentences"

    def mark(self, draft: Draft) -> None:
        draft.together |= draft.sentence[1:] == draft.sentence[:-1]


@register("per-sentence", "per-sentence=3")
@dataclass(frozen=True, repr=False)
class PerSentence(TextConstraint):
    """At most so many words of each sentence."""

    offered = ("per-sentence=3",)
    most: Count

    def in_words(self) -> str:
        return f"at most {self.most} word{'' if self.most == 1 else 's'} of a sentence"

    def limit(self, limits: LayerConstraints) -> LayerConstraints:
        return limits.at_most(per_group=self.most)
