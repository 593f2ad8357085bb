"""Text that is about to be drawn: made safe for markup and terminals, cut between characters, measured.

A character as a reader sees it (a grapheme cluster) may be several characters of a string: a letter and its
accents, a flag, a family joined from four people. Cuts go between clusters only, and widths are of clusters.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache

FONT = "Arial, Helvetica, 'Liberation Sans', sans-serif"  # the same widths in all three

# Widths of Helvetica in thousandths of the font size, from space to tilde.
_ASCII = (
    *(278, 278, 355, 556, 556, 889, 667, 191, 333, 333, 389, 584, 278, 333, 278, 278),
    *(556, 556, 556, 556, 556, 556, 556, 556, 556, 556, 278, 278, 584, 584, 584, 556),
    *(1015, 667, 667, 722, 722, 667, 611, 778, 722, 278, 500, 667, 556, 833, 722, 778),
    *(667, 778, 722, 667, 611, 722, 667, 944, 667, 667, 611, 278, 278, 278, 469, 556),
    *(333, 556, 556, 500, 556, 556, 278, 556, 556, 222, 222, 500, 222, 833, 556, 556),
    *(556, 556, 333, 500, 278, 556, 500, 722, 500, 500, 500, 334, 260, 334, 584),
)
BOLD = 1.08  # how much wider bold letters are at most, on the average of a word

_NARROW = frozenset("\u05d5\u05d6\u05d9\u05df\u0622\u0623\u0625\u0627\u0644")  # vav, yod, alef, lam and the like
_ZWJ, _ZWNJ, _EMOJI_STYLE = "\u200d", "\u200c", "\ufe0f"
_REPLACED = {code: 0x2400 + code for code in range(0x20) if chr(code) not in "\t\n\r"}  # pictures: ␀, ␛, ...
_REPLACED |= {0x7F: 0x2421, 0xFFFE: 0xFFFD, 0xFFFF: 0xFFFD}
_REPLACED |= dict.fromkeys([*range(0x80, 0xA0), *range(0xD800, 0xE000)], 0xFFFD)


def clean(text: str) -> str:
    """The text without what XML forbids or a terminal would obey; line breaks as \\n."""
    return text.replace("\r\n", "\n").replace("\r", "\n").translate(_REPLACED)


def escape(text: str) -> str:
    """The text as content or quoted attribute of HTML and XML."""
    text = clean(text).replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
    return text.replace('"', "&quot;").replace("'", "&#39;")


def clusters(text: str) -> Iterator[tuple[int, int]]:
    """The spans of the characters that a reader sees."""
    start = 0
    for i in range(1, len(text)):
        if not _joined(text, i):
            yield start, i
            start = i
    if text:
        yield start, len(text)


def _joined(text: str, i: int) -> bool:
    """Whether a cut before text[i] would go through a cluster."""
    before, after = text[i - 1], text[i]
    if after < "\u0300" and before < "\u0300":
        return before == "\r" and after == "\n"
    if before in "\r\n":
        return False
    if after in (_ZWJ, _ZWNJ) or before == _ZWJ or _extends(after):
        return True
    if unicodedata.combining(before) == 9:  # a virama, which ties the next consonant to this one
        return unicodedata.category(after) == "Lo"
    if _is_flag_letter(before) and _is_flag_letter(after):
        first = i - 1
        while first and _is_flag_letter(text[first - 1]):
            first -= 1
        return (i - first) % 2 == 1
    return "\u1100" <= before <= "\u11ff" and "\u1160" <= after <= "\u11ff"  # parts of a Korean syllable


def _extends(character: str) -> bool:
    skin_or_tag = "\U0001f3fb" <= character <= "\U0001f3ff" or "\U000e0020" <= character <= "\U000e007f"
    return skin_or_tag or unicodedata.category(character) in ("Mn", "Me", "Mc")


def _is_flag_letter(character: str) -> bool:
    return "\U0001f1e6" <= character <= "\U0001f1ff"


def cells(text: str) -> int:
    """How many columns of a terminal the text takes."""
    if text.isascii():
        return len(text)
    return sum(_cells(text[start:end]) for start, end in clusters(text))


@lru_cache(maxsize=1 << 14)
def _cells(cluster: str) -> int:
    first = cluster[0]
    if _EMOJI_STYLE in cluster or _is_flag_letter(first) or unicodedata.east_asian_width(first) in "WF":
        return 2
    return 0 if unicodedata.category(first) in ("Mn", "Me", "Cf") else 1


def width(text: str, size: float) -> float:
    """About how wide the text is in `FONT` at `size`; rather too wide where the script is not Latin."""
    if text.isascii():
        return sum(map(_thousandths, text)) * size / 1000
    return sum(_thousandths(text[start:end]) for start, end in clusters(text)) * size / 1000


@lru_cache(maxsize=1 << 14)
def _thousandths(cluster: str) -> int:
    base = unicodedata.normalize("NFD", cluster)[0]
    if base <= "~":
        return _ASCII[ord(base) - 32] if base >= " " else 278
    columns = _cells(cluster)
    if columns != 1:
        return 1250 if columns and unicodedata.category(base) == "So" else 500 * columns
    if base in _NARROW:
        return 300
    if "\u0590" <= base <= "\u08ff":  # Hebrew, Arabic
        return 520
    return 740 if unicodedata.category(base) in ("Lu", "So") else 600


def is_wide(character: str) -> bool:
    """Whether lines may break beside the character, as in Chinese and Japanese."""
    return unicodedata.east_asian_width(character) in "WF"


def is_right_to_left(text: str) -> bool | None:
    """Whether the first letter that has a direction runs from right to left; None if none has one."""
    for character in text:
        kind = unicodedata.bidirectional(character)
        if kind in ("R", "AL", "L"):
            return kind != "L"
    return None


def shorten(text: str, room: float, size: float) -> str:
    """The text, or as much of its beginning as fits into `room` with an ellipsis."""
    if width(text, size) <= room:
        return text
    kept, used = 0, width("…", size)
    for start, end in clusters(text):
        used += width(text[start:end], size)
        if used > room:
            break
        kept = end
    return text[:kept].rstrip() + "…"
