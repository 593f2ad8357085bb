"""The scripts that repeat the measurements take hours; that all they ask of the package is there takes a moment."""

import ast
import runpy
from pathlib import Path

import pytest

SCRIPTS = sorted((Path(__file__).parents[1] / "scripts").glob("*.py"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_every_script_finds_what_it_imports_and_tells_how_it_is_called(path):
    assert f"python scripts/{path.name}" in (ast.get_docstring(ast.parse(path.read_text())) or "")
    assert callable(runpy.run_path(str(path))["main"])


def test_all_of_beer_is_what_no_column_divides(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    from rationalizer.data import load

    here = runpy.run_path(str(next(path for path in SCRIPTS if path.stem == "beer_ridge")))
    rows = {
        "tokens": [["a", "golden", "head"], ["sour"], ["thin", "foam"]],
        "appearance": [0.9, 0.4, 0.2],
        "aspect": ["appearance", "taste", "appearance"],
    }
    (tmp_path / "own").mkdir()
    for split in ("train", "dev", "annotated_dev"):
        pq.write_table(pa.table(rows), tmp_path / "own" / f"{split}.parquet")
    here["copy_all_rows"](tmp_path / "own", tmp_path / "all")
    with pytest.raises(SystemExit, match="own"):
        here["copy_all_rows"](tmp_path / "own", tmp_path / "all" / ".." / "own")
    assert [example.label for example in load("beer", data_dir=tmp_path / "own").train] == [0.9, 0.2]
    assert [example.label for example in load("beer", data_dir=tmp_path / "all").train] == [0.9, 0.4, 0.2]
