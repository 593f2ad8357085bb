"""`rationalizer models`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rationalizer.cli.base import command, out


@command("rationalizer models", 'rationalizer explain sentiment "A warm, funny film."')
def models() -> None:
    """List the starter models: small models that come with the package and need no training."""
    from rationalizer.hub import STARTERS, starter
    from rationalizer.hub.starters import CARD

    for one in map(starter, STARTERS):
        training = [row for row in one.facts.data if row["use"].startswith("training")]
        facts = {
            "task": [one.facts.about],
            "trained on": [f"{row['name']} ({row['terms']})" for row in training],
            "scores": [f"{_scores(row)}, on {row['data']}" for row in one.facts.scores],
            "size": [f"{one.bytes / 1e6:.1f} MB, plus the word vectors of the package"],
            "model card": [str(one.folder / CARD)],
        }
        out.print(one.name, style="bold")
        for name, lines in facts.items():
            for k, line in enumerate(lines):
                out.print(f"  {'' if k else name:<14}{line}", markup=False)
        out.print()
    out.print('rationalizer explain sentiment "A warm, funny film."', markup=False)


def _scores(row: Mapping[str, Any]) -> str:
    from rationalizer.metrics import METRICS

    shown = [METRICS[name] for name in ("accuracy", "macro_f1", "alignment_f1") if name in row]
    return ", ".join(f"{metric.description} {metric.format_value(row[metric.name])}" for metric in shown)
