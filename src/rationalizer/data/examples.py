"""The one place where texts become examples: strings, lists of tokens, pairs, tables, and rows of files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
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
from rationalizer.data.corpus import Corpus, Task, default_budget
from rationalizer.data.data_frames import is_table, pair_columns, texts_of
from rationalizer.data.labels import Labels, MixedLabels, infer_labels, matrix_rows, parse_label
from rationalizer.data.splitting import split_off_dev
from rationalizer.text.budget import Budget
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
            label=_one_label(label),
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


def make_examples(
    items: Iterable[Any],
    labels: Iterable[Any] | None = None,
    annotations: Iterable[Any] | None = None,
    classes: Sequence[str] | None = None,
    *,
    pairs: bool | None = None,
    task: Task | None = None,
    rule: SplitRule = "words",
    scheme: Labels | None = None,
) -> list[AnyExample]:
    """Make examples from texts (strings, or lists of tokens) or from pairs of them.

    Args:
        items: a list, array, column or table (see `are_pairs` for the forms of pairs).
        labels: names, integers and few distinct whole floats are classes, other floats are values (`infer_labels`). For
            several labels or targets of a text: lists or sets of names, a 0/1 matrix, or a table with a column for
            each.
        annotations: for each text a token mask, or half-open spans: of characters for a string, of tokens for a list of
            tokens. For each pair an alignment: pairs of token indices, or "0-0 1-2". None for items without annotation.
            For several labels it may be a mapping from names to such annotations.
        classes: the classes in order, or the names of several labels; by default inferred from the labels.
        pairs: whether the items are pairs; by default detected (see `are_pairs`).
        task: one of `Task`; by default inferred from the labels. "multi-label" splits strings such as "food;service".
        rule: how strings are split into words.
        scheme: the encoding of the labels, instead of `classes` and `task`.

    Raises:
        DataError: if an item cannot be used; it names the row, counted from 1.
    """
    pairs = are_pairs(items) if pairs is None else pairs
    name, annotation_name = ("pairs", "alignments") if pairs else ("texts", "annotations")
    rows = _as_pairs(items) if pairs else _as_list(items, "texts")
    encoded = [None] * len(rows) if labels is None else _encode(_label_list(labels), classes, task, scheme)[1]
    given = [None] * len(rows) if annotations is None else _as_list(annotations, annotation_name)
    for column, values in (("labels", encoded), (annotation_name, given)):
        if len(values) != len(rows):
            raise DataError(f"there are {len(rows)} {name} but {len(values)} {column}", "pass one per item")
    make = _pair_from_item if pairs else _example_from_item
    examples: list[AnyExample] = []
    for number, (item, label, annotation) in enumerate(zip(rows, encoded, given, strict=True), 1):
        missing = isinstance(annotation, float) and annotation != annotation  # pandas' missing value
        try:
            examples.append(make(item, label, None if missing else annotation, rule))
        except ValueError as error:
            raise DataError.from_error(error, path=name, row=number) from None
    return examples


def are_pairs(items: Any, *, expected: bool = False) -> bool:
    """Whether the items are pairs (premise, hypothesis), not texts.

    A pair is a tuple of two, and all items must be pairs. A list of strings is a tokenized text. If all items are lists
    of two strings and some of these contain spaces, they could be pairs read from JSON: DataError is raised.
    Tables with the columns `premise` and `hypothesis`, or with exactly two columns (other than `text` and `label`), and
    arrays of shape (n, 2) hold pairs. An iterator is not consumed and does not count as pairs.

    If pairs are `expected`, because the method needs them, everything but plain strings counts as pairs: lists of two
    are pairs, and `make_examples` raises an error for other items.
    """
    if is_table(items):
        return expected or pair_columns(items) is not None
    if getattr(items, "ndim", 1) == 2:
        return expected or bool(items.shape[1] == 2)
    if isinstance(items, (str, Iterator)) or not isinstance(items, Iterable):
        return False
    rows = list(items)
    if expected:
        return not all(isinstance(row, str) for row in rows)
    paired = [isinstance(row, tuple) and len(row) == 2 for row in rows]
    text = next((k for k, row in enumerate(rows) if isinstance(row, str)), None)
    if text is not None and any(paired):
        raise DataError(
            f"row {paired.index(True) + 1} is a pair (premise, hypothesis), row {text + 1} a text",
            "give one kind, and write tokenized texts as lists",
        )
    if rows and all(isinstance(row, list) and len(row) == 2 and all(isinstance(t, str) for t in row) for row in rows):
        spaced = next((k for k, row in enumerate(rows) if any(len(text.split()) > 1 for text in row)), None)
        if spaced is not None:
            raise DataError(
                f"row {spaced + 1}, {short_repr(rows[spaced])}, is a pair of texts or one text of two tokens",
                "write pairs as tuples, [tuple(pair) for pair in pairs], or pass pairs=True; for tokens, pairs=False",
            )
    return bool(rows) and all(paired)


def make_corpus(
    items: Iterable[Any],
    labels: Iterable[Any],
    annotations: Iterable[Any] | None = None,
    classes: Sequence[str] | None = None,
    *,
    pairs: bool = False,
    task: Task | None = None,
    dev: Sequence[AnyExample] | None = None,
    dev_fraction: float | None = None,
    seed: int = 0,
    budget: Budget | None = None,
    rule: SplitRule | None = None,
    weights: Iterable[Any] | None = None,
    scheme: Labels | None = None,
) -> Corpus:
    """Make a corpus without a test split from texts or pairs and their labels (see `make_examples`).

    Dev is held out from them unless it is given. The default budget is 20% of a text's words, or for pairs 50% of the
    shorter text's. `weights` are factors of the losses of texts, or pairs.
    """
    labels = _label_list(labels)
    scheme = scheme or _encode(labels, classes, task)[0]
    items = list(items) if isinstance(items, Iterator) else items
    rows = _as_pairs(items) if pairs else _as_list(items, "texts")
    texts = (text for row in rows for text in (row if pairs and hasattr(row, "__len__") else (row,)))
    used: SplitRule = rule or ("spaces" if all(map(_is_tokenized, texts)) else "words")
    train = make_examples(items, labels, annotations, pairs=pairs, rule=used, scheme=scheme)
    if weights is not None:
        train = _weigh(train, list(weights))
    if dev is None:
        train, dev = split_off_dev(train, dev_fraction, seed=seed, stratify=scheme.task != "regression")
    budget = budget or default_budget(pairs=pairs)
    name = "pairs" if pairs else "texts"
    return Corpus(name, scheme.task, scheme.classes, train, dev, (), budget, rule=used, targets=scheme.targets)


def _label_list(labels: Any) -> list[Any]:
    """Labels as a list; a matrix, a table or a mapping from names to columns has several for each text."""
    if isinstance(labels, Mapping):
        columns = [_as_list(column, name) for name, column in labels.items()]
        if len({len(column) for column in columns}) > 1:
            raise DataError("the columns of labels differ in length", "give a value, or None, for each text")
        return [dict(zip(labels, row, strict=True)) for row in zip(*columns, strict=True)]
    if is_table(labels) or getattr(labels, "ndim", 1) == 2:
        return list(matrix_rows(labels))
    return _as_list(labels, "labels")


def _weigh(examples: Sequence[AnyExample], weights: Sequence[Any]) -> list[AnyExample]:
    if len(weights) != len(examples):
        raise DataError(f"there are {len(examples)} texts but {len(weights)} weights", "pass one per text")
    weighted: list[AnyExample] = []
    for number, (example, weight) in enumerate(zip(examples, weights, strict=True), 1):
        try:
            weighted.append(with_weight(example, weight))
        except InputError as error:
            raise DataError.from_error(error, path="sample_weight", row=number) from None
    return weighted


def _as_list(values: Iterable[Any], name: str) -> list[Any]:
    if isinstance(values, str):
        raise DataError(f"{name} must be a list, got the single string {values[:40]!r}", f"use [{name}]")
    if name == "texts" and is_table(values):
        return texts_of(values, pairs=False)
    if is_table(values) or getattr(values, "ndim", 1) != 1:
        shape = tuple(values.shape)  # type: ignore[attr-defined]
        raise DataError(f"{name} must have one dimension, got the shape {shape}", "use one of its columns")
    return list(values)


def _as_pairs(pairs: Any) -> list[Any]:
    if isinstance(pairs, tuple) and len(pairs) == 2 and all(isinstance(text, str) for text in pairs):
        raise DataError(f"pairs must be a list of pairs, got the single pair {pairs!r}", "use [pair]")
    if is_table(pairs):
        return texts_of(pairs, pairs=True)
    return list(pairs) if getattr(pairs, "ndim", 1) == 2 else _as_list(pairs, "pairs")


def _encode(
    labels: Sequence[Any], classes: Sequence[str] | None, task: Task | None, scheme: Labels | None = None
) -> tuple[Labels, list[LabelValue]]:
    task = task if scheme is None else scheme.task
    values = _per_row(partial(parse_label, task=task), labels)
    try:
        scheme = scheme or infer_labels(values, task, classes)
    except MixedLabels as error:
        raise DataError.from_error(error, path="labels", row=error.position + 1) from None
    return scheme, _per_row(scheme.encode, values)


def _per_row(function: Callable[[Any], Any], labels: Sequence[Any]) -> list[Any]:
    results = []
    for number, label in enumerate(labels, 1):
        try:
            results.append(function(label))
        except ValueError as error:
            raise DataError.from_error(error, path="labels", row=number) from None
    return results


def _example_from_item(item: Any, label: LabelValue, annotation: Any, rule: SplitRule) -> Example:
    is_tokenized = _is_tokenized(item)
    settings: dict[str, Any] = {"tokens" if is_tokenized else "text": item}
    if annotation is not None:
        if not isinstance(annotation, Iterable):
            raise DataError(f"an annotation must be a token mask or a list of spans, got {annotation!r}")
        flags = list(chain(*annotation.values()) if isinstance(annotation, Mapping) else annotation)
        are_spans = not flags or any(hasattr(flag, "__len__") for flag in flags)
        given = annotation if isinstance(annotation, Mapping) else flags
        settings[("spans" if is_tokenized else "characters") if are_spans else "mask"] = given
    return make_example(label=label, rule=rule, **settings)


def _pair_from_item(item: Any, label: LabelValue, alignment: Any, rule: SplitRule) -> PairExample:
    if isinstance(item, str) or not hasattr(item, "__len__") or len(item) != 2:
        raise DataError(f"a pair is (premise, hypothesis), got {item!r}")
    sides = {
        f"{side}_tokens" if _is_tokenized(text) else side: text
        for side, text in zip(("premise", "hypothesis"), item, strict=True)
    }
    return make_pair(**sides, label=_one_label(label), alignment=alignment, rule=rule)


def _one_label(label: LabelValue) -> int | float | None:
    if isinstance(label, tuple):
        raise DataError("a pair of texts has one label, but this one has several", "train one model for each label")
    return label


def _is_tokenized(text: Any) -> bool:
    return not isinstance(text, str) and (isinstance(text, Sequence) or getattr(text, "ndim", 0) == 1)


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
