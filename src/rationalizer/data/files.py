"""Users' own files: a CSV, TSV, JSON-lines or Parquet file, or a folder with one for each split."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from difflib import get_close_matches
from pathlib import Path
from typing import Any

from rationalizer.data.convert import make_example
from rationalizer.data.corpus import Corpus, Task
from rationalizer.data.errors import DataError, at
from rationalizer.data.example import Example
from rationalizer.data.labels import Label, Labels, MixedLabels, infer_labels, plain
from rationalizer.data.split import hold_out
from rationalizer.data.tables import ENDINGS, Row, Table, ending, read_table, stem

SPLIT_NAMES = {
    "train": ("train", "training"),
    "dev": ("dev", "val", "valid", "validation", "heldout"),
    "test": ("test",),
}
Splits = Mapping[str, Sequence[Table]]  # "train", "dev", "test": the files of each


@dataclass(frozen=True)
class Columns:
    """What the columns of a file are called; None for a column that is there but should not be used."""

    text: str | None = "text"
    tokens: str | None = "tokens"
    label: str | None = "label"
    rationale_spans: str | None = "rationale_spans"
    rationale_mask: str | None = "rationale_mask"
    rationale_chars: str | None = "rationale_chars"

    def names(self) -> set[str]:
        return {name for field in fields(self) if (name := getattr(self, field.name)) is not None}

    def found_in(self, table: Table) -> Columns:
        """The columns this file has; an error where it lacks one that it must have."""
        for field in fields(self):
            name = getattr(self, field.name)
            asked = name is not None and (name != field.default or field.name == "label")
            if asked and name not in table.columns:
                raise DataError(_missing(table, name, f"pass the {field.name} column's name"))
        if self.text not in table.columns and self.tokens not in table.columns:
            wanted = self.text or self.tokens or "text"
            raise DataError(_missing(table, wanted, "pass the text column's name"))
        present = {field.name: getattr(self, field.name) for field in fields(self)}
        present = {key: name if name in table.columns else None for key, name in present.items()}
        rationales = [name for key, name in present.items() if key.startswith("rationale") and name]
        if len(rationales) > 1:
            raise DataError(
                f"{at(table.path)}: the columns {' and '.join(rationales)} both hold rationales; "
                "set all but one of them to None"
            )
        return Columns(**present)


def _missing(table: Table, name: str, remedy: str) -> str:
    close = get_close_matches(name, table.columns, n=1, cutoff=0.6)
    guess = f" (did you mean {close[0]!r}?)" if close else ""
    known = ", ".join(table.columns) or "no columns at all"
    return f"{at(table.path)}: there is no column {name!r}{guess}; the file has {known}; {remedy}"


def read_corpus(
    source: str | Path,
    *,
    columns: Columns | None = None,
    task: Task | None = None,
    classes: Sequence[str] | None = None,
    pretokenized: bool = False,
    dev_fraction: float = 0.1,
    seed: int = 0,
) -> Corpus:
    """A user's file or folder as a corpus.

    A folder holds `train`, and may hold `dev` (or `validation`) and `test`; a single file is all `train`.
    Without dev files, `dev_fraction` of train is held out, the same rows for the same seed, classes in
    proportion. A float among the labels means regression, unless `task` says otherwise; the classes are
    train's, unless given.
    """
    source, columns = Path(source), columns or Columns()
    return assemble(
        source.name if source.is_dir() else stem(source),
        read_splits(source, columns.names()),
        columns,
        task=task,
        classes=classes,
        pretokenized=pretokenized,
        dev_fraction=dev_fraction,
        seed=seed,
    )


def read_examples(
    path: str | Path,
    *,
    columns: Columns | None = None,
    labels: Labels | None = None,
    pretokenized: bool = False,
) -> list[Example]:
    """The rows of one file, to predict or evaluate; without `labels`, its labels are not read."""
    columns = columns or Columns()
    if labels is None:
        columns = replace(columns, label=None)
    table = read_table(path, columns.names())
    return _examples([table], columns, labels, pretokenized, ())


def read_splits(source: Path, columns: Collection[str]) -> dict[str, list[Table]]:
    if source.is_dir():
        return {name: [read_table(path, columns) for path in paths] for name, paths in find_splits(source).items()}
    return {"train": [read_table(source, columns)]}


def assemble(
    name: str,
    splits: Splits,
    columns: Columns,
    *,
    task: Task | None = None,
    classes: Sequence[str] | None = None,
    pretokenized: bool = False,
    dev_fraction: float = 0.1,
    seed: int = 0,
    drop_labels: Collection[Label] = (),
    budget: float | int = 0.2,
) -> Corpus:
    """Tables of rows as a corpus; rows whose label is in `drop_labels` are left out."""
    labels = _labels_of(splits["train"], columns, task, classes, drop_labels)
    parts = {
        part: _examples(splits.get(part, ()), columns, labels, pretokenized, drop_labels)
        for part in ("train", "dev", "test")
    }
    train, dev = parts["train"], parts["dev"]
    if not train:
        raise DataError(f"{at(splits['train'][0].path)}: there are no rows to train on")
    if not dev:
        train, dev = hold_out(train, dev_fraction, seed=seed, stratify=labels.task == "classification")
    return Corpus(name, labels.task, labels.classes, train, dev, parts["test"], budget)


def _labels_of(
    tables: Sequence[Table],
    columns: Columns,
    task: Task | None,
    classes: Sequence[str] | None,
    drop: Collection[Label],
) -> Labels:
    values: list[Label] = []
    places: list[str] = []
    for table in tables:
        column = columns.found_in(table).label
        if column is None:
            raise DataError(f"{at(table.path)}: training needs labels; pass the label column's name")
        for number, row in enumerate(table.rows, 1):
            value = _plain(row.get(column), at(table.path, number))
            if value not in drop:
                values.append(value)
                places.append(at(table.path, number))
    try:
        return infer_labels(values, task, classes)
    except MixedLabels as error:
        raise DataError(f"{places[error.position]}: {error}") from None


def _plain(value: Any, place: str) -> Label:
    try:
        return plain(value)
    except ValueError as error:
        raise DataError(f"{place}: {error}") from None


def _examples(
    tables: Sequence[Table],
    columns: Columns,
    labels: Labels | None,
    pretokenized: bool,
    drop: Collection[Label],
) -> list[Example]:
    examples = []
    for table in tables:
        found = columns.found_in(table)
        for number, row in enumerate(table.rows, 1):
            try:
                if labels is not None and drop and plain(row.get(found.label or "")) in drop:
                    continue
                examples.append(_example(row, found, labels, pretokenized))
            except ValueError as error:
                raise DataError(f"{at(table.path, number)}: {error}") from None
    return examples


def _example(row: Row, columns: Columns, labels: Labels | None, pretokenized: bool) -> Example:
    def cell(name: str | None) -> Any:
        value = row.get(name) if name is not None else None
        return None if value == "" and name != columns.text else value  # an empty CSV field holds nothing

    return make_example(
        text=cell(columns.text),
        tokens=cell(columns.tokens),
        spans=cell(columns.rationale_spans),
        mask=cell(columns.rationale_mask),
        characters=cell(columns.rationale_chars),
        label=None if labels is None else labels.encode(cell(columns.label)),
        pretokenized=pretokenized,
    )


_SHARD = re.compile(r"-\d{5}-of-\d{5}$")


def split_of(name: str) -> str | None:
    """Which split a name such as `train_subset`, `val`, `test2k` or `train-00000-of-00002` stands for."""
    for split, names in SPLIT_NAMES.items():
        if re.match(rf"({'|'.join(names)})(?![a-z])", name.lower()):
            return split
    return None


def find_splits(folder: Path) -> dict[str, list[Path]]:
    """The files of each split in a folder: one file, or the numbered parts of one."""
    files = sorted(p for p in folder.iterdir() if p.is_file() and ending(p) in ENDINGS)
    found: dict[str, list[Path]] = {}
    for split, names in SPLIT_NAMES.items():
        candidates = [path for path in files if split_of(stem(path)) == split]
        exact = [path for path in candidates if _SHARD.sub("", stem(path)).lower() in names]
        chosen = exact or candidates
        kinds = {(_SHARD.sub("", stem(path)), ending(path)) for path in chosen}
        if len(kinds) > 1:
            raise DataError(
                f"{at(folder)}: {' and '.join(path.name for path in chosen)} could all be the {split} split; "
                f"leave one in the folder, named {split}"
            )
        if chosen:
            found[split] = chosen
    if "train" not in found:
        seen = ", ".join(path.name for path in files[:8]) or "no data file"
        raise DataError(
            f"{at(folder)}: there is no train file; expected train{'|'.join(ENDINGS)}, "
            f"and dev (or validation) and test if you have them; the folder holds {seen}"
        )
    return found
