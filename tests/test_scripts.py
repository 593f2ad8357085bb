"""Check that the measurement scripts, which take hours to run, can be imported and document their command line."""

import ast
import runpy
from pathlib import Path

import pytest

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
