"""Words named by regular expressions, or marked in each of the texts that are processed."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import regex

from rationalizer.constraints.base import ConstraintConflict
from rationalizer.constraints.layer_arguments import TextRequirements
from rationalizer.text.errors import InputError, short_repr

TIMEOUT = 0.5  # seconds per text: some patterns take exponential time, and a server must not hang
LONGEST_PATTERN = 1000  # characters


def find_pattern(pattern: str, text: str) -> list[tuple[int, int]]:
    """The character spans that match a regular expression."""
    try:
        spans = [match.span() for match in _compile(pattern).finditer(text, timeout=TIMEOUT)]
    except TimeoutError:
        raise ConstraintConflict(
            f"the pattern {short_repr(pattern)} takes too long on {short_repr(text)}", "write a simpler one"
        ) from None
    return [(start, end) for start, end in spans if end > start]


@lru_cache(64)
def _compile(pattern: str) -> regex.Pattern[str]:
    return regex.compile(pattern)


def check_pattern(name: str, pattern: Any) -> None:
    """Raise `InputError` if the pattern is not a regular expression."""
    if not isinstance(pattern, str) or not 0 < len(pattern) <= LONGEST_PATTERN:
        raise InputError(f"{name}: a pattern has 1 to {LONGEST_PATTERN} characters, got {short_repr(pattern)}")
    try:
        _compile(pattern)
    except regex.error as error:
        raise InputError(f"{name}: {short_repr(pattern)} is not a regular expression ({error})") from None


def check_settings(constraint: Any, *, flags: Sequence[str] = (), lists: Sequence[str] = ()) -> None:
    """Raise `InputError` unless `flags` are booleans and `lists` are lists (which become tuples) or None."""
    for key in lists:
        value = to_tuples(getattr(constraint, key))
        if not isinstance(value, tuple | None):
            raise InputError(f"{constraint.name}: {key} is a list, got {short_repr(value)}")
        object.__setattr__(constraint, key, value)
    for key in flags:
        if not isinstance(getattr(constraint, key), bool):
            raise InputError(
                f"{constraint.name}: {key} must be true or false, got {short_repr(getattr(constraint, key))}"
            )


def to_tuples(value: Any) -> Any:
    """Lists and arrays as tuples, which can be compared and hashed."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return tuple(map(to_tuples, value)) if isinstance(value, (list, tuple)) else value


def parse_flags(value: str, known: Sequence[str], others: str) -> dict[str, Any]:
    """Parse flags separated by commas; `others` names what else the text form may contain, for the message."""
    flags = [flag.strip() for flag in value.split(",") if flag.strip()]
    unknown = next((flag for flag in flags if flag not in known), None)
    if unknown is not None:
        raise InputError(f"{', '.join(known)}{others} was expected, got {short_repr(unknown)}")
    return {flag: flag in flags for flag in known}


def matched_spans(
    name: str, pattern: str | None, characters: Sequence[Any] | None, text: TextRequirements
) -> list[tuple[int, int]]:
    """The character spans of a text that match the pattern, and those marked in it.

    `characters` has a list of spans for each text; for a single text the spans alone will do.
    """
    spans = [] if pattern is None else find_pattern(pattern, text.example.text)
    if characters is None:
        return spans
    own = text.item.own(name, "characters", (characters,) if any(map(is_integer_pair, characters)) else characters)
    length = len(text.example.text)
    for span in own or ():
        if not is_integer_pair(span) or not 0 <= span[0] < span[1] <= length:
            raise InputError(
                f"{name}: {short_repr(span)} is not a character span of text {text.item.position + 1}, which has "
                f"{length} characters",
                "spans are (start, end) with 0 <= start < end, counted from 0",
            )
    return [*spans, *(own or ())]


def mask_for_text(name: str, mask: Sequence[Any], text: TextRequirements) -> list[bool]:
    """The tokens marked in this text. `mask` has a flag per token for each text, or those of a single text."""
    tokens = len(text.example.tokens)
    own = text.item.own(name, "mask", (mask,) if any(flag in (0, 1) for flag in mask) else mask)
    own = (0,) * tokens if own is None else own
    if len(own) != tokens or any(flag not in (0, 1) for flag in own):
        raise InputError(
            f"{name}: a mask has a 0 or 1 per token, got {short_repr(own)} for the {tokens} tokens of text "
            f"{text.item.position + 1}"
        )
    return [bool(flag) for flag in own]


def is_integer_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(type(number) is int for number in value)
