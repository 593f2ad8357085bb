import json
from collections import Counter

import pytest

from rationalizer.text import Vocabulary

WORDS = Counter("babcab")


def test_indices_are_ordered_by_frequency():
    vocabulary = Vocabulary.from_counts(WORDS)
    assert vocabulary.words == ("b", "a", "c")
    assert [vocabulary.id(word) for word in "abcd"] == [2, 1, 3, 0]
    assert len(vocabulary) == 4
    assert "a" in vocabulary
    assert "d" not in vocabulary


def test_min_count_excludes_rare_words():
    assert Vocabulary.from_counts(WORDS, min_count=2).words == ("b", "a")
    with pytest.raises(ValueError, match="at least 1, got 0"):
        Vocabulary.from_counts(Counter(), min_count=0)


def test_lower_case_option():
    words = Counter(["Good", "good"])
    assert Vocabulary.from_counts(words, lower=True).words == ("good",)
    assert set(Vocabulary.from_counts(words).words) == {"Good", "good"}
    assert Vocabulary.from_counts(words, lower=True).id("GOOD") == 1


def test_json_round_trip():
    vocabulary = Vocabulary.from_counts(Counter(["é", "'a'", "\u2028"]), lower=True)
    assert Vocabulary.from_json(json.loads(json.dumps(vocabulary.to_json()))) == vocabulary


def test_invalid_vocabulary_raises():
    with pytest.raises(ValueError, match="'a' comes several times"):
        Vocabulary(["a", "a"])
    with pytest.raises(ValueError, match="cannot hold 'A'"):
        Vocabulary(["A"], lower=True)
    for broken in ({"lower": True}, {"lower": 1, "words": []}, {"lower": True, "words": [1]}, [], None):
        with pytest.raises(ValueError, match="'words'"):
            Vocabulary.from_json(broken)
