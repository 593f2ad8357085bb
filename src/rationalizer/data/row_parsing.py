"""One row of a user's data, in whatever form, into an Example or a PairExample."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from rationalizer.data.safe_json import parse_json
from rationalizer.text.errors import DataError, InputError, short_repr
from rationalizer.text.example import Example, PairExample
from rationalizer.text.word_splitting import Offsets, SplitRule, align, join, split_words

LONGEST_TEXT = 1_000_000  # characters: a long novel, which takes seconds


def make_example(
    *,
    text: Any = None,
    tokens: Any = None,
    spans: Any = None,
    mask: Any = None,
    masks: Any = None,
    characters: Any = None,
    sentence_lengths: Any = None,
    label: int | float | None = None,
    rule: SplitRule = "words",
) -> Example:
    """An example from a text, or tokens, or both, and at most one form of rationale; ValueError says what is
    wrong.

    `spans` are half-open token spans, `mask` has one flag a token, `masks` one such list for each person that marked
    the text (the rationale is what any of them did), `characters` are half-open character
    spans of the text and mark every token they touch; each may come as JSON text. `sentence_lengths` has the number of
    tokens of each sentence. `rule` says how a text is cut into tokens; given ones are kept as they are.
    """
    if isinstance(text, float) and text != text:  # how pandas writes a missing text
        text = None
    if text is not None and not isinstance(text, str):
        raise DataError(f"the text must be a string, got {type(text).__name__} {short_repr(text)}")
    _check_length(text)
    if tokens is None:
        if text is None or not text.strip():
            raise DataError("the text is empty", "fill it in or leave the row out")
        words, offsets = split_words(text, rule)
    else:
        text, words, offsets = _given_tokens(tokens, text)
    if not words:
        raise DataError(f"the text {short_repr(text)} has no token", "fill it in or leave the row out")

    rationale, people = None, None
    if spans is not None:
        rationale = from_spans(parsed(spans, "the rationale's spans"), len(words))
    elif mask is not None:
        rationale = from_mask(parsed(mask, "the rationale's mask"), len(words))
    elif masks is not None:
        listed = [parsed(one, "a rationale's mask") for one in parsed(masks, "the rationales' masks")]
        people = tuple(from_mask(one, len(words)) for one in listed) or None
        rationale = None if people is None else tuple(map(any, zip(*people, strict=True)))
    elif characters is not None:
        rationale = from_characters(parsed(characters, "the rationale's character spans"), offsets, len(text or ""))
    lengths = None if sentence_lengths is None else _lengths(parsed(sentence_lengths, "sentence lengths"))
    return Example(text or "", words, offsets, label, rationale, lengths, people)


def _lengths(lengths: Sequence[Any]) -> tuple[int, ...]:
    """Tokens of each sentence; empty ones, as empty lines leave them, are left out."""
    if not all(_is_count(length) for length in lengths):
        raise DataError(f"sentence lengths are numbers of tokens such as [12, 7], got {short_repr(list(lengths))}")
    return tuple(int(length) for length in lengths if int(length))


def _is_count(value: Any) -> bool:
    return (isinstance(value, int) and not isinstance(value, bool) and value >= 0) or (
        isinstance(value, str) and value.isdecimal()
    )


def make_pair(
    *,
    premise: Any = None,
    hypothesis: Any = None,
    premise_tokens: Any = None,
    hypothesis_tokens: Any = None,
    alignment: Any = None,
    premise_characters: Any = None,
    hypothesis_characters: Any = None,
    label: int | float | None = None,
    group: Any = None,
    rule: SplitRule = "words",
) -> PairExample:
    """A pair from two texts, or their tokens, or both; ValueError says what is wrong, and on which side.

    `alignment` holds pairs of token numbers counted from 0, the premise's first: [[0, 0], [1, 2]], as a list
    or as JSON text, or in Pharaoh's notation "0-0 1-2". `premise_characters` and `hypothesis_characters` are what
    people marked on each side, as half-open character spans.
    """
    sides = []
    for name, text, tokens, marks in (
        ("premise", premise, premise_tokens, premise_characters),
        ("hypothesis", hypothesis, hypothesis_tokens, hypothesis_characters),
    ):
        try:
            sides.append(make_example(text=text, tokens=tokens, characters=marks, rule=rule))
        except InputError as error:
            raise error.prefixed(f"the {name}: ") from None
    pairs = None if alignment is None else from_alignment(alignment)
    return PairExample(sides[0], sides[1], label, pairs, None if group is None else str(group))


def from_alignment(alignment: Any) -> tuple[tuple[int, int], ...]:
    """Aligned pairs of token numbers, sorted, each once."""
    if isinstance(alignment, str):
        listed = _json_list(alignment.strip())
        alignment = [_pharaoh(word) for word in alignment.split()] if listed is None else listed
    if hasattr(alignment, "tolist"):
        alignment = alignment.tolist()
    if not isinstance(alignment, Sequence):
        raise DataError(f"the alignment must be a list of pairs, got {short_repr(alignment)}", _ALIGNMENTS)
    pairs = []
    for pair in alignment:
        if hasattr(pair, "tolist"):
            pair = pair.tolist()
        if not _is_integer_pair(pair):
            raise DataError(f"the alignment holds {short_repr(pair)}, not a pair of integers", _ALIGNMENTS)
        pairs.append((pair[0], pair[1]))
    return tuple(sorted(set(pairs)))


_ALIGNMENTS = 'write alignments as [[0, 0], [1, 2]] or as "0-0 1-2", the premise\'s token first, counted from 0'
_PHARAOH = re.compile(r"(\d{1,9})-(\d{1,9})")


def _pharaoh(word: str) -> Any:
    match = _PHARAOH.fullmatch(word)
    return word if match is None else (int(match[1]), int(match[2]))


def _check_length(text: str | None) -> None:
    if text is not None and len(text) > LONGEST_TEXT:
        raise DataError(
            f"the text has {len(text):,} characters, but may have {LONGEST_TEXT:,}",
            "cut it into several texts, such as chapters",
        )


def _given_tokens(tokens: Any, text: str | None) -> tuple[str, tuple[str, ...], Offsets]:
    if isinstance(tokens, str):
        _check_length(tokens)
        listed = _json_list(tokens) if tokens.startswith('["') else None
        if listed is None and text is None:
            words, offsets = split_words(tokens, "spaces")
            return tokens, words, offsets
        tokens = tokens.split() if listed is None else listed
    if hasattr(tokens, "tolist"):
        tokens = tokens.tolist()
    if not isinstance(tokens, Sequence):
        raise DataError(f"tokens must be a list of words or words joined by spaces, got {short_repr(tokens)}")
    for k, token in enumerate(tokens):
        if not isinstance(token, str) or not token.strip():
            raise DataError(f"token {k + 1} is {short_repr(token)}, not a word", "leave it out")
    if text is not None:
        return text, tuple(tokens), align(tokens, text)
    text, offsets = join(tokens)
    _check_length(text)
    return text, tuple(tokens), offsets


def _json_list(text: str) -> list[Any] | None:
    try:
        value = parse_json(text)
    except ValueError:
        return None
    return value if isinstance(value, list) else None


def parsed(value: Any, what: str) -> Sequence[Any]:
    """A list, which may have come as text; ValueError where it is none."""
    if isinstance(value, str):
        listed = _json_list(value.strip())
        value = value.split() if listed is None else listed  # a mask may be "0 1 1 0"
    if hasattr(value, "tolist"):
        value = value.tolist()
    if not isinstance(value, Sequence):
        raise DataError(f"{what} must be a list, got {short_repr(value)}")
    return value


def from_spans(spans: Sequence[Any], length: int) -> tuple[bool, ...]:
    """Flags of the tokens in half-open token spans."""
    flags = [False] * length
    for start, end in _pairs(spans, "token"):
        if not 0 <= start < end <= length:
            raise DataError(
                f"the rationale span [{start}, {end}) does not lie within the {length} tokens",
                "spans are [start, end) with 0 <= start < end, counted in tokens from 0",
            )
        flags[start:end] = [True] * (end - start)
    return tuple(flags)


def from_mask(mask: Sequence[Any], length: int) -> tuple[bool, ...]:
    """Flags from one 0/1, true/false or "0"/"1" a token."""
    if len(mask) != length:
        raise DataError(f"the rationale mask has {len(mask)} flags for {length} tokens", "give one a token")
    for flag in mask:
        if flag not in (0, 1, "0", "1"):
            raise DataError(f"the rationale mask holds {short_repr(flag)}", "flags are 0 or 1")
    return tuple(flag in (1, "1") for flag in mask)


def from_characters(spans: Sequence[Any], offsets: Offsets, length: int) -> tuple[bool, ...]:
    """Flags of the tokens that half-open character spans touch."""
    flags = [False] * len(offsets)
    for start, end in _pairs(spans, "character"):
        if not 0 <= start < end <= length:
            raise DataError(
                f"the rationale span [{start}, {end}) does not lie within the text's {length} characters",
                "spans are [start, end) with 0 <= start < end, counted in characters from 0",
            )
        for k, (first, last) in enumerate(offsets):
            if first < end and start < last:
                flags[k] = True
    return tuple(flags)


def _pairs(spans: Sequence[Any], unit: str) -> list[tuple[int, int]]:
    pairs = []
    for span in spans:
        if hasattr(span, "tolist"):
            span = span.tolist()
        if not _is_integer_pair(span):
            raise DataError(
                f"the rationale span {short_repr(span)} is not a pair of integers",
                f"write {unit} spans as [[start, end], ...]",
            )
        pairs.append((span[0], span[1]))
    return pairs


def _is_integer_pair(value: Any) -> bool:
    paired = isinstance(value, Sequence) and not isinstance(value, str) and len(value) == 2
    return paired and all(isinstance(x, int) and not isinstance(x, bool) for x in value)
