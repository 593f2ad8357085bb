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


def studio(text, *results, person: object = 3, **data):
    annotations = [{"completed_by": person, "result": result} for result in results]
    return {"id": 7, "data": {**data, "review": text}, "annotations": annotations, "predictions": []}


def region(start, end, text, **more):
    return {
        "id": "a",
        "type": "labels",
        "value": {"start": start, "end": end, "text": text, "labels": ["Why"], **more},
    }


def test_label_studio(tmp_path):
    first = studio(
        FIRST,
        # Positions as a browser counts, which takes the emoji for two; a click left an empty region.
        [
            region(5, 9, "warm"),
            region(5, 5, ""),
            {"from_id": "a", "to_id": "b", "type": "relation", "direction": "right", "labels": []},
            {"type": "choices", "value": {"start": 5, "end": 9, "text": "warm", "choices": ["of the region"]}},
            {"type": "choices", "value": {"choices": ["good"]}},
            {"type": "textarea", "value": {"text": ["a comment"]}},
        ],
        source="a",  # another string
    )
    first["annotations"].append({"was_cancelled": True, "completed_by": 4, "result": [region(0, 1, "A")]})
    again = studio("One\ntwo three", [region(0, 13, "One\\ntwo three")], [region(0, 7, "One\\ntwo")])
    again["annotations"][1]["completed_by"] = again["annotations"][0]["completed_by"] = {"id": 5, "email": ""}
    place = "/p[1]/text()[1]"  # in an HTML document
    page = region(place, place, "here", globalOffsets={"start": 4, "end": 8})
    found = read(tmp_path, json.dumps([first, again, studio("Not here", [page])]), "in.json")
    assert [(row.get("label"), row["rationale_chars"]) for row in found.rows()] == [("good", [[[4, 8]]])]
    assert [found.merge(row)["rationale_chars"] for row in found.texts] == [[[[4, 8]]], [[[0, 7]]], [[[4, 8]]]]
    assert {name for people in found.people.values() for name in people} == {"3", "5"}


@pytest.mark.parametrize(
    ("task", "problem"),
    [
        (studio("Not here", [region("/p[1]/text()[1]", "/p[1]/text()[1]", "here")]), "plain text"),
        (studio("Not here", [region(0, 4, "here")]), "'here' is not at"),
        (studio("Not here", [region(4, 80, None)]), "does not lie within"),
        ({"data": {"image": 1}, "annotations": []}, "no text"),
    ],
)
def test_label_studio_regions_that_are_not_in_the_text(tmp_path, task, problem):
    with pytest.raises(DataError, match=rf"in.json, row 2: .*{problem}"):
        read(tmp_path, json.dumps([studio("Fine", []), task]), "in.json")


def test_label_studio_json_min(tmp_path):
    with pytest.raises(DataError, match="export the project as JSON"):
        read(tmp_path, json.dumps([{"text": "a", "annotation_id": 1, "lead_time": 2.5, "label": []}]), "in.json")


def lines(*rows):
    return "".join(json.dumps(row) + "\n" for row in rows)


@pytest.mark.parametrize(
    "row",
    [
        {"label": [[0, 4, "bad"]]},
        {"labels": [[0, 4, "bad"], [5, 5, "bad"]]},
        {"entities": [[0, 4, "bad"]], "cats": {"bad": 0.9, "good": 0.1}},  # as spaCy has them
        {
            "entities": [
                {"id": 1, "label": "word", "start_offset": 0, "end_offset": 4},
                {"id": 2, "label": "word", "start_offset": 4, "end_offset": 4},
            ],
            "relations": [{"id": 1, "from_id": 1, "to_id": 2, "type": "x"}],
            "Comments": ["sure"],
            "cats": ["bad"],
        },
    ],
)
def test_doccano(tmp_path, row):
    content = read(tmp_path, lines({"id": 1, "text": SECOND, **row}, {"id": 2, "text": FIRST, "label": []}))
    assert merged(content) == {"Dull .": ("bad", ["Dull"])}
    assert len(content.by_id) == 2


def test_prodigy(tmp_path):
    span = {"start": 0, "end": 4, "token_start": 0, "token_end": 0, "label": "X"}
    more = {"_input_hash": 1, "tokens": [], "relations": [{"head": 0, "child": 1, "label": "R"}], "options": []}
    rows = [
        {"text": SECOND, "spans": [span], "answer": "accept", "accept": [1], "_annotator_id": "x-ana", **more},
        {"text": SECOND, "spans": [{**span, "end": 0}], "answer": "accept", "accept": [1], "_session_id": "x-ben"},
        {"text": SECOND, "spans": None, "answer": "ignore", "_annotator_id": "x-cem"},
        {"text": FIRST, "spans": [], "answer": "reject"},
    ]
    found = read(tmp_path, lines(*rows))
    assert merged(found) == {"Dull .": ("1", ["Dull"])}
    spans = {name: row["rationale_chars"] for name, row in found.people[text_id([SECOND])].items()}
    assert spans == {"x-ana": [[0, 4]], "x-ben": []}


def evidence(docid, start, end):
    return {"docid": docid, "start_token": start, "end_token": end, "start_sentence": 0, "end_sentence": 1, "text": ""}


def test_eraser(tmp_path):
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "a.txt").write_text("a warm film .\nreally\n")
    (docs / "b.txt").write_text("dull .")
    groups = [[evidence("a.txt", 1, 2), evidence("a.txt", 2, 2)], [evidence("a.txt", 4, 5)]]
    rows = [
        {"annotation_id": "a.txt", "classification": "POS", "evidences": groups, "docids": None, "query": "?"},
        {"annotation_id": "7", "classification": "NEG", "evidences": [], "docids": ["b.txt"]},
    ]
    assert merged(read(tmp_path, lines(*rows))) == {
        "a warm film . really": ("POS", ["warm", "really"]),
        "dull .": ("NEG", []),
    }
    for wrong, problem in (
        ([[evidence("a.txt", 1, 2)], [evidence("b.txt", 0, 1)]], "2 documents"),
        ([[evidence("c.txt", 1, 2)]], "folder docs"),
        ([[evidence("a.txt", 1, 9)]], "does not lie within"),
    ):
        (tmp_path / "out.jsonl").unlink()
        with pytest.raises(DataError, match=rf"in.jsonl, row 1: .*{problem}"):
            read(tmp_path, lines({**rows[0], "evidences": wrong}))
        (tmp_path / "out.jsonl").touch()


def test_errors_name_the_place(tmp_path, file):
    (tmp_path / "odd.jsonl").write_text('{"text": "a", "label": "b"}\n')
    assert "--from" in refused("convert", tmp_path / "odd.jsonl", tmp_path / "x.jsonl")
    (tmp_path / "bad.jsonl").write_text('{"text": "ab", "spans": [{"start": 0, "end": 9}], "answer": "accept"}\n')
    with pytest.raises(DataError, match="does not lie within"):
        convert(tmp_path / "bad.jsonl", tmp_path / "y.jsonl", "rationalizer")
    assert "exists" in refused("convert", file.path, tmp_path / "bad.jsonl", "--to", "prodigy")
    assert "2 texts" in run("convert", file.path, tmp_path / "new.json", "--to", "label-studio").output
    assert get_args(OfCommand) == get_args(Format)
