"""SNLI (Bowman et al., 2015) and MNLI (Williams et al., 2018).

Formats: the authors' releases (`sentence1`, `sentence2`, `gold_label`, as JSON lines or tab-separated, where a
quotation mark is an ordinary character), GLUE's, the Hub's, and Parquet copies with tokenized texts.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rationalizer.data.column_names import Columns
from rationalizer.data.corpus_files import SPLIT_NAMES, SplitNames, find_splits
from rationalizer.data.dataset_registry import Dataset, ReadRequest, SplitTables, register_dataset
from rationalizer.data.file_content import ENDINGS, ending
from rationalizer.data.table_files import Row, Table, read_table
from rationalizer.paper.original_files import iter_lines
from rationalizer.text.budget import Budget
from rationalizer.text.errors import DataError

CLASSES = ("entailment", "neutral", "contradiction")
NO_GOLD_LABEL = (-1, "-")  # the label of pairs on which the annotators did not agree, by number or by name
EXTRA_COLUMNS = ("sentence1", "sentence2", "gold_label", "heuristic", "subcase")
PREPARED = Columns(text=None, tokens=None, premise_tokens=None, hypothesis_tokens=None, alignment=None)

SNLI_SPLITS: SplitNames = {split: (*names, rf"snli_[\d.]+_{split}") for split, names in SPLIT_NAMES.items()}
MNLI_SPLITS: SplitNames = {
    "train": (*SPLIT_NAMES["train"], r"multinli_[\d.]+_train"),
    "dev": (r"(dev|validation)_matched", r"multinli_[\d.]+_dev_matched", "(dev|validation)$"),
    "test": ("test$",),  # GLUE's test_matched has no labels
}


def read_nli(path: Path, request: ReadRequest) -> SplitTables:
    """Read a file, or the splits of a folder, in the authors' formats or as users' own files."""
    if not path.is_dir():
        return {"train": [_read_file(path, request.names)]}
    files = find_splits(path, request.splits, (*ENDINGS, ".txt"))
    return {split: [_read_file(file, request.names) for file in paths] for split, paths in files.items()}


def _read_file(path: Path, columns: Collection[str]) -> Table:
    if ending(path) not in (".tsv", ".txt"):
        return read_table(path, columns)
    lines = iter_lines(path)
    header = next(lines, "").split("\t")
    wanted = [k for k, name in enumerate(header) if name in columns]
    rows: list[Row] = []
    for number, line in enumerate(lines, 1):
        values = line.split("\t")
        if len(values) != len(header):
            problem = f"{len(values)} tab-separated fields, but {len(header)} in the header"
            raise DataError(problem, "copy the file again", path=path, row=number)
        rows.append({header[k]: values[k] for k in wanted})
    return Table(path, tuple(header), rows)


def prepare_nli(table: Table, request: ReadRequest) -> Table:
    """Rename the columns to `premise`, `hypothesis`, `label` and `group`.

    The texts stay whole, so that one rule splits all splits into words: tokens are joined if the text is missing.
    """
    columns = request.columns
    sources: dict[str, Sequence[str | None]] = {
        "premise": (columns.premise, "sentence1", columns.premise_tokens),
        "hypothesis": (columns.hypothesis, "sentence2", columns.hypothesis_tokens),
        "label": (columns.label, "gold_label"),
        "group": (columns.group, "heuristic"),
    }
    present = {key: [name for name in names if name in table.columns] for key, names in sources.items()}
    tokens = {columns.premise_tokens, columns.hypothesis_tokens}
    rows: list[Row] = []
    for row in table.rows:
        prepared: Row = {}
        for key, names in present.items():
            name = next((name for name in names if row.get(name) is not None), None)
            value = None if name is None else row[name]
            prepared[key] = _join_tokens(value) if name in tokens else value
        rows.append(prepared)
    added = [key for key, names in present.items() if names]
    return Table(table.path, tuple(dict.fromkeys([*table.columns, *added])), rows)


def _join_tokens(tokens: Any) -> str:
    """Undo the treebank's tokenization as far as it can be undone."""
    text = tokens if isinstance(tokens, str) else " ".join(tokens)
    return text.replace(" n't", "n't").replace("``", '"').replace("''", '"')


SNLI = Dataset(
    "snli",
    CLASSES,
    Budget.count(4),
    hub="stanfordnlp/snli",
    drop_labels=NO_GOLD_LABEL,
    splits=SNLI_SPLITS,
    extra_columns=EXTRA_COLUMNS,
    read_original=read_nli,
    prepare=prepare_nli,
    columns=PREPARED,
    pairs=True,
    texts=559_209,
)
MNLI = replace(
    SNLI,
    name="mnli",
    budget=Budget.count(6),
    hub="nyu-mll/multi_nli",
    halve_dev=True,
    splits=MNLI_SPLITS,
    texts=392_702,
)
register_dataset(SNLI)
register_dataset(MNLI)
