"""What `rationalizer serve` gives its page: the model's own texts, or a file's; a whole dataset."""

from fastapi.testclient import TestClient

from rationalizer.cli.serve import _dataset_views, _make_app
from rationalizer.data import ReadOptions
from rationalizer.models import TrainedModel


def page_of(runs, examples=None, options=None):
    return TestClient(
        _make_app(runs, examples, ReadOptions(), None, None, "cpu", options or {}), base_url="http://localhost"
    )


def test_examples_of_the_models(spectra_run, sparsemax_run, make_run):
    own = TrainedModel.load(spectra_run).examples
    assert page_of([spectra_run, sparsemax_run]).get("/examples").json() == {"examples": list(own)}
    private = make_run("spectra", "private", epochs=1, keep_examples=0)
    assert not (private / "examples.json").exists()
    assert page_of([private]).get("/examples").json() == {"examples": []}
    assert page_of([private, spectra_run]).get("/examples").json() == {"examples": list(own)}


def test_examples_of_a_file(spectra_run, tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text("text\n" + "\n".join(f"lovely care {k}" for k in range(9)))
    assert page_of([spectra_run], table).get("/examples").json()["examples"] == [f"lovely care {k}" for k in range(6)]


def test_dataset_view(spectra_run, tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text("text\nlovely care\nmusty room\n")
    views = _dataset_views([spectra_run], table, ReadOptions(), "cpu")
    assert "Words selected per prediction" in views["spectra"]
    assert "Classes" not in views["spectra"]
    table.write_text("text,label\nlovely care,positive\nmusty room,negative\n")
    views = _dataset_views([spectra_run], table, ReadOptions(), "cpu")
    assert {"Classes", "Calibration", "Scores"} <= set(views["spectra"].replace("<", ">").split(">"))
    assert page_of([spectra_run], options={"views": views}).get("/views/spectra").text == views["spectra"]
