"""SNLI, MNLI and HANS in the forms in which people have them, as rows of premise, hypothesis and label.

The forms: the authors' releases (`sentence1`, `sentence2`, `gold_label`, in JSON lines or between tabs, where a
quotation mark is a character like any other), GLUE's, the Hub's, and Parquet copies with tokenized texts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rationalizer.data.column_names import Columns
from rationalizer.data.corpus import Corpus
from rationalizer.data.corpus_files import SPLIT_NAMES, SplitNames, find_splits
from rationalizer.data.labels import plain
from rationalizer.data.table_files import ENDINGS, Row, Table, ending, read_table
from rationalizer.paper.beer_hotels_movies import text_lines
from rationalizer.text.errors import DataError, at
from rationalizer.text.example import PairExample

NLI = ("entailment", "neutral", "contradiction")
HANS = ("entailment", "non-entailment")
NO_GOLD = (-1, "-")  # pairs on whose label the annotators did not agree, by number or by name
NLI_COLUMNS = {"sentence1", "sentence2", "gold_label", "heuristic", "subcase"}  # beside those of `Columns`
TIDY = Columns(text=None, tokens=None, premise_tokens=None, hypothesis_tokens=None, alignment=None)

SNLI_SPLITS: SplitNames = {split: (*names, rf"snli_[\d.]+_{split}") for split, names in SPLIT_NAMES.items()}
MNLI_SPLITS: SplitNames = {
    "train": (*SPLIT_NAMES["train"], r"multinli_[\d.]+_train"),
    "dev": (r"(dev|validation)_matched", r"multinli_[\d.]+_dev_matched", "(dev|validation)$"),
    "test": ("test$",),  # GLUE's test_matched has no labels
}
HANS_SPLITS: SplitNames = {
    "train": (*SPLIT_NAMES["train"], "heuristics_train_set"),
    "test": ("test", "validation", "heuristics_evaluation_set"),
}


def read_nli(source: Path, columns: Collection[str], names: SplitNames) -> dict[str, list[Table]]:
    """As `read_splits`, in the authors' formats as well."""
    if not source.is_dir():
        return {"train": [_read_file(source, columns)]}
    found = find_splits(source, names, (*ENDINGS, ".txt"))
    return {split: [_read_file(path, columns) for path in paths] for split, paths in found.items()}


def _read_file(path: Path, columns: Collection[str]) -> Table:
    if ending(path) not in (".tsv", ".txt"):
        return read_table(path, columns)
    lines = text_lines(path)
    header = next(lines, "").split("\t")
    keep = [k for k, name in enumerate(header) if name in columns]
    rows: list[Row] = []
    for number, line in enumerate(lines, 1):
        values = line.split("\t")
        if len(values) != len(header):
            raise DataError(
                f"{at(path, number)}: {len(values)} fields between tabs, but {len(header)} in the header; "
                "copy the file again"
            )
        rows.append({header[k]: values[k] for k in keep})
    return Table(path, tuple(header), rows)


def tidy(table: Table, columns: Columns) -> Table:
    """The rows with `premise`, `hypothesis`, `label` and `group`, whatever the columns are called.

    The texts are given as texts, to be cut into words by one rule in all splits: tokens are joined where the text
    itself is missing.
    """
    sources: dict[str, Sequence[str | None]] = {
        "premise": (columns.premise, "sentence1", columns.premise_tokens),
        "hypothesis": (columns.hypothesis, "sentence2", columns.hypothesis_tokens),
        "label": (columns.label, "gold_label"),
        "group": (columns.group, "heuristic"),
    }
    known = {key: [name for name in names if name in table.columns] for key, names in sources.items()}
    tokens = {columns.premise_tokens, columns.hypothesis_tokens}
    rows: list[Row] = []
    for row in table.rows:
        tidied: Row = {}
        for key, names in known.items():
            name = next((name for name in names if row.get(name) is not None), None)
            value = None if name is None else row[name]
            tidied[key] = _joined(value) if name in tokens else value
        rows.append(tidied)
    found = [key for key, names in known.items() if names]
    return Table(table.path, tuple(dict.fromkeys([*table.columns, *found])), rows)


def _joined(tokens: Any) -> str:
    """Tokens as the text that they were cut from, as far as the treebank's spellings hide it."""
    text = tokens if isinstance(tokens, str) else " ".join(tokens)
    return text.replace(" n't", "n't").replace("``", '"').replace("''", '"')


def tidy_hans(table: Table, columns: Columns) -> Table:
    """As `tidy`, the labels by name.

    Copies of HANS number the two labels both ways round (the Hub 0 = entailment, others 1). The subcase tells
    which is meant: its second letter is `e` or `n`, as in `le_relative_clause` and `ln_subject/object_swap`.
    """
    tidied = tidy(table, columns)
    meanings: dict[int, str] = {}
    rows: list[Row] = []
    for number, (row, original) in enumerate(zip(tidied.rows, table.rows, strict=True), 1):
        label = row["label"] if row["label"] is None else plain(row["label"])
        if isinstance(label, int):
            name = _meaning(label, original.get("subcase"), at(table.path, number))
            if meanings.setdefault(label, name) != name:
                raise DataError(
                    f"{at(table.path, number)}: the label {label} stands for {name} here (subcase "
                    f"{original['subcase']}) and for {meanings[label]} above; correct it, or write the labels by name"
                )
            row = row | {"label": name}
        rows.append(row)
    return replace(tidied, rows=rows)


def _meaning(label: int, subcase: Any, place: str) -> str:
    match = re.match(r"[lsc]([en])_", str(subcase))
    if match is None:
        raise DataError(
            f"{place}: copies of HANS number their labels both ways, and the subcase {subcase!r} does not tell what "
            f"{label} means; keep the column subcase, or write the labels as {' and '.join(HANS)}"
        )
    return HANS["en".index(match[1])]


def with_hans(corpus: Corpus, hans: Corpus) -> Corpus:
    """A corpus of three classes with all training pairs of HANS added to train: the augmentation of McCoy et al.
    (2019).

    Non-entailment becomes neutral: what HANS' premises do not entail they do not exclude either. Where HANS is
    scored, neutral and contradiction both count as non-entailment.
    """
    if sorted(corpus.classes) != sorted(NLI) or hans.classes != HANS:
        raise ValueError(
            f"HANS (classes {', '.join(HANS)}) is added to a corpus with the classes {', '.join(NLI)}; got "
            f"{', '.join(hans.classes)} and {', '.join(corpus.classes)}"
        )
    added = [
        replace(pair, label=corpus.classes.index("entailment" if pair.label == HANS.index("entailment") else "neutral"))
        for pair in (*hans.train, *hans.dev)
        if isinstance(pair, PairExample)
    ]
    return replace(corpus, name=f"{corpus.name}+hans", train=[*corpus.train, *added])
