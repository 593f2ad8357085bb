"""Pairs of texts in users' own files and arrays."""

import numpy as np
import pandas as pd
import pytest

from rationalizer.data import (
    Columns,
    Corpus,
    DataError,
    are_pairs,
    make_corpus,
    make_examples,
    read_corpus,
    read_examples,
)
from rationalizer.text import Budget, PairExample
from tests.data.test_corpus_files import write

ROWS = [
    {"premise": "A man, asleep.", "hypothesis": "He sleeps.", "label": "yes", "alignment": [[1, 0], [3, 1], [4, 2]]},
    {"premise": "Two dogs run", "hypothesis": "Some cats, they run", "label": "no", "alignment": [[2, 4]]},
]
PAIRS = [("A man, asleep.", "He sleeps."), ("Two dogs run", "Some cats, they run")]


@pytest.mark.parametrize("name", ["x.csv", "x.tsv", "x.jsonl", "x.json", "x.parquet", "x.csv.gz"])
def test_all_formats_give_the_same_pairs(tmp_path, name):
    corpus = read_corpus(write(tmp_path / name, ROWS * 5))
    assert (corpus.pairs, corpus.task, corpus.classes, str(corpus.budget)) == (
        True,
        "classification",
        ("no", "yes"),
        "50%",
    )
    assert (len(corpus.train), len(corpus.dev)) == (9, 1)
    pair = next(pair for pair in corpus.train if pair.label == 1)
    assert isinstance(pair, PairExample)
    assert pair.premise.tokens == ("A", "man", ",", "asleep", ".")
    assert pair.hypothesis.tokens == ("He", "sleeps", ".")
    assert pair.alignment == ((1, 0), (3, 1), (4, 2))
    assert pair.group is None


@pytest.mark.parametrize(
    ("alignment", "pairs"),
    [
        ("0-0 2-1", ((0, 0), (2, 1))),
        ("[[0, 0], [2, 1]]", ((0, 0), (2, 1))),
        ("2-1 0-0 2-1", ((0, 0), (2, 1))),
        ("[]", ()),
        ("", None),
    ],
)
def test_alignment_formats(tmp_path, alignment, pairs):
    path = write(tmp_path / "x.csv", [{"premise": "a b c", "hypothesis": "d e", "alignment": alignment}])
    assert read_examples(path)[0].alignment == pairs


@pytest.mark.parametrize("tokens", [["do", "n't", "go"], "do n't go", '["do", "n\'t", "go"]'])
def test_token_formats(tmp_path, tokens):
    row = {"premise_tokens": tokens, "hypothesis": "Don't go!", "group": "commands"}
    pair = read_examples(write(tmp_path / "x.jsonl", [row]))[0]
    assert pair.premise.tokens == ("do", "n't", "go")
    assert pair.hypothesis.tokens == ("Don't", "go", "!")
    assert pair.group == "commands"
    both = read_examples(write(tmp_path / "y.jsonl", [row | {"premise": "don't go"}]))[0]
    assert (both.premise.text, both.premise.tokens) == ("don't go", ("do", "n't", "go"))


def test_explicit_column_names(tmp_path):
    rows = [{"question": "who ?", "answer": "me", "ok": k % 2, "links": "0-0", "part": "a"} for k in range(8)]
    columns = Columns(premise="question", hypothesis="answer", label="ok", alignment="links", group="part")
    corpus = read_corpus(write(tmp_path / "x.csv", rows), columns=columns)
    assert corpus.train[0].premise.text == "who ?"
    assert (corpus.train[0].alignment, corpus.train[0].group) == (((0, 0),), "a")


def test_ambiguous_text_and_pair_columns_raise(tmp_path):
    path = write(tmp_path / "x.csv", [{"text": "t", "review": "r", "premise": "p", "hypothesis": "h", "label": 0}])
    with pytest.raises(DataError, match=r"x.csv: ambiguous columns"):
        read_examples(path)
    assert read_examples(path, columns=Columns(text=None))[0].premise.text == "p"
    assert read_examples(path, columns=Columns(premise=None))[0].text == "t"
    assert read_examples(path, columns=Columns(text="review"))[0].text == "r"
    assert read_examples(path, columns=Columns(premise="review"))[0].premise.text == "r"
    with pytest.raises(DataError, match="ambiguous"):
        read_examples(path, columns=Columns(text="review", premise="text"))


