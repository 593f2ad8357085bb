"""Read decision records from files: one JSON object, or one per line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from rationalizer.records.decision_record import DecisionRecord
from rationalizer.text.errors import DataError, InputError

LONGEST_RECORD = 1 << 26  # bytes; a record with its texts is rarely longer than them


def read_records(path: str | Path) -> Iterator[DecisionRecord]:
    """Yield the records of a JSON or JSONL file of any length.

    Raises:
        DataError: if the file has no record, or something else; the message names the line.
    """
    path = Path(path)
    with path.open("rb") as file:
        if not _first_line_is_complete(file):
            yield _parse(file.read(LONGEST_RECORD + 1), path, None)
            return
        count = 0
        for number, line in enumerate(iter(lambda: file.readline(LONGEST_RECORD + 1), b""), 1):
            if line.strip():
                yield _parse(line, path, number)
                count += 1
        if not count:
            raise DataError("the file is empty", "give a file that explain --record has written", path=path)


def _first_line_is_complete(file: IO[bytes]) -> bool:
    """Whether the first line is a JSON value, or blank, so that there is one record per line."""
    line = file.readline(LONGEST_RECORD + 1)
    file.seek(0)
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return not line.strip() or not line.lstrip().startswith(b"{")
    return True


def _parse(content: bytes, path: Path, line: int | None) -> DecisionRecord:
    if len(content) > LONGEST_RECORD:
        problem = f"a record is longer than {LONGEST_RECORD:,} bytes"
        raise DataError(problem, "write one record per line", path=path, line=line)
    try:
        return DecisionRecord.from_json(content)
    except ValueError as error:
        problem, remedy = (error.problem, error.remedy) if isinstance(error, InputError) else (str(error), "")
        raise DataError(problem, remedy, path=path, line=line) from None
