"""Users' own files: a CSV, TSV, JSON-lines, Parquet or Excel file, or a folder with one for each split."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rationalizer.data.bad_rows import BadRow, BadRows
from rationalizer.data.column_names import Columns
from rationalizer.data.corpus import Corpus, Task, default_budget
from rationalizer.data.csv_dialect import Dialect
from rationalizer.data.labels import Label, Labels, MixedLabels, infer_labels, plain
from rationalizer.data.row_parsing import make_example, make_pair
from rationalizer.data.splitting import split_off_dev
from rationalizer.data.table_files import ENDINGS, Row, Stream, Table, ending, read_table, stem, stream_table
from rationalizer.text.budget import Budget
from rationalizer.text.errors import DataError, at
from rationalizer.text.example import AnyExample
from rationalizer.text.word_splitting import SplitRule

# Of files or of a folder's parts: regular expressions, matched as a whole or up to what is no letter.
SplitNames = Mapping[str, tuple[str, ...]]
SPLIT_NAMES: SplitNames = {
    "train": ("train", "training"),
    "dev": ("dev", "val", "valid", "validation", "heldout"),
    "test": ("test",),
}
# "train", "dev", "test": the files of each; of any other part only the rows that are dropped are counted.
Splits = Mapping[str, Sequence[Table]]


def read_corpus(
    source: str | Path,
    *,
    columns: Columns | None = None,
    task: Task | None = None,
    classes: Sequence[str] | None = None,
    rule: SplitRule | None = None,
    dev_fraction: float | None = None,
    seed: int = 0,
    dialect: Dialect | None = None,
    skip_bad: bool = False,
) -> Corpus:
    """A user's file or folder as a corpus, of texts or of pairs of texts (see `Columns`).

    A folder holds `train`, and may hold `dev` (or `validation`) and `test`; a single file is all `train`.
    Without dev files, `dev_fraction` of train is held out (by default a tenth, at most 20,000), the same rows for the
    same seed, classes in proportion. A float among the labels means regression, unless `task` says otherwise; the
    classes are train's, unless given. `rule` says how texts are cut into words ("words", "spaces" or "segments").
    `dialect` says how text files are written, where it is not found out. With `skip_bad`, rows that cannot be
    used are left out and listed in the corpus' `skipped`; otherwise the error names all of them.
    """
    source, columns = Path(source), columns or Columns()
    bad = BadRows(skip=skip_bad)
    return assemble(
        source.name if source.is_dir() else stem(source),
        read_splits(source, columns.names(), dialect=dialect, bad=bad),
        columns,
        bad=bad,
        task=task,
        classes=classes,
        rule=rule,
        dev_fraction=dev_fraction,
        seed=seed,
    )


def read_examples(
    path: str | Path,
    *,
    columns: Columns | None = None,
    model_columns: Mapping[str, str] | None = None,
    labels: Labels | None = None,
    rule: SplitRule | None = None,
    dialect: Dialect | None = None,
    bad: BadRows | None = None,
) -> list[AnyExample]:
    """The rows of one file, to predict or evaluate; without `labels`, its labels are not read.

    `model_columns` are column names to try first where `columns` has the usual ones. `bad` collects the rows that
    cannot be used.
    """
    columns = columns or Columns()
    bad = BadRows() if bad is None else bad
    stream = stream_table(path, dialect=dialect)
    columns = columns.with_model_columns(model_columns or {}, stream.columns)
    if labels is None:
        columns = replace(columns, label=None)
    table = read_table(path, columns.names(), dialect=dialect, bad=bad)
    examples, _ = _examples([table], columns, labels, rule or "words", (), bad)
    bad.raise_if_any()
    return examples


@dataclass(frozen=True)
class InputRow:
    """A row of a file as it is, and what can be explained of it: None where there is no text, or nothing usable."""

    row: Row
    example: AnyExample | None
    place: str = ""  # for messages; "": its number among those at hand will do


def iter_rows(
    source: str | Path | Stream,
    *,
    columns: Columns | None = None,
    model_columns: Mapping[str, str] | None = None,
    labels: Labels | None,
    rule: SplitRule = "words",
    dialect: Dialect | None = None,
    bad: BadRows | None = None,
    pairs: bool | None = None,
    first: int = 1,
) -> Iterator[InputRow]:
    """Every row of a file, one at a time, for files larger than memory; a label may be missing, or all of them.

    Row k that comes is row k of the file, blank ones among them. Rows that cannot be used are added to `bad`, and
    come without an example if they may be skipped; if not, none come after the first of them, but the rest is read
    to name them all. Without `labels`, no label is read. `pairs` says what the model reads, where one does. `first` is
    the number of the first row of a stream.
    """
    given, bad = columns or Columns(), BadRows() if bad is None else bad
    given = given if labels is not None else replace(given, label=None)
    stream = source if isinstance(source, Stream) else stream_table(source, dialect=dialect, blank=True)
    found, known = given, 0
    for number, row in enumerate(stream.rows, first):
        if isinstance(row, BadRow):
            bad.add(stream.path, number, row.error)
            item = InputRow(row.row, None)
        else:
            if len(stream.columns) > known:  # a row of JSON may have columns that those before it had not
                known = len(stream.columns)
                found = resolve_columns(given.with_model_columns(model_columns or {}, stream.columns), stream, pairs)
            try:
                example = None if _is_blank(row, found) else _unlabelled_or_not(row, found, labels, rule)
                item = InputRow(row, example, at(stream.path, number))
            except ValueError as error:
                bad.add(stream.path, number, error)
                item = InputRow(row, None)
        if bad.is_full:
            break
        if not bad.is_fatal:
            yield item
    bad.raise_if_any()


def resolve_columns(columns: Columns, stream: Stream, pairs: bool | None = None) -> Columns:
    """What a file's texts are read from; a label is not needed to explain them."""
    if columns.label not in stream.columns:
        if columns.label not in (None, Columns.label):
            columns.resolve(Table(stream.path, stream.columns, []))  # says what is missing
        columns = replace(columns, label=None)
    found = columns.resolve(Table(stream.path, stream.columns, []))
    if pairs is not None and found.are_pairs != pairs:
        has, wants = ("single texts", "pairs") if pairs else ("pairs", "single texts")
        raise DataError(
            f"the file holds {has}, but the model reads {wants}", "name the columns by --column", path=stream.path
        )
    return found


