import json

import pytest

from rationalizer.data import Vocabulary, examples_from


def test_most_frequent_first_after_padding_and_unknown():
    vocabulary = Vocabulary.from_examples(examples_from(["b a b", "a b c"]))
    assert vocabulary.words == ("b", "a", "c")
    assert vocabulary.ids(["a", "b", "c", "d"]) == [3, 2, 4, 1]
    assert len(vocabulary) == 5


def test_min_count_leaves_rare_words_out():
    assert Vocabulary.from_examples(examples_from(["b a b", "a b c"]), min_count=2).words == ("b", "a")
    with pytest.raises(ValueError, match="at least 1, got 0"):
        Vocabulary.from_examples([], min_count=0)


def test_lower_case_is_the_vocabularys_choice():
    examples = examples_from(["Good good"])
    assert Vocabulary.from_examples(examples, lower=True).words == ("good",)
    assert set(Vocabulary.from_examples(examples).words) == {"Good", "good"}
    assert Vocabulary.from_examples(examples, lower=True).ids(["GOOD"]) == [2]


def test_json_round_trip_through_text():
    vocabulary = Vocabulary.from_examples(examples_from(["é 'a' \u2028"]), lower=True)
    assert Vocabulary.from_json(json.loads(json.dumps(vocabulary.to_json()))) == vocabulary


def test_broken_vocabularies_are_refused():
    with pytest.raises(ValueError, match="'a' comes several times"):
        Vocabulary(["a", "a"])
    with pytest.raises(ValueError, match="cannot hold 'A'"):
        Vocabulary(["A"], lower=True)
    with pytest.raises(ValueError, match="'words'"):
        Vocabulary.from_json({"lower": True})
