"""Find the rows of a word in a table of word vectors, also if it is written in another form or misspelled."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import chain, product
from string import ascii_lowercase
from typing import Literal

Kind = Literal["exact", "variant", "parts", "number", "spelling"]
Rows = tuple[int, ...]
Match = tuple[Kind | None, Rows]

CACHE_SIZE = 1 << 16  # tokens
MAX_LENGTH = 64  # characters; longer tokens are URLs and codes, for which only exact matches count
MAX_PARTS = 8  # rows per token
FREQUENT_ROWS = 10_000  # shortening a lengthened word prefers a match among these first rows
# Spelling correction. Measured on reviews: in words of 6 to 8 letters, 9 of 10 swapped, missing or doubled letters are
# typos, but most wrong or extra letters give another word (larder, larger) or a name. Lengths are in letters.
MIN_LENGTH_SIMPLE_TYPO = 6  # words with a swapped, missing or doubled letter
MIN_LENGTH_ANY_TYPO = 9  # words with any wrong or extra letter
MAX_LENGTH_TYPO = 24
MIN_LENGTH_CORRECTION = 5  # the corrected word
CORRECTION_ROWS = 20_000  # corrections are searched among these first rows
_UNKNOWN: Match = (None, ())

_TYPOGRAPHIC = str.maketrans(
    {**dict.fromkeys("‘’‚‛ʼ′`´", "'"), **dict.fromkeys("“”„‟«»″", '"'), **dict.fromkeys("‐‑‒–—―−", "-")}
    | dict.fromkeys("\u00ad\u200b\u200c\u200d\u2060\ufe0f\ufeff", "")  # soft hyphens and zero-width characters
)
_PLAIN = str.maketrans({"ø": "o", "đ": "d", "ł": "l", "ħ": "h", "ı": "i", "ß": "ss", "æ": "ae", "œ": "oe", "þ": "th"})
_ACRONYM = re.compile(r"(?:[a-z]\.)+[a-z]?")
_NUMBER = re.compile(r"[-+(#~]*[$£€¥]?(\d{1,12}|\d{1,3}(?:,\d{3}){1,3})(\.\d*)?[%)+]?[.,;:!?)]*", re.ASCII)
_CONTRACTION = re.compile(r"(.+?)(n't|'(?:s|re|ve|m|ll|d))")
_NOT = re.compile(r"(do|did|does|is|was|are|were|has|have|had|ca|could|wo|would|should|ai)nt?")
_WITHOUT_APOSTROPHE = re.compile(r"(that|what|there|here|let|who|where|how)(s)|(i|you|we|they)(ve|re|ll)")
_OPENING, _CLOSING = "\"'([{*_#@$~-+.", ".,;:!?\"')]}*_%~-"
_PUNCTUATION = re.compile(r"[.,!?\"'()\[\]*-]{2,}")
_PIECE = re.compile(r"[^\W_]+(?:'[^\W_]+)*")
_LETTERS_OR_DIGITS = re.compile(r"\d+|[^\W\d_]+")
_LENGTHENED = re.compile(r"(.)\1{2,}")


class VectorLookup:
    """Look up tokens in a list of words: as written, or else as the most likely base form.

    If several words match, the first in the list is used: the most frequent one in lists ordered by frequency.
    """

    def __init__(self, words: Sequence[str]) -> None:
        last = len(words) - 1
        self._row = {word: last - k for k, word in enumerate(reversed(words))}  # the first of duplicate words
        self._cache: dict[str, Match] = {}

    def find_rows(self, token: str) -> Rows:
        """Return the rows whose mean is the token's vector; empty if the token is unknown."""
        return self._find_cached(token)[1]

    def kind(self, token: str) -> Kind | None:
        """Return how the token matches: "exact" (as written or in lower case), "variant" (another form of the same
        word), "parts", "number", "spelling" (after correction), or None if it is unknown."""
        return self._find_cached(token)[0]

    def _find_cached(self, token: str) -> Match:
        match = self._cache.get(token)
        if match is None:
            match = self._search(token)
            if len(self._cache) >= CACHE_SIZE:
                self._cache.clear()
            if len(token) <= MAX_LENGTH:
                self._cache[token] = match
        return match

    def _search(self, token: str) -> Match:
        row = self._exact(token)
        if row is not None:
            return "exact", (row,)
        text = _normalize(token)
        if not text or len(token) > MAX_LENGTH or len(text) > MAX_LENGTH:
            return _UNKNOWN
        row = self._variant(text)
        if row is not None:
            return "variant", (row,)
        if rows := self._number(text):  # "10.50", "1,234", "$49", "3.5%": a number of similar size
            return "number", rows
        trimmed = text.lstrip(_OPENING).rstrip(_CLOSING)
        if trimmed != text and (len(trimmed) > 1 or trimmed.isalnum()):  # "#word", "(word", "word!"
            kind, rows = self._find_cached(trimmed)
            return ("variant" if kind == "exact" else kind), rows
        if rows := self._contraction(text):  # "wouldn't": would + n't; "mosser's": mosser + 's
            return "parts", rows
        if (row := self._lengthened(text)) is not None:  # "goood": good; "!!!!!!": !!!
            return "variant", (row,)
        if rows := self._parts(text):  # "e-mail": email; "café-bar": cafe + bar; "10km": 10 + km
            return "parts", rows
        if (row := self._corrected(text)) is not None:
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
        start, end = _split_contraction(text.lower())
        if not start:
            return ()
        row, ending_row = self._variant(start), self._row.get(end)
        rows = self._contraction(start) if row is None else (row,)  # "wouldn't've" has two endings
        # Without n't a word means the opposite; without any other ending it means nearly the same.
        if not rows or (ending_row is None and end == "n't"):
            return ()
        return rows if ending_row is None else (*rows, ending_row)

    def _parts(self, text: str) -> Rows:
        joined = text.replace("-", "").replace("'", "")
        if joined != text and joined.isalpha() and (row := self._variant(joined)) is not None:
            return (row,)
        if _PUNCTUATION.fullmatch(text):
            return self._rows_of_pieces(sorted(set(text), key=text.index))
        pieces = _PIECE.findall(text)
        # Single letters between symbols are parts of emoticons and codes.
        if not pieces or (len(pieces) == 1 and len(pieces[0]) == 1) or all(len(p) == 1 and p.isalpha() for p in pieces):
            return ()
        smaller = [
            part
            for piece in pieces
            for part in ([piece] if self._rows_of_piece(piece) else _LETTERS_OR_DIGITS.findall(piece))
        ]
        return self._rows_of_pieces(smaller) if len(smaller) > 1 or smaller[0] != text else ()

    def _rows_of_piece(self, text: str) -> Rows:
        row = self._variant(text)
        if row is None and not text.isdigit():
            row = self._lengthened(text)
        return (row,) if row is not None else self._number(text) or self._contraction(text)

    def _rows_of_pieces(self, pieces: Sequence[str]) -> Rows:
        """Return the rows of all pieces; empty if a piece with letters is unknown."""
        rows: list[int] = []
        for piece in pieces:
            matched = self._rows_of_piece(piece)
            if not matched and any(map(str.isalpha, piece)):
                return ()
            rows += matched
        return tuple(rows) if len(rows) <= MAX_PARTS else ()

    def _lengthened(self, text: str) -> int | None:
        # A double letter is preferred ("goood" is good, not god) unless it gives a rare word ("sooo" is so, not soo).
        rows = [row for form in _shortened(text) if (row := self._variant(form)) is not None]
        return next((row for row in rows if row < FREQUENT_ROWS), rows[0] if rows else None)

    def _corrected(self, text: str) -> int | None:
        word = text.lower()
        if not (word.isascii() and word.isalpha() and MIN_LENGTH_SIMPLE_TYPO <= len(word) <= MAX_LENGTH_TYPO):
            return None
        # A capitalized word is probably a name, which is no typo even if it differs from a frequent word by one letter.
        if len(word) < MIN_LENGTH_ANY_TYPO and text[0].isupper() and not text.isupper():
            return None
        forms = chain(_undo_simple_typo(word), _undo_any_typo(word) if len(word) >= MIN_LENGTH_ANY_TYPO else ())
        rows = [
            row for form in forms if len(form) >= MIN_LENGTH_CORRECTION and (row := self._row.get(form)) is not None
        ]
        return min((row for row in rows if row < CORRECTION_ROWS), default=None)


