"""Rows one at a time: the same as all at once, in memory that does not grow with the file."""

import gzip
import json
import tracemalloc

import pandas
import pytest

from rationalizer.data import DataError
from rationalizer.data.table_files import read_table, stream_table

ROWS = [{"text": f'row {k}, "quoted"\nand broken \u2028 off', "label": str(k % 3)} for k in range(2500)]
KINDS = ("csv", "tsv", "jsonl", "json", "parquet", "csv.gz", "jsonl.gz")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tables")
    frame = pandas.DataFrame(ROWS)
    frame.to_csv(folder / "rows.csv", index=False)
    frame.to_csv(folder / "rows.tsv", index=False, sep="\t")
    frame.to_parquet(folder / "rows.parquet")
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)
    (folder / "rows.jsonl").write_text(lines)
    (folder / "rows.json").write_text(json.dumps(ROWS))
    for name in ("rows.csv", "rows.jsonl"):
        (folder / f"{name}.gz").write_bytes(gzip.compress((folder / name).read_bytes()))
    return folder


@pytest.mark.parametrize("kind", KINDS)
def test_streamed_rows_equal_rows(folder, kind):
    stream = stream_table(folder / f"rows.{kind}")
    assert stream.columns == ("text", "label")
    assert list(stream.rows) == ROWS == read_table(folder / f"rows.{kind}").rows
    narrow = stream_table(folder / f"rows.{kind}", ["label", "absent"])
    assert next(narrow.rows) == {"label": "0"}


def test_columns_only_in_later_rows(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "a"}\n\n{"text": "b", "label": 1}\n')
    stream = stream_table(path)
    assert stream.columns == ("text",)
    assert list(stream.rows) == [{"text": "a"}, {"text": "b", "label": 1}]
    assert stream.columns == ("text", "label")
    assert read_table(path).columns == ("text", "label")


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("x.csv", "text,label\na,1\nb,2\nc\n", "row 3: 1 fields, but 2 in the header"),
        ("x.csv", 'text,label\na,1\nb,2\n"c"d,1\n', "row 3: broken quoting"),
        ("x.jsonl", '{"text": "a"}\n{"text": "b"}\n{"text": \n', "row 3: not valid JSON"),
        ("x.jsonl", '{"text": "a"}\n{"text": "b"}\n[1]\n', "row 3: a row must be a JSON object"),
    ],
)
def test_rows_before_a_bad_row_are_yielded(tmp_path, name, content, message):
    path = tmp_path / name
    path.write_text(content)
    rows = stream_table(path).rows
    assert [next(rows)["text"], next(rows)["text"]] == ["a", "b"]
    if "quoting" in message:  # nobody can tell where the next row begins
        with pytest.raises(DataError, match=message):
            next(rows)
    else:
        assert next(rows).error.problem.startswith(message.removeprefix("row 3: "))
    with pytest.raises(DataError, match=message):
        read_table(path)


def test_invalid_byte_error_names_the_line(tmp_path):
    path = tmp_path / "x.csv"
    path.write_bytes(b"text\n" + b"fine\n" * 20_000 + b"caf\xe9\n" + b"fine\n" * 10)
    rows = stream_table(path).rows
    with pytest.raises(DataError, match="line 20002: byte 0xe9 is not UTF-8"):
        list(rows)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "parquet"])
def test_memory_does_not_grow_with_the_file(tmp_path, kind):
    frame = pandas.DataFrame({"text": ["some words " * 20] * 40_000})
    path = tmp_path / f"rows.{kind}"
    if kind == "csv":
        frame.to_csv(path, index=False)
    elif kind == "jsonl":
        frame.to_json(path, orient="records", lines=True)
    else:
        frame.to_parquet(path, row_group_size=2000)
    tracemalloc.start()
    assert sum(1 for _ in stream_table(path).rows) == 40_000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 3_000_000  # all rows are more than 10 MB


def test_two_concurrent_streams(tmp_path):
    """One that ends must not disturb the other, whose fields are longer than the csv module takes by itself."""
    long = tmp_path / "long.csv"
    long.write_text("text\n" + "\n".join("x" * 200_000 for _ in range(3)) + "\n")
    short = tmp_path / "short.csv"
    short.write_text("text\na\n")
    rows = stream_table(long).rows
    next(rows)
    assert len(list(stream_table(short).rows)) == 1
    assert [len(row["text"]) for row in rows] == [200_000, 200_000]