@pytest.mark.parametrize(
    ("row", "columns", "message"),
    [
        ({"premise": "p", "hypotheses": "h"}, {}, r"no column 'hypothesis' \(did you mean 'hypotheses'\?\)"),
        ({"hypothesis": "h"}, {}, r"no column 'premise'.*pass the premise column's name"),
        ({"question": "q"}, {"premise": "question"}, "no column 'hypothesis'"),
        (
            {"question": "q", "hypothesis": "h"},
            {"premise": "asked"},
            "no column 'asked'.*pass the premise column's name",
        ),
        ({"body": "x"}, {}, "no column 'text'.*premise and hypothesis columns"),
        ({"premise": "p", "hypothesis": "h", "m": "1"}, {"rationale_mask": "m"}, "holds pairs, but rationale_mask='m'"),
        (
            {"text": "t", "links": "0-0"},
            {"alignment": "links"},
            "holds texts, but alignment='links' is a column for pairs",
        ),
    ],
)
def test_missing_columns_raise(tmp_path, row, columns, message):
    path = write(tmp_path / "x.csv", [row])
    with pytest.raises(DataError, match=message) as raised:
        read_examples(path, columns=Columns(**columns))
    assert str(raised.value).startswith(str(path))


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"premise": ""}, "the premise: the text is empty; fill it in or leave the row out"),
        ({"hypothesis": "<br />"}, "the hypothesis: the text '<br />' has no token"),
        (
            {"alignment": "0-0 1"},
            "the alignment holds '1', not a pair of integers; write alignments as [[0, 0], [1, 2]]",
        ),
        ({"alignment": "[[0, 1, 2]]"}, "the alignment holds [0, 1, 2], not a pair"),
        ({"alignment": "[[0, true]]"}, "the alignment holds [0, True], not a pair"),
        ({"alignment": "0-2"}, "the aligned pair (0, 2)"),
        ({"alignment": "[[-1, 0]]"}, "the aligned pair (-1, 0)"),
        ({"label": ""}, "the label is missing"),
    ],
)
def test_invalid_rows_raise(tmp_path, ending, change, message):
    row = {"premise": "a b c", "hypothesis": "d e", "label": "x", "alignment": "0-0"}
    path = write(tmp_path / f"x.{ending}", [row, row, row | change])
    with pytest.raises(DataError) as raised:
        read_corpus(path)
    assert str(raised.value).startswith(f"{path}, row 3: {message}")


def test_mixing_texts_and_pairs_raises(tmp_path):
    write(tmp_path / "train.csv", ROWS)
    write(tmp_path / "dev.csv", [{"text": "t", "label": "yes"}])
    with pytest.raises(DataError, match=r"train.csv: .* pairs of texts, .*dev.csv single texts"):
        read_corpus(tmp_path)
    text, pair = make_examples(["t"], [0]), make_examples(PAIRS, [0, 1], pairs=True)
    with pytest.raises(ValueError, match="texts or pairs of texts, got splits of both kinds"):
        Corpus("x", "classification", ("a", "b"), pair, text, ())
    assert not Corpus("x", "classification", ("a", "b"), text, (), ()).pairs
    assert Corpus("x", "classification", ("a", "b"), (), (), pair).pairs


@pytest.mark.parametrize("kind", [list, tuple, iter, np.array, pd.Series])
def test_pair_column_types(kind):
    pairs = make_examples(kind(PAIRS), kind(["yes", "no"]), [[(1, 0)], None], pairs=True)
    assert [pair.label for pair in pairs] == [1, 0]
    assert pairs[0].hypothesis.tokens == ("He", "sleeps", ".")
    assert [pair.alignment for pair in pairs] == [((1, 0),), None]
    assert pairs[0].label == 1


