"""What `rationalizer evaluate --overview` prints."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from rationalizer.cli.base import out, show_table

if TYPE_CHECKING:
    from rationalizer.drawing import AnyExplanation, Label

WORDS = 12  # of each prediction
EXAMPLES = 3  # of each kind


def show_overview(explanations: Sequence[AnyExplanation], truths: Sequence[Label] | None) -> None:
    """The classes one by one, what is selected for which, and the texts to look at."""
    from rationalizer.drawing.dataset_overview import overview, unit_text
    from rationalizer.drawing.evaluation_report import class_table, confusion_tables

    seen = overview(explanations, truths, examples=EXAMPLES)
    for table in [class_table(seen.class_results), *confusion_tables(seen.class_results)] if seen.class_results else []:
        show_table(table.heads, table.lines)
    out.print("Selected in how many texts, of those that have it; first what is most peculiar to the prediction:")
    for group in seen.groups:
        words = ", ".join(f"{unit_text(use.word)} {use.selected}/{use.seen}" for use in group.words[:WORDS])
        out.print(f"  {group.name} ({group.texts}): {words}", markup=False)
    valued = any(one.probabilities is None for one in explanations)
    for title, numbers in (
        ("Farthest off" if valued else "Most surprising", seen.surprising),
        ("Least certain", seen.uncertain),
    ):
        show_explanations(
            title, [explanations[k] for k in numbers], None if truths is None else [truths[k] for k in numbers]
        )


def show_explanations(
    title: str, explanations: Sequence[AnyExplanation], truths: Sequence[Label] | None = None
) -> None:
    """Explanations under a title; nothing where there are none."""
    from rich.text import Text

    from rationalizer.drawing import to_terminal

    if explanations:
        out.print(f"\n{title}:", style="bold")
    for number, explanation in enumerate(explanations):
        width = min(out.width, 100) if out.is_terminal else None
        truth = None if truths is None else truths[number]
        drawn = to_terminal(explanation, truth=truth, colour=out.is_terminal, width=width, legend=False)
        out.print(Text.from_ansi(drawn) if out.is_terminal else drawn, markup=False)
        out.print()
