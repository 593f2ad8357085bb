"""Colours: text stays legible on every background, light and dark, and the colours differ for colour-blind readers."""

from itertools import combinations

import pytest

from rationalizer.drawing.colours import (
    BLUE,
    BRIGHT_BLUE,
    DARK_INK,
    DARK_PAPER,
    FAINTEST,
    HEAT,
    HIGHLIGHT_COLOURS,
    INK,
    PAPER,
    STRONGEST,
    opacity,
)


def rgb(colour):
    return [int(colour[k : k + 2], 16) / 255 for k in (1, 3, 5)]


def luminance(channels):
    """As WCAG 2 defines it."""
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one, other):
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def over(hue, alpha, paper):
    return [alpha * c + (1 - alpha) * p for c, p in zip(rgb(hue), rgb(paper), strict=True)]


@pytest.mark.parametrize("alpha", [FAINTEST, STRONGEST, HEAT])
@pytest.mark.parametrize(("paper", "ink"), [(PAPER, INK), (DARK_PAPER, DARK_INK)])
@pytest.mark.parametrize("hue", [BLUE, BRIGHT_BLUE, HIGHLIGHT_COLOURS["extra"]])
def test_text_is_legible_on_every_background(hue, paper, ink, alpha):
    """Both blues on both papers: a notebook may be light on a dark system."""
    assert contrast(rgb(ink), over(hue, alpha, paper)) >= 4.5


@pytest.mark.parametrize(("blue", "paper"), [(BLUE, PAPER), (BRIGHT_BLUE, DARK_PAPER)])
def test_lines_and_outlines_stand_out(blue, paper):
    assert contrast(rgb(blue), rgb(paper)) >= 3
    assert contrast(rgb(HIGHLIGHT_COLOURS["missed"]), rgb(paper)) >= 3


# What red-, green- and blue-blind people see of linear RGB (Viénot and others 1999; the last is approximate).
BLINDNESS = {
    "protan": ((0.11238, 0.88762, 0), (0.11238, 0.88762, 0), (0.00401, -0.00401, 1)),
    "deutan": ((0.29275, 0.70725, 0), (0.29275, 0.70725, 0), (-0.02234, 0.02234, 1)),
    "tritan": ((1, 0.14461, -0.14461), (0, 0.85924, 0.14076), (0, 0.85924, 0.14076)),
}


@pytest.mark.parametrize("matrix", BLINDNESS.values(), ids=BLINDNESS)
def test_colours_differ_for_the_colour_blind(matrix):
    for one, other in combinations({HIGHLIGHT_COLOURS[kind] for kind in ("both", "extra", "missed")}, 2):
        seen = [[sum(m * c**2.2 for m, c in zip(row, rgb(hue), strict=True)) for row in matrix] for hue in (one, other)]
        assert max(abs(a - b) for a, b in zip(*seen, strict=True)) > 0.15


def test_opacity_grows_with_weight():
    assert opacity(0) == FAINTEST < opacity(0.5) < opacity(1) == STRONGEST
