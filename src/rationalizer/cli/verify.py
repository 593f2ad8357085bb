"""`rationalizer verify`."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from rationalizer.cli import text_inputs as inputs
from rationalizer.cli.base import command, one_line, out
from rationalizer.cli.options import Device, TableOptions, find_model
from rationalizer.plurals import count_of

if TYPE_CHECKING:
    from rationalizer.model import Rationalizer
    from rationalizer.records import DecisionRecord, Verification, Verifier

FAILED = 1
VERDICTS = {
    "identical": "identical",
    "within-tolerance": "with the same words and label but other bits",
    "failed": "failed",
}


@command(
    "rationalizer verify decisions.jsonl --model sentiment --file reviews.csv",
    'rationalizer verify decision.json --model sentiment --text "A warm, funny film."',
    'rationalizer verify decision.json --model nli --text "A man plays a guitar." --text "A man makes music."',
    "rationalizer verify decisions.jsonl --model runs/mine --public-key key.pub",
)
def verify(
    records: Annotated[
        list[Path], typer.Argument(metavar="RECORD", help="Files with a decision record, or one per line (.jsonl).")
    ],
    *,
    model: Annotated[
        Path,
        typer.Option(metavar="RUN", help="The model that decided: a folder, a starter model, or org/name of the Hub."),
    ],
    text: Annotated[
        list[str] | None,
        typer.Option(help="A text that was explained, unless the records contain it; repeat for more, or for a pair."),
    ] = None,
    file: Annotated[
        Path | None,
        typer.Option(help="A table with the texts that were explained: .csv, .tsv, .jsonl, .parquet, .xlsx."),
    ] = None,
    reading: TableOptions,
    public_key: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Require a signature by the owner of this Ed25519 public key (PEM)."),
    ] = None,
    device: Device = "auto",
) -> None:
    """Repeat recorded decisions and compare words, label and bits.

    Exit code 0: all decisions were reproduced; on another processor or with other versions, with the same words and
    label and probabilities within 1e-5, which is printed. 1: at least one was not, or is not signed as required.
    2: a record or text cannot be used.
    """
    from rationalizer.model import Rationalizer
    from rationalizer.records import Verifier, load_public_key, text_hash

    if file is None and reading.is_set():
        raise ValueError("--column, --delimiter and similar options describe a --file; add --file")
    key = None if public_key is None else load_public_key(public_key)
    # The first pass finds malformed records before any work is done, and says which texts to keep in memory.
    needed = {text.sha256 for _, _, record in _numbered(records) for text in record.texts}
    loaded = Rationalizer.load(find_model(model), device)
    given = chain(text or (), _texts_in_file(file, reading, loaded))
    texts = {found: part for part in given if (found := text_hash(part)) in needed}
    verifier, verdicts = Verifier(loaded, public_key=key), Counter[str]()
    for path, number, record in _numbered(records):
        result = _verify(verifier, record, texts, path, number)
        verdicts[result.verdict] += 1
        if result.verdict != "identical" or len(needed) <= len(record.texts):
            out.print(one_line(f"{path}, record {number}: {result}"), markup=False)
    counts = ", ".join(f"{verdicts[name]} {words}" for name, words in VERDICTS.items() if verdicts[name])
    out.print(f"{count_of(verdicts.total(), 'decision')}: {counts}", markup=False)
    if verdicts["failed"]:
        raise typer.Exit(FAILED)


def _numbered(paths: Sequence[Path]) -> Iterator[tuple[Path, int, DecisionRecord]]:
    """Each record with its file and its number in it."""
    from rationalizer.records import read_records

    for path in paths:
        for number, record in enumerate(read_records(path), 1):
            yield path, number, record


def _texts_in_file(path: Path | None, reading: TableOptions, model: Rationalizer) -> Iterator[str]:
    if path is not None:
        for example in inputs.examples_in_file(path, reading.read_options(), model):
            yield from (part.text for part in example.texts)


def _verify(
    verifier: Verifier, record: DecisionRecord, texts: Mapping[str, str], path: Path, number: int
) -> Verification:
    """Verify with the given texts, which are found by their hashes, or else with those in the record."""
    from rationalizer.text import DataError
    from rationalizer.text.errors import InputError

    found = [texts.get(part.sha256, part.text) for part in record.texts]
    missing = next((part for part, text in zip(record.texts, found, strict=True) if text is None), None)
    try:
        if missing is not None:
            raise InputError(
                f"the record does not contain its text, and no given text has its SHA-256, {missing.sha256}",
                "give exactly the text that was explained, by --text or --file",
            )
        return verifier.verify(record, [text for text in found if text is not None])
    except InputError as error:
        raise DataError(error.problem, error.remedy, path=f"{path}, record {number}") from None
