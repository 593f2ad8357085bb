"""Tables such as pandas DataFrames: which columns hold the texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rationalizer.text.errors import DataError

Names = Mapping[str, str]  # column names by kind, as in `Columns`


def is_table(items: Any) -> bool:
    return hasattr(items, "columns")


def pair_columns(table: Any, model_columns: Names | None = None) -> tuple[Any, Any] | None:
    """The columns of premises and hypotheses: the model's, the usual ones, or the only two; None if unclear."""
    names = list(table.columns)
    for known in (model_columns or {}, {"premise": "premise", "hypothesis": "hypothesis"}):
        if known.get("premise") in names and known.get("hypothesis") in names:
            return known["premise"], known["hypothesis"]
    # A table of texts and labels also has two columns.
    return (names[0], names[1]) if len(names) == 2 and not {"text", "label"} & set(names) else None


def text_column(table: Any, model_columns: Names | None = None) -> Any:
    """The column of texts: the model's, "text", or the only one."""
    names = list(table.columns)
    for name in ((model_columns or {}).get("text"), "text"):
        if name in names:
            return name
    if len(names) == 1:
        return names[0]
    raise DataError(
        f"the table has no column 'text', but {', '.join(map(str, names)) or 'no column at all'}",
        "use its column, such as table['review']",
    )


def texts_of(table: Any, *, pairs: bool, model_columns: Names | None = None) -> list[Any]:
    """A table's texts, or its pairs as tuples."""
    if not pairs:
        return list(table[text_column(table, model_columns)])
    names = pair_columns(table, model_columns)
    if names is None:
        raise DataError(
            "a table of pairs has the columns premise and hypothesis, or two columns, got "
            f"{', '.join(map(str, table.columns))}",
            "use table[['the premise column', 'the hypothesis column']]",
        )
    return list(zip(table[names[0]], table[names[1]], strict=True))


def names_of(texts: Any, labels: Any, *, pairs: bool) -> dict[str, str]:
    """The names of the columns that texts and labels came from, as far as they have names."""
    if is_table(texts):
        found = dict(zip(("premise", "hypothesis"), pair_columns(texts) or (), strict=False)) if pairs else {}
        found = found if pairs else {"text": text_column(texts)}
    else:
        found = {} if pairs else {"text": getattr(texts, "name", None)}
    found["label"] = getattr(labels, "name", None)
    return {kind: name for kind, name in found.items() if isinstance(name, str)}
