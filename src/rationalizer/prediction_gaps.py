"""Predictions for a list in which some texts cannot be used."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from rationalizer.data import BadRows
from rationalizer.data.data_frames import is_table
from rationalizer.text.errors import DataError, InputError


def predict_usable(
    predict: Callable[[Any], Any], check: Callable[[Any], object], texts: Any, items: Sequence[Any]
) -> Any:
    """Predict the texts that can be used. The others have None, or NaN in an array of floats, and a warning lists them.

    Args:
        predict: returns an array with one row per text, or for a table a table or a column.
        check: raises `InputError` for a text that cannot be used.
        texts: a list, an array or a table.
        items: its texts.
    """
    try:
        return predict(texts)
    except DataError:
        bad, usable = BadRows(skip=True), []
    for row, item in enumerate(items):
        try:
            check(item)
            usable.append(row)
        except InputError as error:
            bad.add(Path("texts"), row + 1, InputError(error.problem, error.remedy))
    if not len(bad):
        return predict(texts)  # for its error, which is not about a single text
    for message in bad.messages():
        warnings.warn(message, stacklevel=4)
    found = predict(texts.iloc[usable] if is_table(texts) else [items[row] for row in usable])
    values = np.asarray(found)
    is_float = np.issubdtype(values.dtype, np.floating)
    missing, dtype = (np.nan, values.dtype) if is_float else (None, object)
    filled = np.full((len(items), *values.shape[1:]), missing, dtype)
    filled[usable] = values
    if not is_table(texts):
        return filled
    names = {"columns": found.columns} if is_table(found) else {"name": found.name}
    return type(found)(filled, index=texts.index, **names)
