"""Human annotations in the forms that files have them: spans, masks and alignments, as lists or as text."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rationalizer.data.safe_json import parse_json
from rationalizer.plurals import count_of
from rationalizer.text.errors import DataError, short_repr
from rationalizer.text.word_splitting import Offsets

_ALIGNMENT_FORMS = 'write alignments as [[0, 0], [1, 2]] or as "0-0 1-2", the premise\'s token first, counted from 0'
_PHARAOH = re.compile(r"(\d{1,9})-(\d{1,9})")


def json_list(text: str) -> list[Any] | None:
    """The list that a JSON text holds; None if it holds no list."""
    try:
        value = parse_json(text)
    except ValueError:
        return None
    return value if isinstance(value, list) else None


def parse_list(value: Any, what: str) -> Sequence[Any]:
    """A list given as a list, an array, JSON, or items separated by spaces."""
    if isinstance(value, str):
        parsed = json_list(value.strip())
        value = value.split() if parsed is None else parsed
    value = _plain(value)
    if not isinstance(value, Sequence):
        raise DataError(f"{what} must be a list, got {short_repr(value)}")
    return value


def parse_by_label(value: Any, parse: Callable[[Any], tuple[bool, ...]]) -> dict[str, tuple[bool, ...]] | None:
    """The annotation of each label, if they are given as a mapping or as a JSON object; else None."""
    if isinstance(value, str) and value.lstrip().startswith("{"):
        try:
            value = parse_json(value)
        except ValueError:
            return None  # `parse_list` reports it
    if not isinstance(value, Mapping):
        return None
    masks = {}
    for name, own in value.items():
        try:
            masks[str(name)] = parse([] if own is None else own)
        except DataError as error:
            raise error.prefixed(f"{name}: ") from None
    return masks or None


def mask_from_spans(spans: Sequence[Any], length: int) -> tuple[bool, ...]:
    """A mask over the tokens in half-open token spans."""
    mask = [False] * length
    for start, end in _spans(spans, "token", f"the {length} tokens", length):
        mask[start:end] = [True] * (end - start)
    return tuple(mask)


def mask_from_characters(spans: Sequence[Any], offsets: Offsets, length: int) -> tuple[bool, ...]:
    """A mask over the tokens that overlap half-open character spans."""
    mask = [False] * len(offsets)
    for start, end in _spans(spans, "character", f"the text's {length} characters", length):
        for k, (first, last) in enumerate(offsets):
            mask[k] |= first < end and start < last
    return tuple(mask)


def holds_lists_of_spans(spans: Sequence[Any]) -> bool:
    """Whether this is one list of spans per annotator, not one list of spans."""
    lists = [value for value in map(_plain, spans) if isinstance(value, Sequence) and not isinstance(value, str)]
    return len(lists) == len(spans) > 0 and all(not one or isinstance(_plain(one[0]), Sequence) for one in lists)


def mask_from_flags(flags: Sequence[Any], length: int) -> tuple[bool, ...]:
    """A mask from one 0/1, true/false or "0"/"1" per token."""
    if len(flags) != length:
        raise DataError(
            f"the rationale mask has {count_of(len(flags), 'flag')} for {count_of(length, 'token')}",
            "give one per token",
        )
    for flag in flags:
        if flag not in (0, 1, "0", "1"):
            raise DataError(f"the rationale mask holds {short_repr(flag)}", "flags are 0 or 1")
    return tuple(flag in (1, "1") for flag in flags)


def parse_alignment(alignment: Any) -> tuple[tuple[int, int], ...]:
    """Aligned pairs of token indices, sorted, each once."""
    if isinstance(alignment, str):
        parsed = json_list(alignment.strip())
        alignment = [_pharaoh(word) for word in alignment.split()] if parsed is None else parsed
    alignment = _plain(alignment)
    if not isinstance(alignment, Sequence):
        raise DataError(f"the alignment must be a list of pairs, got {short_repr(alignment)}", _ALIGNMENT_FORMS)
    pairs = [_plain(pair) for pair in alignment]
    for pair in pairs:
        if not _is_integer_pair(pair):
            raise DataError(f"the alignment holds {short_repr(pair)}, not a pair of integers", _ALIGNMENT_FORMS)
    return tuple(sorted({(pair[0], pair[1]) for pair in pairs}))


def _pharaoh(word: str) -> Any:
    match = _PHARAOH.fullmatch(word)
    return word if match is None else (int(match[1]), int(match[2]))


def _spans(spans: Sequence[Any], unit: str, whole: str, length: int) -> list[tuple[int, int]]:
    found = []
    for span in map(_plain, spans):
        if not _is_integer_pair(span):
            raise DataError(
                f"the rationale span {short_repr(span)} is not a pair of integers",
                f"write {unit} spans as [[start, end], ...]",
            )
        start, end = span
        if not 0 <= start < end <= length:
            raise DataError(
                f"the rationale span [{start}, {end}) does not lie within {whole}",
                f"spans are [start, end) with 0 <= start < end, counted in {unit}s from 0",
            )
        found.append((start, end))
    return found


def _plain(value: Any) -> Any:
    return value.tolist() if hasattr(value, "tolist") else value


def _is_integer_pair(value: Any) -> bool:
    is_pair = isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2
    return is_pair and all(isinstance(x, int) and not isinstance(x, bool) for x in value)
