"""Draw a synthetic 6x8 score matrix and its three matchings side by side, as SVG next to this script."""

from __future__ import annotations

from pathlib import Path

import torch

from rationalizer import ops

CELL, GAP, LEFT, TOP = 26, 34, 12, 46
BLUE, ORANGE = (37, 99, 176), (201, 92, 18)

# Cells have their own colours on light and dark pages; the text colour follows the page.
STYLE = """
  text { font: 13px system-ui, sans-serif; fill: #1f2328; }
  .small { font-size: 8.5px; }
  .note { font-size: 11px; fill: #59636e; }
  .grid { fill: none; stroke: #8c959f; stroke-width: 0.6; }
  @media (prefers-color-scheme: dark) {
    text { fill: #f0f3f6; }
    .note { fill: #9ea7b3; }
  }
"""


def synthetic_scores() -> torch.Tensor:
    """Two clear alignments, a row with two similar columns, a column with two similar rows, and a weak last row."""
    scores = 0.35 * torch.randn(6, 8, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    scores[0, 0] += 2.0
    scores[1, 2] += 1.6
    scores[2, 3] += 1.1
    scores[2, 4] += 1.2
    scores[3, 5] += 1.5
    scores[4, 5] += 1.3
    scores[5] -= 0.9
    return scores


def number(value: float) -> str:
    """Format with two decimals, without a leading 0 and with a minus sign."""
    digits = f"{abs(value):.2f}".removeprefix("0")
    return f"−{digits}" if value < 0 else digits


def panel(values: torch.Tensor, x: int, title: str, note: str, largest: float) -> list[str]:
    """Draw a grid of squares: blue above 0, orange below, with numbers in all but empty cells."""
    rows, columns = values.shape
    parts = [f'<text x="{x}" y="20">{title}</text>', f'<text class="note" x="{x}" y="35">{note}</text>']
    for i in range(rows):
        for j in range(columns):
            value = float(values[i, j])
            left, top = x + j * CELL, TOP + i * CELL
            red, green, blue = BLUE if value > 0 else ORANGE
            strength = min(1.0, abs(value) / largest)
            square = f'x="{left}" y="{top}" width="{CELL}" height="{CELL}"'
            parts.append(f'<rect {square} fill="rgb({red},{green},{blue})" fill-opacity="{strength:.3f}"/>')
            parts.append(f'<rect class="grid" {square}/>')
            if abs(value) >= 0.005:
                middle = f'x="{left + CELL / 2:g}" y="{top + CELL / 2 + 3:g}" text-anchor="middle"'
                ink = ' style="fill:#fff"' if strength > 0.55 else ""
                parts.append(f'<text class="small" {middle}{ink}>{number(value)}</text>')
    return parts


def figure() -> str:
    scores = synthetic_scores()
    panels = [
        (scores, "Scores", "6 rows, 8 columns", float(scores.abs().max())),
        (ops.matching(scores, rows="exactly_one"), "M:XorAtMostOne", "rows sum to 1, columns to at most 1", 1.0),
        (ops.matching(scores), "M:AtMostOne2", "rows and columns sum to at most 1", 1.0),
        (ops.matching(scores, budget=3), "M:Budget, B = 3", "and all entries to at most 3", 1.0),
    ]
    rows, columns = scores.shape
    step = columns * CELL + GAP
    width, height = LEFT * 2 + step * len(panels) - GAP, TOP + rows * CELL + 12
    parts = []
    for index, (values, title, note, largest) in enumerate(panels):
        parts += panel(values, LEFT + index * step, title, note, largest)
    size = f'viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" {size} role="img">'
    label = "<title>A synthetic score matrix and its three matchings</title>"
    return "\n".join([head, label, f"<style>{STYLE}</style>", *parts, "</svg>", ""])


if __name__ == "__main__":
    path = Path(__file__).with_suffix(".svg")
    path.write_text(figure(), encoding="utf-8")
    print(path)
