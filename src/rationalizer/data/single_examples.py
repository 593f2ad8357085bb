"""Examples from single texts and pairs: of strings, lists of tokens, and rows of files."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from rationalizer.data.annotation_parsing import (
    holds_lists_of_spans,
    json_list,
    mask_from_characters,
    mask_from_flags,
    mask_from_spans,
    parse_alignment,
    parse_by_label,
    parse_list,
)
from rationalizer.data.column_names import Columns
from rationalizer.data.labels import Labels
from rationalizer.text.errors import DataError, InputError, short_repr
from rationalizer.text.example import AnyExample, Example, LabelValue, PairExample, with_weight
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
    removed_words: Any = None,
    sentence_lengths: Any = None,
    label: LabelValue = None,
    rule: SplitRule = "words",
) -> Example:
    """Make an example from a text, tokens, or both, with at most one form of annotation.

    Args:
        text: a string.
        tokens: a list of words, JSON, or words separated by spaces; they are kept as they are. Empty tokens and white
            space keep their position but are never selected.
        spans: annotation as half-open token spans. Each annotation may also be JSON text, and a mapping with an
            annotation for each of several labels.
        mask: annotation as one flag per token.
        masks: one such mask per annotator; the annotation is their union.
        characters: annotation as half-open character spans, or one list of them per annotator; every token that
            overlaps one is annotated.
        removed_words: words that a model had selected in this text and people unmarked.
        sentence_lengths: the number of tokens of each sentence.
        label: the encoded label.
        rule: how the text is split into words.

    Raises:
        DataError: without a place, if the values cannot be used.
    """
    if isinstance(text, float) and text != text:  # pandas' missing value
        text = None
    if text is not None and not isinstance(text, str):
        raise DataError(f"the text must be a string, got {type(text).__name__} {short_repr(text)}")
    _check_length(text)
    if tokens is None:
        if text is None or not text.strip():
            raise DataError("the text is empty", "fill it in or leave the row out")
        words, offsets = split_words(text, rule)
    else:
        text, words, offsets = _parse_tokens(tokens, text)
    if not any(map(str.strip, words)):
        raise DataError(f"the text {short_repr(text)} has no token", "fill it in or leave the row out")

    def parse_spans(value: Any) -> tuple[bool, ...]:
        return mask_from_spans(parse_list(value, "the rationale's spans"), len(words))

    def parse_mask(value: Any) -> tuple[bool, ...]:
        return mask_from_flags(parse_list(value, "the rationale's mask"), len(words))

    def parse_characters(value: Any) -> tuple[bool, ...]:
        return mask_from_characters(parse_list(value, "the rationale's character spans"), offsets, len(text or ""))

    annotation, annotator_masks, by_label = None, None, None
    if masks is not None and spans is None and mask is None:
        flags = [parse_list(one, "a rationale's mask") for one in parse_list(masks, "the rationales' masks")]
        annotator_masks = tuple(mask_from_flags(one, len(words)) for one in flags) or None
        annotation = None if annotator_masks is None else tuple(map(any, zip(*annotator_masks, strict=True)))
    several = None if characters is None or spans is not None or mask is not None else _parse_characters(characters)
    if several is not None:
        annotator_masks = tuple(parse_characters(one) for one in several)
        annotation = tuple(map(any, zip(*annotator_masks, strict=True)))
        characters = None
    for value, parse in ((spans, parse_spans), (mask, parse_mask), (characters, parse_characters)):
        if value is not None:
            by_label = parse_by_label(value, parse)
            annotation = parse(value) if by_label is None else tuple(map(any, zip(*by_label.values(), strict=True)))
            break
    removed = None
    if removed_words is not None:
        names = {str(word).casefold() for word in parse_list(removed_words, "the removed words")}
        removed = tuple(word.casefold() in names for word in words)
    lengths = None if sentence_lengths is None else _parse_sentence_lengths(sentence_lengths)
    known: dict[str, Any] = {"annotator_masks": annotator_masks, "label_annotations": by_label, "removed": removed}
    return Example(text or "", words, offsets, label, annotation, lengths, **known)


def _parse_characters(characters: Any) -> Sequence[Any] | None:
    """The spans of each annotator, if there are several."""
    if isinstance(characters, Mapping) or (isinstance(characters, str) and characters.lstrip().startswith("{")):
        return None
    parsed = parse_list(characters, "the rationale's character spans")
    return parsed if holds_lists_of_spans(parsed) else None


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
    """Make a pair from two texts, their tokens, or both; an error names the side.

    `alignment` holds pairs of token indices, the premise's first: [[0, 0], [1, 2]], as a list or as JSON text, or in
    Pharaoh notation "0-0 1-2". `premise_characters` and `hypothesis_characters` are each side's annotation, as
    half-open character spans.
    """
    sides = []
    for name, text, tokens, characters in (
        ("premise", premise, premise_tokens, premise_characters),
        ("hypothesis", hypothesis, hypothesis_tokens, hypothesis_characters),
    ):
        try:
            sides.append(make_example(text=text, tokens=tokens, characters=characters, rule=rule))
        except InputError as error:
            raise error.prefixed(f"the {name}: ") from None
    links = None if alignment is None else parse_alignment(alignment)
    return PairExample(sides[0], sides[1], label, links, None if group is None else str(group))


def example_from_row(row: dict[str, Any], columns: Columns, labels: Labels | None, rule: SplitRule) -> AnyExample:
    """Make an example from a row of a file with these (resolved) columns; without `labels`, its label is not read."""

    def cell(name: str | None) -> Any:
        value = row.get(name) if name is not None else None
        return None if value == "" and name != columns.text else value  # an empty CSV field holds nothing

    label = None if labels is None else labels.encode(columns.read_label(row))
    if columns.weight is not None:
        unweighted = example_from_row(row, replace(columns, weight=None), labels, rule)
        return with_weight(unweighted, cell(columns.weight))
    if columns.are_pairs:
        return make_pair(
            premise=cell(columns.premise),
            hypothesis=cell(columns.hypothesis),
            premise_tokens=cell(columns.premise_tokens),
            hypothesis_tokens=cell(columns.hypothesis_tokens),
            alignment=cell(columns.alignment),
            premise_characters=cell(columns.premise_chars),
            hypothesis_characters=cell(columns.hypothesis_chars),
            label=one_label(label),
            group=cell(columns.group),
            rule=rule,
        )
    return make_example(
        text=cell(columns.text),
        tokens=cell(columns.tokens),
        spans=cell(columns.rationale_spans),
        mask=cell(columns.rationale_mask),
        masks=cell(columns.rationale_masks),
        characters=cell(columns.rationale_chars),
        removed_words=cell(columns.removed_words),
        sentence_lengths=cell(columns.sentence_lengths),
        label=label,
        rule=rule,
    )


def example_from_known_row(row: Mapping[str, Any], labels: Labels | None, rule: SplitRule) -> AnyExample:
    """Make an example from a row whose columns have their usual names; without a label, it has none."""
    columns = Columns(**{kind: name if name in row else None for kind, name in Columns().by_kind().items()})
    unlabelled = columns.label is None or row[columns.label] in (None, "")
    return example_from_row(dict(row), columns, None if unlabelled else labels, rule)


def one_label(label: LabelValue) -> int | float | None:
    if isinstance(label, tuple):
        raise DataError("a pair of texts has one label, but this one has several", "train one model for each label")
    return label


def _parse_tokens(tokens: Any, text: str | None) -> tuple[str, tuple[str, ...], Offsets]:
    if isinstance(tokens, str):
        _check_length(tokens)
        parsed = json_list(tokens) if tokens.startswith('["') else None
        if parsed is None and text is None:
            return tokens, *split_words(tokens, "spaces")
        tokens = tokens.split() if parsed is None else parsed
    if hasattr(tokens, "tolist"):
        tokens = tokens.tolist()
    if not isinstance(tokens, Sequence):
        raise DataError(f"tokens must be a list of words or words joined by spaces, got {short_repr(tokens)}")
    for k, token in enumerate(tokens):
        if not isinstance(token, str):
            raise DataError(f"token {k + 1} is {short_repr(token)}, not a word", "leave it out")
    if text is not None:
        return text, tuple(tokens), align(tokens, text)
    text, offsets = join(tokens)
    _check_length(text)
    return text, tuple(tokens), offsets


def _check_length(text: str | None) -> None:
    if text is not None and len(text) > LONGEST_TEXT:
        raise DataError(
            f"the text has {len(text):,} characters, but may have {LONGEST_TEXT:,}",
            "cut it into several texts, such as chapters",
        )


def _parse_sentence_lengths(lengths: Any) -> tuple[int, ...]:
    """Tokens of each sentence, without empty sentences (from empty lines)."""
    lengths = parse_list(lengths, "sentence lengths")
    for length in lengths:
        is_count = isinstance(length, int) and not isinstance(length, bool) and length >= 0
        if not is_count and not (isinstance(length, str) and length.isdecimal()):
            raise DataError(f"sentence lengths are numbers of tokens such as [12, 7], got {short_repr(list(lengths))}")
    return tuple(int(length) for length in lengths if int(length))
