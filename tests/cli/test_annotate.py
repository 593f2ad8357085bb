"""`rationalizer annotate`: the file it opens, the labels to choose from, and the order of the texts."""

import json
from pathlib import Path

import pytest

from rationalizer import Rationalizer
from rationalizer.cli.annotate import open_annotations, order_by_usefulness
from rationalizer.data import Columns, ReadOptions
from tests.cli.calls import refused

FOOD = "Great food and kind staff."


def opened(folder, content, name="mine.csv", *, model=None, label="label", **options):
    path = folder / name
    path.write_text(content)
    file = open_annotations(path, None, ReadOptions(columns=Columns(label=label)), model, **options)
    assert [json.loads(line) for line in file.path.read_text().splitlines()][1:] == file.content.texts
    return file


def facts(file):
    header = file.content.header
    return header["task"], header["classes"], [row.get("label") for row in file.content.texts]


@pytest.mark.parametrize(
    ("content", "options", "expected"),
    [
        (f"text,label\n{FOOD},good\nCold.,bad\nA,\n", {}, ("classification", ["bad", "good"], ["good", "bad", None])),
        (f"text,label\n{FOOD},good\nA,\n", {"labels": "bad"}, ("classification", ["good", "bad"], ["good", None])),
        (f"text\n{FOOD}\n", {"labels": "a, b"}, ("classification", ["a", "b"], [None])),
        (f"text,label\n{FOOD},4.5\nCold.,1\n", {}, ("regression", [], [4.5, 1.0])),
        (
            f"text,label\n{FOOD},food;service\nCold.,food\nA,\n",
            {"task": "multi-label"},
            ("multi-label", ["food", "service"], [["food", "service"], ["food"], None]),
        ),
        (f"text\n{FOOD}\n", {"labels": "a,b", "task": "multi-label"}, ("multi-label", ["a", "b"], [None])),
        (
            f"text,food,staff\n{FOOD},1,0\nCold.,0,0\nA,,\n",
            {"label": "food,staff"},
            ("multi-label", ["food", "staff"], [["food"], [], None]),
        ),
    ],
)
def test_labels_to_choose_from(tmp_path, content, options, expected):
    file = opened(tmp_path, content, **options)
    assert facts(file) == expected
    assert file.content.header["multi"] == (expected[0] == "multi-label")
    again = open_annotations(file.path, None, ReadOptions(), None)  # without the options
    assert (again.path, again.content.header) == (file.path, file.content.header)
    assert len(again.content.texts) == len(file.content.texts)


def test_labels_of_a_model(tmp_path, spectra_run):
    model = Rationalizer.load(spectra_run)
    file = opened(tmp_path, "text,label\nlovely care,Positive\nmusty room,\n", model=model, labels="mixed")
    assert facts(file) == ("classification", ["negative", "positive", "mixed"], ["positive", None])
    with pytest.raises(ValueError, match=r"other.csv, row 2: .*'dull' is unknown; add it to --labels"):
        opened(tmp_path, "text,label\nlovely care,positive\nmusty room,dull\n", "other.csv", model=model)
    assert not Path(tmp_path / "other.annotated.jsonl").exists()


def test_bad_input(tmp_path):
    table = tmp_path / "mine.csv"
    table.write_text("text\nlovely care\n")
    assert "--labels" in refused("annotate", table)
    assert "needs a --model" in refused("annotate", table, "--labels", "a,b", "--order", "useful")
    table.write_text("text,food,stars\nlovely care,good,4.5\ncold,bad,1.5\n")
    assert "several targets" in refused("annotate", table, "--column", "label=food,stars")


def test_order_by_usefulness(tmp_path, spectra_run):
    model = Rationalizer.load(spectra_run)
    file = opened(tmp_path, "text,label\nlovely care,positive\nmusty room,\nthe bed,\n", model=model)
    ids = list(file.content.by_id)
    file.append(
        {"id": ids[2], "annotator": "Ana", "label": "a label that the model lacks", "rationale_chars": [[0, 3]]}
    )
    file.append({"id": ids[1], "annotator": "Ana", "not_enough": True})
    assert sorted(order_by_usefulness(file, model)) == sorted(ids)
