"""Yelp reviews with human attention maps (Sen et al., 2020): what each of one to four people marked, one by one.

They are for scoring models of sentiment that were trained elsewhere, and to see how far people agree.
"""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path
from typing import Any

from rationalizer.data.corpus_files import SplitNames
from rationalizer.data.row_parsing import parsed
from rationalizer.data.table_files import Row, Table, read_table
from rationalizer.text.errors import DataError, at, short_repr

YELP_HAT_SPLITS: SplitNames = {"dev": ("dev",), "test": ("test",)}
_TEXT, _LABEL, _MAP = "Input.text", "Input.label", "Answer.html_output"
_SPAN = re.compile(r"<span([^>]*)>(.*?)</span>", re.DOTALL)


def read_yelp_hat(folder: Path, aspect: str) -> dict[str, list[Table]] | None:
    """The authors' files `ham_part*.csv`: a row for each review and person, the review as a `<span>` a word, of class
    `active` where the person marked it."""
    files = sorted(folder.glob("ham_part*.csv"))
    return {"test": [_reviews(path) for path in files]} if files else None


def _reviews(path: Path) -> Table:
    table = read_table(path, (_TEXT, _LABEL, _MAP))
    if missing := [name for name in (_TEXT, _LABEL, _MAP) if name not in table.columns]:
        raise DataError(f"{at(path)}: there is no column {missing[0]!r}; the file has {', '.join(table.columns)}")
    reviews: dict[tuple[Any, ...], Row] = {}
    numbers: list[int] = []
    for number, row in table.numbered():
        spans = [(unescape(word).strip(), "active" in how) for how, word in _SPAN.findall(str(row.get(_MAP)))]
        words = tuple(word for word, _ in spans if word)
        if not words:
            raise DataError(f"{at(path, number)}: {_MAP} has no <span> with a word, got {short_repr(row.get(_MAP))}")
        if (row.get(_TEXT), words) not in reviews:
            numbers.append(number)
        review = reviews.setdefault((row.get(_TEXT), words), {"tokens": words, "label": row.get(_LABEL), "masks": []})
        review["masks"].append([marked for word, marked in spans if word])
    return Table(path, ("tokens", "label", "masks"), list(reviews.values()), numbers)


def prepare_yelp_hat(table: Table, aspect: str) -> Table:
    """The maps as `rationale_masks`, without those in which nothing is marked, and without tokens that are blank."""
    if "masks" not in table.columns or "tokens" not in table.columns:
        return table
    rows: list[Row] = []
    for number, row in table.numbered():
        try:
            tokens = parsed(row.get("tokens"), "tokens")
            masks = [parsed(mask, "an attention map") for mask in parsed(row.get("masks"), "attention maps")]
        except ValueError as error:
            raise DataError(f"{at(table.path, number)}: {error}") from None
        if wrong := [len(mask) for mask in masks if len(mask) != len(tokens)]:
            raise DataError(f"{at(table.path, number)}: a map has {wrong[0]} flags for {len(tokens)} tokens")
        kept = [k for k, token in enumerate(tokens) if str(token).strip()]
        shown_masks = [[bool(mask[k]) for k in kept] for mask in masks]
        known = {"tokens": [tokens[k] for k in kept], "rationale_masks": [mask for mask in shown_masks if any(mask)]}
        rows.append({"label": row.get("label"), **known})
    return Table(table.path, ("tokens", "label", "rationale_masks"), rows, table.numbers)
