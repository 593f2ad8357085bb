"""`explain --file` and `train` on tables as people have them: nothing is lost, and what is wrong is said."""

import csv
import json
import subprocess
import sys

import pandas
import pytest

from rationalizer import Rationalizer
from rationalizer.cli.text_inputs import in_available_batches
from tests.cli.calls import refused, run

SMALL = ["--set", "hidden=4", "--set", "epochs=1", "--set", "embeddings=none", "--set", "vector_size=4"]


@pytest.fixture(scope="module")
def own_run(tmp_path_factory):
    """A model trained on columns of other names, in a file as Excel writes it."""
    folder = tmp_path_factory.mktemp("own")
    rows = "".join(f"{k};sehr schön, {k};gut\n{k};fad und öde;schlecht\n" for k in range(10))
    (folder / "train.csv").write_bytes(f"id;Bewertung;Urteil\n;;\n{rows}".encode("cp1252"))
    columns = ["--column", "text=Bewertung", "--column", "label=Urteil"]
    command = ["train", folder / "train.csv", *columns, *SMALL, "--out", folder / "run"]
    assert "--encoding cp1252" in refused(*command)
    assert "row 1: the label" in refused(*command, "--encoding", "cp1252")
    result = run(*command, "--encoding", "cp1252", "--skip-bad")
    assert "1 row skipped: row 1" in result.stderr
    return folder / "run"


def rows_of(path):
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_output_keeps_rows_and_columns(own_run, tmp_path):
    table = tmp_path / "new.csv"
    table.write_text('id,Bewertung,predicted,Urteil\n7,"sehr schön, ja",x,gut\n\n8,,y,\n9,fad,z,schlecht\n')
    run("explain", own_run, "--file", table, "--out", tmp_path / "out.csv")
    rows = rows_of(tmp_path / "out.csv")
    assert list(rows[0]) == [
        "id",
        "Bewertung",
        "predicted",
        "Urteil",
        "predicted_2",
        "probability",
        "probability_gut",
        "probability_schlecht",
        "rationale",
        "spans",
        "words",
        "warnings",
    ]
    assert [row["id"] for row in rows] == ["7", "", "8", "9"]
    assert [row["predicted"] for row in rows] == ["x", "", "y", "z"]
    assert [row["predicted_2"] != "" for row in rows] == [True, False, False, True]
    model = Rationalizer.load(own_run)
    assert rows[0]["predicted_2"] == model.predict(["sehr schön, ja"])[0]
    result = run("explain", own_run, "--file", table, "--out", tmp_path / "out.jsonl")
    assert result.stderr.endswith("2 explained, 2 without a text copied unchanged\n")
    found = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [one["input"]["id"] for one in found] == ["7", "", "8", "9"]
    assert [one.get("truth") for one in found] == ["gut", None, None, "schlecht"]
    assert [one["label"] is None for one in found] == [False, True, True, False]


