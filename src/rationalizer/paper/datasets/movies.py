"""Movie reviews with annotated evidence (Zaidan et al., 2007), in the format of ERASER (DeYoung et al., 2020)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rationalizer.data.dataset_registry import Dataset, ReadRequest, SplitTables, register_dataset
from rationalizer.data.table_files import Row, Table, read_table
from rationalizer.paper.original_files import parse_spans
from rationalizer.text.errors import DataError

FILES = {"train": "train.jsonl", "dev": "val.jsonl", "test": "test.jsonl"}


def read_movies(folder: Path, request: ReadRequest) -> SplitTables | None:
    """Read `{train,val,test}.jsonl` with evidences, and the tokens from `docs/`. The annotation of a review is the
    union of its evidences."""
    docs = folder / "docs"
    if not docs.is_dir() or not (folder / FILES["train"]).is_file():
        return None
    return {split: [_reviews(folder / file, docs)] for split, file in FILES.items() if (folder / file).is_file()}


def _reviews(path: Path, docs: Path) -> Table:
    rows: list[Row] = []
    for number, item in enumerate(read_table(path).rows, 1):
        try:
            evidences = [evidence for group in item["evidences"] for evidence in group]
            spans = [[evidence["start_token"], evidence["end_token"]] for evidence in evidences]
            names = {evidence["docid"] for evidence in evidences} or {item["annotation_id"]}
            label = {"NEG": "negative", "POS": "positive"}[item["classification"]]
        except (KeyError, TypeError) as error:
            raise DataError(
                "expected 'annotation_id', 'classification' (NEG or POS) and 'evidences' as in ERASER's files",
                f"{error} is missing or wrong",
                path=path,
                row=number,
            ) from None
        if len(names) > 1:
            problem = f"the evidences are in several documents: {', '.join(sorted(names))}"
            raise DataError(problem, path=path, row=number)
        document = docs / str(names.pop())
        if not document.is_file():
            problem = f"the document {document} is missing"
            raise DataError(problem, "unpack the whole archive", path=path, row=number)
        tokens = document.read_text(encoding="utf-8")
        lengths = [len(line.split()) for line in tokens.splitlines()]  # one sentence per line
        rows.append({"tokens": tokens, "label": label, "rationale_spans": spans or None, "sentence_lengths": lengths})
    return Table(path, ("tokens", "label", "rationale_spans", "sentence_lengths"), rows)


def prepare_movies(table: Table, request: ReadRequest) -> Table:
    """Drop empty spans, which ERASER's test file has. In a user's own file they are an error: most often the end was
    meant to be included."""
    if "rationale_spans" not in table.columns:
        return table
    rows: list[Row] = []
    for number, row in table.numbered():
        spans = parse_spans(row.get("rationale_spans"), table.path, number)
        rows.append(row | {"rationale_spans": [span for span in spans if not _is_empty(span)] or None})
    return Table(table.path, table.columns, rows, table.numbers)


def _is_empty(span: Any) -> bool:
    return isinstance(span, Sequence) and len(span) == 2 and span[0] == span[1]


register_dataset(
    Dataset(
        "movies",
        ("negative", "positive"),
        rule="spaces",
        read_original=read_movies,
        original_files="train.jsonl with the folder docs",
        prepare=prepare_movies,
        texts=1_800,
    )
)