@pytest.mark.parametrize("names", [("premise", "hypothesis"), ("question", "answer")])
def test_tables_of_pairs(names):
    table = pd.DataFrame(PAIRS, columns=names)
    assert are_pairs(table)
    assert make_examples(table, pairs=True) == make_examples(PAIRS, pairs=True)
    table["more"] = 1
    assert are_pairs(table) == (names[0] == "premise")
    if names[0] == "premise":
        table = table[["more", "hypothesis", "premise"]]
        assert make_examples(table, pairs=True) == make_examples(PAIRS, pairs=True)


def test_tokens_and_arrays_as_alignments():
    pair = make_examples([(["a b", "c"], np.array(["d"]))], annotations=[np.array([[1, 0]])], pairs=True)[0]
    assert (pair.premise.tokens, pair.hypothesis.tokens, pair.alignment) == (("a b", "c"), ("d",), ((1, 0),))
    assert make_examples([["a b", "c"]], pairs=True)[0].premise.tokens == ("a", "b")
    assert make_examples([("a", "b")], annotations=pd.Series([float("nan")]), pairs=True)[0].alignment is None


def test_is_pairs():
    assert are_pairs(PAIRS)
    assert are_pairs(tuple(PAIRS))
    assert are_pairs([(["a"], ["b"])])
    assert are_pairs(np.array(PAIRS))
    assert are_pairs(pd.Series(PAIRS))
    assert not are_pairs(["a text", "another"])
    assert not are_pairs(("a text", "another"))
    assert not are_pairs([["two", "tokens"]])
    assert not are_pairs([["a tree", "in", "autumn"], ["two", "tokens"]])
    with pytest.raises(DataError, match=r"row 2.*tuple"):
        are_pairs([["two", "tokens"], ["A man plays.", "Music"]])
    assert are_pairs([["A man plays.", "Music"]], expected=True)
    assert not are_pairs([("a", "pair"), ("three", "tokens", "here")])
    assert not are_pairs([])
    assert not are_pairs("ab")
    assert not are_pairs(np.array([["a", "b", "c"]]))
    assert not are_pairs(pd.DataFrame({"text": ["a"], "label": ["b"]}))
    with pytest.raises(DataError, match=r"row 1 is a pair \(premise, hypothesis\), row 3 a text; give one kind"):
        are_pairs([*PAIRS, "alone"])
    rest = iter(PAIRS)
    assert not are_pairs(rest)
    assert next(rest) == PAIRS[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((("a", "b"),), r"a list of pairs, got the single pair \('a', 'b'\); use \[pair\]"),
        ((["ab", "cd"],), r"pairs, row 1: a pair is \(premise, hypothesis\), got 'ab'"),
        (([("a", "b"), ("a", "b", "c")],), r"pairs, row 2: a pair is \(premise, hypothesis\), got \('a', 'b', 'c'\)"),
        (([("a", None)],), r"pairs, row 1: the hypothesis: the text is empty"),
        ((PAIRS, [0]), r"2 pairs but 1 labels"),
        ((PAIRS, None, ["0-0"]), r"2 pairs but 1 alignments"),
        ((PAIRS, None, [[(0, 9)], None]), r"pairs, row 1: the aligned pair \(0, 9\)"),
        ((pd.DataFrame({"a": ["x"]}),), r"premise and hypothesis, or two columns, got a; use table"),
    ],
)
def test_invalid_arrays_raise(arguments, message):
    with pytest.raises(DataError, match=message):
        make_examples(*arguments, pairs=True)


def test_corpus_of_pairs_splits_off_dev():
    corpus = make_corpus(PAIRS * 10, ["a", "b"] * 10, ["0-0", None] * 10, pairs=True, seed=3)
    assert (corpus.pairs, str(corpus.budget), len(corpus.train), len(corpus.dev)) == (True, "50%", 18, 2)
    assert sorted(pair.label for pair in corpus.dev) == [0, 1]
    assert {pair.alignment for pair in corpus.train if pair.label == 0} == {((0, 0),)}
    assert make_corpus(PAIRS, [0, 1], pairs=True, dev=(), budget=Budget.count(3)).budget == Budget.count(3)
    assert make_corpus(["a", "b"], [0, 1], dev=()).budget == Budget.share(0.2)
