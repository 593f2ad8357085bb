"""Continue an output file of `rationalizer explain` that an earlier call has left unfinished."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from rationalizer.cli.output_formats import ExplainedRow, OutputFormat, encodable

if TYPE_CHECKING:
    from rationalizer.data import InputRow


@dataclass(frozen=True)
class PartialOutput:
    """An output file whose last record may be incomplete."""

    path: Path
    name: str  # of the format
    form: OutputFormat

    def skip_finished(
        self,
        rows: Iterator[InputRow],
        explain: Callable[[Sequence[InputRow]], Sequence[ExplainedRow]],
        round_size: int,
    ) -> tuple[int, Iterator[InputRow]]:
        """Return the number of finished rows and the rows that are left to explain.

        Only whole rounds are kept and the rest is cut off: the last digits of a number depend on the texts it was
        computed with, and the file must become what it would have been without the interruption. The first round is
        explained again to check that the same model wrote it at the same budget.
        """
        kept, end = 0, 0
        pending: list[InputRow] = []
        first_round: list[dict[str, Any]] = []
        for count, (record, record_end) in enumerate(self._records(), 1):
            row = next(rows, None)
            if row is None:
                raise ValueError(f"{self.path} has more records than the input has rows; change --out, or --overwrite")
            if self._row_key(self._rewrite(count, ExplainedRow(row.row, None))) != self._row_key(record):
                raise ValueError(
                    f"record {count} of {self.path} does not belong to row {count} of the input; use the same input, "
                    "change --out, or --overwrite"
                )
            pending.append(row)
            if kept == 0:
                first_round.append(record)
            if len(pending) == round_size:
                if kept == 0:
                    self._check_same_model(explain(pending), first_round)
                kept, end, pending = count, record_end, []
        with self.path.open("r+b") as file:
            file.truncate(end)
        return kept, chain(pending, rows)

    def _check_same_model(self, rows: Sequence[ExplainedRow], records: Sequence[dict[str, Any]]) -> None:
        for number, (row, record) in enumerate(zip(rows, records, strict=True), 1):
            if self._answer(self._rewrite(number, row)) != self._answer(record):
                raise ValueError(
                    f"record {number} of {self.path} differs from the answer of this model at this budget; use the "
                    "model and --budget that wrote it, change --out, or --overwrite"
                )

    def _row_key(self, record: Mapping[str, Any]) -> tuple[str, ...]:
        """The part of a record that identifies its input row: the row itself."""
        if self.name == "csv":
            return tuple(record[name] for name in self.form.columns)
        texts = (record["text"],) if "text" in record else (record["premise"], record["hypothesis"])
        return (json.dumps(record.get("input", texts), sort_keys=True),)

    def _answer(self, record: Mapping[str, Any]) -> tuple[str, str]:
        """The label and the rationale of a record."""
        if self.name == "csv":
            label, _, *rationale, _ = list(record.values())[-5:]
            return label, " ".join(rationale)
        return str(record.get("label")), json.dumps(record.get("spans", record.get("pairs")))

    def _records(self) -> Iterator[tuple[dict[str, Any], int]]:
        """Each complete record, and the byte at which it ends."""
        header = self.form.header.encode()
        with self.path.open("rb") as file:
            head = file.read(len(header))
            if head != header:
                if header.startswith(head):  # stopped within the header
                    return
                raise ValueError(f"{self.path} has other columns than this command writes; change --out")
            end = len(head)
            for number, record in enumerate(_complete_records(file, self.name), 1):
                end += len(record)
                yield self._parse(number, record), end

    def _rewrite(self, number: int, row: ExplainedRow) -> dict[str, Any]:
        """A record as it would be written and read again."""
        return self._parse(number, encodable(str(self.form.record(number, row))).encode())

    def _parse(self, number: int, record: bytes) -> dict[str, Any]:
        from rationalizer.data.safe_json import parse_json

        try:
            if self.name == "jsonl":
                parsed = parse_json(record)
            else:
                names = next(csv.reader([self.form.header]))
                cells = next(csv.reader(io.StringIO(record.decode(), newline="")))
                parsed = dict(zip(names, cells, strict=True))
            self._row_key(parsed)  # raises if it lacks the input row
            return dict(parsed)
        except (ValueError, TypeError, KeyError, AttributeError, csv.Error):
            raise ValueError(f"record {number} of {self.path} was not written by this command; change --out") from None


def _complete_records(file: IO[bytes], name: str) -> Iterator[bytes]:
    """Records with their line end; an incomplete last one is left out."""
    record = b""
    for line in file:
        record += line
        # A quoted CSV field may contain line ends; a quote inside quotes is doubled.
        if line.endswith(b"\n") and (name == "jsonl" or record.count(b'"') % 2 == 0):
            yield record
            record = b""
