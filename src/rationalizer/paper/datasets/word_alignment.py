"""Sentence pairs with word alignments by people: MSR's RTE-2 pairs, Edinburgh++, and MultiMWA's MTRef and Wiki.

Formats: MultiMWA's files (Lan et al., 2021), tab-separated without a header; Jacana's JSON of MSR's and Edinburgh's
(Yao et al., 2013), with `source`, `target`, `sureAlign`, `possibleAlign`; tables with `source_tokens`,
`target_tokens`, `sure`, `possible`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rationalizer.data.annotation_parsing import parse_alignment
from rationalizer.data.corpus_files import SPLIT_NAMES, SplitNames, find_splits, split_of
from rationalizer.data.dataset_registry import Dataset, ReadRequest, SplitTables, register_dataset
from rationalizer.data.file_content import stem
from rationalizer.data.table_files import Row, Table
from rationalizer.paper.original_files import iter_lines
from rationalizer.text.budget import Budget
from rationalizer.text.errors import DataError

PAIR = "pair"  # the only class: models learn from the alignments
COLUMNS = ("source_tokens", "target_tokens", "sure", "possible", "source", "target", "sureAlign", "possibleAlign")
MULTIMWA_FIELDS = 9  # id, source, (3), target, (5), (6), (7), sure, possible
MSR_RTE = {"train": ("rte2_dev_m",), "test": ("rte2_test_m",)}  # models are trained on the dev set of RTE-2


def read_multimwa(folder: Path, request: ReadRequest) -> SplitTables | None:
    """Read MultiMWA's files."""
    files = [path for path in folder.glob("*.tsv") if split_of(stem(path), request.splits)]
    if not any(map(_is_multimwa, files)):
        return None
    found = find_splits(folder, request.splits, (".tsv",))
    return {split: [_multimwa(path) for path in paths] for split, paths in found.items()}


def _is_multimwa(path: Path) -> bool:
    fields = next(iter_lines(path), "").split("\t")
    return len(fields) >= MULTIMWA_FIELDS and not set(fields) & set(COLUMNS)  # other files have a header


def _multimwa(path: Path) -> Table:
    rows: list[Row] = []
    for number, line in enumerate(iter_lines(path), 1):
        fields = line.split("\t")
        if len(fields) < MULTIMWA_FIELDS:
            problem = f"{len(fields)} tab-separated fields, but MultiMWA's lines have at least {MULTIMWA_FIELDS}"
            raise DataError(problem, "copy the file again", path=path, row=number)
        _, source, _, target, _, _, _, sure, possible, *_ = fields
        rows.append({"source": source, "target": target, "sureAlign": sure, "possibleAlign": possible})
    return Table(path, ("source", "target", "sureAlign", "possibleAlign"), rows)


def prepare_alignments(table: Table, request: ReadRequest) -> Table:
    """Use the sure links as `alignment`, and the sure and possible ones as `sure_and_possible`."""
    sources = {
        "premise_tokens": ("source_tokens", "source", "premise_tokens"),
        "hypothesis_tokens": ("target_tokens", "target", "hypothesis_tokens"),
        "sure": ("sure", "sureAlign", "alignment"),
        "possible": ("possible", "possibleAlign"),
    }
    names = {kind: next((name for name in known if name in table.columns), None) for kind, known in sources.items()}
    if missing := [kind for kind in ("premise_tokens", "hypothesis_tokens", "sure") if names[kind] is None]:
        column = sources[missing[0]][0]
        remedy = f"the file has {', '.join(table.columns)}"
        raise DataError(f"there is no column {column!r}", remedy, path=table.path)
    rows: list[Row] = []
    for number, row in table.numbered():
        cells = {kind: None if name is None else row.get(name) for kind, name in names.items()}
        try:
            sure, possible = (_links(cells[kind]) for kind in ("sure", "possible"))
        except ValueError as error:
            raise DataError.from_error(error, path=table.path, row=number) from None
        texts = {side: cells[side] for side in ("premise_tokens", "hypothesis_tokens")}
        rows.append({**texts, "alignment": sure, "sure_and_possible": sorted({*sure, *possible}), "label": PAIR})
    columns = ("premise_tokens", "hypothesis_tokens", "alignment", "sure_and_possible", "label")
    return Table(table.path, columns, rows, table.numbers)


def _links(value: Any) -> list[tuple[int, int]]:
    return [] if value is None else list(parse_alignment(value))


def _register(name: str, original_files: str, *prefixes: str) -> None:
    """Register a dataset whose split files may start with these prefixes."""
    splits: SplitNames = {
        split: (*usual, *(rf"{prefix}[-_.]{split}" for prefix in prefixes)) for split, usual in SPLIT_NAMES.items()
    }
    if name == "msr-rte":
        splits = {split: (*names, *MSR_RTE.get(split, ())) for split, names in splits.items()}
    register_dataset(
        Dataset(
            name,
            (PAIR,),
            Budget.share(1.0),
            rule="spaces",
            read_original=read_multimwa,
            original_files=original_files,
            extra_columns=COLUMNS,
            prepare=prepare_alignments,
            splits=splits,
            pairs=True,
        )
    )


_register("msr-rte", "RTE2_dev_M.align.json", "msr_rte")
_register("edinburgh", "gold.train.sure.json", "edinburgh", "gold")
_register("mtref", "mtref-train.tsv", "mtref")
_register("wiki-align", "wiki-train.tsv", "wiki")
