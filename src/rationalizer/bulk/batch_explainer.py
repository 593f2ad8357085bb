"""Explain batches of rows with a model that is loaded once per process."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import fields
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import torch

from rationalizer.data import BadRows, Columns, InputRow, iter_rows
from rationalizer.data.corpus_files import resolve_columns
from rationalizer.data.table_files import Stream
from rationalizer.drawing.result_columns import result_columns, result_values
from rationalizer.drawing.selected_words import AlignedWords, SelectedWord
from rationalizer.inference.predict import BATCH
from rationalizer.model import Rationalizer
from rationalizer.models.devices import check_device

Batch = TypeVar("Batch", pa.Table, pa.RecordBatch)
_LABEL_TYPES = {"str": pa.string(), "bool": pa.bool_(), "int": pa.int64(), "float": pa.float64()}
_NUMBERS = pa.list_(pa.list_(pa.int32()))
_TYPES = {
    "top_probabilities": pa.map_(pa.string(), pa.float64()),
    "rationale": pa.string(),
    "rationales": pa.map_(pa.string(), pa.string()),
    "spans": _NUMBERS,
    "pairs": _NUMBERS,
    "warnings": pa.string(),
}


class Explainer:
    """Add the columns of explanations to batches of rows.

    >>> explainer = Explainer("sentiment")
    >>> explainer(pyarrow.table({"text": ["A warm, funny film."]})).to_pylist()

    Args:
        model: a `Rationalizer`, used with its budget and constraints; or an argument of `Rationalizer.load`.
        columns: names of the text columns, if neither the usual ones nor those of the training.
        batch_size: number of texts per forward pass.
        device: where to put the model, by default where it is; a model that has to be loaded is on the CPU. "cuda" is
            the GPU that Ray or Spark gave the process.
        threads: number of PyTorch threads in this process; by default PyTorch's own.
        skip_bad: keep a row that cannot be used, without an explanation, instead of raising `DataError`.
        reasons: compute the weights of the selected words (see `Rationalizer.explain`).
    """

    def __init__(
        self,
        model: Rationalizer | str | Path,
        *,
        columns: Columns | None = None,
        batch_size: int = BATCH,
        device: str | None = None,
        threads: int | None = None,
        skip_bad: bool = False,
        reasons: bool = False,
    ) -> None:
        if threads is not None:
            torch.set_num_threads(threads)
        self.model = model if isinstance(model, Rationalizer) else Rationalizer.load(model, device="cpu")
        if device is not None:
            self.model.trained.model.to(check_device(device))
        self.columns = (columns or Columns()).without_annotations()
        self.batch_size, self.skip_bad, self.reasons = batch_size, skip_bad, reasons

    def __call__(self, batch: Batch) -> Batch:
        """Return the Arrow table or record batch with the columns that `explain --out x.csv` adds."""
        return self.explain_batch(batch, Path("batch"), BadRows(skip=self.skip_bad))

    def explain_batch(self, batch: Batch, source: Path, bad: BadRows, first: int = 1) -> Batch:
        """Add the columns to a batch; errors name `source` and the row, counted from `first`."""
        names = batch.schema.names
        text_columns = self.resolve_columns(names, source).names()
        rows = batch.select([name for name in names if name in text_columns]).to_pylist()
        stream = Stream(source, iter(rows), dict.fromkeys(names))
        return self.add_columns(batch, list(self.iter_rows(stream, bad, first)), bad)

    def resolve_columns(self, names: Sequence[str], source: Path) -> Columns:
        """Return the columns of the texts among `names`; raise `DataError` if there are none for this model."""
        columns = self.columns.with_model_columns(self.model.trained.description.columns, names)
        return resolve_columns(columns, Stream(source, iter(()), dict.fromkeys(names)), pairs=self.model.pairs)

    def iter_rows(self, stream: Stream, bad: BadRows, first: int = 1) -> Iterator[InputRow]:
        trained = self.model.trained
        return iter_rows(
            stream,
            columns=self.columns,
            model_columns=trained.description.columns,
            labels=None,
            rule=trained.encoder.rule,
            bad=bad,
            pairs=self.model.pairs,
            first=first,
        )

    def add_columns(self, batch: Batch, rows: Sequence[InputRow], bad: BadRows) -> Batch:
        """Explain the rows of a batch; rows without a text and bad rows have null in all added columns."""
        schema = self.schema(batch.schema)
        types: list[Any] = schema.types[len(batch.schema) :]
        explanations = self.model.explain_rows(rows, batch_size=self.batch_size, bad=bad, reasons=self.reasons)
        form = self.model.result_form
        added = (result_values(explanation, **form) for explanation in explanations)
        values: Any = zip(*added, strict=True) if rows else [()] * len(types)
        return type(batch).from_arrays([*batch.columns, *map(make_array, values, types)], schema=schema)

    def schema(self, schema: pa.Schema) -> pa.Schema:
        """Return the schema of the result for the schema of a batch."""
        description = self.model.trained.description
        label = pa.float64() if description.task == "regression" else _LABEL_TYPES[description.label_type]
        words = _record_type(AlignedWords if self.model.pairs else SelectedWord)
        label = pa.list_(pa.string()) if description.task == "multi-label" else label
        types = {**_TYPES, "predicted": label, "words": pa.list_(words)}
        for target in description.targets:
            types[f"predicted_{target.name}"] = pa.string() if target.classes else pa.float64()
        columns, names = (result_columns(existing, **self.model.result_form) for existing in ((), schema.names))
        for column, name in zip(columns, names, strict=True):
            other = pa.string() if column.startswith("rationale_") else pa.float64()  # most are probabilities
            schema = schema.append(pa.field(name, types.get(column, other)))
        return schema


def _record_type(kind: type[Any]) -> pa.DataType:
    """The type of selected words, without their weights by class."""
    types = {"index": pa.int32(), "start": pa.int32(), "end": pa.int32(), "weight": pa.float64()}
    names = [item.name for item in fields(kind) if item.name != "by_class"]
    return pa.struct([(name, types.get(name.rpartition("_")[2], pa.string())) for name in names])


@cache
def shared_explainer(model: str | Path, **options: Any) -> Explainer:
    """Return this process's `Explainer`, for engines that call a function repeatedly, such as Spark's `mapInArrow`."""
    return Explainer(model, **options)


def make_array(values: Sequence[Any], kind: pa.DataType) -> Any:
    if pa.types.is_map(kind):
        values = [value and list(value.items()) for value in values]
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:  # a lone surrogate, which UTF-8 cannot encode
        return pa.array([_encodable(value) for value in values], kind)


def _encodable(value: Any) -> Any:
    """Replace lone surrogates in a string, or in the strings of a list of records."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, list):
        return [_encodable(item) for item in value]
    return {name: _encodable(item) for name, item in value.items()} if isinstance(value, dict) else value
