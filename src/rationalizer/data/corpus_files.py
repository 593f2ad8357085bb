"""Users' files: a CSV, TSV, JSON-lines, Parquet or Excel file, or a folder with one for each split."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rationalizer.data.bad_rows import BadRow, BadRows
from rationalizer.data.column_names import Columns
from rationalizer.data.corpus import Corpus, default_budget
from rationalizer.data.csv_dialect import Dialect
from rationalizer.data.file_content import ENDINGS, ending, stem
from rationalizer.data.labels import Label, Labels, MixedLabels, infer_labels, parse_label
from rationalizer.data.read_options import ReadOptions
from rationalizer.data.single_examples import example_from_row
from rationalizer.data.splitting import split_off_dev
from rationalizer.data.table_files import Row, Stream, Table, read_table, stream_table
from rationalizer.text.budget import Budget
from rationalizer.text.errors import DataError
from rationalizer.text.example import AnyExample
from rationalizer.text.word_splitting import SplitRule

# Split names to regular expressions for file names, matched up to a character that is not a letter.
SplitNames = Mapping[str, tuple[str, ...]]
SPLIT_NAMES: SplitNames = {
    "train": ("train", "training"),
    "dev": ("dev", "val", "valid", "validation", "heldout"),
    "test": ("test",),
}
# The tables of "train", "dev" and "test"; of any other part only the dropped rows are counted.
Splits = Mapping[str, Sequence[Table]]


def read_corpus(source: str | Path, options: ReadOptions | None = None, **settings: Any) -> Corpus:
    """Read a user's file or folder into a corpus, of texts or of pairs of texts (see `Columns`).

    A folder holds `train`, and may hold `dev` (or `validation`) and `test`; a single file is all `train`. Without dev
    files a part of train is held out, the same rows for the same seed, with the classes in proportion. The settings
    are those of `ReadOptions`.
    """
    source, options = Path(source), ReadOptions.merge(options, settings)
    bad = BadRows(skip=options.skip_bad)
    splits = read_splits(source, options.columns.names(), dialect=options.dialect, bad=bad)
    return assemble(source.name if source.is_dir() else stem(source), splits, options, bad=bad)


def read_examples(
    path: str | Path,
    options: ReadOptions | None = None,
    *,
    labels: Labels | None = None,
    model_columns: Mapping[str, str] | None = None,
    bad: BadRows | None = None,
    **settings: Any,
) -> list[AnyExample]:
    """Read the rows of one file, to predict or evaluate.

    Args:
        path: the file.
        options: how to read it; `settings` are fields of `ReadOptions`.
        labels: how to encode the labels; without them, the labels are not read.
        model_columns: the model's column names, used where `options.columns` has the usual ones.
        bad: collects the rows that cannot be used.
    """
    options = ReadOptions.merge(options, settings)
    bad = BadRows(skip=options.skip_bad) if bad is None else bad
    stream = stream_table(path, dialect=options.dialect)
    columns = options.columns.with_model_columns(model_columns or {}, stream.columns)
    if labels is None:
        columns = replace(columns, label=None)
    table = read_table(path, columns.names(), dialect=options.dialect, bad=bad)
    examples, _ = _examples([table], columns, labels, options.rule or "words", (), bad)
    bad.raise_if_any()
    return examples


@dataclass(frozen=True)
class InputRow:
    """A row of a file and its example; None if the row has no text or cannot be used."""

    row: Row
    example: AnyExample | None
    path: str | Path | None = None
    number: int | None = None  # of the row in its file, counted from 1

    @property
    def place(self) -> str:
        """For messages, such as "reviews.csv, row 12"; empty if unknown."""
        return DataError("", path=self.path, row=self.number).place


def iter_rows(
    source: str | Path | Stream,
    options: ReadOptions | None = None,
    *,
    labels: Labels | None,
    model_columns: Mapping[str, str] | None = None,
    bad: BadRows | None = None,
    pairs: bool | None = None,
    first: int = 1,
    **settings: Any,
) -> Iterator[InputRow]:
    """Iterate over the rows of a file that may be larger than memory. Labels may be missing.

    The k-th item is row k of the file, blank rows included. Rows that cannot be used are added to `bad`. If bad
    rows may be skipped, they are yielded without an example; otherwise no row is yielded after the first bad row, but
    the rest of the file is read to report all bad rows.

    Args:
        source: the file, or a stream of its rows.
        options: how to read it; `settings` are fields of `ReadOptions`.
        labels: how to encode the labels; with None, labels are not read.
        model_columns: the model's column names, used where `options.columns` has the usual ones.
        bad: collects the rows that cannot be used.
        pairs: whether the model reads pairs; None without a model.
        first: the number of a stream's first row.
    """
    options = ReadOptions.merge(options, settings)
    bad = BadRows(skip=options.skip_bad) if bad is None else bad
    columns = replace(options.columns, weight=None)  # it matters only in training
    columns = columns if labels is not None else replace(columns, label=None)
    stream = source if isinstance(source, Stream) else stream_table(source, dialect=options.dialect, blank=True)
    resolved, known = columns, 0
    for number, row in enumerate(stream.rows, first):
        if isinstance(row, BadRow):
            bad.add(stream.path, number, row.error)
            item = InputRow(row.row, None)
        else:
            if len(stream.columns) > known:  # a JSON row may have columns that earlier rows lack
                known = len(stream.columns)
                resolved = resolve_columns(
                    columns.with_model_columns(model_columns or {}, stream.columns), stream, pairs
                )
            try:
                unlabelled = _is_empty(resolved.read_label(row))
                encoder = None if unlabelled else labels
                is_blank = _is_blank(row, resolved)
                example = None if is_blank else example_from_row(row, resolved, encoder, options.rule or "words")
                item = InputRow(row, example, stream.path, number)
            except ValueError as error:
                bad.add(stream.path, number, error)
                item = InputRow(row, None)
        if bad.is_full:
            break
        if not bad.is_fatal:
            yield item
    bad.raise_if_any()


def resolve_columns(columns: Columns, stream: Stream, pairs: bool | None = None) -> Columns:
    """The columns that a file has, for inference: the label may be missing."""
    if not columns.has_label(stream.columns):
        if columns.label not in (None, Columns.label):
            columns.resolve(Table(stream.path, stream.columns, []))  # raises the error
        columns = replace(columns, label=None)
    found = columns.resolve(Table(stream.path, stream.columns, []))
    if pairs is not None and found.are_pairs != pairs:
        has, wants = ("single texts", "pairs") if pairs else ("pairs", "single texts")
        raise DataError(
            f"the file holds {has}, but the model reads {wants}", "name the columns by --column", path=stream.path
        )
    return found


def _is_empty(label: Any) -> bool:
    cells = label.values() if isinstance(label, Mapping) else [label]
    return all(cell is None or (isinstance(cell, str) and not cell) for cell in cells)


def _is_blank(row: Row, columns: Columns) -> bool:
    """Whether a row has no text; for a pair, neither of the two."""
    sides = (columns.text, columns.tokens, columns.premise, columns.hypothesis)
    cells = [row.get(name) for name in (*sides, columns.premise_tokens, columns.hypothesis_tokens) if name is not None]
    return all(cell is None or cell != cell or (isinstance(cell, str) and not cell.strip()) for cell in cells)


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
    """Read the tables of each split; `reading` are arguments of `read_table`."""
    if source.is_dir():
        found = find_splits(source, names, original=original)
        return {split: [read_table(path, columns, **reading) for path in paths] for split, paths in found.items()}
    return {next(iter(names)): [read_table(source, columns, **reading)]}


def assemble(
    name: str,
    splits: Splits,
    options: ReadOptions,
    *,
    drop_labels: Collection[Label] = (),
    budget: Budget | None = None,
    bad: BadRows | None = None,
) -> Corpus:
    """Make a corpus from tables of rows.

    Rows whose label is in `drop_labels` are left out and counted. A corpus without a train split is for scoring only.
    """
    bad = BadRows() if bad is None else bad
    columns = options.columns
    first = splits["train"] if "train" in splits else [table for part in splits.values() for table in part]
    labels = _infer_labels(first, options, drop_labels)
    resolved = columns.resolve(first[0])
    rule = options.split_rule(resolved)
    parts: dict[str, list[AnyExample]] = {}
    dropped: dict[str, int] = {}
    for part in dict.fromkeys(("train", "dev", "test", *splits)):
        parts[part], count = _examples(splits.get(part, ()), columns, labels, rule, drop_labels, bad)
        if count:
            dropped[part] = count
    bad.raise_if_any()
    train, dev = parts["train"], parts["dev"]
    if not train and "train" in splits:
        raise DataError("no training rows", path=first[0].path)
    check_one_kind({table.path: columns.resolve(table) for tables in splits.values() for table in tables})
    if train and not dev:
        stratify = labels.task != "regression"
        train, dev = split_off_dev(train, options.dev_fraction, seed=options.seed, stratify=stratify)
    return Corpus(
        name,
        labels.task,
        labels.classes,
        train,
        dev,
        parts["test"],
        budget or default_budget(pairs=resolved.are_pairs),
        dropped,
        rule,
        columns=replace(resolved, weight=None).by_kind(),
        skipped=bad.messages(),
        targets=labels.targets,
    )


def check_one_kind(found: Mapping[Path, Columns]) -> None:
    """Raise DataError if some files hold pairs and others single texts."""
    pairs = [path for path, columns in found.items() if columns.are_pairs]
    texts = [path for path, columns in found.items() if not columns.are_pairs]
    if pairs and texts:
        raise DataError(
            f"the file holds pairs of texts, but {texts[0]} single texts", "give all files one form", path=pairs[0]
        )


def _infer_labels(tables: Sequence[Table], options: ReadOptions, drop: Collection[Label]) -> Labels:
    values: list[Any] = []
    places: list[tuple[Path, int]] = []
    for table in tables:
        columns = options.columns.resolve(table)
        if columns.label is None:
            raise DataError("training needs labels", "pass the label column's name", path=table.path)
        for number, row in table.numbered():
            try:
                value = parse_label(columns.read_label(row), options.task)
            except ValueError:
                continue  # reported when the row is read
            if value not in drop:
                values.append(value)
                places.append((table.path, number))
    try:
        return infer_labels(values, options.task, options.classes)
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
    """The examples of the tables' rows, and the number of rows dropped for their label."""
    examples: list[AnyExample] = []
    dropped = 0
    for table in tables:
        found = columns.resolve(table)
        for number, row in table.numbered():
            try:
                if labels is not None and drop and parse_label(found.read_label(row)) in drop:
                    dropped += 1
                else:
                    examples.append(example_from_row(row, found, labels, rule))
            except ValueError as error:
                bad.add(table.path, number, error)
    return examples, dropped


