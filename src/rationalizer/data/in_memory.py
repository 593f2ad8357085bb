"""Lists, NumPy arrays and pandas columns as examples, with the checks that files get."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from rationalizer.data.corpus import Corpus, Task, default_budget
from rationalizer.data.data_frames import is_table, pair_columns, texts_of
from rationalizer.data.labels import MULTI_LABEL, Labels, MixedLabels, infer_labels, plain
from rationalizer.data.row_parsing import make_example, make_pair
from rationalizer.data.splitting import split_off_dev
from rationalizer.text.budget import Budget
from rationalizer.text.errors import DataError
from rationalizer.text.example import AnyExample, Example, PairExample
from rationalizer.text.word_splitting import SplitRule


def examples_from(
    texts: Iterable[Any],
    labels: Iterable[Any] | None = None,
    annotations: Iterable[Any] | None = None,
    classes: Sequence[str] | None = None,
    *,
    task: Task | None = None,
    rule: SplitRule = "words",
) -> list[Example]:
    """Texts (strings, or lists of tokens) with their labels and human annotations, as examples.

    Labels mean what they mean in files: names or integers are classes (`classes` says in which order), floats
    are values. A rationale is a token mask, or half-open spans: of characters for a string, of tokens for a
    list of tokens; None where there is none. An error names the row, counted from 1.
    """
    rows = _listed(texts, "texts")
    encoded, given = _beside(rows, "texts", labels, classes, task, annotations, "annotations")
    examples = []
    for number, (text, label, rationale) in enumerate(zip(rows, encoded, given, strict=True), 1):
        try:
            examples.append(_example(text, label, rationale, rule))
        except ValueError as error:
            raise DataError.from_error(error, path="texts", row=number) from None
    return examples


def pair_examples_from(
    pairs: Iterable[Any],
    labels: Iterable[Any] | None = None,
    alignments: Iterable[Any] | None = None,
    classes: Sequence[str] | None = None,
    *,
    task: Task | None = None,
    rule: SplitRule = "words",
) -> list[PairExample]:
    """Pairs (premise, hypothesis), each a string or a list of tokens, with their labels and gold alignments.

    A table with the columns `premise` and `hypothesis`, or with two columns, or an array of shape (n, 2), is
    taken row by row. An alignment is pairs of token numbers, the premise's first, or Pharaoh's "0-0 1-2";
    None where there is none. An error names the row, counted from 1.
    """
    rows = _listed_pairs(pairs)
    encoded, given = _beside(rows, "pairs", labels, classes, task, alignments, "alignments")
    examples = []
    for number, (pair, label, alignment) in enumerate(zip(rows, encoded, given, strict=True), 1):
        try:
            examples.append(_pair(pair, label, alignment, rule))
        except ValueError as error:
            raise DataError.from_error(error, path="pairs", row=number) from None
    return examples


def make_examples(
    items: Iterable[Any],
    labels: Iterable[Any] | None = None,
    marks: Iterable[Any] | None = None,
    classes: Sequence[str] | None = None,
    *,
    pairs: bool,
    task: Task | None = None,
    rule: SplitRule = "words",
) -> Sequence[AnyExample]:
    """Pairs or texts; `marks` are the alignments of the one, the annotations of the other."""
    make: Callable[..., Sequence[AnyExample]] = pair_examples_from if pairs else examples_from
    return make(items, labels, marks, classes, task=task, rule=rule)


def are_pairs(items: Any, *, expected: bool = False) -> bool:
    """Whether the items are pairs (premise, hypothesis), not texts.

    A pair is a tuple of two; all items must be. A list of two strings counts as a text that comes as tokens:
    write pairs as tuples. Tables with the columns `premise` and `hypothesis`, or with just two columns (but for
    `text` and `label`), and arrays of shape (n, 2), hold pairs. Nothing is taken from an iterator: it does not
    count as pairs.

    Where pairs are `expected`, because the method is one for pairs, all that is not plain strings counts as pairs:
    lists of two are, and of the rest `pair_examples_from` can say what is wrong.
    """
    if is_table(items):
        return expected or pair_columns(items) is not None
    if getattr(items, "ndim", 1) == 2:
        return expected or bool(items.shape[1] == 2)
    if isinstance(items, (str, Iterator)) or not isinstance(items, Iterable):
        return False
    listed = list(items)
    if expected:
        return not all(isinstance(item, str) for item in listed)
    paired = [isinstance(item, tuple) and len(item) == 2 for item in listed]
    text = next((k for k, item in enumerate(listed) if isinstance(item, str)), None)
    if text is not None and any(paired):
        raise DataError(
            f"row {paired.index(True) + 1} is a pair (premise, hypothesis), row {text + 1} a text",
            "give one kind, and write texts that come as tokens as lists",
        )
    return bool(listed) and all(paired)


def make_corpus(
    texts: Iterable[Any],
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
) -> Corpus:
    """Texts and labels as a corpus without a test split; dev is held out from them where it is not given.

    With `pairs`, `texts` are pairs (premise, hypothesis) and `annotations` their gold alignments. Where no
    budget is given it is 20% of a text's words, for pairs 50% of the shorter text's.
    """
    labels = _listed(labels, "labels")
    scheme = _encode(labels, classes, task)[0]
    given = list(texts) if isinstance(texts, Iterator) else texts
    rows = _listed_pairs(given) if pairs else _listed(given, "texts")
    sides = (text for row in rows for text in (row if pairs and hasattr(row, "__len__") else (row,)))
    used: SplitRule = rule or ("spaces" if all(map(_is_listed, sides)) else "words")
    train = make_examples(given, labels, annotations, scheme.classes or None, pairs=pairs, task=scheme.task, rule=used)
    if dev is None:
        train, dev = split_off_dev(train, dev_fraction, seed=seed, stratify=scheme.task == "classification")
    budget = budget or default_budget(pairs=pairs)
    name = "pairs" if pairs else "texts"
    return Corpus(name, scheme.task, scheme.classes, train, dev, (), budget, rule=used)


def _listed(values: Iterable[Any], name: str) -> list[Any]:
    if isinstance(values, str):
        raise DataError(f"{name} must be a list, got the single string {values[:40]!r}", f"use [{name}]")
    if name == "texts" and is_table(values):
        return texts_of(values, pairs=False)
    if is_table(values) or getattr(values, "ndim", 1) != 1:
        remedy = MULTI_LABEL if name == "labels" else "use one of its columns"
        raise DataError(f"{name} must have one dimension, got the shape {tuple(values.shape)}", remedy)  # type: ignore[attr-defined]
    return list(values)


def _listed_pairs(pairs: Any) -> list[Any]:
    if isinstance(pairs, tuple) and len(pairs) == 2 and all(isinstance(text, str) for text in pairs):
        raise DataError(f"pairs must be a list of pairs, got the single pair {pairs!r}", "use [pair]")
    if is_table(pairs):
        return texts_of(pairs, pairs=True)
    if getattr(pairs, "ndim", 1) == 2:
        return list(pairs)
    return _listed(pairs, "pairs")


def _beside(
    rows: Sequence[Any],
    what: str,
    labels: Iterable[Any] | None,
    classes: Sequence[str] | None,
    task: Task | None,
    marks: Iterable[Any] | None,
    name: str,
) -> tuple[Sequence[int | float | None], Sequence[Any]]:
    """The encoded labels and the annotations or alignments of the rows, None where there are none."""
    encoded = [None] * len(rows) if labels is None else _encode(_listed(labels, "labels"), classes, task)[1]
    given = [None] * len(rows) if marks is None else [None if _is_nan(mark) else mark for mark in _listed(marks, name)]
    for column, values in (("labels", encoded), (name, given)):
        if len(values) != len(rows):
            raise DataError(f"there are {len(rows)} {what} but {len(values)} {column}", "give one each")
    return encoded, given


def _encode(
    labels: Sequence[Any], classes: Sequence[str] | None, task: Task | None
) -> tuple[Labels, list[int | float | None]]:
    values = []
    for number, label in enumerate(labels, 1):
        try:
            values.append(plain(label))
        except ValueError as error:
            raise DataError.from_error(error, path="labels", row=number) from None
    try:
        scheme = infer_labels(values, task, classes)
    except MixedLabels as error:
        raise DataError.from_error(error, path="labels", row=error.position + 1) from None
    except ValueError as error:
        raise DataError(str(error)) from None
    encoded: list[int | float | None] = []
    for number, value in enumerate(values, 1):
        try:
            encoded.append(scheme.encode(value))
        except ValueError as error:
            raise DataError.from_error(error, path="labels", row=number) from None
    return scheme, encoded


def _example(text: Any, label: int | float | None, rationale: Any, rule: SplitRule) -> Example:
    given: dict[str, Any] = {"tokens" if _is_listed(text) else "text": text}
    if rationale is not None:
        if not isinstance(rationale, Iterable):
            raise DataError(f"a rationale is a token mask or spans, got {rationale!r}")
        marks = list(rationale)
        spans = not marks or any(hasattr(mark, "__len__") for mark in marks)
        given[("spans" if _is_listed(text) else "characters") if spans else "mask"] = marks
    return make_example(label=label, rule=rule, **given)


def _pair(pair: Any, label: int | float | None, alignment: Any, rule: SplitRule) -> PairExample:
    if isinstance(pair, str) or not hasattr(pair, "__len__") or len(pair) != 2:
        raise DataError(f"a pair is (premise, hypothesis), got {pair!r}")
    given = {
        f"{side}_tokens" if _is_listed(text) else side: text
        for side, text in zip(("premise", "hypothesis"), pair, strict=True)
    }
    return make_pair(**given, label=label, alignment=alignment, rule=rule)


def _is_nan(value: Any) -> bool:
    """Whether it is what pandas writes where something is missing."""
    return isinstance(value, float) and value != value


def _is_listed(text: Any) -> bool:
    return not isinstance(text, str) and (isinstance(text, Sequence) or getattr(text, "ndim", 0) == 1)
