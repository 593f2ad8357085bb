"""From a word in a text to its rows in a table of word vectors."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import chain, product
from string import ascii_lowercase
from typing import Literal

Kind = Literal["exact", "variant", "parts", "number", "spelling"]
Rows = tuple[int, ...]
Found = tuple[Kind | None, Rows]

CACHED = 1 << 16  # tokens whose rows are cached
LONGEST = 64  # characters; longer tokens are addresses and codes, which are only looked up as written
MOST_PARTS = 8  # rows for one token
FREQUENT = 10_000  # a lengthened word is mapped to one of the first rows before a rarer one
# Spelling, measured on reviews: in words of 6 to 8 letters, two swapped letters, a missing or a doubled letter are
# misspellings 9 times in 10, but a wrong or an extra letter mostly makes another word (larder, larger) or a name.
MEANT_AMONG = 20_000  # corrections are searched among the first rows
SLIP, MISTAKE, MEANT = 6, 9, 5  # least letters of a word with a slip, with any mistake, and of the correction
_UNKNOWN: Found = (None, ())

_TYPOGRAPHIC = str.maketrans(
    {**dict.fromkeys("‘’‚‛ʼ′`´", "'"), **dict.fromkeys("“”„‟«»″", '"'), **dict.fromkeys("‐‑‒–—―−", "-")}
    | dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufe0f\ufeff", "")  # soft hyphens and what else has no width
)
_PLAIN = str.maketrans({"ø": "o", "đ": "d", "ł": "l", "ħ": "h", "ı": "i", "ß": "ss", "æ": "ae", "œ": "oe", "þ": "th"})
_ACRONYM = re.compile(r"(?:[a-z]\.)+[a-z]?")
_NUMBER = re.compile(r"[-+(#~]*[$£€¥]?(\d{1,12}|\d{1,3}(?:,\d{3}){1,3})(\.\d*)?[%)+]?[.,;:!?)]*", re.ASCII)
_CONTRACTION = re.compile(r"(.+?)(n't|'(?:s|re|ve|m|ll|d))")
_NOT = re.compile(r"(do|did|does|is|was|are|were|has|have|had|ca|could|wo|would|should|ai)nt?")
_WITHOUT_APOSTROPHE = re.compile(r"(that|what|there|here|let|who|where|how)(s)|(i|you|we|they)(ve|re|ll)")
_OPENING, _CLOSING = "\"'([{*_#@$~-+.", ".,;:!?\"')]}*_%~-"
_MARKS = re.compile(r"[.,!?\"'()\[\]*-]{2,}")
_PIECE = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_LETTERS_OR_DIGITS = re.compile(r"\d+|[^\W\d_]+")
_LENGTHENED = re.compile(r"(.)\1{2,}")


class Lookup:
    """Looks words up in a list: as written, or else as the word that they are most likely a form of.

    The list may be in any order; if it is ordered by frequency, the most frequent of several candidates is used.
    """

    def __init__(self, words: Sequence[str]) -> None:
        last = len(words) - 1
        self._row = {word: last - k for k, word in enumerate(reversed(words))}  # the first of duplicate words is used
        self._found: dict[str, Found] = {}

    def rows(self, token: str) -> Rows:
        """The rows whose mean is the token's vector; empty if it is unknown."""
        return self._find(token)[1]

    def kind(self, token: str) -> Kind | None:
        """How the token was found: as written or in lower case, in another form of the same word, by its parts, as a
        number, or with its spelling corrected."""
        return self._find(token)[0]

    def _find(self, token: str) -> Found:
        found = self._found.get(token)
        if found is None:
            found = self._searched(token)
            if len(self._found) >= CACHED:
                self._found.clear()
            if len(token) <= LONGEST:
                self._found[token] = found
        return found

    def _searched(self, token: str) -> Found:
        row = self._exact(token)  # as written; in lower case
        if row is not None:
            return "exact", (row,)
        text = _plain_type(token)  # ’ as ', ligatures, full width
        if not text or len(token) > LONGEST or len(text) > LONGEST:
            return _UNKNOWN
        row = self._variant(text)  # other case, typographic forms, accents stripped, abbreviations without dots
        if row is not None:
            return "variant", (row,)
        if rows := self._number(text):  # "10.50", "1,234", "$49", "3.5%" as a number of that size
            return "number", rows
        trimmed = text.lstrip(_OPENING).rstrip(_CLOSING)
        if trimmed != text and (len(trimmed) > 1 or trimmed.isalnum()):  # "#word", "(word", "word!" without the signs
            kind, rows = self._find(trimmed)
            return ("variant" if kind == "exact" else kind), rows
        if rows := self._contraction(text):  # "wouldn't" as would + n't, "mosser's" as mosser + 's
            return "parts", rows
        if (row := self._lengthened(text)) is not None:  # "goood" as good, "!!!!!!" as !!!
            return "variant", (row,)
        if rows := self._parts(text):  # "e-mail" as email, "café-bar", "24/7", "10km" by their parts
            return "parts", rows
        if (row := self._corrected(text)) is not None:  # one letter wrong, missing, too many, or two swapped
            return "spelling", (row,)
        return _UNKNOWN

    def _exact(self, text: str) -> int | None:
        row = self._row.get(text)
        return self._row.get(text.lower()) if row is None else row

    def _first(self, forms: Iterator[str]) -> int | None:
        return next((row for form in forms if (row := self._row.get(form)) is not None), None)

    def _variant(self, text: str) -> int | None:
        return self._first(_variants(text))

    def _number(self, text: str) -> Rows:
        match = _NUMBER.fullmatch(text)
        if match is None:
            return ()
        row = self._first(_numbers_like(match[1].replace(",", ""), match[2] or ""))
        return () if row is None else (row,)

    def _contraction(self, text: str) -> Rows:
        start, end = _contracted(text.lower())
        if not start:
            return ()
        row, piece = self._variant(start), self._row.get(end)
        rows = self._contraction(start) if row is None else (row,)  # "wouldn't've" ends twice
        # Without its n't a word means the opposite; without other endings it means nearly the same.
        if not rows or (piece is None and end == "n't"):
            return ()
        return rows if piece is None else (*rows, piece)

    def _parts(self, text: str) -> Rows:
        joined = text.replace("-", "").replace("'", "")
        if joined != text and joined.isalpha() and (row := self._variant(joined)) is not None:
            return (row,)
        if _MARKS.fullmatch(text):
            return self._all(sorted(set(text), key=text.index))
        pieces = _PIECE.findall(text)
        # Single letters between symbols are emoticons and codes.
        if not pieces or (len(pieces) == 1 and len(pieces[0]) == 1) or all(len(p) == 1 and p.isalpha() for p in pieces):
            return ()
        smaller = [
            part for piece in pieces for part in ([piece] if self._piece(piece) else _LETTERS_OR_DIGITS.findall(piece))
        ]
        return self._all(smaller) if len(smaller) > 1 or smaller[0] != text else ()

    def _piece(self, text: str) -> Rows:
        row = self._variant(text)
        if row is None and not text.isdigit():
            row = self._lengthened(text)
        return (row,) if row is not None else self._number(text) or self._contraction(text)

    def _all(self, pieces: Sequence[str]) -> Rows:
        """The rows of all pieces; empty if one with letters is unknown."""
        rows: list[int] = []
        for piece in pieces:
            found = self._piece(piece)
            if not found and any(map(str.isalpha, piece)):
                return ()
            rows += found
        return tuple(rows) if len(rows) <= MOST_PARTS else ()

    def _lengthened(self, text: str) -> int | None:
        # Two letters before one ("goood" is good, not god), but not for a rare word ("sooo" is so, not soo).
        rows = [row for form in _shortened(text) if (row := self._variant(form)) is not None]
        return next((row for row in rows if row < FREQUENT), rows[0] if rows else None)

    def _corrected(self, text: str) -> int | None:
        word = text.lower()
        if not (word.isascii() and word.isalpha() and SLIP <= len(word) <= 24):
            return None
        # Names, which capitals hint at, differ from a frequent word by one letter without meaning it.
        if len(word) < MISTAKE and text[0].isupper() and not text.isupper():
            return None
        forms = chain(_slips(word), _mistakes(word) if len(word) >= MISTAKE else ())
        rows = [row for form in forms if len(form) >= MEANT and (row := self._row.get(form)) is not None]
        return min((row for row in rows if row < MEANT_AMONG), default=None)


