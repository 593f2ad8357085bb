"""A model's own words beside those of an attribution: the figures, and texts to compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from rationalizer.drawing.explanation import AnyExplanation
from rationalizer.drawing.html import HtmlTable, Section
from rationalizer.metrics import METRICS

EXPLAINED = (
    "The model selects words and reads these alone. An attribution asks the same predictor, having read the whole "
    "text, which words mattered; it is cut to as many words as the model selected. Comprehensiveness is how far the "
    "probability of what is predicted from the whole text falls without the words (more is better), sufficiency how "
    "far it falls with nothing else (less is better)."
)


@dataclass(frozen=True)
class AttributionRow:
    """A way to choose words, and what was measured of it."""

    name: str
    comprehensiveness: float
    sufficiency: float
    overlap: float


@dataclass(frozen=True)
class AttributionReport:
    """Figures of all texts, and some texts explained in two ways."""

    rows: Sequence[AttributionRow]
    name: str  # of the attribution
    own: Sequence[AnyExplanation]
    attributed: Sequence[AnyExplanation]


def attribution_table(found: AttributionReport) -> HtmlTable:
    lines = [
        [
            row.name,
            METRICS["comprehensiveness"].format_value(row.comprehensiveness),
            METRICS["sufficiency"].format_value(row.sufficiency),
            f"{row.overlap:.0%}",
        ]
        for row in found.rows
    ]
    return HtmlTable(("words", "comprehensiveness", "sufficiency", "shared with the model"), lines)


def attribution_sections(found: AttributionReport) -> list[Section]:
    explanations = [one for pair in zip(found.own, found.attributed, strict=True) for one in pair]
    captions = [
        "The model's own words, and what it predicts from them",
        f"By {found.name}, and what is predicted from the whole text",
    ] * len(found.own)
    return [
        Section("Comparison with an attribution", text=EXPLAINED, tables=[attribution_table(found)]),
        Section(
            text="Texts in which the two differ most; the words of either are marked.",
            explanations=explanations,
            captions=captions,
        ),
    ]
