"""Errors carry their problem, remedy and place as fields, also through a pickle."""

import pickle

import pytest

from rationalizer.text.errors import DataError, InputError, short_repr


@pytest.mark.parametrize(
    ("place", "text"),
    [
        ({}, ""),
        ({"path": "x.csv"}, "x.csv"),
        ({"path": "x.csv", "row": 3}, "x.csv, row 3"),
        ({"path": "x.csv", "line": 2}, "x.csv, line 2"),
    ],
)
def test_message_is_built_from_fields(place, text):
    error = pickle.loads(pickle.dumps(DataError("the text is empty", "fill it in", **place)))
    assert (error.problem, error.remedy, error.place) == ("the text is empty", "fill it in", text)
    assert str(error) == (f"{text}: " if text else "") + "the text is empty; fill it in"


def test_from_error_adds_the_place():
    error = DataError.from_error(InputError("bad", "mend it").prefixed("the premise: "), path="x.csv", row=2)
    assert (str(error), error.row) == ("x.csv, row 2: the premise: bad; mend it", 2)
    assert str(DataError.from_error(ValueError("bad; mend it"), path="x.csv")) == "x.csv: bad; mend it"


def test_short_repr_truncates():
    endless = []
    endless.append(endless)
    assert short_repr("ab") == "'ab'"
    assert short_repr("a" * 100) == "'" + "a" * 59 + "..."
    assert len(short_repr(list(range(100)))) == 63
    assert short_repr(10**10000) == "int that is too large to be shown"
