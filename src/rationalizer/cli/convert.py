"""`rationalizer convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from rationalizer.cli.base import command, out

Format = Literal["rationalizer", "label-studio", "prodigy", "doccano", "eraser"]


@command(
    "rationalizer convert export.json mine.annotated.jsonl",
    "rationalizer convert mine.annotated.jsonl tasks.json --to label-studio",
    "rationalizer convert mine.annotated.jsonl eraser/train.jsonl --to eraser",
)
def convert(
    source: Annotated[Path, typer.Argument(help="The annotations; for ERASER, a .jsonl file beside its folder docs.")],
    target: Annotated[Path, typer.Argument(help="The file to write; an annotation file that exists is added to.")],
    *,
    to: Annotated[Format, typer.Option(help="The format to write.")] = "rationalizer",
    kind: Annotated[Format | None, typer.Option("--from", help="The format of SOURCE; by default detected.")] = None,
) -> None:
    """Convert annotations from and to Label Studio, Prodigy, doccano and ERASER."""
    from rationalizer.data.exchange_formats import convert as convert_file

    if to != "rationalizer" and target.exists():
        raise FileExistsError(f"{target} exists; choose another file")
    target.parent.mkdir(parents=True, exist_ok=True)
    count = convert_file(source, target, to, kind)
    out.print(f"{count} texts: {target}", markup=False)
