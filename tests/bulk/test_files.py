"""Explain one file into one Parquet file, and many into shards that can be resumed."""

import csv
import json
import os
import sys
from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pytest
from pyarrow import parquet

from rationalizer import Rationalizer
from rationalizer.bulk import BulkResult, Explainer, explain_files
from rationalizer.bulk.chunks import split_file
from rationalizer.bulk.filesystems import find_files
from rationalizer.bulk.shards import ShardFolder
from rationalizer.data import Columns, DataError
from rationalizer.training.folder_lock import lock_folder
from tests.bulk.conftest import ROWS
from tests.cli.calls import refused, run

REVIEW = Columns(text="review")


@pytest.fixture
def files(table, tmp_path):
    """Two Parquet files, of several row groups, in two folders."""
    for name in ("one.parquet", "more/two.parquet"):
        path = tmp_path / "in" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        parquet.write_table(table, path, row_group_size=30)  # not aligned with shards
    return tmp_path / "in"


def explained(files, out, model, **how):
    return explain_files(files, out, model, **{"columns": REVIEW, "rows": 50, **how})


def test_every_row_once_for_any_row_groups(files, table, small, tmp_path):
    out = tmp_path / "out"
    done = explained(files, out, small)
    assert done == BulkResult(explained=2 * (ROWS - 2), empty=4, written=6)
    names = [f"{file}-0000{k}.parquet" for file in ("more/two.parquet", "one.parquet") for k in range(3)]
    assert sorted(str(path.relative_to(out)) for path in out.rglob("*") if path.is_file()) == names
    for file in ("more/two.parquet", "one.parquet"):
        shards = [parquet.read_table(out / f"{file}-0000{k}.parquet") for k in range(3)]
        assert [shard.num_rows for shard in shards] == [50, 50, 20]
        assert pa.concat_tables(shards).select(table.schema.names).equals(table)


@pytest.mark.parametrize("ending", ["parquet", "csv", "jsonl"])
def test_parquet_and_csv_outputs_are_equal(spectra_run, table, tmp_path, ending):
    kept = table.drop(["when", "predicted"] if ending != "csv" else ["when", "predicted", "tags"])
    file = tmp_path / f"in.{ending}"
    if ending == "parquet":
        parquet.write_table(kept, file)
    elif ending == "jsonl":
        file.write_text("".join(json.dumps(row) + "\n" for row in kept.to_pylist()))
    else:
        kept.to_pandas().to_csv(file, index=False)
    for out in ("out.csv", "out.parquet"):
        run("explain", spectra_run, "--file", file, "--column", "text=review", "--out", tmp_path / out)
    with (tmp_path / "out.csv").open(newline="") as lines:
        expected = list(csv.DictReader(lines))
    found = parquet.read_table(tmp_path / "out.parquet")
    assert found.schema.field("id").type == (pa.string() if ending == "csv" else pa.int64())
    rows = found.to_pylist()
    assert len(rows) == len(expected) == ROWS
    assert list(rows[0]) == list(expected[0])
    for row, cells in zip(rows, expected, strict=True):
        assert (row["predicted"] or "", row["rationale"] or "") == (cells["predicted"], cells["rationale"])
        assert (row["review"] or "") == cells["review"]
        assert row["spans"] == (json.loads(cells["spans"]) if cells["spans"] else None)
        assert float(row["probability"] or 0) == pytest.approx(float(cells["probability"] or 0), abs=1e-5)


def test_resume_writes_missing_shards(files, table, small, tmp_path):
    out = tmp_path / "out"
    explained(files, out, small)
    shards = sorted(out.rglob("*.parquet"))
    before = {path: path.read_bytes() for path in shards}
    (out / ".one.parquet-00001.parquet.0123456789abcdef0123456789abcdef.tmp").write_bytes(b"half")
    shards[0].unlink()
    shards[1].write_bytes(before[shards[1]][:1000])  # the disk was full
    made = {path: path.stat().st_mtime_ns for path in shards[2:]}
    done = explained(files, out, small, resume=True)
    assert replace(done, notes=()) == BulkResult(explained=98, empty=2, written=2, existing=4)
    assert [f"{shards[1]} was damaged" in note for note in done.notes] == [True]
    assert {path: path.stat().st_mtime_ns for path in shards[2:]} == made
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before
    # A changed file is explained again.
    parquet.write_table(table.slice(0, 60), files / "one.parquet")
    with pytest.raises(ValueError, match="00002"):
        explained(files, out, small, resume=True)
    (out / "one.parquet-00002.parquet").unlink()
    assert explained(files, out, small, resume=True) == BulkResult(explained=58, empty=2, written=2, existing=3)


