"""Text for drawings: sanitize it for markup and terminals, split it into graphemes, and measure it.

A grapheme is a character as a reader sees it. It can consist of several characters of a string: a letter with its
accents, a flag, an emoji of several people. Texts are split between graphemes only.
"""

from __future__ import annotations

import html
import unicodedata
from functools import lru_cache

import regex

# Every system has one of them: Windows and macOS the first, Linux the second. Their widths are nearly the same.
FONT = "Verdana, 'DejaVu Sans', sans-serif"

# The larger of the two widths in thousandths of the font size, from space to tilde.
_ASCII = (
    *(352, 401, 460, 838, 636, 1076, 780, 275, 454, 454, 636, 838, 364, 454, 364, 454),
    *(636, 636, 636, 636, 636, 636, 636, 636, 636, 636, 454, 454, 838, 838, 838, 545),
    *(1000, 684, 686, 698, 771, 632, 575, 775, 752, 421, 455, 693, 557, 863, 748, 787),
    *(603, 787, 695, 684, 616, 732, 684, 989, 685, 615, 685, 454, 454, 454, 838, 636),
    *(636, 613, 635, 550, 635, 615, 352, 635, 634, 278, 344, 592, 278, 974, 634, 612),
    *(635, 635, 427, 521, 394, 634, 592, 818, 592, 592, 525, 636, 454, 636, 838),
)
BOLD = 1.25  # upper bound on the relative width of bold words

_NARROW = frozenset("\u05d5\u05d6\u05d9\u05df\u0622\u0623\u0625\u0627\u0644")  # vav, yod, alef, lam and the like
_EMOJI_STYLE = "\ufe0f"
# `regex` does not join Indic consonants across a virama (combining class 9), as Unicode 15.1 does.
GRAPHEME = regex.compile(r"(?:\X(?<=\p{ccc=9}\u200d?)(?=\p{Lo}))*\X")
_REPLACED = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n\r"}  # pictures: ␀, ␛, ...
_REPLACED |= {0x7F: 0x2421, 0xFFFE: 0xFFFD, 0xFFFF: 0xFFFD}
_REPLACED |= dict.fromkeys([*range(0x80, 0xA0), *range(0xD800, 0xE000)], 0xFFFD)


def sanitize(text: str) -> str:
    """Replace the characters that XML forbids or that control a terminal; normalize line breaks to \\n."""
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_REPLACED)


def escape(text: str) -> str:
    """Escape the text for content and quoted attributes of HTML and XML."""
    return html.escape(sanitize(text))


def graphemes(text: str) -> list[str]:
    return list(text) if text.isascii() and "\r" not in text else GRAPHEME.findall(text)


def terminal_width(text: str) -> int:
    """The number of terminal columns that the text takes."""
    return len(text) if text.isascii() else sum(map(_columns, graphemes(text)))


@lru_cache(maxsize=1 << 14)
def _columns(grapheme: str) -> int:
    first = grapheme[0]
    is_flag = "\U0001f1e6" <= first <= "\U0001f1ff"
    if _EMOJI_STYLE in grapheme or is_flag or is_wide(first):
        return 2
    return 0 if unicodedata.category(first) in ("Mn", "Me", "Cf") else 1


def width(text: str, size: float) -> float:
    """The approximate width of the text in `FONT` at `size`; an overestimate for scripts other than Latin."""
    return sum(map(_thousandths, text if text.isascii() else graphemes(text))) * size / 1000


@lru_cache(maxsize=1 << 14)
def _thousandths(grapheme: str) -> int:
    base = unicodedata.normalize("NFD", grapheme)[0]
    if base <= "~":
        return _ASCII[ord(base) - 32] if base >= " " else 278
    columns = _columns(grapheme)
    if columns != 1:
        return 1250 if columns and unicodedata.category(base) == "So" else 500 * columns
    if base in _NARROW:
        return 330
    if "\u0590" <= base <= "\u08ff":  # Hebrew, Arabic
        return 700
    return 830 if unicodedata.category(base) in ("Lu", "So") else 680


def is_wide(character: str) -> bool:
    """Whether the character is two columns wide and lines may break next to it, as in Chinese and Japanese."""
    return unicodedata.east_asian_width(character) in "WF"


def is_right_to_left(text: str) -> bool | None:
    """Whether the first letter with a direction runs from right to left; None if there is none."""
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in ("R", "AL", "L"):
            return kind != "L"
    return None


def truncate(text: str, room: float, size: float) -> str:
    """The text, or as much of its beginning as fits into `room`, followed by an ellipsis."""
    if width(text, size) <= room:
        return text
    start, used = "", width("…", size)
    for grapheme in graphemes(text):
        used += width(grapheme, size)
        if used > room:
            break
        start += grapheme
    return start.rstrip() + "…"
