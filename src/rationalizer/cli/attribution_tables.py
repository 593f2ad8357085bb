"""What `rationalizer evaluate --attributions` measures and prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, cast

from rationalizer.cli.base import out, show_table
from rationalizer.cli.overview_tables import show_explanations
from rationalizer.progress import show_progress

if TYPE_CHECKING:
    from rationalizer.drawing.attribution_section import AttributionReport
    from rationalizer.inference import Predictions
    from rationalizer.model import Rationalizer
    from rationalizer.text import AnyExample, Example

EXAMPLES = 3  # texts to show, those in which the selections differ most


def beside_attributions(
    model: Rationalizer, examples: Sequence[AnyExample], predictions: Predictions, method: str
) -> AttributionReport:
    """The model's own words beside those of an attribution."""
    from dataclasses import replace

    import numpy as np

    from rationalizer.drawing.attribution_section import AttributionReport, AttributionRow
    from rationalizer.inference import compare_with_attributions
    from rationalizer.inference.attribution_comparison import PASSES

    texts = cast("Sequence[Example]", examples)
    with show_progress("Attributing", (1 + PASSES) * len(texts)) as done:
        found = compare_with_attributions(model.trained, texts, method, predictions=predictions, on_batch=done)
    # Without human rationales, which would be drawn as well: the two ways are to be compared with each other.
    plain = [replace(text, annotation=None) for text in texts]
    pairs = zip(found.own.masks, found.attributed.masks, strict=True)
    apart = [int((own & ~other).sum()) / max(int(own.sum()), 1) for own, other in pairs]
    shown = np.argsort(-np.array(apart), kind="stable")[:EXAMPLES].tolist()
    own = model.explain_examples(plain, predictions=predictions)
    attributed = model.explain_examples(plain, predictions=found.as_predictions())
    rows = [
        AttributionRow(way.name, way.comprehensiveness, way.sufficiency, way.overlap)
        for way in (found.own, found.attributed, found.chance)
    ]
    return AttributionReport(rows, method, [own[k] for k in shown], [attributed[k] for k in shown])


def show_beside(found: AttributionReport) -> None:
    from rationalizer.drawing.attribution_section import attribution_table

    table = attribution_table(found)
    show_table(table.heads, table.lines)
    out.print("p(y|x) is this model's predictor on the whole text; all choose as many words in each text")
    for own, attributed in zip(found.own, found.attributed, strict=True):
        show_explanations("The model's own", [own])
        show_explanations(f"By {found.name}", [attributed])