def _plain_type(token: str) -> str:
    return unicodedata.normalize("NFKC", token.translate(_TYPOGRAPHIC)).translate(_TYPOGRAPHIC).strip()


def _variants(text: str) -> Iterator[str]:
    lower = text.lower()
    yield from (text, lower, text.capitalize(), text.upper())
    if not lower.isascii():
        spread = unicodedata.normalize("NFKD", lower).translate(_PLAIN)
        lower = "".join([letter for letter in spread if not unicodedata.combining(letter)])
        yield from (lower, lower.capitalize())
    if _ACRONYM.fullmatch(lower):
        bare = lower.replace(".", "")
        yield from (f"{lower}.", bare, bare.upper())


def _numbers_like(whole: str, fraction: str) -> Iterator[str]:
    """The number itself and what is near to it, from closer to further: 1234.50, 1234.5, 1234, 1000, 100, 10, 1."""
    yield from (whole + fraction, whole + fraction.rstrip("0").rstrip("."), whole)
    digits = whole.lstrip("0") or "0"
    yield digits
    yield digits[0] + "0" * (len(digits) - 1)
    yield from ("1" + "0" * zeros for zeros in range(len(digits) - 1, -1, -1))


def _shortened(text: str) -> Iterator[str]:
    """The text with its runs of letters shortened to two or one, its runs of punctuation to three or fewer."""
    pieces = _LENGTHENED.split(text)  # what stands between runs, and of each run its letter, in turn
    between, runs = pieces[::2], pieces[1::2]
    if 0 < len(runs) <= 4:  # more are no word, and there would be many forms
        for lengths in product(*[(2, 1) if run.isalnum() else (3, 2, 1) for run in runs]):
            cut = [*[run * length for run, length in zip(runs, lengths, strict=True)], ""]
            yield "".join([part for pair in zip(between, cut, strict=True) for part in pair])


def _contracted(text: str) -> tuple[str, str]:
    """A word and the ending that GloVe's texts have as a word of its own; empty where there is none."""
    if match := _CONTRACTION.fullmatch(text):
        return match[1], match[2]
    if match := _NOT.fullmatch(text):
        return match[1], "n't"
    if match := _WITHOUT_APOSTROPHE.fullmatch(text):
        return match[1] or match[3], "'" + (match[2] or match[4])
    return "", ""


def _slips(word: str) -> Iterator[str]:
    """What the word was if two letters are swapped, one is missing or doubled, or an s is added; never the first."""
    for k in range(1, len(word) + 1):
        start, end = word[:k], word[k:]
        yield from (start + letter + end for letter in ascii_lowercase)
        if len(end) > 1:
            yield start + end[1] + end[0] + end[2:]
        if end and (end[0] == start[-1] or end == "s"):
            yield start + end[1:]


def _mistakes(word: str) -> Iterator[str]:
    """What the word was if any one letter but the first is wrong or too many."""
    for k in range(1, len(word)):
        start, end = word[:k], word[k + 1 :]
        yield start + end
        yield from (start + letter + end for letter in ascii_lowercase)
