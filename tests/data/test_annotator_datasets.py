"""Texts that people marked one by one (Yelp-HAT), and pairs that they marked words of (e-SNLI)."""

import csv
import json

import pytest

from rationalizer.data import Columns, DataError, load, read_examples
from tests.data.test_corpus_files import write

WORDS = ["Great", "food,", "rude", "staff."]


def attention_map(flags):
    active = ("", ' class="active"')
    spans = [f"<span{active[flag]}>{word} </span>" for word, flag in zip(WORDS, flags, strict=True)]
    return "".join([*spans, "<span></span>"])  # the page that people marked on ends so


def ham(path, maps):
    with path.open("w", newline="", encoding="utf-8") as file:
        names = ["Input.label", "Input.text", "Answer.Q1Answer", "Answer.html_output"]
        csv.writer(file).writerows([names, *([1, " ".join(WORDS), "yes", one] for one in maps)])


def test_yelp_original_files(tmp_path):
    ham(tmp_path / "ham_part1(50words).csv", [attention_map(flags) for flags in ((1, 0, 0, 0), (1, 1, 0, 0))])
    ham(tmp_path / "ham_part2.csv", [attention_map((0, 0, 1, 1)), attention_map((0, 0, 0, 0))])
    corpus = load("yelp-hat", data_dir=tmp_path)
    assert [len(split) for split in (corpus.train, corpus.dev, corpus.test)] == [0, 0, 2]
    first, second = corpus.test
    assert (first.tokens, corpus.classes[first.label]) == (tuple(WORDS), "positive")
    assert first.annotator_masks == ((True, False, False, False), (True, True, False, False))
    assert first.annotation == (True, True, False, False)  # what any of them marked
    assert second.annotator_masks == ((False, False, True, True),)  # one marked nothing
    ham(tmp_path / "ham_part3.csv", ["{}"])
    with pytest.raises(DataError, match=r"ham_part3\.csv, row 1: .*<span>"):
        load("yelp-hat", data_dir=tmp_path)


def test_yelp_table(tmp_path):
    row = {"tokens": [*WORDS, ""], "label": 0, "masks": [[1, 0, 0, 0, 0], [0, 0, 1, 0, 0]]}
    write(tmp_path / "dev.parquet", [row])
    (example,) = load("yelp-hat", data_dir=tmp_path).dev
    assert (example.tokens, len(example.annotator_masks)) == (tuple(WORDS), 2)
    write(tmp_path / "dev.parquet", [row | {"masks": [[1, 0]]}])
    with pytest.raises(DataError, match="2 flags"):
        load("yelp-hat", data_dir=tmp_path)
    (tmp_path / "dev.parquet").unlink()
    with pytest.raises(DataError, match=r"ham_part\*\.csv"):
        load("yelp-hat", data_dir=tmp_path)


def test_several_annotators_in_user_file(tmp_path):
    row = {"tokens": "a b c", "rationale_masks": json.dumps([[1, 0, 0], [0, 0, 1]])}
    path = write(tmp_path / "own.csv", [row])
    (example,) = read_examples(path, columns=Columns(label=None))
    assert example.annotator_masks == ((True, False, False), (False, False, True))
    assert example.annotated == (0, 2)
    write(path, [row | {"rationale_masks": "[[1, 0]]"}])
    with pytest.raises(DataError, match="2 flags"):
        read_examples(path, columns=Columns(label=None))


def test_esnli_original_files(tmp_path):
    row = {"gold_label": "entailment", "Sentence1": "Two women hug.", "Sentence2": "They touch."}
    row |= {"Sentence1_marked_1": "Two women *hug.*", "Sentence2_marked_1": "They *touch.*"}
    row |= {"Sentence1_marked_2": "*Two* *women* hug.", "Sentence2_marked_2": "They touch."}
    write(tmp_path / "esnli_dev.csv", [row])
    corpus = load("esnli", data_dir=tmp_path)
    (pair,) = corpus.dev
    assert (pair.premise.tokens, pair.premise.annotation) == (("Two", "women", "hug", "."), (True, True, True, True))
    assert pair.hypothesis.annotation == (False, True, True)
    assert corpus.classes[pair.label] == "entailment"
    write(tmp_path / "esnli_dev.csv", [row | {"Sentence1_marked_2": "Another *one*."}])
    with pytest.raises(DataError, match=r"the premise: .*Another one"):
        load("esnli", data_dir=tmp_path)


def test_esnli_table(tmp_path):
    row = {"premise": "Two women hug .", "hypothesis_tokens": ["They", "touch", "."], "label": "neutral"}
    write(tmp_path / "dev.parquet", [row | {"hypothesis_highlight": flags} for flags in ([0, 1, 0], [0, 0, 0])])
    marked, unmarked = load("esnli", data_dir=tmp_path).dev
    assert marked.premise.annotation is None
    assert marked.hypothesis.annotation == (False, True, False)
    assert unmarked.hypothesis.annotation is None
    write(tmp_path / "dev.parquet", [row | {"hypothesis_highlight": [0, 1]}])
    with pytest.raises(DataError, match=r"the hypothesis: .*2 flags"):
        load("esnli", data_dir=tmp_path)
