"""Examples and corpora from data in memory: lists, arrays and tables of texts or pairs, with their labels."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Any

from rationalizer.data.corpus import Corpus, Task, default_budget
from rationalizer.data.data_frames import is_table, pair_columns, texts_of
from rationalizer.data.labels import Labels, MixedLabels, infer_labels, matrix_rows, parse_label
from rationalizer.data.single_examples import make_example, make_pair, one_label
from rationalizer.data.splitting import split_off_dev
from rationalizer.text.budget import Budget
from rationalizer.text.errors import DataError, InputError, short_repr
from rationalizer.text.example import AnyExample, Example, LabelValue, PairExample, with_weight
from rationalizer.text.word_splitting import SplitRule


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
    return make_pair(**sides, label=one_label(label), alignment=alignment, rule=rule)


def _is_tokenized(text: Any) -> bool:
    return not isinstance(text, str) and (isinstance(text, Sequence) or getattr(text, "ndim", 0) == 1)
