"""`rationalizer models`."""

from __future__ import annotations

from rationalizer.cli.base import command, out


@command("rationalizer models", 'rationalizer explain sentiment "A warm, funny film."')
def models() -> None:
    """List the starter models: small models that come with the package and need no training."""
    from rationalizer.hub import STARTERS, starter
    from rationalizer.hub.starters import CARD
    from rationalizer.metrics import METRICS

    for one in map(starter, STARTERS):
        training = [row for row in one.facts.data if row["use"].startswith("training")]
        show = METRICS["accuracy"].format_value
        facts = {
            "task": [one.facts.about],
            "trained on": [f"{row['name']} ({row['terms']})" for row in training],
            "accuracy": [
                f"{show(row['accuracy'])}, macro-F1 {show(row['macro_f1'])}, on {row['data']}"
                for row in one.facts.scores
            ],
            "size": [f"{one.bytes / 1e6:.1f} MB, plus the word vectors of the package"],
            "model card": [str(one.folder / CARD)],
        }
        out.print(one.name, style="bold")
        for name, lines in facts.items():
            for k, line in enumerate(lines):
                out.print(f"  {'' if k else name:<14}{line}", markup=False)
        out.print()
    out.print('rationalizer explain sentiment "A warm, funny film."', markup=False)
