"""Check that the measurement scripts, which take hours to run, can be imported and document their command line."""

import ast
import re
import runpy
import sys
from pathlib import Path

import pytest

from rationalizer.data import generated_reviews

SCRIPTS = sorted((Path(__file__).parents[1] / "scripts").glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_scripts_are_importable_and_documented(path, monkeypatch):
    monkeypatch.syspath_prepend(path.parent)  # as in `python scripts/NAME.py`
    assert f"python scripts/{path.name}" in (ast.get_docstring(ast.parse(path.read_text())) or "")
    assert callable(runpy.run_path(str(path))["main"])


def test_copy_all_rows_of_beer(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    from rationalizer.data import load

    script = runpy.run_path(str(next(path for path in SCRIPTS if path.stem == "beer_ridge")))
    rows = {
        "tokens": [["a", "golden", "head"], ["sour"], ["thin", "foam"]],
        "appearance": [0.9, 0.4, 0.2],
        "aspect": ["appearance", "taste", "appearance"],
    }
    (tmp_path / "own").mkdir()
    for split in ("train", "dev", "annotated_dev"):
        pq.write_table(pa.table(rows), tmp_path / "own" / f"{split}.parquet")
    script["copy_all_rows"](tmp_path / "own", tmp_path / "all")
    with pytest.raises(SystemExit, match="own"):
        script["copy_all_rows"](tmp_path / "own", tmp_path / "all" / ".." / "own")
    assert [example.label for example in load("beer", data_dir=tmp_path / "own").train] == [0.9, 0.2]
    assert [example.label for example in load("beer", data_dir=tmp_path / "all").train] == [0.9, 0.4, 0.2]


@pytest.fixture
def make_table(tmp_path, monkeypatch, capsys):
    """Call scripts/tables.py with a small model on small copies of Hotels and HateXplain; returns what it prints."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    corpus = generated_reviews(train=24, dev=12, test=0)
    for split, examples in (("train", corpus.train), ("dev", corpus.dev)):
        texts = {"tokens": [list(example.tokens) for example in examples], "label": [e.label for e in examples]}
        people = [[[0, 1, *[0] * (len(row) - 2)], [1, 1, *[0] * (len(row) - 2)]] for row in texts["tokens"]]
        union = {"annotator_rationales": people, "rationale_union": [masks[1] for masks in people]}
        for folder, table in (("hotels_location", texts), ("hatexplain", texts | union)):
            (tmp_path / "data" / folder).mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table(table), tmp_path / "data" / folder / f"{split}.parquet")
    small = ["--set=epochs=1", "--set=hidden=4", "--set=embeddings=none"]
    monkeypatch.syspath_prepend(SCRIPTS[0].parent)

    def call(name, *options):
        command = ["tables.py", name, tmp_path / "data", "--out", tmp_path / "study", "--device=cpu", *small, *options]
        monkeypatch.setattr(sys, "argv", list(map(str, command)))
        runpy.run_path(str(SCRIPTS[0].parent / "tables.py"), run_name="__main__")
        return capsys.readouterr().out

    return call


def test_a_table_is_made_and_resumed(make_table, tmp_path):
    assert "no finished runs" in make_table("hotels", "--finished")
    first = make_table("hotels", "--only=spectra,full-text", "--seeds=0")
    assert first.count("finished") == 2
    records = sorted(tmp_path.rglob("scores.json"))
    written = [path.stat().st_mtime_ns for path in records]
    assert len(records) == 2
    second = make_table("hotels", "--only=spectra,full-text", "--seeds=0,1")
    assert second.count("finished") == 2
    assert [path.stat().st_mtime_ns for path in records] == written
    table = (tmp_path / "study" / "hotels.md").read_text(encoding="utf-8")
    assert "rebuilt" in table
    rows = [line for line in table.splitlines() if line.startswith("| ")]
    assert [row.split(" | ")[0].strip("| ") for row in rows] == ["method", "spectra", "full-text"]
    assert all("/" in row for row in rows[1:])
    assert make_table("hotels", "--finished").strip() == table.strip()


def test_agreement_against_the_budget(make_table, tmp_path):
    make_table("hatexplain-budgets", "--only=spectra", "--seeds=0")
    table = (tmp_path / "study" / "hatexplain-budgets.md").read_text(encoding="utf-8")
    assert [line.split(" | ")[1] for line in table.splitlines() if line.startswith("| spectra")] == [
        *("10%", "20%", "30%", "40%")
    ]
    chart = (tmp_path / "study" / "hatexplain-budgets.svg").read_text(encoding="utf-8")
    assert ">people<" in chart


def test_tables_of_the_results_exist(monkeypatch):
    monkeypatch.syspath_prepend(SCRIPTS[0].parent)
    page = (SCRIPTS[0].parents[1] / "docs" / "results.md").read_text(encoding="utf-8")
    named = set(re.findall(r"scripts/tables\.py ([a-z-]+) DATA", page))
    assert {"sst", "hans", "minilm-beer"} <= named
    assert named <= {*runpy.run_path(str(SCRIPTS[0].parent / "tables.py"))["TABLES"], "hans"}


def test_unfaithful_scores_are_in_a_column(monkeypatch):
    from rationalizer.compare.result_tables import ResultRow, markdown
    from rationalizer.metrics import Summary

    monkeypatch.syspath_prepend(SCRIPTS[0].parent)
    script = runpy.run_path(str(SCRIPTS[0].parent / "tables.py"))
    scores = {"budget": 0.8, "budget:not-faithful": 0.85, "softmax:not-faithful": 0.9}
    rows = [
        ResultRow("snli", name, None, "dev", (0,), {"macro_f1": Summary.from_values([value])}, {}, {}, pairs=True)
        for name, value in scores.items()
    ]
    merged = script["beside"](rows)
    lines = markdown(merged, {}, script["columns"](script["TABLES"]["snli"], merged)).splitlines()
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| ")]
    assert table == [
        ["method", "macro-F1", "macro-F1, not faithful"],
        ["budget", ".800", ".850"],
        ["softmax:not-faithful", ".900", ""],
    ]
