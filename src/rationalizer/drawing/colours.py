"""Colours of all drawings, and the style sheets that use them.

The colours of highlights are from Okabe and Ito's palette, which colour-blind readers can distinguish, and are never
the only cue: selected words have a background and an outline, dashed if their sign is "-"; annotated words are
underlined, dashed if the model missed them. Backgrounds are translucent, so that they fit light and dark pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from string import Template

from rationalizer.drawing.highlight_kinds import Highlight, Look, Sign

BLUE, BRIGHT_BLUE = "#0072b2", "#56b4e9"  # BRIGHT_BLUE is for dark pages
ORANGE, GREY = "#e69f00", "#808080"
HIGHLIGHT_COLOURS: dict[Highlight, str] = {"selected": BLUE, "both": BLUE, "extra": ORANGE, "missed": "#d55e00"}
SIGN_COLOURS: dict[Sign, str] = {"+": BLUE, "-": ORANGE, "0": GREY}  # of selected words with known weights
UNKNOWN = GREY
FAINTEST, STRONGEST = 0.13, 0.42  # opacity of backgrounds at shades 0 and 1
HEAT = 0.5  # opacity of a heat map's strongest cell; the numbers in it must stay legible

PAINTS = ("fill", "stroke")
SIGN_NAMES = {"+": "plus", "-": "minus", "0": "neither"}  # in style sheets

INK, PAPER = "#1f2328", "#ffffff"
DARK_INK, DARK_PAPER = "#e6e8ea", "#15181b"

# Backgrounds of the 256 terminal colours, faint to strong, under black text: the same on light and dark terminals.
_TERMINAL_BLUE, _TERMINAL_ORANGE = (153, 117, 75), (230, 221, 214)
TERMINAL_LABELS = (117, 216, 121, 218, 222, 183, 191, 250, 147)  # of labels, like the series below
TERMINAL_COLOURS = {BLUE: _TERMINAL_BLUE, ORANGE: _TERMINAL_ORANGE, GREY: (252, 250, 248)}

# Series of charts, after Okabe and Ito: darker on white, lighter on black.
LIGHT_SERIES = ("#0072b2", "#c44f00", "#007a59", "#a8497f", "#946800", "#6b5b95", "#6b7a00", "#5b6570", "#1e3a6e")
DARK_SERIES = ("#56b4e9", "#f08a43", "#35c79d", "#e09cc4", "#edb33c", "#b9a9e0", "#c3d34a", "#b6bec9", "#8fa9e8")


def highlight_colour(look: Look) -> str:
    if look.labels:
        return LIGHT_SERIES[look.labels[0]]
    return SIGN_COLOURS.get(look.sign) or HIGHLIGHT_COLOURS[look.kind]


def opacity(shade: float) -> float:
    return FAINTEST + (STRONGEST - FAINTEST) * shade


def dark_scheme_rules(picture: str) -> str:
    """CSS rules for the pictures that the selector `picture` matches, on a dark page."""
    bright = dict(zip(LIGHT_SERIES, DARK_SERIES, strict=True)) | {BLUE: BRIGHT_BLUE}
    return " ".join(f"{picture} [{a}='{dark}'] {{ {a}: {light} }}" for dark, light in bright.items() for a in PAINTS)


def _rgb(colour: str) -> str:
    return " ".join(str(int(colour[k : k + 2], 16)) for k in (1, 3, 5))


def _background_rules(name: str, colour: str) -> str:
    rgb = "var(--rz-blue)" if colour == BLUE else _rgb(colour)
    alpha = f"calc({FAINTEST} + {STRONGEST - FAINTEST:.2f} * var(--w, 1))"
    return (
        f".rationalizer .rz-{name} {{ border-color: rgb({rgb} / .75) }}\n"
        f".rationalizer .rz-{name} > span {{ background: rgb({rgb} / {alpha}) }}"
    )


def _label_variables(palette: Sequence[str]) -> str:
    return "; ".join(f"--rz-l{k}: {_rgb(colour)}" for k, colour in enumerate(palette))


def _series_rules(palette: Sequence[str]) -> str:
    return "\n".join(
        f".rz-plot .c{k} {{ stroke: {c} }} .rz-plot .dot{k} {{ fill: {c} }}" for k, c in enumerate(palette)
    )


def _style_sheet(name: str) -> str:
    values = {
        "blue_rgb": _rgb(BLUE),
        "bright_blue_rgb": _rgb(BRIGHT_BLUE),
        "orange": ORANGE,
        "missed": HIGHLIGHT_COLOURS["missed"],
        "missed_rgb": _rgb(HIGHLIGHT_COLOURS["missed"]),
        "ink": INK,
        "paper": PAPER,
        "dark_ink": DARK_INK,
        "dark_paper": DARK_PAPER,
        "dark_pictures": dark_scheme_rules(".rationalizer svg"),
        "backgrounds": "\n".join(
            [_background_rules(name, HIGHLIGHT_COLOURS[name]) for name in ("selected", "both", "extra")]
            + [_background_rules(SIGN_NAMES[sign], colour) for sign, colour in SIGN_COLOURS.items()]
        ),
        "light_labels": _label_variables(LIGHT_SERIES),
        "dark_labels": _label_variables(DARK_SERIES),
        "light_series": _series_rules(LIGHT_SERIES),
        "dark_series": _series_rules(DARK_SERIES),
    }
    return "\n" + Template(Path(__file__).with_name(name).read_text(encoding="utf-8")).substitute(values)


STYLE, PAGE_STYLE, CHART_STYLE = map(_style_sheet, ("explanation.css", "page.css", "chart.css"))
