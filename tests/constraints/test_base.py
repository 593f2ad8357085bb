"""Constraints as people write them and as they are kept."""

import json

import numpy as np
import pytest

from rationalizer.constraints import (
    CONSTRAINTS,
    Constraint,
    Ends,
    Must,
    MustAlign,
    Never,
    NeverAlign,
    PerSentence,
    SpanLength,
    Spans,
    TextConstraint,
    WholeSentences,
    parse_constraints,
)
from rationalizer.constraints.stopwords import STOPWORDS
from rationalizer.models import configure

WRITTEN = {
    "spans=2": Spans(2),
    "span-length=3-8": SpanLength(3, 8),
    "span-length=3-": SpanLength(at_least=3),
    "span-length=-8": SpanLength(at_most=8),
    "whole-sentences": WholeSentences(),
    "per-sentence=4": PerSentence(4),
    "never=stopwords": Never(stopwords=True),
    "never=stopwords,punctuation,words:good,bad,pattern:a{1,3},b": Never(
        words=["good", "bad"], pattern="a{1,3},b", stopwords=True, punctuation=True
    ),
    "must=words:Not": Must(words=["Not"]),
    "ends=pattern:not \\w+": Ends("not \\w+"),
}


@pytest.mark.parametrize("text", WRITTEN)
def test_text_object_and_json_are_equivalent(text):
    constraint = WRITTEN[text]
    assert Constraint.parse(text) == constraint == Constraint.parse(str(constraint))
    assert str(constraint) == text
    assert Constraint.parse(json.loads(json.dumps(constraint.to_json()))) == constraint
    assert eval(repr(constraint)) == constraint
    assert hash(Constraint.parse(text)) == hash(constraint)
    assert constraint.describe()


def test_every_constraint_documents_its_syntax():
    own = [kind for kind in CONSTRAINTS.values() if issubclass(kind, TextConstraint)]
    assert {constraint.name for constraint in WRITTEN.values()} == {
        kind.name for kind in own if kind.__module__.startswith("rationalizer.")
    }
    for kind in CONSTRAINTS.values():
        for text in kind.suggested:
            assert type(Constraint.parse(text)) is kind


def test_parsing_ignores_case_and_spaces():
    assert Constraint.parse(" Span_Length = 3 - 8 ") == SpanLength(3, 8)
    assert (
        parse_constraints(None)
        == parse_constraints("none")
        == parse_constraints(["none"])
        == parse_constraints([])
        == ()
    )
    assert parse_constraints("spans=2") == parse_constraints([Spans(2), "spans=2"]) == (Spans(2),)


def test_different_constraints_are_unequal():
    assert Spans(2) != Spans(3)
    assert Spans(2) != PerSentence(2)
    assert Must(words=["a"]) != Never(words=["a"])
    assert Must(words=["a"]) == Must(words=("a",)) == Must(words=np.array(["a"]))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("spans", "a whole number was expected"),
        ("spans=two", "'two'; write it as spans=2"),
        ("spans=0", "most must be at least 1, got 0"),
        ("span=2", "did you mean 'spans'"),
        ("whole-sentences=3", "takes no value, got '3'"),
        ("span-length=8-3", "at_least=8"),
        ("span-length=8", "a range of words"),
        ("span-length=-", "a range of words"),
        ("never", "no words"),
        ("never=adjectives", "stopwords, punctuation, words:"),
        ("must=pattern:(", "regular expression"),
        ("must=pattern:" + "a" * 1001, "1 to 1000 characters"),
        ("ends=stopwords", "pattern:... was expected"),
    ],
)
def test_parse_error_shows_the_syntax(text, message):
    with pytest.raises(ValueError, match=message):
        Constraint.parse(text)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Spans(True), "whole number"),
        (lambda: Spans(2.0), "whole number"),
        (lambda: Never(words="good"), "words must be a list"),
        (lambda: Never(words=None), "words must be a list"),
        (lambda: Never(words={"a": 1}), "words must be a list"),
        (lambda: NeverAlign(words=3), "words must be a list"),
        (lambda: NeverAlign(words=[{"a": 1, "b": 2}]), "words are pairs"),
        (lambda: NeverAlign(words=[1]), "words are pairs"),
        (lambda: Must(words=["a"] * 1001), "words has 1001 entries"),
        (lambda: MustAlign(words=[("a", "b")] * 1001), "words has 1001 entries"),
        (lambda: Never(stopwords=1), "true or false"),
        (lambda: Must(words=["not bad"]), "'not bad' is not one word"),
        (lambda: Must(mask=3), "mask must be a list"),
        (lambda: Ends(), "no phrases"),
        (lambda: Constraint.parse({"name": "spans", "mst": 2}), "did you mean 'most'"),
        (lambda: Constraint.parse({"name": "spans"}), "most is missing"),
        (lambda: Constraint.parse(2), "a constraint was expected"),
        (lambda: parse_constraints(2), "constraints are a list"),
    ],
)
def test_invalid_value_raises(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def test_config_stores_constraints():
    config = configure("spectra", {"constraints": ["spans=2", Never(stopwords=True)]})
    assert config.constraints == (Spans(2), Never(stopwords=True))
    stored = json.loads(json.dumps(config.to_json()))
    assert type(config).from_json(stored) == config
    assert configure("spectra", {"constraints": "spans=2"}).constraints == (Spans(2),)


@pytest.mark.parametrize(
    ("method", "constraint", "message"),
    [
        ("sparsemax", Spans(2), "use one of sfe, sfe-baseline, gumbel, spectra, pair-budget"),
        ("full-text", Spans(2), "does not follow constraints"),
        ("hardkuma", Spans(2), "does not follow constraints"),
        ("at-most-one", Spans(2), "is for single texts"),
        ("spectra", Must(mask=[[1]]), "cannot be used in"),
        ("spectra", Ends(characters=[(0, 3)]), "explain or predict"),
    ],
)
def test_config_rejects_unsupported_constraints(method, constraint, message):
    with pytest.raises(ValueError, match=message):
        configure(method, {"constraints": [constraint]})


def test_hardkuma_supports_constraints_if_it_decodes_to_the_budget():
    assert configure("hardkuma", {"decoding": "top-k", "constraints": ["spans=2"]}).constraints == (Spans(2),)


def test_negations_are_not_stopwords():
    assert not STOPWORDS & {"not", "no", "never", "nor", "cannot", "n't", "isn't", "without", "but", "too", "very"}
    assert {"the", "is", "it's", "of"} <= STOPWORDS
