"""Where sentences end."""

import numpy as np
import pytest

from rationalizer.data import make_examples
from rationalizer.text import Example, sentence_numbers, split_words


def sentences(text, rule="punctuation", cutting="words"):
    tokens, offsets = split_words(text, cutting)
    numbers = sentence_numbers(Example(text, tokens, offsets), rule)
    return [" ".join(t for t, k in zip(tokens, numbers, strict=True) if k == s) for s in range(numbers[-1] + 1)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("It was warm. We left!", ["It was warm .", "We left !"]),
        ("One sentence without an end", ["One sentence without an end"]),
        ("Mr. Bean paid 3.50 in the U.S. last year.", ["Mr. Bean paid 3.50 in the U.S. last year ."]),
        ('He said "no." Then "yes." And left.', ['He said " no . "', 'Then " yes . "', "And left ."]),
        ("Really?! (Yes.) Fine…", ["Really ?!", "( Yes . )", "Fine …"]),
        ('"Why?" he asked. Well...maybe not.', ['" Why ? " he asked .', "Well ... maybe not ."]),
        ("a line\n\nanother line", ["a line", "another line"]),
        ("a line\nthat goes on", ["a line that goes on"]),
        ("dull<br /><br />long", ["dull", "long"]),
        ("all lower. no capitals. at all", ["all lower .", "no capitals .", "at all"]),
        ("房间很好。服务很差！", ["房 间 很 好 。", "服 务 很 差 ！"]),
        (". . . and so on", [". . .", "and so on"]),
    ],
)
def test_sentence_ends(text, expected):
    assert sentences(text) == expected


def test_tokens_with_attached_punctuation():
    found = sentences('It was warm. Dr. No left. "Never!" he cried', cutting="spaces")
    assert found == ["It was warm.", "Dr. No left.", '"Never!" he cried']


def test_line_breaks_end_sentences():
    assert sentences("One. Two.\nThree", "lines") == ["One . Two .", "Three"]


def test_given_sentence_lengths_take_precedence():
    example = Example("a. b c", *split_words("a. b c"), sentence_lengths=(3, 1))
    assert sentence_numbers(example).tolist() == [0, 0, 0, 1]
    with pytest.raises(ValueError, match="the sentences have 2 tokens, but the text has 4"):
        Example("a. b c", *split_words("a. b c"), sentence_lengths=(1, 1))


def test_sentence_numbers_are_nondecreasing():
    for example in make_examples(["A b. C d! ...", "x", '" "', "e.g. this"]):
        numbers = sentence_numbers(example)
        assert len(numbers) == len(example.tokens)
        assert set(np.diff(numbers)) <= {0, 1}


def test_unknown_rule_raises():
    with pytest.raises(ValueError, match="'punctuation', 'lines'"):
        sentence_numbers(make_examples(["a"])[0], "commas")