def _normalize(token: str) -> str:
    """Replace typographic quotes and dashes, ligatures and full-width characters by plain ones."""
    return unicodedata.normalize("NFKC", token.translate(_TYPOGRAPHIC)).translate(_TYPOGRAPHIC).strip()


def _variants(text: str) -> Iterator[str]:
    """Yield the text in other letter case, without accents, and as an abbreviation with and without dots."""
    lower = text.lower()
    yield from (text, lower, text.capitalize(), text.upper())
    if not lower.isascii():
        decomposed = unicodedata.normalize("NFKD", lower).translate(_PLAIN)
        lower = "".join([letter for letter in decomposed if not unicodedata.combining(letter)])
        yield from (lower, lower.capitalize())
    if _ACRONYM.fullmatch(lower):
        bare = lower.replace(".", "")
        yield from (f"{lower}.", bare, bare.upper())


def _numbers_like(whole: str, fraction: str) -> Iterator[str]:
    """Yield the number and ever rougher approximations: 1234.50, 1234.5, 1234, 1000, 100, 10, 1."""
    yield from (whole + fraction, whole + fraction.rstrip("0").rstrip("."), whole)
    digits = whole.lstrip("0") or "0"
    yield digits
    yield digits[0] + "0" * (len(digits) - 1)
    yield from ("1" + "0" * zeros for zeros in range(len(digits) - 1, -1, -1))