_SHARD = re.compile(r"-\d{5}-of-\d{5}$")


def split_of(name: str, names: SplitNames = SPLIT_NAMES) -> str | None:
    """The split of a name such as `train_subset`, `val`, `test2k` or `train-00000-of-00002`."""
    for split, known in names.items():
        if re.match(rf"({'|'.join(known)})(?![a-z])", name.lower()):
            return split
    return None


def find_splits(
    folder: Path, names: SplitNames = SPLIT_NAMES, endings: Sequence[str] = ENDINGS, original: str = ""
) -> dict[str, list[Path]]:
    """The files of each split in a folder: one file, or the numbered parts of one.

    `original` names other files that could be read, for the error message if there is no train file.
    """
    files = sorted(p for p in folder.iterdir() if p.is_file() and ending(p) in endings)
    splits = {path: split_of(stem(path), names) for path in files}
    needed = ["train"] if "train" in names else list(names)  # some datasets are for scoring only
    if not any(split in splits.values() for split in needed):
        seen = ", ".join(path.name for path in files[:8]) or "no data file"
        others = ", and dev (or validation) and test if you have them" if "train" in names else ""
        raise DataError(
            f"there is no {' or '.join(needed)} file; the folder holds {seen}",
            f"add {needed[0]}{'|'.join(endings)}{others}{f', or the original {original}' if original else ''}",
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
