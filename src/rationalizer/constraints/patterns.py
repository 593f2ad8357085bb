"""Words named by regular expressions, or marked in each of the texts that are processed."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import regex

from rationalizer.constraints.base import ConstraintConflict
from rationalizer.constraints.layer_arguments import TextRequirements
from rationalizer.text.errors import InputError, short_repr
from rationalizer.work_limits import request_time

LONGEST_PATTERN = 1000  # characters
LONGEST_EXPANSION = 10_000  # characters: 1.5 MB and 10 ms to compile
DEEPEST_NESTING = 50  # groups; the compiler is recursive
LONGEST_LIST = 1000  # words, or pairs of words, of one constraint

_TOKEN = re.compile(
    r"""
    (?P<escape>\\.)
    | (?P<comment>\(\?\#(?:\\.|[^)\\])*\))
    | (?P<set>\[\^?\]?(?:\\.|\[:\^?[a-z]+:\]|\[(?!:)|[^\]\[\\])*\])
    | (?P<badset>\[)
    | (?P<recursion>\(\?(?:R|&|P>|[+-]?[0-9]))
    | (?P<flags>\(\?[A-Za-z0-9]*(?:x|V1))
    | (?P<open>\()
    | (?P<close>\))
    | (?P<count>\{[0-9]*(?:,[0-9]*)?\})
    | (?P<quantifier>[*+?])
    | (?P<other>.)
    """,
    re.VERBOSE | re.DOTALL,
)
_UNSUPPORTED = {
    "badset": ("has a character set that is not closed or contains '[:'", r"write \[ for a bracket in a set"),
    "recursion": ("refers to itself", "write the repeated part out"),
    "flags": ("sets the flag x or V1", "leave the flag out"),
}


def find_pattern(pattern: str, text: str) -> list[tuple[int, int]]:
    """The character spans that match a regular expression."""
    try:
        with request_time().search() as seconds:
            if seconds <= 0:
                raise TimeoutError
            spans = [match.span() for match in _compile(pattern).finditer(text, timeout=seconds)]
    except TimeoutError:
        raise ConstraintConflict(
            f"the pattern {short_repr(pattern)} takes too long on {short_repr(text)}",
            "write a simpler one, or give fewer texts at a time",
        ) from None
    return [(start, end) for start, end in spans if end > start]


@lru_cache(64)
def _compile(pattern: str) -> regex.Pattern[str]:
    return regex.compile(pattern, cache_pattern=False)


def check_pattern(name: str, pattern: Any) -> None:
    """Raise `InputError` if the pattern is not a regular expression, or takes too much time or memory to compile."""
    if not isinstance(pattern, str) or not 0 < len(pattern) <= LONGEST_PATTERN:
        raise InputError(f"{name}: a pattern has 1 to {LONGEST_PATTERN} characters, got {short_repr(pattern)}")
    try:
        check_expansion(pattern)
    except InputError as error:
        raise error.prefixed(f"{name}: the pattern {short_repr(pattern)} ") from None
    try:
        _compile(pattern)
    except (regex.error, RecursionError, OverflowError) as error:
        raise InputError(f"{name}: {short_repr(pattern)} is not a regular expression ({error})") from None


def check_expansion(pattern: str) -> None:
    """Raise `InputError` if a pattern is too large once its counted repetitions are written out.

    `regex` writes them out: `(?:(?:(?:a){300}){300}){300}` takes 7 GB and 13 s. So each character is counted as often
    as the repetitions around it say; escapes, sets and comments are skipped. Syntax that would make this count wrong is
    refused: recursion, and the flags x (comments may contain parentheses) and V1 (nested sets). RE2, which bounds time
    and memory itself, has no lookaround and no backreferences.
    """
    sizes, last = [0], 0  # of the open groups so far; of the latest item, which a repetition applies to
    for token in _TOKEN.finditer(pattern):
        kind = str(token.lastgroup)
        size = len(token[0])
        if kind in _UNSUPPORTED:
            raise InputError(*_UNSUPPORTED[kind])
        if kind == "open":
            sizes.append(0)
        elif kind == "count":
            repetitions = max(int(number) for number in ("1", *re.findall("[0-9]+", token[0])))
            sizes[-1] += last * (repetitions - 1) + size
            last *= repetitions
        elif kind in ("quantifier", "comment"):
            sizes[-1] += size
        else:
            last = size + sizes.pop() if kind == "close" and len(sizes) > 1 else size
            sizes[-1] += last
        if len(sizes) > DEEPEST_NESTING:
            raise InputError(f"has groups nested more than {DEEPEST_NESTING} deep", "write a simpler one")
        if sizes[-1] > LONGEST_EXPANSION:
            raise InputError(
                f"has more than {LONGEST_EXPANSION} characters with its repetitions written out",
                "use smaller counts, or + and *",
            )


def check_settings(constraint: Any, *, flags: Sequence[str] = (), lists: Sequence[str] = ()) -> None:
    """Raise `InputError` unless `flags` are booleans and `lists` are lists (which become tuples) or None.

    `words` cannot be None, and has at most `LONGEST_LIST` entries. The other lists have an entry per text.
    """
    for key in lists:
        value = to_tuples(getattr(constraint, key))
        if not isinstance(value, tuple) and (value is not None or key == "words"):
            raise InputError(f"{constraint.name}: {key} must be a list, got {short_repr(value)}")
        if key == "words" and value is not None and len(value) > LONGEST_LIST:
            raise InputError(
                f"{constraint.name}: {key} has {len(value)} entries, at most {LONGEST_LIST} are allowed",
                "use a pattern, or several constraints",
            )
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
    """Return the mask of this text. `mask` has one flag per token, or one such mask per text."""
    tokens = len(text.example.tokens)
    own = text.item.own(name, "mask", (mask,) if any(flag in (0, 1) for flag in mask) else mask)
    own = (0,) * tokens if own is None else own
    if len(own) != tokens or any(flag not in (0, 1) for flag in own):
        raise InputError(
            f"{name}: a mask must have one 0 or 1 per token, got {short_repr(own)} for the {tokens} tokens of text "
            f"{text.item.position + 1}"
        )
    return [bool(flag) for flag in own]


def is_integer_pair(value: Any) -> bool:
    return isinstance(value, tuple) and len(value) == 2 and all(type(number) is int for number in value)
