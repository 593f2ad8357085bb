"""`train`, `evaluate` and `explain` with several labels, and with several targets."""

import csv
import json

import pandas
import pytest

from rationalizer import Rationalizer
from tests.cli.calls import refused, run
from tests.test_multi_label import make_texts

SMALL = [f"--set={each}" for each in ("hidden=4", "epochs=2", "embeddings=none", "vector_size=4", "budget=3")]
TEXTS, LABELS, _ = make_texts(80, 0)


def write(path, names, rows):
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(names)
        writer.writerows(rows)
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("labels")


@pytest.fixture(scope="module")
def labelled(folder):
    """A run with labels like "food;service"."""
    rows = zip(TEXTS, map(";".join, LABELS), strict=True)
    data = write(folder / "labels.csv", ("text", "label"), rows)
    printed = run("train", data, "--task", "multi-label", *SMALL, "--out", folder / "labels").stdout
    assert "micro-F1" in printed
    assert "TF-IDF + logistic regression for each label" in printed
    assert all(f"│ {name}" in printed for name in ("food", "room", "service"))  # the table by label
    return folder / "labels"


@pytest.fixture(scope="module")
def targets(folder):
    """A run with a value and a class."""
    rows = [
        (text, 4.5 if "food" in own else 1.5, "yes" if "room" in own else "no")
        for text, own in zip(TEXTS, LABELS, strict=True)
    ]
    data = write(folder / "targets.csv", ("text", "stars", "room"), rows)
    assert "TF-IDF" in run("train", data, "--column", "label=stars,room", *SMALL, "--out", folder / "targets").stdout
    return folder / "targets"


def test_scores_of_each_label_are_stored(labelled, targets):
    stored = json.loads((labelled / "scores.json").read_text())
    assert list(stored["labels"]["dev"]) == ["food", "room", "service"]
    assert "average_precision" in stored["labels"]["dev"]["food"]
    linear = stored["baselines"]["dev"]["TF-IDF + logistic regression for each label"]
    assert 0 <= linear["micro_f1"] <= 1
    stored = json.loads((targets / "scores.json").read_text())["labels"]["dev"]
    assert "mse" in stored["stars"]
    assert "macro_f1" in stored["room"]


@pytest.mark.parametrize("kind", ["labelled", "targets"])
def test_evaluation_with_overview_and_report(kind, request, tmp_path):
    folder = request.getfixturevalue(kind)
    report, scores = tmp_path / "report.html", tmp_path / "scores.json"
    printed = run("evaluate", folder, "--overview", "--report", report, "--json", scores).stdout
    group = {"labelled": "food (", "targets": "stars: up to "}[kind]
    assert group in printed
    assert "Largest errors" in printed
    assert (
        list(json.loads(scores.read_text())["labels"])
        == {"labelled": ["food", "room", "service"], "targets": ["stars", "room"]}[kind]
    )
    page = report.read_text()
    assert "<h2>Labels</h2>" in page
    assert page.count("<details class=") >= 3  # a row for each label


def test_tables_have_a_column_for_each_rationale(labelled, targets, tmp_path):
    data = write(tmp_path / "new.csv", ("text",), [[text] for text in TEXTS[:3]])
    run("explain", labelled, "--file", data, "--out", tmp_path / "labels.csv")
    with (tmp_path / "labels.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    explained = Rationalizer.load(labelled).explain(TEXTS[:3])
    assert [json.loads(row["predicted"]) for row in rows] == [list(one.label) for one in explained]
    assert [row["rationale_room"] for row in rows] == [one.rationale_of("room") for one in explained]
    assert "probability" not in rows[0]
    run("explain", labelled, "--file", data, "--out", tmp_path / "labels.parquet")
    table = pandas.read_parquet(tmp_path / "labels.parquet")
    assert [list(names) for names in table.predicted] == [list(one.label) for one in explained]
    assert table.rationale_food.tolist() == [one.rationale_of("food") for one in explained]
    run("explain", targets, "--file", data, "--out", tmp_path / "targets.parquet")
    table = pandas.read_parquet(tmp_path / "targets.parquet")
    assert table.predicted_stars.dtype == float
    assert set(table.predicted_room) <= {"yes", "no"}
    assert table.probability_room.between(0.5, 1).all()


def test_card_has_scores_by_label(labelled, tmp_path):
    Rationalizer.load(labelled).save(tmp_path / "saved")
    card = (tmp_path / "saved" / "README.md").read_text()
    assert "By label, dev split:" in card
    assert "| service |" in card


def test_per_class(labelled, targets):
    drawn = run("explain", "sentiment", "--per-class", "A warm, funny film with a weak ending.").stdout
    rows = {line.split()[0]: line for line in drawn.splitlines() if "█" in line or "░" in line}
    assert "funny" in rows["positive"]
    assert "funny" not in rows["negative"]
    assert "food" in run("explain", labelled, "--per-class", TEXTS[0]).stdout
    assert "per_class" in refused("explain", targets, "--per-class", TEXTS[0])
    assert "Parquet" in refused("explain", labelled, "--per-class", "--file", "x.csv", "--out", "x.parquet")


def test_bad_rows_are_named(folder):
    for label, problem in (("food;food", "twice"), ("food;;room", "empty")):
        data = write(folder / "bad.csv", ("text", "label"), [("a b", "food"), ("c d", label), ("e f", "room")] * 5)
        message = refused("train", data, "--task", "multi-label", *SMALL, "--out", folder / "bad")
        assert "rows 2, 5, 8" in message
        assert problem in message
