import numpy as np
import pandas as pd
import pytest

from rationalizer.data import DataError, make_corpus, make_examples

TEXTS = ["Good food.", "Bad film"]


@pytest.mark.parametrize("kind", [list, tuple, np.array, pd.Series, iter])
def test_column_types(kind):
    examples = make_examples(kind(TEXTS), kind(["pos", "neg"]))
    assert [e.tokens for e in examples] == [("Good", "food", "."), ("Bad", "film")]
    assert [e.label for e in examples] == [1, 0]
    assert [e.label for e in make_examples(kind(TEXTS), kind([0.5, 1.5]))] == [0.5, 1.5]


def test_labels_keep_python_types():
    for labels in (np.array([3, 7]), pd.Series([3, 7]), [np.int64(3), np.int64(7)], np.array([False, True])):
        assert [type(e.label) for e in make_examples(TEXTS, labels)] == [int, int]
        assert [e.label for e in make_examples(TEXTS, labels)] == [0, 1]
    assert type(make_examples(TEXTS, np.array([0.5, 1], dtype=np.float32))[0].label) is float


def test_explicit_classes_fix_the_order():
    assert [e.label for e in make_examples(TEXTS, ["pos", "neg"], classes=["pos", "neg"])] == [0, 1]
    with pytest.raises(DataError, match=r"labels, row 2: the label 'neg' is unknown; the classes are pos, neutral"):
        make_examples(TEXTS, ["pos", "neg"], classes=["pos", "neutral"])


def test_annotations_as_characters_tokens_and_masks():
    assert make_examples(TEXTS, annotations=[[(0, 4)], None])[0].annotation == (True, False, False)
    assert make_examples(TEXTS, annotations=[[False, True, True], [1, 0]])[0].annotation == (
        False,
        True,
        True,
    )
    assert make_examples(TEXTS, annotations=[[], None])[0].annotation == (False, False, False)
    assert make_examples(TEXTS, annotations=pd.Series([[], float("nan")]))[1].annotation is None
    with pytest.raises(DataError, match=r"row 1: .* token mask"):
        make_examples(TEXTS, annotations=[3, None])
    assert make_examples([["a b", "c"]], annotations=[[(1, 2)]], pairs=False)[0].annotation == (False, True)
    assert make_examples([["a b", "c"]], annotations=[np.array([True, False])], pairs=False)[0].annotation == (
        True,
        False,
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("one text",), r"texts must be a list, got the single string 'one text'; use \[texts\]"),
        ((pd.DataFrame({"a": TEXTS, "b": TEXTS}),), r"the table has no column 'text', but a, b; use its column"),
        ((np.array([TEXTS]),), r"one dimension, got the shape \(1, 2\)"),
        (([*TEXTS, " "],), r"texts, row 3: the text is empty"),
        ((["a", None],), r"texts, row 2: the text is empty"),
        ((pd.Series(["a", float("nan")]),), r"texts, row 2: the text is empty"),
        (([3],), r"texts, row 1: the text must be a string, got int 3"),
        ((TEXTS, [0, 1, 1]), r"2 texts but 3 labels"),
        ((TEXTS, [0, None]), r"labels, row 2: the label is missing"),
        ((TEXTS, [0.5, float("nan")]), r"labels, row 2: the label is missing"),
        ((TEXTS, [0.5, float("inf")]), r"labels, row 2: the label inf is not finite"),
        ((TEXTS, [0.5, "x"]), r"labels, row 2: the label 'x' is not a number while others are"),
        ((TEXTS, [0, [1]]), r"labels, row 1: 0 is one label, while other texts have several"),
        ((TEXTS, np.ones((2, 1, 1))), r"labels must have one dimension, got the shape \(2, 1, 1\)"),
        ((TEXTS, [0, b"1"]), r"labels, row 2: a label must be a name or a number, got bytes"),
        ((TEXTS, None, [[(0, 99)], None]), r"texts, row 1: the rationale span \[0, 99\) does not lie"),
        ((TEXTS, None, [[True], None]), r"texts, row 1: the rationale mask has 1 flag for 3 tokens"),
    ],
)
def test_invalid_arrays_raise(arguments, message):
    with pytest.raises(DataError, match=message):
        make_examples(*arguments, pairs=False)


def test_corpus_splits_off_dev():
    texts = [f"text {k}" for k in range(30)]
    corpus = make_corpus(texts, ["ab"[k % 2] for k in range(30)], seed=3)
    assert corpus.classes == ("a", "b")
    assert [len(corpus.train), len(corpus.dev), len(corpus.test)] == [27, 3, 0]
    assert corpus == make_corpus(texts, ["ab"[k % 2] for k in range(30)], seed=3)
    given = make_examples(["x"], ["b"], classes=corpus.classes)
    assert make_corpus(texts, ["ab"[k % 2] for k in range(30)], dev=given).dev == given
    assert make_corpus(texts, [k / 30 for k in range(30)]).task == "regression"
    assert make_corpus(texts, [k % 5 for k in range(30)], task="regression").train[0].label in (0.0, 1.0)


@pytest.mark.parametrize(
    ("labels", "classes"),
    [
        ([0.0, 1.0, 1.0], ("0", "1")),
        (np.array([1, 0, 10], dtype=np.float32), ("0", "1", "10")),
        ([0, 1.0, 2], ("0", "1", "2")),
        ([1.0, 1.5, 2.0], ()),
        ([float(k) for k in range(21)], ()),
    ],
)
def test_few_whole_floats_are_classes(labels, classes):
    texts = [f"text {k}" for k in range(len(labels))]
    corpus = make_corpus(texts, labels, dev=())
    assert (corpus.classes, corpus.task) == (classes, "classification" if classes else "regression")
    assert make_corpus(texts, labels, task="regression", dev=()).task == "regression"


def test_classes_are_case_sensitive():
    mixed = make_corpus(list("abcd"), ["a", "1.0", "a", "1.0"], task="classification", dev=())
    assert mixed.classes == ("1.0", "a")
    assert [example.label for example in mixed.train] == [1, 0, 1, 0]
    codes = make_corpus(list("abcd"), ["01", "1", "01", "2"], dev=())
    assert codes.classes == ("01", "1", "2")
    assert [example.label for example in codes.train] == [0, 1, 0, 2]
    assert make_corpus(list("abc"), ["10", "9", "-1"], dev=()).classes == ("-1", "9", "10")


def test_classes_that_differ_only_in_case_raise():
    with pytest.raises(DataError, match=r"labels, row 3: the labels 'Positive' and 'positive' differ"):
        make_corpus(list("abc"), ["Positive", "negative", "positive "], dev=())
    both = make_corpus(
        list("abc"), ["Positive", "negative", "positive"], classes=["Positive", "positive", "negative"], dev=()
    )
    assert [example.label for example in both.train] == [0, 2, 1]
