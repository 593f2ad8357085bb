"""Predictions with their reasons, and how they are drawn."""

from rationalizer.render.explanation import Explanation, Label, PairExplanation

__all__ = ["Explanation", "Label", "PairExplanation"]