@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_resume_with_empty_rows(own_run, tmp_path, form):
    table, out = tmp_path / "new.csv", tmp_path / f"out.{form}"
    table.write_text("id,Bewertung\n" + "1,sehr schön\n\n2,fad\n" * 20)
    command = ["explain", own_run, "--file", table, "--out", out, "--batch-size", 2]
    run(*command)
    whole = out.read_bytes()
    out.write_bytes(whole[: 2 * len(whole) // 3])
    assert "existed already" in run(*command, "--resume").stderr
    assert out.read_bytes() == whole
    table.write_text("id,Bewertung\n" + "1,sehr schön\n\n3,fad\n" * 20)
    out.write_bytes(whole)
    assert "record 3 of" in refused(*command, "--resume")


def test_bad_rows(own_run, tmp_path):
    table, out = tmp_path / "new.csv", tmp_path / "out.csv"
    table.write_text("id,Bewertung\n1,schön\n2,<br />\n3,a,b\n4,fad\n5,<br />\n")
    command = ["explain", own_run, "--file", table, "--out", out]
    said = refused(*command)
    assert "rows 2, 5: " in said
    assert "row 3: 3 fields" in said
    assert len(rows_of(out)) == 1
    result = run(*command, "--overwrite", "--skip-bad")
    assert "3 rows skipped: rows 2, 5" in result.stderr
    assert f"{out}: 2 explained\n" in result.stderr
    assert [(row["id"], row["predicted"] != "") for row in rows_of(out)] == [
        ("1", True),
        ("2", False),
        ("3", False),
        ("4", True),
        ("5", False),
    ]


def test_evaluate_and_excel(own_run, tmp_path):
    frame = pandas.DataFrame({"Bewertung": ["sehr schön", "fad"], "Urteil": ["gut", "schlecht"], "x": [1.5, None]})
    frame.to_excel(tmp_path / "new.xlsx", index=False)
    printed = run("evaluate", own_run, tmp_path / "new.xlsx", "--device", "cpu").stdout
    assert "seconds per epoch" not in printed
    assert "human rationale" not in printed
    run("explain", own_run, "--file", tmp_path / "new.xlsx", "--out", tmp_path / "out.csv")
    assert [(row["Bewertung"], row["x"]) for row in rows_of(tmp_path / "out.csv")] == [
        ("sehr schön", "1.5"),
        ("fad", ""),
    ]


def test_late_json_columns(own_run, tmp_path):
    table = tmp_path / "new.jsonl"
    table.write_text('{"Bewertung": "fad"}\n{"Bewertung": "gut", "more": [1, {"a": "ä"}]}\n')
    run("explain", own_run, "--file", table, "--out", tmp_path / "out.csv")
    assert [row["more"] for row in rows_of(tmp_path / "out.csv")] == ["", '[1, {"a": "ä"}]']


def test_no_header(own_run, tmp_path):
    table = tmp_path / "new.tsv"
    table.write_text("1\tsehr schön\n2\tfad\n")
    assert "--no-header" in refused("explain", own_run, "--file", table)
    command = ["explain", own_run, "--file", table, "--no-header", "--column", "text=2", "--out", tmp_path / "out.csv"]
    run(*command)
    assert list(rows_of(tmp_path / "out.csv")[0])[:2] == ["1", "2"]


def test_task_option(tmp_path):
    table = tmp_path / "x.csv"
    table.write_text("text,label\n" + "".join(f"film {k},{k}\n" for k in range(30)))
    assert "are they ids?" in refused("train", table, *SMALL, "--out", tmp_path / "run")
    assert "regression" in run("train", table, *SMALL, "--task", "regression", "--out", tmp_path / "run").stdout
    assert "'ranking'" in refused("train", table, "--task", "ranking")
    table.write_text("text,label\n" + "film,good\n" * 20)
    assert "'good'" in refused("train", table, *SMALL, "--out", tmp_path / "one")


def test_stdin_is_answered_line_by_line(own_run):
    command = [sys.executable, "-m", "rationalizer", "explain", str(own_run), "--format", "jsonl"]
    process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    for text in ("sehr schön", "", "fad"):
        process.stdin.write(f"{text}\n")
        process.stdin.flush()
        assert json.loads(process.stdout.readline())["text"] == text
    process.stdin.close()
    assert process.stdout.read() == ""
    assert process.wait(30) == 0
    process.stdout.close()


def test_available_batches():
    def failing():
        yield from range(10)
        raise ValueError("broken")

    assert [item for batch in in_available_batches(iter(range(100)), 7) for item in batch] == list(range(100))
    assert all(len(batch) <= 7 for batch in in_available_batches(iter(range(100)), 7))
    seen = []

    def take_all():
        for batch in in_available_batches(failing(), 4):
            seen.extend(batch)

    with pytest.raises(ValueError, match="broken"):
        take_all()
    assert seen == list(range(10))  # what came before the error is not lost
