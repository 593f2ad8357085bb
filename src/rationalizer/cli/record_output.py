"""The decision records that `rationalizer explain` writes."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated, Any

import typer

from rationalizer.cli.output_formats import ExplainedRow

if TYPE_CHECKING:
    from rationalizer.model import Rationalizer
    from rationalizer.records import Recorder

PASSPHRASE = "RATIONALIZER_SIGN_PASSPHRASE"  # the environment variable with the passphrase of the signing key


@dataclass(frozen=True)
class RecordOptions:
    """Options for decision records."""

    record: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Append a decision record per text to this .jsonl file; see `verify`."),
    ] = None
    record_text: Annotated[
        bool, typer.Option("--record-text", help="Store the texts in the records, not only their hashes.")
    ] = False
    sign_key: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help=f"Sign the records with this Ed25519 private key (PEM); its passphrase is in {PASSPHRASE}.",
        ),
    ] = None

    def check(self) -> None:
        """Raise an error, before any work is done, if the options or the files cannot be used."""
        for name, value in (("--record-text", self.record_text), ("--sign-key", self.sign_key)):
            if value and self.record is None:
                raise ValueError(f"{name} needs --record; add the file to write records to")
        if self.record is not None and self.record.is_dir():
            raise IsADirectoryError(f"{self.record} is a folder; choose a file in it for --record")
        if self.record is not None and self.record.exists() and not _ends_with_line(self.record):
            raise ValueError(
                f"{self.record} ends in the middle of a line, so that nothing can be appended; remove that line, or "
                "change --record"
            )

    def check_format(self, name: str) -> None:
        if self.record is not None and name == "parquet":
            raise ValueError("--record does not support Parquet output or shards; use --format jsonl or csv")

    @contextmanager
    def open_file(self, model: Rationalizer) -> Iterator[RecordFile]:
        if self.record is None:
            yield RecordFile(None, None, None)
            return
        from rationalizer.records import Recorder, load_private_key

        key = None
        if self.sign_key is not None:
            key = load_private_key(self.sign_key, passphrase=os.environ.get(PASSPHRASE))
        self.record.parent.mkdir(parents=True, exist_ok=True)
        with self.record.open("ab") as file:
            yield RecordFile(file, Recorder(model.trained, with_text=self.record_text), key)


@dataclass(frozen=True)
class RecordFile:
    """An open file of records; without a file, nothing is recorded."""

    file: IO[bytes] | None
    recorder: Recorder | None
    key: Any  # to sign with; None: records are not signed

    def take_from(self, rows: Sequence[ExplainedRow]) -> Sequence[ExplainedRow]:
        """Write the records of the explanations; return the rows without them."""
        if self.file is None:
            return rows
        from rationalizer.records import sign

        explanations = [row.explanation for row in rows if row.explanation is not None]
        records = [each.record if self.key is None else sign(each.record, self.key) for each in explanations]
        self.file.write("".join(f"{record.to_json()}\n" for record in records).encode("ascii"))
        self.file.flush()
        return [
            row if row.explanation is None else replace(row, explanation=replace(row.explanation, record=None))
            for row in rows
        ]


def _ends_with_line(path: Path) -> bool:
    with path.open("rb") as file:
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        return file.read() in (b"", b"\n")
