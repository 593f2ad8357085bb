"""`rationalizer models`."""

from __future__ import annotations

from rationalizer.cli.base import command, out, show_table


@command("rationalizer models", 'rationalizer explain sentiment "A warm, funny film."')
def models() -> None:
    """List the starter models: small ones that come with the package and work without training."""
    from rationalizer.metrics import METRICS
    from rationalizer.sharing import STARTERS, starter

    heads = ["name", "what it tells", "learned from", "accuracy", "size", "terms of the data"]
    lines = []
    for one in map(starter, STARTERS):
        learned = [row for row in one.facts.data if row["use"].startswith("training")]
        scores = "\n".join(f"{METRICS['accuracy'].text(row['accuracy'])} {row['data']}" for row in one.facts.scores)
        terms = "\n".join(f"{row['name']}: {row['terms']}" for row in learned)
        names = "\n".join(row["name"] for row in learned)
        lines.append([one.name, one.facts.about, names, scores, f"{one.bytes / 1e6:.1f} MB", terms])
    show_table(heads, lines)
    out.print("Cards with data, scores and limits:")
    for one in map(starter, STARTERS):
        out.print(f"  {one.folder / 'README.md'}", markup=False)
