"""Pairs of sentences whose words people aligned: MSR's RTE-2 pairs, Edinburgh++, and MultiMWA's MTRef and Wiki.

The forms: MultiMWA's files (Lan et al., 2021), fields between tabs without a header; Jacana's JSON of MSR's and
Edinburgh's (Yao et al., 2013), with `source`, `target`, `sureAlign`, `possibleAlign`; tables with `source_tokens`,
`target_tokens`, `sure`, `possible`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from rationalizer.data.corpus_files import SPLIT_NAMES, SplitNames, find_splits, split_of
from rationalizer.data.row_parsing import from_alignment
from rationalizer.data.table_files import Row, Table, stem
from rationalizer.paper.beer_hotels_movies import text_lines
from rationalizer.text.errors import DataError, at

PAIR = "pair"  # the one class: the alignments are all that there is to learn
SOURCES = ("source_tokens", "target_tokens", "sure", "possible", "source", "target", "sureAlign", "possibleAlign")
_FIELDS = 9  # of MultiMWA: id, source, (3), target, (5), (6), (7), sure, possible


def alignment_splits(*names: str) -> SplitNames:
    """What the splits of a dataset with these names are called, beside train, dev and test."""
    return {
        split: (*usual, *(rf"{name}[-_.]{split}" for name in names), *_MSR.get(split, ()) * ("msr_rte" in names))
        for split, usual in SPLIT_NAMES.items()
    }


_MSR = {"train": ("rte2_dev_m",), "test": ("rte2_test_m",)}  # people train on what RTE-2 has as dev


def read_multimwa(names: SplitNames) -> Callable[[Path, str], dict[str, list[Table]] | None]:
    """A reader of MultiMWA's files, as far as a folder has them."""

    def read(folder: Path, aspect: str) -> dict[str, list[Table]] | None:
        files = [path for path in folder.glob("*.tsv") if split_of(stem(path), names)]
        if not any(map(_is_multimwa, files)):
            return None
        found = find_splits(folder, names, (".tsv",))
        return {split: [_multimwa(path) for path in paths] for split, paths in found.items()}

    return read


def _is_multimwa(path: Path) -> bool:
    fields = next(text_lines(path), "").split("\t")
    return len(fields) >= _FIELDS and not set(fields) & set(SOURCES)  # which a header would name


def _multimwa(path: Path) -> Table:
    rows: list[Row] = []
    for number, line in enumerate(text_lines(path), 1):
        fields = line.split("\t")
        if len(fields) < _FIELDS:
            raise DataError(
                f"{at(path, number)}: {len(fields)} fields between tabs, but MultiMWA's lines have {_FIELDS} or more; "
                "copy the file again"
            )
        _, source, _, target, _, _, _, sure, possible, *_ = fields
        rows.append({"source": source, "target": target, "sureAlign": sure, "possibleAlign": possible})
    return Table(path, ("source", "target", "sureAlign", "possibleAlign"), rows)


def prepare_alignments(table: Table, aspect: str) -> Table:
    """The sure links as `alignment`; `sure_and_possible` has those with the ones that are only possible."""
    given = {
        "premise_tokens": ("source_tokens", "source", "premise_tokens"),
        "hypothesis_tokens": ("target_tokens", "target", "hypothesis_tokens"),
        "sure": ("sure", "sureAlign", "alignment"),
        "possible": ("possible", "possibleAlign"),
    }
    names = {kind: next((name for name in known if name in table.columns), None) for kind, known in given.items()}
    if missing := [kind for kind in ("premise_tokens", "hypothesis_tokens", "sure") if names[kind] is None]:
        wanted = given[missing[0]][0]
        raise DataError(f"{at(table.path)}: there is no column {wanted!r}; the file has {', '.join(table.columns)}")
    rows: list[Row] = []
    for number, row in table.numbered():
        cells = {kind: None if name is None else row.get(name) for kind, name in names.items()}
        try:
            sure, possible = (_links(cells[kind]) for kind in ("sure", "possible"))
        except ValueError as error:
            raise DataError(f"{at(table.path, number)}: {error}") from None
        texts = {side: cells[side] for side in ("premise_tokens", "hypothesis_tokens")}
        rows.append({**texts, "alignment": sure, "sure_and_possible": sorted({*sure, *possible}), "label": PAIR})
    columns = ("premise_tokens", "hypothesis_tokens", "alignment", "sure_and_possible", "label")
    return Table(table.path, columns, rows, table.numbers)


def _links(value: Any) -> list[tuple[int, int]]:
    return [] if value is None else list(from_alignment(value))