def test_resume_finds_changed_bytes(small, tmp_path):
    source, out = tmp_path / "new.csv", tmp_path / "out"
    source.write_text("id,text\n1,lovely care\n2,awful slop\n")
    assert explain_files(source, out, small).written == 1
    (shard,) = out.glob("*.parquet")
    content, table = shard.read_bytes(), parquet.read_table(shard)
    flips = np.random.default_rng(0).integers(8, size=len(content))
    folder = ShardFolder(str(out), json.loads(table.schema.metadata[b"rationalizer"])["made by"])
    (chunk,) = split_file(*find_files(str(source)), Explainer(small), 100, None)
    assert folder.check(chunk) == "finished"
    damaged = b""
    for k, bit in enumerate(flips.tolist()):
        changed = bytearray(content)
        changed[k] ^= 1 << bit
        shard.write_bytes(changed)
        try:
            state = folder.check(chunk)
        except FileExistsError:  # no longer known as a shard
            continue
        if state == "finished":  # the byte belongs to a statistic or a comment
            assert parquet.read_table(shard).equals(table)
        elif state == "damaged":
            damaged = bytes(changed)
    shard.write_bytes(damaged)
    done = explain_files(source, out, small, resume=True)
    assert (done.written, done.existing) == (1, 0)
    assert "was damaged" in done.notes[0]
    assert shard.read_bytes() == content


def test_resume_keeps_foreign_files(small, tmp_path):
    source, out = tmp_path / "new.csv", tmp_path / "out"
    source.write_text("id,text\n1,lovely care\n2,awful slop\n")
    explain_files(source, out, small)
    (shard,) = out.glob("*.parquet")
    for write in (lambda: parquet.write_table(pa.table({"a": [1]}), shard), lambda: shard.write_text("my notes")):
        write()
        mine = shard.read_bytes()
        with pytest.raises(FileExistsError, match=r"was not written by this command; remove it"):
            explain_files(source, out, small, resume=True)
        assert shard.read_bytes() == mine


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_rows_in_conflict_with_constraints(spectra_run, ending, tmp_path):
    model = Rationalizer.load(spectra_run)
    model.budget, model.constraints = 1, ["must=words:care,lovely"]
    rows = ["Slow staff.", "", *["lovely care", "awful slop"] * 10]
    source = tmp_path / f"new.{ending}"
    table = pa.table({"text": rows})
    (parquet.write_table if ending == "parquet" else pyarrow.csv.write_csv)(table, source)
    with pytest.raises(DataError, match=r"row 3 \('lovely care'\) .*skip such rows with --skip-bad"):
        explain_files(source, tmp_path / "out", model, batch_size=1)
    done = explain_files(source, tmp_path / "out", model, batch_size=1, skip_bad=True, resume=True)
    assert (done.explained, done.empty, done.written) == (11, 1, 1)
    assert f"{source}: 10 rows skipped: rows 3, 5, 7, 9" in done.notes[0]
    found = parquet.read_table(next((tmp_path / "out").glob("*.parquet")))
    assert found.column("text").to_pylist() == rows
    explained = [label is not None for label in found.column("predicted").to_pylist()]
    assert explained == ["s" in text for text in rows]


def test_shards_of_another_model_are_an_error(files, small, sparsemax_run, tmp_path):
    out = tmp_path / "out"
    explained(files / "one.parquet", out, small)
    with pytest.raises(FileExistsError, match="--resume"):
        explained(files / "one.parquet", out, small)
    with pytest.raises(ValueError, match="another model"):
        explained(files / "one.parquet", out, sparsemax_run, resume=True)
    assert explained(files / "one.parquet", out, sparsemax_run, overwrite=True, rows=70).written == 2
    assert len(list(out.iterdir())) == 2
    (out / "mine.parquet").write_bytes((files / "one.parquet").read_bytes())
    with pytest.raises(FileExistsError, match="mine"):
        explained(files / "one.parquet", out, small, overwrite=True)
    assert len(list(out.iterdir())) == 3


def test_bad_row_fails_only_its_shard(small, tmp_path):
    for name, rows in {
        "a": ['{"text": "good"}'],
        "b": ['{"text": "bad"}', '{"text": 5}'],
        "c": ['{"text": ""}'],
    }.items():
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows))
    source, out = f"{tmp_path}/*.jsonl", tmp_path / "out"
    with pytest.raises(DataError, match=r"1 of 3 .*b\.jsonl, row 2: .*--resume"):
        explain_files(source, out, small)
    assert sorted(path.name for path in out.iterdir()) == ["a.jsonl-00000.parquet", "c.jsonl-00000.parquet"]
    done = explain_files(source, out, small, skip_bad=True, resume=True)
    assert (done.explained, done.empty, done.existing) == (1, 0, 2)
    assert "b.jsonl: 1 row skipped: row 2" in done.notes[0]
    assert parquet.read_table(out / "b.jsonl-00000.parquet").column("text").to_pylist() == ["bad", "5"]


