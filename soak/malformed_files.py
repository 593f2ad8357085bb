"""Write malformed tables of texts."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from soak.cases import Case

ROWS = [{"text": f"a lovely film number {k}", "label": "pos" if k % 2 else "neg"} for k in range(24)]
ODD_VALUES = [
    "",
    " ",
    None,
    "nan",
    "inf",
    0,
    -1,
    1e308,
    True,
    [],
    {},
    ["a"],
    "\x00",
    "\ud800",
    "�",
    "a" * 50_000,
    "<br />",
    '"',
]
COLUMNS = ["text", "label", "rationale_spans", "rationale_mask", "rationale_chars", "tokens", "premise", "hypothesis"]


def write_malformed(case: Case, folder: Path) -> Path:
    """Write a file of a random format, mostly with an error in it."""
    ending = case.pick(["csv", "csv", "tsv", "jsonl", "jsonl", "parquet", "csv.gz", "txt", "json", "xyz", ""])
    path = folder / (f"data.{ending}" if ending else "data")
    kind = case.pick(["cells", "cells", "columns", "bytes", "bytes", "shape", "folder", "format"])
    case.note(f"{path.name}: {kind}")
    if kind == "folder":
        path.mkdir()
        if case.chance(0.5):
            (path / "train.csv").write_bytes(_damaged(case, _as_csv(ROWS)))
        return path
    if kind == "shape":
        path.write_bytes(_odd_shape(case))
        return path
    rows = [dict(row) for row in ROWS[: int(case.random.integers(1, len(ROWS) + 1))]]
    if kind == "cells":
        for _ in range(int(case.random.integers(1, 4))):
            case.pick(rows)[case.pick(COLUMNS)] = case.pick(ODD_VALUES)
    if kind == "columns":
        old, new = case.pick(["text", "label"]), case.pick(["texts", "", "TEXT", "label", "text", "x\ny"])
        rows = [{new if name == old else name: value for name, value in row.items()} for row in rows]
    content = _content(case.pick(["csv", "jsonl"]) if kind == "format" else ending, rows, folder)
    path.write_bytes(_damaged(case, content) if kind == "bytes" else content)
    return path


def _content(ending: str, rows: list[dict], folder: Path) -> bytes:
    if ending == "parquet":
        names = list(dict.fromkeys(name for row in rows for name in row))
        columns = {name: [_plain(row.get(name)) for row in rows] for name in names}
        scratch = folder / "scratch"
        pq.write_table(pa.table(columns), scratch)
        return scratch.read_bytes()
    if ending in ("jsonl", "json", "txt"):
        return "".join(json.dumps(row) + "\n" for row in rows).encode()
    content = _as_csv(rows, "\t" if ending == "tsv" else ",")
    return gzip.compress(content) if ending == "csv.gz" else content


def _plain(value: object) -> str | None:
    return None if value is None else str(value).encode("utf-8", "replace").decode()


def _as_csv(rows: list[dict], separator: str = ",") -> bytes:
    """Write CSV without quotes, so that some values break the lines."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    lines = [separator.join(names), *(separator.join(str(row.get(name, "")) for name in names) for row in rows)]
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def _damaged(case: Case, content: bytes) -> bytes:
    changed = bytearray(content)
    kind = case.pick(["noise", "cut", "nul", "utf-16", "quote", "bom", "ends"])
    case.note(kind)
    if kind == "cut":
        return content[: int(case.random.integers(len(content)))]
    if kind == "utf-16":
        return content.decode("latin-1").encode("utf-16")
    if kind == "bom":
        return b"\xef\xbb\xbf" + content
    if kind == "ends":
        return content.replace(b"\n", case.pick([b"\r", b"\r\n\r\n", b"\x85", b"\x0b"]))
    for _ in range(int(case.random.integers(1, 30))):
        value = {"noise": int(case.random.integers(256)), "nul": 0, "quote": 34}[kind]
        changed[int(case.random.integers(len(changed)))] = value
    return bytes(changed)


def _odd_shape(case: Case) -> bytes:
    return case.pick(
        [
            b"",
            b"\n\n\n",
            b"text,label\n",
            b"text,label\na,b,c,d\n\ne\n",
            b"text,text,label\na,b,c\n",
            b'text,label\n"never closed,a\nb,c\n',
            b"[" * 100_000,
            b'{"text": ' * 50_000,
            b'[{"text": "a", "label": "b"}]',
            b'{"text": "a", "label": 1}\n{"text": "b"\n',
            b'{"text": "a", "text": "b", "label": "c"}\n',
            b'{"text": 1e999, "label": NaN}\n',
            b"null\n1\ntrue\n",
            b"," * 200_000,
            b"text,label\n" + b"a" * 3_000_000 + b",b\n",
            b"\x1f\x8b\x08\x00broken",
            b"PAR1" + b"\x00" * 100 + b"PAR1",
        ]
    )
