"""Lists, NumPy arrays and pandas columns as examples, with the checks that files get."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from rationalizer.data.convert import make_example
from rationalizer.data.corpus import Corpus, Task
from rationalizer.data.errors import DataError, at
from rationalizer.data.example import Example
from rationalizer.data.labels import Labels, MixedLabels, infer_labels, plain
from rationalizer.data.split import hold_out


def examples_from(
    texts: Iterable[Any],
    labels: Iterable[Any] | None = None,
    rationales: Iterable[Any] | None = None,
    classes: Sequence[str] | None = None,
    *,
    task: Task | None = None,
) -> list[Example]:
    """Texts (strings, or lists of tokens) with their labels and human rationales, as examples.

    Labels mean what they mean in files: names or integers are classes (`classes` says in which order), floats
    are values. A rationale is a token mask, or half-open spans: of characters for a string, of tokens for a
    list of tokens; None where there is none. An error names the row, counted from 1.
    """
    rows = _listed(texts, "texts")
    encoded = [None] * len(rows) if labels is None else _encode(_listed(labels, "labels"), classes, task)[1]
    given = [None] * len(rows) if rationales is None else _listed(rationales, "rationales")
    for name, values in (("labels", encoded), ("rationales", given)):
        if len(values) != len(rows):
            raise DataError(f"there are {len(rows)} texts but {len(values)} {name}; give one each")
    examples = []
    for number, (text, label, rationale) in enumerate(zip(rows, encoded, given, strict=True), 1):
        try:
            examples.append(_example(text, label, rationale))
        except ValueError as error:
            raise DataError(f"{at('texts', number)}: {error}") from None
    return examples


def corpus_from(
    texts: Iterable[Any],
    labels: Iterable[Any],
    rationales: Iterable[Any] | None = None,
    classes: Sequence[str] | None = None,
    *,
    task: Task | None = None,
    dev: Sequence[Example] | None = None,
    dev_fraction: float = 0.1,
    seed: int = 0,
    budget: float | int = 0.2,
) -> Corpus:
    """Texts and labels as a corpus without a test split; dev is held out from them where it is not given."""
    labels = _listed(labels, "labels")
    scheme = _encode(labels, classes, task)[0]
    train = examples_from(texts, labels, rationales, scheme.classes or None, task=scheme.task)
    if dev is None:
        train, dev = hold_out(train, dev_fraction, seed=seed, stratify=scheme.task == "classification")
    return Corpus("texts", scheme.task, scheme.classes, train, dev, (), budget)


def _listed(values: Iterable[Any], name: str) -> list[Any]:
    if isinstance(values, str):
        raise DataError(f"{name} must be a list, got the single string {values[:40]!r}; use [{name}]")
    if hasattr(values, "columns"):
        raise DataError(f"{name} must be one column, got a table; use its column, such as table['text']")
    if getattr(values, "ndim", 1) != 1:
        raise DataError(f"{name} must have one dimension, got the shape {tuple(values.shape)}")  # type: ignore[attr-defined]
    return list(values)


def _encode(
    labels: Sequence[Any], classes: Sequence[str] | None, task: Task | None
) -> tuple[Labels, list[int | float | None]]:
    values = []
    for number, label in enumerate(labels, 1):
        try:
            values.append(plain(label))
        except ValueError as error:
            raise DataError(f"{at('labels', number)}: {error}") from None
    try:
        scheme = infer_labels(values, task, classes)
    except MixedLabels as error:
        raise DataError(f"{at('labels', error.position + 1)}: {error}") from None
    encoded: list[int | float | None] = []
    for number, value in enumerate(values, 1):
        try:
            encoded.append(scheme.encode(value))
        except ValueError as error:
            raise DataError(f"{at('labels', number)}: {error}") from None
    return scheme, encoded


def _example(text: Any, label: int | float | None, rationale: Any) -> Example:
    listed = not isinstance(text, str) and (isinstance(text, Sequence) or getattr(text, "ndim", 0) == 1)
    given: dict[str, Any] = {"tokens" if listed else "text": text}
    if rationale is not None:
        marks = list(rationale)
        spans = not marks or any(hasattr(mark, "__len__") for mark in marks)
        given[("spans" if listed else "characters") if spans else "mask"] = marks
    return make_example(label=label, **given)
