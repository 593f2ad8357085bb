"""Altered texts keep the words, the white space before them, and the weights of the rationale."""

import numpy as np

from rationalizer.auditing.altered_texts import NEW, insert_word, rearrange, selected_words, with_words
from rationalizer.auditing.near_duplicates import find_overlap
from rationalizer.data.single_examples import make_example, make_pair

TEXT = make_example(text="It's  nice, really!")


def words(example):
    return [example.text[a:b] for a, b in example.offsets]


def test_with_words_keeps_the_gaps():
    new = with_words(TEXT, ["x" * len(token) for token in TEXT.tokens])
    assert len(new.text) == len(TEXT.text)
    assert [c.isspace() for c in new.text] == [c.isspace() for c in TEXT.text]
    assert tuple(words(new)) == new.tokens


def test_rearrange_moves_the_rationale():
    weights = np.arange(1, len(TEXT.tokens) + 1, dtype=np.float32)
    new, moved = rearrange(TEXT, weights, ["nice", "new", TEXT.tokens[0]], [1, NEW, 0])
    assert tuple(words(new)) == new.tokens == ("nice", "new", TEXT.tokens[0])
    assert moved.tolist() == [2, 0, 1]
    pair = make_pair(premise="one two three", hypothesis="four five")
    links = np.zeros((3, 2), dtype=np.float32)
    links[2, 1] = 1
    assert selected_words(links).tolist() == [False, False, True]
    changed, moved = rearrange(pair, links, ["three", "one"], [2, 0])
    assert changed.premise.tokens == ("three", "one")
    assert changed.hypothesis == pair.hypothesis
    assert moved.tolist() == [[0, 1], [0, 0]]


def test_insert_word():
    assert insert_word(TEXT, "so", 1).tokens == (TEXT.tokens[0], "so", *TEXT.tokens[1:])
    assert insert_word(TEXT, "so", len(TEXT.tokens)).tokens[-1] == "so"


def test_overlap_of_long_texts():
    rng = np.random.default_rng(0)
    vocabulary = [f"w{i}" for i in range(500)]
    texts = [list(rng.choice(vocabulary, 60)) for _ in range(20)]
    others = [list(rng.choice(vocabulary, 60)) for _ in range(30)]
    cut = texts[4][5:]  # the end of one text, nearly complete
    half = [*texts[7][:20], *rng.choice(vocabulary, 40)]  # a third of another one
    found = find_overlap(texts, [*others, texts[2], cut, half])
    assert (found.exact, found.near) == ([2], [4])
    assert find_overlap(texts, []).exact == []
