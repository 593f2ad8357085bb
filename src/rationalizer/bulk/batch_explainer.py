"""One worker: a model that was loaded once, called with one batch of rows after the other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import pyarrow as pa
import torch

from rationalizer.data import BadRows, Columns, InputRow, iter_rows
from rationalizer.data.corpus_files import resolve_columns
from rationalizer.data.table_files import Stream
from rationalizer.drawing.result_columns import result_columns, result_values
from rationalizer.inference.predict import BATCH
from rationalizer.model import Rationalizer
from rationalizer.models.devices import check_device

Batch = TypeVar("Batch", pa.Table, pa.RecordBatch)
_LABELS = {"str": pa.string(), "bool": pa.bool_(), "int": pa.int64(), "float": pa.float64()}


def array(values: Sequence[Any], kind: pa.DataType) -> pa.Array:
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:  # half a surrogate pair, which no file can hold
        return pa.array([value and value.encode("utf-8", "replace").decode() for value in values], kind)


class Explainer:
    """Adds to batches of rows what a model says of them; made once in every process that takes part.

    >>> explainer = Explainer("sentiment")
    >>> explainer(pyarrow.table({"text": ["A warm, funny film."]})).to_pylist()

    Args:
        model: a `Rationalizer`, with the budget and the constraints that it shall keep to; or what `Rationalizer.load`
            takes.
        columns: what the columns of texts are called, if neither as usual nor as in training.
        batch_size: texts that the model reads at once.
        device: what to move the model to, by default nothing; "cuda" is the GPU that Ray or Spark gave to the process.
        threads: of PyTorch in this process; by default as many as it takes.
        skip_bad: whether a row that cannot be used is kept without an explanation; otherwise it is an error.
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
    ) -> None:
        if threads is not None:
            torch.set_num_threads(threads)
        self.model = model if isinstance(model, Rationalizer) else Rationalizer.load(model)
        if device is not None:
            self.model.trained.model.to(check_device(device))
        self.columns = (columns or Columns()).without_annotations()
        self.batch_size = batch_size
        self.skip_bad = skip_bad

    def __call__(self, batch: Batch) -> Batch:
        """The Arrow table or record batch with the columns that `explain --out x.csv` adds, too."""
        bad = BadRows(skip=self.skip_bad)
        return self.with_cells(batch, list(self.rows_of(batch, Path("batch"), bad)))

    def columns_in(self, names: Sequence[str], source: Path) -> Columns:
        """What the texts are read from; an error where the model cannot read a file of these columns."""
        trained, stream = self.model.trained, Stream(source, iter(()), dict.fromkeys(names))
        return resolve_columns(
            self.columns.with_model_columns(trained.description.columns, names), stream, pairs=self.model.pairs
        )

    def rows_of(self, batch: Batch, source: Path, bad: BadRows, first: int = 1) -> Iterator[InputRow]:
        """What there is to explain; `source` and `first` name a row that cannot be used."""
        names = batch.schema.names
        needed = [name for name in names if name in self.columns_in(names, source).names()]
        return self.given(Stream(source, iter(batch.select(needed).to_pylist()), dict.fromkeys(names)), bad, first)

    def given(self, stream: Stream, bad: BadRows, first: int = 1) -> Iterator[InputRow]:
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

    def with_cells(self, batch: Batch, rows: Sequence[InputRow]) -> Batch:
        """The batch with the cells of its rows, which are null where a row has nothing to explain."""
        explained = self.model.explain_rows(rows, batch_size=self.batch_size)
        cells = zip(*map(result_values, explained), strict=True) if rows else [()] * len(self._types())
        schema = self.schema(batch.schema)
        added: list[Any] = list(map(array, cells, schema.types[len(batch.schema) :]))
        return type(batch).from_arrays([*batch.columns, *added], schema=schema)

    def schema(self, given: pa.Schema) -> pa.Schema:
        """The columns of what comes out, of what goes in."""
        names = result_columns(given.names, pairs=self.model.pairs)
        for name, kind in zip(names, self._types(), strict=True):
            given = given.append(pa.field(name, kind))
        return given

    def _types(self) -> list[Any]:
        """Of the cells: the label, its probability, the rationale in two forms, the warnings."""
        description = self.model.trained.description
        label = pa.float64() if description.task == "regression" else _LABELS[description.label_type]
        rests_on = pa.string() if self.model.pairs else pa.list_(pa.list_(pa.int32()))
        return [label, pa.float64(), pa.string(), rests_on, pa.string()]


@cache
def shared_explainer(model: str | Path, **how: Any) -> Explainer:
    """The `Explainer` of this process, made when it is first asked for: for engines that call a function again and
    again, such as Spark's `mapInArrow`."""
    return Explainer(model, **how)
