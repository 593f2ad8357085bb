import pytest

from rationalizer.metrics import word_use

SEEN = [{"good", "the"}, {"good", "bad", "the"}, {"bad", "the"}, {"bad", "the", "odd"}]
SELECTED = [{"good", "the"}, {"good", "the"}, {"bad", "the"}, {"odd", "the"}]
GROUPS = ["+", "+", "-", "-"]


def test_by_hand():
    found = word_use(SELECTED, SEEN, GROUPS)
    told = {group: [(use.word, use.selected, use.seen, use.documents) for use in uses] for group, uses in found.items()}
    # "the" is selected everywhere: nobody's own, so it comes last.
    assert told == {
        "+": [("good", 2, 2, (0, 1)), ("the", 2, 2, (0, 1))],
        "-": [("bad", 1, 2, (2,)), ("odd", 1, 1, (3,)), ("the", 2, 2, (2, 3))],
    }
    assert [use.excess for use in found["+"]] == [1, 0]


def test_words_that_are_never_selected_are_not_listed():
    assert word_use([set(), set()], [{"a"}, {"b"}], [0, 1]) == {0: [], 1: []}


def test_excess_sums_to_0():
    found = word_use(SELECTED, SEEN, GROUPS)
    for word in ("good", "bad", "odd", "the"):
        here = sum(use.excess for uses in found.values() for use in uses if use.word == word)
        absent = sum(word not in {use.word for use in uses} for uses in found.values())
        times = sum(word in words for words in SELECTED)
        assert here - absent * times / 2 == pytest.approx(0)


def test_one_entry_per_document():
    with pytest.raises(ValueError, match="groups has 1"):
        word_use(SELECTED, SEEN, ["+"])
