"""Several labels or targets of a text, in the forms that users have them."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import csr_matrix

from rationalizer.data import Columns, Labels, load, make_corpus, make_examples
from rationalizer.data.corpus import Target
from rationalizer.text import DataError

TEXTS = [f"text number {k}" for k in range(40)]
ROWS = [["food"], ["service", "food"], [], ["service"]] * 10
MATRIX = np.array([[1, 0], [1, 1], [0, 0], [0, 1]] * 10)
COLUMNS = {"food": MATRIX[:, 0].tolist(), "service": MATRIX[:, 1].tolist()}
STRINGS = ["food", "service;food", "", "service"] * 10


def truth(corpus):
    """The labels of the first four texts: examples in train and dev keep their order."""
    found = {example.text: example.label for example in (*corpus.train, *corpus.dev)}
    return [found[text] for text in TEXTS[:4]]


@pytest.mark.parametrize(
    ("labels", "how"),
    [
        (ROWS, {}),
        (list(map(set, ROWS)), {}),
        (list(map(json.dumps, ROWS)), {}),
        (STRINGS, {"task": "multi-label"}),
        (MATRIX, {"classes": ["food", "service"]}),
        (csr_matrix(MATRIX), {"classes": ["food", "service"]}),
        (pd.DataFrame(COLUMNS), {}),
        (COLUMNS, {}),
        (pd.DataFrame(COLUMNS).astype(bool), {}),
    ],
)
def test_all_forms_are_the_same(labels, how):
    corpus = make_corpus(TEXTS, labels, **how)
    assert (corpus.task, corpus.classes) == ("multi-label", ("food", "service"))
    assert truth(corpus) == [(1, 0), (1, 1), (0, 0), (0, 1)]


def test_a_matrix_without_names():
    assert make_corpus(TEXTS, MATRIX).classes == ("label_0", "label_1")


def test_several_targets():
    values = {"stars": [0.5, 1.0, None, 4.0] * 10, "mood": ["good", None, "bad", "good"] * 10}
    corpus = make_corpus(TEXTS, values)
    assert corpus.task == "multi-target"
    assert corpus.targets == (Target("stars"), Target("mood", ("bad", "good")))
    assert truth(corpus) == [(0.5, 1), (1.0, None), (None, 0), (4.0, 1)]


@pytest.mark.parametrize(
    ("labels", "how", "message"),
    [
        ([["a"], ["b", " "]] * 20, {}, "row 2: .*empty name"),
        ([["a"], ["b", "b"]] * 20, {}, "row 2: .*'b' comes twice"),
        ([["a"], "b"] * 20, {}, "row 2: 'b' is one label"),
        ([["Food"], ["food"]] * 20, {}, "differ only in case"),
        ([[]] * 40, {}, "no text has a label"),
        (MATRIX, {"classes": ["a", "b", "c"]}, "row 1: .*2 entries, but there are 3 labels"),
        (MATRIX, {"classes": ["a", ""]}, "empty name"),
        ({"a": [0, 1] * 20, " ": [0, 1] * 20}, {}, "empty name"),
        ([[0, 1], [1, 1]] * 20, {}, "row 2: .*column for each label"),
        (MATRIX, {"classes": ["a", "a"]}, "two labels 'a'"),
        (2 * MATRIX, {"task": "multi-label"}, "value 2 is not 0 or 1"),
        ({"a": [1] * 40, "b": [None] * 40}, {}, "no row has a value for 'b'"),
    ],
)
def test_labels_that_cannot_be_used(labels, how, message):
    with pytest.raises(DataError, match=message):
        make_corpus(TEXTS, labels, **how)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([["foo"]], "'foo' is unknown; did you mean 'food'"),
        (np.ones((1, 3)), "3 entries, but there are 2 labels"),
        ([{"rooms": 1}], "'rooms' is unknown"),
        ([{"food": None}], "no label"),
    ],
)
def test_labels_that_a_model_does_not_know(labels, message):
    with pytest.raises(DataError, match=message):
        make_examples(TEXTS[:1], labels, scheme=Labels("multi-label", ("food", "service")))


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "reviews.csv"
    mood = ["good", "bad", "", "good"] * 10
    pd.DataFrame({"text": TEXTS, **COLUMNS, "all": STRINGS, "mood": mood}).to_csv(path, index=False)
    return path


@pytest.mark.parametrize(
    ("columns", "task", "expected"),
    [
        ("food,service", None, [(1, 0), (1, 1), (0, 0), (0, 1)]),
        ("all", "multi-label", [(1, 0), (1, 1), (0, 0), (0, 1)]),
        ("food, mood", None, [(1, 1), (1, 0), (0, None), (0, 1)]),
    ],
)
def test_files_in_memory_and_on_disk(table, columns, task, expected):
    how = {"columns": Columns(label=columns), "task": task}
    corpus = load(table, **how)
    assert truth(corpus) == expected
    streamed = load(table, **how, stream=True, cache_dir=table.parent / "cache")
    assert (streamed.task, streamed.classes, streamed.targets) == (corpus.task, corpus.classes, corpus.targets)
    assert streamed.digest == corpus.digest  # the same rows are held out


def test_a_missing_label_column(table):
    with pytest.raises(DataError, match="did you mean 'service'"):
        load(table, columns=Columns(label="food,servic"))


@pytest.mark.parametrize("stream", [False, True])
def test_annotations_of_each_label(tmp_path, stream):
    rows = [{"text": "good soup", "label": ["food"], "rationale_spans": {"food": [[1, 2]], "room": []}}] * 20
    path = tmp_path / "x.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    example = load(path, stream=stream, cache_dir=tmp_path / "cache").train[0]
    assert example.label_annotations == {"food": (False, True), "room": (False, False)}
    assert example.annotation == (False, True)


def test_dev_has_every_label_that_train_can_spare():
    labels = [["common"] * (k % 3 > 0) + ["rare"] * (k % 20 == 0) for k in range(200)]
    corpus = make_corpus([f"text {k}" for k in range(200)], labels)
    dev = np.array([example.label for example in corpus.dev])
    assert dev.sum(0)[0] in range(12, 15)
    assert dev.sum(0)[1] == 1