def _is_blank(row: Row, columns: Columns) -> bool:
    """Whether it has no text at all, or of a pair neither."""
    sides = (columns.text, columns.tokens, columns.premise, columns.hypothesis)
    cells = [row.get(name) for name in (*sides, columns.premise_tokens, columns.hypothesis_tokens) if name is not None]
    return all(cell is None or cell != cell or (isinstance(cell, str) and not cell.strip()) for cell in cells)


def _unlabelled_or_not(row: Row, columns: Columns, labels: Labels | None, rule: SplitRule) -> AnyExample:
    unlabelled = columns.label is None or row.get(columns.label) in (None, "")
    return example_from_row(row, columns, None if unlabelled else labels, rule)


def holds_pairs(source: str | Path, columns: Columns | None = None, dialect: Dialect | None = None) -> bool:
    """Whether a file or a folder holds pairs of texts, by the columns of its (first) training file."""
    source = Path(source)
    stream = stream_table(find_splits(source)["train"][0] if source.is_dir() else source, dialect=dialect)
    return (columns or Columns()).resolve(Table(stream.path, stream.columns, [])).are_pairs


def read_splits(
    source: Path,
    columns: Collection[str],
    names: SplitNames = SPLIT_NAMES,
    original: str = "",
    **reading: Any,
) -> dict[str, list[Table]]:
    """The tables of each split; `reading` as of `read_table`."""
    if source.is_dir():
        found = find_splits(source, names, original=original)
        return {split: [read_table(path, columns, **reading) for path in paths] for split, paths in found.items()}
    return {next(iter(names)): [read_table(source, columns, **reading)]}


def assemble(
    name: str,
    splits: Splits,
    columns: Columns,
    *,
    task: Task | None = None,
    classes: Sequence[str] | None = None,
    rule: SplitRule | None = None,
    dev_fraction: float | None = None,
    seed: int = 0,
    drop_labels: Collection[Label] = (),
    budget: Budget | None = None,
    bad: BadRows | None = None,
) -> Corpus:
    """Tables of rows as a corpus; rows whose label is in `drop_labels` are left out and counted. Without a train split
    it is one to score models on."""
    bad = BadRows() if bad is None else bad
    first = splits["train"] if "train" in splits else [table for part in splits.values() for table in part]
    labels = _labels_of(first, columns, task, classes, drop_labels)
    found = columns.resolve(first[0])
    used: SplitRule = rule or ("spaces" if found.are_tokenized else "words")
    parts: dict[str, list[AnyExample]] = {}
    dropped: dict[str, int] = {}
    for part in dict.fromkeys(("train", "dev", "test", *splits)):
        parts[part], count = _examples(splits.get(part, ()), columns, labels, used, drop_labels, bad)
        if count:
            dropped[part] = count
    bad.raise_if_any()
    train, dev = parts["train"], parts["dev"]
    if not train and "train" in splits:
        raise DataError("there are no rows to train on", path=first[0].path)
    check_one_kind({table.path: columns.resolve(table) for tables in splits.values() for table in tables})
    if train and not dev:
        train, dev = split_off_dev(train, dev_fraction, seed=seed, stratify=labels.task == "classification")
    budget = budget or default_budget(pairs=found.are_pairs)
    return Corpus(
        name,
        labels.task,
        labels.classes,
        train,
        dev,
        parts["test"],
        budget,
        dropped,
        used,
        columns=found.by_kind(),
        skipped=bad.messages(),
    )


