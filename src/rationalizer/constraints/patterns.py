"""Places in a text: where a pattern is found, and what a user marked in each of the texts at hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import regex

from rationalizer.constraints.base import ConstraintConflict
from rationalizer.constraints.layer_arguments import TextInBatch
from rationalizer.text.errors import InputError, short_repr

SECONDS = 0.5  # that a pattern may take on a text: some take for ever, and a server must not
LONGEST_PATTERN = 1000  # characters


def find_pattern(pattern: str, text: str) -> list[tuple[int, int]]:
    """Where a regular expression is found, as character spans."""
    try:
        found = [match.span() for match in _compiled(pattern).finditer(text, timeout=SECONDS)]
    except TimeoutError:
        raise ConstraintConflict(
            f"the pattern {short_repr(pattern)} takes too long on {short_repr(text)}", "write a simpler one"
        ) from None
    return [(start, end) for start, end in found if end > start]


@lru_cache(64)
def _compiled(pattern: str) -> regex.Pattern[str]:
    return regex.compile(pattern)


def check_pattern(name: str, pattern: Any) -> None:
    """ValueError where it is no regular expression."""
    if not isinstance(pattern, str) or not 0 < len(pattern) <= LONGEST_PATTERN:
        raise InputError(f"{name}: a pattern has 1 to {LONGEST_PATTERN} characters, got {short_repr(pattern)}")
    try:
        _compiled(pattern)
    except regex.error as error:
        raise InputError(f"{name}: {short_repr(pattern)} is no regular expression ({error})") from None


def to_tuples(value: Any) -> Any:
    """Lists and arrays as tuples, so that constraints can be compared, and told apart in a dictionary."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return tuple(map(to_tuples, value)) if isinstance(value, (list, tuple)) else value


def spans_for_text(name: str, characters: Sequence[Any], text: TextInBatch) -> list[tuple[int, int]]:
    """The character spans that were marked in this text.

    `characters` has a list of spans for each text; for a single text the spans alone will do.
    """
    listed = (characters,) if any(map(_is_span, characters)) else characters
    own = _of_text(name, "characters", listed, text) or ()
    length = len(text.example.text)
    for span in own:
        if not _is_span(span) or not 0 <= span[0] < span[1] <= length:
            raise InputError(
                f"{name}: {short_repr(span)} is no character span of text {text.position + 1}, which "
                f"has {length} characters",
                "spans are (start, end) with 0 <= start < end, counted from 0",
            )
    return list(own)


def mask_for_text(name: str, mask: Sequence[Any], text: TextInBatch) -> list[bool]:
    """The tokens that were marked in this text; `mask` has a flag a token for each text, or those of a single one."""
    listed = (mask,) if any(flag in (0, 1) for flag in mask) else mask
    tokens = len(text.example.tokens)
    own = _of_text(name, "mask", listed, text)
    own = (0,) * tokens if own is None else own
    if len(own) != tokens or any(flag not in (0, 1) for flag in own):
        raise InputError(
            f"{name}: a mask has a 0 or 1 a token, got {short_repr(own)} for the {tokens} tokens "
            f"of text {text.position + 1}"
        )
    return [bool(flag) for flag in own]


def _of_text(name: str, key: str, listed: Sequence[Any], text: TextInBatch) -> Any:
    if len(listed) != text.of:
        texts = "1 text" if text.of == 1 else f"{text.of} texts"
        raise InputError(f"{name}: {key} is of {len(listed)} texts, but there are {texts}", "give a list for each")
    return listed[text.position]


def _is_span(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(type(end) is int for end in value)
