"""What `rationalizer evaluate` adds where several people marked the same texts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, cast

from rationalizer.cli.base import out, show_table
from rationalizer.progress import show_progress

if TYPE_CHECKING:
    from rationalizer.models import TrainedModel
    from rationalizer.text import AnyExample, Example


def show_people(trained: TrainedModel, examples: Sequence[AnyExample]) -> dict[str, Any] | None:
    """How far people agree, and the model in the place of one of them; None where fewer than two marked any text."""
    from rationalizer.inference import compare_with_annotators
    from rationalizer.metrics import METRICS

    texts = cast("Sequence[Example]", () if trained.pairs else examples)
    many = sum(
        len(text.annotator_masks)
        for text in texts
        if text.annotator_masks is not None and len(text.annotator_masks) > 1
    )
    if not many:
        return None
    if not trained.model.method.follows_budget:
        out.print(f"what {trained.config.method} selects follows no budget: it is not set beside single people")
        return None
    with show_progress("Taking people's places", many) as done:
        found = compare_with_annotators(trained, texts, on_batch=done)
    show = METRICS["token_f1"].format_value
    readings = {"a person": found.person, "the model": found.model, "chance": found.chance}
    show_table(
        ["in the place of a person", "token-F1 with each other", "AUPRC"],
        [[name, show(reading.token_f1), show(reading.auprc)] for name, reading in readings.items()],
    )
    out.print(
        f"{found.texts} texts, marked by {found.people:.1f} people each, {found.marked:.0%} of the words by each; the "
        "model selects as many words as the person whose place it takes"
    )
    return asdict(found)
