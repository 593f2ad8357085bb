"""Yelp-HAT (Sen et al., 2020): Yelp reviews with the attention maps of one to four people each.

For evaluating sentiment models that were trained on other data, and for measuring how far people agree.
"""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

from rationalizer.data.annotation_parsing import parse_list
from rationalizer.data.corpus_files import SplitNames
from rationalizer.data.dataset_registry import Dataset, ReadRequest, SplitTables, register_dataset
from rationalizer.data.table_files import Row, Table, read_table
from rationalizer.text.errors import DataError, short_repr

SPLITS: SplitNames = {"dev": ("dev",), "test": ("test",)}
TEXT, LABEL, MAP = "Input.text", "Input.label", "Answer.html_output"
SPAN = re.compile(r"<span([^>]*)>(.*?)</span>", re.DOTALL)


def read_yelp_hat(folder: Path, request: ReadRequest) -> SplitTables | None:
    """Read the authors' files `ham_part*.csv`: one row per review and annotator, with one `<span>` per word, of class
    `active` if the annotator marked it."""
    files = sorted(folder.glob("ham_part*.csv"))
    return {"test": [_reviews(path) for path in files]} if files else None


def _reviews(path: Path) -> Table:
    table = read_table(path, (TEXT, LABEL, MAP))
    if missing := [name for name in (TEXT, LABEL, MAP) if name not in table.columns]:
        raise DataError(f"there is no column {missing[0]!r}", f"the file has {', '.join(table.columns)}", path=path)
    reviews: dict[tuple[Any, ...], Row] = {}
    numbers: list[int] = []
    for number, row in table.numbered():
        spans = [
            (unescape(word).strip(), "active" in attributes) for attributes, word in SPAN.findall(str(row.get(MAP)))
        ]
        words = tuple(word for word, _ in spans if word)
        if not words:
            problem = f"{MAP} has no <span> with a word, got {short_repr(row.get(MAP))}"
            raise DataError(problem, path=path, row=number)
        key = (row.get(TEXT), words)
        if key not in reviews:
            numbers.append(number)
        review = reviews.setdefault(key, {"tokens": words, "label": row.get(LABEL), "masks": []})
        review["masks"].append([is_marked for word, is_marked in spans if word])
    return Table(path, ("tokens", "label", "masks"), list(reviews.values()), numbers)


def prepare_yelp_hat(table: Table, request: ReadRequest) -> Table:
    """Use the maps as `rationale_masks`, without empty maps and without blank tokens."""
    if "masks" not in table.columns or "tokens" not in table.columns:
        return table
    rows: list[Row] = []
    for number, row in table.numbered():
        try:
            tokens = parse_list(row.get("tokens"), "tokens")
            maps = [parse_list(mask, "an attention map") for mask in parse_list(row.get("masks"), "attention maps")]
        except ValueError as error:
            raise DataError.from_error(error, path=table.path, row=number) from None
        if wrong := [len(mask) for mask in maps if len(mask) != len(tokens)]:
            problem = f"a map has {wrong[0]} flags for {len(tokens)} tokens"
            raise DataError(problem, path=table.path, row=number)
        indices = [k for k, token in enumerate(tokens) if str(token).strip()]
        masks = [[bool(mask[k]) for k in indices] for mask in maps]
        annotations = {"tokens": [tokens[k] for k in indices], "rationale_masks": [mask for mask in masks if any(mask)]}
        rows.append({"label": row.get("label"), **annotations})
    return Table(table.path, ("tokens", "label", "rationale_masks"), rows, table.numbers)


register_dataset(
    Dataset(
        "yelp-hat",
        ("negative", "positive"),
        rule="spaces",
        read_original=read_yelp_hat,
        original_files="ham_part*.csv",
        extra_columns=("masks",),
        prepare=prepare_yelp_hat,
        splits=SPLITS,
    )
)
