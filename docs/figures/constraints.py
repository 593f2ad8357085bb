"""Draw one review under five constraint sets, and without any, as SVG next to this script.

python docs/figures/constraints.py
"""

import re
from html import escape
from pathlib import Path

from rationalizer import Rationalizer
from rationalizer.constraints import Must, Never, PerSentence, SpanLength, Spans, WholeSentences

REVIEW = (
    "We stayed for three nights in March. The room was spotless and the view wonderful. "
    "But the staff was rude, and nobody ever answered when we called the front desk. "
    "Breakfast was cold. I would not go back."
)
SETS = (
    ("the budget alone, 25%", []),
    ("whole sentences", [WholeSentences()]),
    ("two short quotes", [Spans(2), SpanLength(3, 6)]),
    ("never “rude”, never “cold”", [Never(words=["rude", "cold"])]),
    ("one word of each sentence", [PerSentence(1)]),
    ("“not” must be read, in one span", [Must(words=["not"]), Spans(1)]),
)
WIDTH, COLUMNS, CAPTION = 320, 3, 44


def main() -> None:
    model = Rationalizer.load("sentiment")
    model.budget = "25%"
    drawn = [model.explain(REVIEW, constraints=constraints).to_svg(width=WIDTH) for _, constraints in SETS]
    height = CAPTION + max(float(re.search(r'height="([\d.]+)"', picture)[1]) for picture in drawn)
    parts = []
    for k, ((caption, constraints), picture) in enumerate(zip(SETS, drawn, strict=True)):
        x, y = k % COLUMNS * WIDTH, k // COLUMNS * height
        written = ", ".join(map(str, constraints)) or "no constraint"
        parts.append(f'<text x="{x + 16}" y="{y + 22:g}" font-size="15" font-weight="700">{escape(caption)}</text>')
        parts.append(f'<text x="{x + 16}" y="{y + 40:g}" font-size="12" fill-opacity=".7">{escape(written)}</text>')
        parts.append(picture.replace("<svg ", f'<svg x="{x}" y="{y + CAPTION:g}" ', 1))
    total = (COLUMNS * WIDTH, len(SETS) // COLUMNS * height)
    style = re.search(r'style="[^"]*"', drawn[0])
    size = f'viewBox="0 0 {total[0]} {total[1]:g}" width="{total[0]}" height="{total[1]:g}"'
    path = Path(__file__).with_suffix(".svg")
    look = f'{style[0] if style else ""} role="img" fill="currentColor"'
    opening = f'<svg xmlns="http://www.w3.org/2000/svg" {size} {look}>'
    title = "<title>One hotel review with the words read under six sets of constraints</title>"
    path.write_text("\n".join([opening, title, *parts, "</svg>\n"]), encoding="utf-8")
    print(path)


if __name__ == "__main__":
    main()
