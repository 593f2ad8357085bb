"""The JSON form of a record: exact, complete, and refused if anything in it is wrong."""

import hashlib
import json
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np
import pytest

from rationalizer import DecisionRecord, __version__
from rationalizer.records import read_records, record_files, text_hash
from rationalizer.text.errors import DataError, InputError


def test_content_for_a_text(model, texts):
    before = datetime.now(UTC)
    explanation = model.explain(texts[0], record=True)
    record = explanation.record
    (text,) = record.texts
    assert text.sha256 == hashlib.sha256(texts[0].encode()).hexdigest()
    assert (text.characters, text.tokens, text.words) == (
        len(texts[0]),
        len(explanation.tokens),
        explanation.word_count,
    )
    assert text.text is text.offsets is text.sentence_lengths is None
    selected = [k for k, chosen in enumerate(explanation.selected) if chosen]
    assert [word.index for word in record.rationale] == selected
    for word in record.rationale:
        assert texts[0][word.start : word.end] == word.word == explanation.tokens[word.index]
        assert word.weight == explanation.mask[word.index]
    assert 0 < explanation.selected_word_count <= record.budget_words
    assert (record.budget, record.constraints, record.alignment) == (str(model.budget), (), None)
    assert record.label == explanation.label
    assert record.probabilities == explanation.probabilities
    assert record.word_splitting == model.trained.encoder.rule
    assert record.versions["rationalizer"] == __version__
    assert {"torch", "numpy", "numba", "python"} <= record.versions.keys()
    assert (
        before
        <= datetime.fromisoformat(record.time) + (datetime.resolution * 1000)
        <= datetime.now(UTC).replace(year=before.year + 1)
    )
    assert texts[0] not in record.to_json()


def test_content_for_a_pair(pair_model, pairs):
    explanation = pair_model.explain(*pairs[0], record="with-text")
    record = explanation.record
    assert [text.text for text in record.texts] == list(pairs[0])
    assert [(link.premise.index, link.hypothesis.index) for link in record.alignment] == list(explanation.pairs)
    for link in record.alignment:
        assert pairs[0][0][link.premise.start : link.premise.end] == link.premise.word
        assert pairs[0][1][link.hypothesis.start : link.hypothesis.end] == link.hypothesis.word
        assert link.weight == explanation.alignment[link.premise.index, link.hypothesis.index]
    assert record.rationale is None
    assert record.pairs


def test_no_record_by_default(model, texts):
    explanation = model.explain(texts[0])
    assert explanation.record is None
    assert "record" not in explanation.to_dict()


def test_json_round_trip_keeps_every_bit(model, pair_model, texts, pairs, tmp_path):
    explained = [*model.explain(texts, record=True), *pair_model.explain(pairs, record="with-text")]
    for explanation in explained:
        record = explanation.record
        again = DecisionRecord.from_json(record.to_json())
        assert again == record
        assert again.signed_bytes() == record.signed_bytes()
        assert DecisionRecord.from_dict(explanation.to_dict()["record"]) == record
        for value in again.probabilities.values():
            assert float(np.float32(value)) == value  # a float32, exactly
    explained[0].record.save(tmp_path / "folder" / "record.json")
    assert list(read_records(tmp_path / "folder" / "record.json")) == [explained[0].record]


def test_other_json_writers_do_not_break_signatures(record):
    """A program may write 1.0 as 1, and keys in another order."""
    stored = record.to_dict()
    for word in stored["rationale"]:
        word["weight"] = int(word["weight"])
    shuffled = dict(reversed(stored.items()))
    assert DecisionRecord.from_json(json.dumps(shuffled, indent=2)).signed_bytes() == record.signed_bytes()


@pytest.mark.parametrize(
    ("change", "keyword"),
    [
        ({"format": 2}, "format 2"),
        ({"format": "1"}, "format"),
        ({"time": "yesterday"}, "time"),
        ({"time": "2026-01-01T00:00:00"}, "time"),
        ({"model": "abc"}, "model"),
        ({"texts": []}, "texts"),
        ({"label": None}, "label"),
        ({"probabilities": None}, "probabilities"),
        ({"probabilities": {"good": float("nan")}}, "probabilities.good"),
        ({"probabilities": {"good": "0x1p-1"}}, "probabilities.good"),
        ({"budget_words": 2.5}, "budget_words"),
        ({"constraints": [3]}, "constraints"),
        ({"alignment": []}, "alignment"),
        ({"comment": "mine"}, "comment"),
        ({"machine": {}}, "machine"),
    ],
)
def test_wrong_values_are_refused(record, change, keyword):
    with pytest.raises(InputError) as caught:
        DecisionRecord.from_json(json.dumps({**record.to_dict(), **change}))
    assert keyword in caught.value.problem
    assert caught.value.remedy


def test_missing_fields_are_refused(record):
    stored = record.to_dict()
    for name in stored:
        with pytest.raises(InputError) as caught:
            DecisionRecord.from_dict({key: value for key, value in stored.items() if key != name})
        assert name in caught.value.problem


@pytest.mark.parametrize("content", ["", "[]", "null", "{", '"text"', "1" * 5000, "[" * 100_000, b"\xff"])
def test_other_json_is_refused(content):
    with pytest.raises(InputError):
        DecisionRecord.from_json(content)


def test_offsets_outside_the_text_are_refused(model):
    record = model.explain([["lovely", "warm film", "."]], record=True)[0].record
    stored = record.to_dict()
    stored["texts"][0]["offsets"][0] = [0, 1000]
    with pytest.raises(InputError) as caught:
        DecisionRecord.from_dict(stored)
    assert "offsets" in caught.value.problem


def test_files_of_many_records(model, texts, tmp_path):
    records = [explanation.record for explanation in model.explain(texts, record=True)]
    lines, pretty = tmp_path / "many.jsonl", tmp_path / "one.json"
    lines.write_text("\n".join(record.to_json() for record in records) + "\n\n")
    pretty.write_text(json.dumps(records[0].to_dict(), indent=2))
    assert list(read_records(lines)) == records
    assert list(read_records(pretty)) == records[:1]


def test_bad_files_name_the_line(record, tmp_path, monkeypatch):
    path = tmp_path / "records.jsonl"
    path.write_text(f"{record.to_json()}\n{record.to_json()[:-20]}\n")
    with pytest.raises(DataError) as caught:
        list(read_records(path))
    assert (caught.value.path, caught.value.line) == (path, 2)
    path.write_text("\n")
    with pytest.raises(DataError):
        list(read_records(path))
    monkeypatch.setattr(record_files, "LONGEST_RECORD", 100)
    path.write_text(f"{record.to_json()}\n")
    with pytest.raises(DataError) as caught:
        list(read_records(path))
    assert "longer" in caught.value.problem


def test_lone_surrogates_have_a_hash():
    assert text_hash("\ud800") != text_hash("?")


def test_records_are_immutable(record):
    with pytest.raises(AttributeError):
        record.label = "other"
    assert replace(record, label="other").label == "other"
