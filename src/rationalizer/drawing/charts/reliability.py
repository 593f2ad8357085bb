"""How often predictions are right, by how sure they are."""

from __future__ import annotations

import math

from rationalizer.drawing.charts.axes import SIZE, Axes, document, line, text
from rationalizer.drawing.text_width import width
from rationalizer.metrics import Calibration


def reliability_diagram(found: Calibration, *, title: str) -> str:
    """Accuracy in every bin of confidence as one SVG document; where they are the same lies the dashed diagonal.

    Bars are the stronger, the more predictions they stand for, and have their number at the bottom.
    """
    if not found.bins:
        raise ValueError(f"there is nothing to plot as {title!r}")
    low = math.floor(10 * found.bins[0].low + 1e-9) / 10
    steps = [round(k / 10, 1) for k in range(11)]
    axes = Axes([step for step in steps if step >= low], steps[::2], right=30)
    body = axes.draw("how sure the model was", "how often it was right")
    total, floor = sum(each.count for each in found.bins), axes.y(0)
    numbers = []
    for each in found.bins:
        left, right, top = axes.x(each.low) + 1, axes.x(each.high) - 1, axes.y(each.accuracy)
        said = f"{each.count} predictions, {each.confidence:.0%} sure on average, {each.accuracy:.0%} right"
        strength = 0.25 + 0.5 * math.sqrt(each.count / total)
        place = f'x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" height="{floor - top:.1f}"'
        body.append(f'<rect class="dot0" style="fill-opacity:{strength:.2f}" {place}><title>{said}</title></rect>')
        body.append(line("line c0", left, top, right, top))
        if width(str(each.count), SIZE) < right - left:
            numbers.append(text((left + right) / 2, floor - 8, str(each.count), anchor="middle"))
    body.append(line("line c1", axes.x(low), axes.y(low), axes.x(1), axes.y(1), ' stroke-dasharray="5 4"'))
    return document(title, [*body, *numbers])