def _shortened(text: str) -> Iterator[str]:
    """Yield the text with each run of a letter shortened to two or one, each run of a sign to three, two or one."""
    pieces = _LENGTHENED.split(text)  # alternates: text between runs, repeated character
    between, runs = pieces[::2], pieces[1::2]
    if 0 < len(runs) <= 4:  # a text with more runs is no word, and has too many forms
        for lengths in product(*[(2, 1) if run.isalnum() else (3, 2, 1) for run in runs]):
            shortened = [*[run * length for run, length in zip(runs, lengths, strict=True)], ""]
            yield "".join([part for pair in zip(between, shortened, strict=True) for part in pair])


def _split_contraction(text: str) -> tuple[str, str]:
    """Split off an ending that is a word of its own in GloVe (n't, 's, 're, …); two empty strings if there is none."""
    if match := _CONTRACTION.fullmatch(text):
        return match[1], match[2]
    if match := _NOT.fullmatch(text):
        return match[1], "n't"
    if match := _WITHOUT_APOSTROPHE.fullmatch(text):
        return match[1] or match[3], "'" + (match[2] or match[4])
    return "", ""


def _undo_simple_typo(word: str) -> Iterator[str]:
    """Yield the words that give `word` by swapping two letters, omitting or doubling one, or adding an s. The first
    letter stays."""
    for k in range(1, len(word) + 1):
        start, end = word[:k], word[k:]
        yield from (start + letter + end for letter in ascii_lowercase)
        if len(end) > 1:
            yield start + end[1] + end[0] + end[2:]
        if end and (end[0] == start[-1] or end == "s"):
            yield start + end[1:]


def _undo_any_typo(word: str) -> Iterator[str]:
    """Yield the words that give `word` by changing or adding one letter. The first letter stays."""
    for k in range(1, len(word)):
        start, end = word[:k], word[k + 1 :]
        yield start + end
        yield from (start + letter + end for letter in ascii_lowercase)