def check_one_kind(found: Mapping[Path, Columns]) -> None:
    """DataError where the columns found in some files are of pairs, in others of single texts."""
    pairs = [path for path, columns in found.items() if columns.are_pairs]
    texts = [path for path, columns in found.items() if not columns.are_pairs]
    if pairs and texts:
        raise DataError(
            f"the file holds pairs of texts, but {texts[0]} single texts", "give all files one form", path=pairs[0]
        )


def _labels_of(
    tables: Sequence[Table],
    columns: Columns,
    task: Task | None,
    classes: Sequence[str] | None,
    drop: Collection[Label],
) -> Labels:
    values: list[Label] = []
    places: list[tuple[Path, int]] = []
    for table in tables:
        column = columns.resolve(table).label
        if column is None:
            raise DataError("training needs labels", "pass the label column's name", path=table.path)
        for number, row in table.numbered():
            try:
                value = plain(row.get(column))
            except ValueError:
                continue  # said of the row when its text is read
            if value not in drop:
                values.append(value)
                places.append((table.path, number))
    try:
        return infer_labels(values, task, classes)
    except MixedLabels as error:
        path, number = places[error.position]
        raise DataError.from_error(error, path=path, row=number) from None
    except ValueError as error:
        raise DataError.from_error(error, path=tables[0].path) from None


def _examples(
    tables: Sequence[Table],
    columns: Columns,
    labels: Labels | None,
    rule: SplitRule,
    drop: Collection[Label],
    bad: BadRows,
) -> tuple[list[AnyExample], int]:
    """The tables' rows as examples, and how many were dropped for their label."""
    examples: list[AnyExample] = []
    dropped = 0
    for table in tables:
        found = columns.resolve(table)
        for number, row in table.numbered():
            try:
                if labels is not None and drop and plain(row.get(found.label or "")) in drop:
                    dropped += 1
                else:
                    examples.append(example_from_row(row, found, labels, rule))
            except ValueError as error:
                bad.add(table.path, number, error)
    return examples, dropped


def example_from_row(row: Row, columns: Columns, labels: Labels | None, rule: SplitRule) -> AnyExample:
    """What a row of a file holds, in the columns that were found in it; ValueError where that cannot be used."""

    def cell(name: str | None) -> Any:
        value = row.get(name) if name is not None else None
        return None if value == "" and name != columns.text else value  # an empty CSV field holds nothing

    label = None if labels is None else labels.encode(cell(columns.label))
    if columns.are_pairs:
        return make_pair(
            premise=cell(columns.premise),
            hypothesis=cell(columns.hypothesis),
            premise_tokens=cell(columns.premise_tokens),
            hypothesis_tokens=cell(columns.hypothesis_tokens),
            alignment=cell(columns.alignment),
            premise_characters=cell(columns.premise_chars),
            hypothesis_characters=cell(columns.hypothesis_chars),
            label=label,
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
        sentence_lengths=cell(columns.sentence_lengths),
        label=label,
        rule=rule,
    )


_SHARD = re.compile(r"-\d{5}-of-\d{5}$")


def split_of(name: str, names: SplitNames = SPLIT_NAMES) -> str | None:
    """Which split a name such as `train_subset`, `val`, `test2k` or `train-00000-of-00002` stands for."""
    for split, known in names.items():
        if re.match(rf"({'|'.join(known)})(?![a-z])", name.lower()):
            return split
    return None


def find_splits(
    folder: Path, names: SplitNames = SPLIT_NAMES, endings: Sequence[str] = ENDINGS, original: str = ""
) -> dict[str, list[Path]]:
    """The files of each split in a folder: one file, or the numbered parts of one.

    `original` names other files that would have been read, for the error where there is no train file.
    """
    files = sorted(p for p in folder.iterdir() if p.is_file() and ending(p) in endings)
    splits = {path: split_of(stem(path), names) for path in files}
    needed = ["train"] if "train" in names else list(names)  # some data are for scoring only
    if not any(split in splits.values() for split in needed):
        seen = ", ".join(path.name for path in files[:8]) or "no data file"
        others = ", and dev (or validation) and test if you have them" if "train" in names else ""
        raise DataError(
            f"no {' or '.join(needed)} file; the folder holds {seen}",
            f"name the file {needed[0]}{'|'.join(endings)}{others}"
            f"{f', or copy the original {original} here' if original else ''}",
            path=folder,
        )
    found: dict[str, list[Path]] = {}
    for split, known in names.items():
        candidates = [path for path in files if splits[path] == split]
        whole = re.compile("|".join(known))
        exact = [path for path in candidates if whole.fullmatch(_SHARD.sub("", stem(path)).lower())]
        chosen = exact or candidates
        kinds = {(_SHARD.sub("", stem(path)), ending(path)) for path in chosen}
        if len(kinds) > 1:
            raise DataError(
                f"{' and '.join(path.name for path in chosen)} could all be the {split} split",
                f"leave one in the folder, named {split}",
                path=folder,
            )
        if chosen:
            found[split] = chosen
    return found
