"""A prediction and what it was made from: words of one text, or word pairs of two."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

Label = str | int | float | bool
Picture = Literal["lines", "heatmap"]  # how alignments are drawn


class _Drawn:
    """Ways to look at a prediction; see `rationalizer.render` for more of them."""

    def to_html(self, *, truth: Label | None = None, style: Picture = "lines") -> str:
        """A fragment of HTML with its style."""
        from rationalizer.render.html import to_html

        return to_html(self, truth=truth, style=style)  # type: ignore[arg-type]

    def to_svg(self, *, truth: Label | None = None, width: int = 720, style: Picture = "lines") -> str:
        """A picture as a file of its own."""
        from rationalizer.render.svg import to_svg

        return to_svg(self, truth=truth, width=width, style=style)  # type: ignore[arg-type]

    def _repr_html_(self) -> str:
        return self.to_html()

    def __str__(self) -> str:
        from rationalizer.render.terminal import to_terminal

        return to_terminal(self, colour=False)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Explanation(_Drawn):
    """A prediction and the words it was made from. Token k stands at `text[slice(*offsets[k])]`."""

    text: str
    label: Label  # the predicted class, or value
    probabilities: dict[Label, float] | None  # of every class; None for regression
    tokens: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]
    weights: tuple[float, ...]  # what the predictor multiplied each token with; 0: it did not see it
    selected: tuple[bool, ...]
    spans: tuple[tuple[int, int], ...]  # runs of selected tokens as characters of the text
    rationale: tuple[bool, ...] | None = None  # the human one, if known

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return _plain(self)


@dataclass(frozen=True, eq=False)
class PairExplanation(_Drawn):
    """A prediction for two texts and the word alignment it was made from.

    Word i of the premise stands at `premise[slice(*premise_offsets[i])]`, likewise for the hypothesis.
    """

    premise: str
    hypothesis: str
    label: Label
    probabilities: dict[Label, float] | None
    premise_tokens: tuple[str, ...]
    premise_offsets: tuple[tuple[int, int], ...]
    hypothesis_tokens: tuple[str, ...]
    hypothesis_offsets: tuple[tuple[int, int], ...]
    alignment: NDArray[np.float32]  # (premise words, hypothesis words) weights; 0: not aligned
    pairs: tuple[tuple[int, int], ...]  # the aligned words, as (premise word, hypothesis word) counted from 0
    faithful: bool = True  # whether the premise reached the prediction only through the alignment
    gold: tuple[tuple[int, int], ...] | None = None  # the human alignment, if known

    @property
    def words(self) -> tuple[tuple[str, str], ...]:
        """The aligned words themselves."""
        return tuple((self.premise_tokens[i], self.hypothesis_tokens[j]) for i, j in self.pairs)

    def to_dict(self) -> dict[str, Any]:
        """Plain values, ready for JSON."""
        return _plain(self)


AnyExplanation = Explanation | PairExplanation


def _plain(explanation: AnyExplanation) -> dict[str, Any]:
    values = {item.name: getattr(explanation, item.name) for item in fields(explanation)}
    if explanation.probabilities is not None:
        values["probabilities"] = {str(label): p for label, p in explanation.probabilities.items()}
    return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}