def test_column_types_of_json(small, tmp_path):
    rows = [
        {"text": "good \ud83d", "a": 1, "b": 1, "c": {"x": 1}},
        {"text": "bad", "a": 2.5, "b": "z", "d": [1]},
        {"e": None},
    ]
    (tmp_path / "in.jsonl").write_text("\n".join(map(json.dumps, rows)))
    explain_files(tmp_path / "in.jsonl", tmp_path / "out", small)
    found = parquet.read_table(tmp_path / "out")
    assert found.select(["a", "b", "c", "d", "e"]).to_pydict() == {
        "a": [1.0, 2.5, None],
        "b": ["1", "z", None],
        "c": ['{"x": 1}', None, None],
        "d": [None, [1], None],
        "e": [None, None, None],
    }


def test_find_files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("a.csv", "b.jsonl", "c/d.parquet", "c/e/f.csv", "notes.md", ".g.csv", "_h/i.csv", "[x].csv"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()

    def names(pattern):
        return [found.relative for found in find_files(pattern)]

    assert names(".") == names(str(tmp_path)) == ["[x].csv", "a.csv", "b.jsonl", "c/d.parquet", "c/e/f.csv"]
    assert names("*.csv") == ["[x].csv", "a.csv"]
    assert names("[ab].*") == ["a.csv", "b.jsonl"]
    assert names("[x].csv") == ["[x].csv"]
    assert names("c/*/*.csv") == ["e/f.csv"]
    assert names("**/*.csv") == ["[x].csv", "a.csv", "c/e/f.csv"]
    assert names(f"file://{tmp_path}/c") == ["d.parquet", "e/f.csv"]
    for nothing in ("no.csv", "*.xlsx", "nowhere/*.csv"):
        with pytest.raises(DataError, match="no such file"):
            find_files(nothing)
    with pytest.raises(DataError, match="cannot be reached"):
        find_files("what://is/this")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["a", "--out", "x.parquet"], "--file"),
        (["--file", "*.csv"], "--out"),
        (["--file", "*.csv", "--out", "x.csv"], "x.csv"),
        (["--file", "*.csv", "--out", "x", "--format", "html"], "--out"),
        (["--file", ".", "--out", "./in"], "lies in"),
        (["--file", "in", "--out", "x", "--resume", "--overwrite"], "--overwrite"),
        (["--file", "*.csv", "--out", "x", "--workers", "2"], "--workers"),
        (["--file", "in/a.csv", "--shard-rows", "2"], "--shard-rows"),
        (["a", "--engine", "spark"], "'spark'"),
        (["a", "--engine", "ray"], "--file"),
        (
            ["--file", "in/a.csv", "--engine", "ray", "--out", "x", "--device", "cuda"],
            "--gpus",
        ),
        (["--file", "in/a.csv", "--out", "x.csv", "--gpus", "1"], "--gpus"),
        (["--file", "in", "--column", "text=b", "--out", "x"], "'b'"),
    ],
)
def test_bad_input(spectra_run, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "a.csv").write_text("text\ngood\n")
    (tmp_path / "b.csv").write_text("text\ngood\n")
    assert message in refused("explain", spectra_run, *arguments)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["b.csv", "in"]


def test_missing_ray_is_named(spectra_run, tmp_path, monkeypatch):
    (tmp_path / "a.csv").write_text("text\ngood\n")
    monkeypatch.setitem(sys.modules, "ray", None)
    said = refused("explain", spectra_run, "--file", tmp_path, "--out", tmp_path.parent / "x", "--engine", "ray")
    assert 'pip install ".[ray]"' in said
    assert not (tmp_path.parent / "x").exists()


def test_uris(files, small, tmp_path):
    """As for S3: files that are not Parquet are copied first, and URIs may have options."""
    (files / "three.jsonl").write_text('{"review": "good"}\n{"review": 5}\n')
    source, out = f"file://{files}?use_mmap=true", f"file://{tmp_path}/out?use_mmap=true"
    with pytest.raises(DataError, match=r"1 of 7 shards .*in/three\.jsonl\?use_mmap=true, row 2: "):
        explained(source, out, small)
    assert len(list((tmp_path / "out").rglob("*.parquet"))) == 6
    done = explained(f"file://{files}/*.parquet?use_mmap=true", f"{tmp_path}/other", small)
    assert done == BulkResult(explained=ROWS - 2, empty=2, written=3)


def test_folder_is_locked(files, small, tmp_path):
    with lock_folder(tmp_path / "out"), pytest.raises(OSError, match=f"in use by process {os.getpid()}"):
        explained(files, tmp_path / "out", small)
