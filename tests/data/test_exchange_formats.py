import json
from typing import get_args

import pytest

from rationalizer.cli.convert import Format as OfCommand
from rationalizer.data import DataError
from rationalizer.data.annotation_file import AnnotationFile, read_annotations, text_id, text_row
from rationalizer.data.exchange_formats import Format, convert, detect_format
from rationalizer.data.single_examples import example_from_known_row, make_example
from tests.cli.calls import refused, run

HEADER = {"pairs": False, "multi": False, "task": "classification", "rule": "words", "classes": ["bad", "good"]}
FIRST, SECOND = "A 👍 warm, café-bar film!", "Dull."


@pytest.fixture
def file(tmp_path):
    texts = [text_row(make_example(text=text), label) for text, label in ((FIRST, "good"), (SECOND, "bad"))]
    file = AnnotationFile.open(tmp_path / "own.jsonl", HEADER, texts)
    for person, spans in (("Ana", [[4, 8], [19, 23]]), ("Ben", [[10, 18]])):
        file.append({"id": text_id([FIRST]), "annotator": person, "label": "bad", "rationale_chars": spans})
    return file


def merged(content):
    """Each text with its label and its annotated tokens."""
    found = {}
    for row in content.rows():
        example = example_from_known_row(row, None, "words")
        found[" ".join(example.tokens)] = (row["label"], [example.tokens[k] for k in example.annotated])
    return found


@pytest.mark.parametrize("kind", [kind for kind in get_args(Format) if kind != "rationalizer"])
def test_there_and_back(tmp_path, file, kind):
    other = tmp_path / "other" / ("tasks.json" if kind == "label-studio" else "rows.jsonl")
    other.parent.mkdir()
    assert convert(file.path, other, kind) == 2
    assert detect_format(other) == kind
    convert(other, tmp_path / "back.jsonl", "rationalizer")
    back = read_annotations(tmp_path / "back.jsonl")
    assert merged(back) == merged(file.content)
    assert sum(map(bool, back.people.values())) == 1  # nobody has annotated the second text
    if kind in ("label-studio", "prodigy"):  # the others have no annotators
        assert [row["annotator"] for row in back.people[text_id([FIRST])].values()] == ["Ana", "Ben"]
    convert(other, tmp_path / "back.jsonl", "rationalizer")  # again, into the same file
    assert merged(read_annotations(tmp_path / "back.jsonl")) == merged(file.content)


def read(tmp_path, content, name="in.jsonl"):
    (tmp_path / name).write_text(content, encoding="utf-8")
    convert(tmp_path / name, tmp_path / "out.jsonl", "rationalizer")
    return read_annotations(tmp_path / "out.jsonl")


def test_exports_as_the_tools_write_them(tmp_path):
    studio = {
        "id": 7,
        "data": {"review": FIRST},
        "annotations": [
            {
                "completed_by": 3,
                "result": [
                    # as a browser counts, which takes the emoji for two
                    {"type": "labels", "value": {"start": 5, "end": 9, "text": "warm", "labels": ["Evidence"]}},
                    {"type": "choices", "value": {"choices": ["good"]}},
                ],
            },
            {"was_cancelled": True, "completed_by": 4, "result": []},
        ],
        "predictions": [],
    }
    assert list(merged(read(tmp_path, json.dumps([studio]), "in.json")).values()) == [("good", ["warm"])]


def test_doccano_with_classes_as_span_labels(tmp_path):
    rows = [{"id": 1, "text": SECOND, "label": [[0, 4, "bad"]]}, {"id": 2, "text": FIRST, "label": []}]
    content = read(tmp_path, "".join(json.dumps(row) + "\n" for row in rows))
    assert merged(content) == {"Dull .": ("bad", ["Dull"])}
    assert len(content.by_id) == 2


def test_prodigy_leaves_out_what_was_rejected(tmp_path):
    rows = [
        {"text": SECOND, "spans": [{"start": 0, "end": 4, "label": "X"}], "answer": "accept", "accept": ["bad"]},
        {"text": FIRST, "spans": [], "answer": "reject"},
    ]
    assert merged(read(tmp_path, "".join(json.dumps(row) + "\n" for row in rows))) == {"Dull .": ("bad", ["Dull"])}


def test_errors_name_the_place(tmp_path, file):
    (tmp_path / "odd.jsonl").write_text('{"text": "a", "label": "b"}\n')
    assert "--from" in refused("convert", tmp_path / "odd.jsonl", tmp_path / "x.jsonl")
    (tmp_path / "bad.jsonl").write_text('{"text": "ab", "spans": [{"start": 0, "end": 9}], "answer": "accept"}\n')
    with pytest.raises(DataError, match="does not lie within"):
        convert(tmp_path / "bad.jsonl", tmp_path / "y.jsonl", "rationalizer")
    assert "exists" in refused("convert", file.path, tmp_path / "bad.jsonl", "--to", "prodigy")
    assert "2 texts" in run("convert", file.path, tmp_path / "new.json", "--to", "label-studio").output
    assert get_args(OfCommand) == get_args(Format)
