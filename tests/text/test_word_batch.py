"""Punctuation that is read along with the words around it."""

import torch
from hypothesis import given
from hypothesis import strategies as st

from rationalizer.text import WordBatch


def words(flags):
    """W: a word; ?: an unknown word; comma: punctuation; anything else: padding."""
    kinds = ([[mark in kind for mark in row] for row in flags] for kind in ("W?,", "W", ","))
    return WordBatch(*map(torch.tensor, kinds))


def test_punctuation_gets_the_minimum_of_both_neighbours():
    z = torch.tensor([[1.0, 0.0, 0.5, 0.0, 0.0, 1.0, 0.0]])
    found = words(["W,W,,W,"]).with_punctuation(z)
    assert found.tolist() == [[1.0, 0.5, 0.5, 0.5, 0.5, 1.0, 0.0]]  # the last one has no word behind it


def test_punctuation_next_to_unselected_word_is_unselected():
    z = torch.tensor([[0.0, 0.0, 1.0, 0.0, 0.0]])
    assert words([",W,W,"]).with_punctuation(torch.tensor([[0.0, 0.0, 0.0, 1.0, 0.0]])).tolist() == [[0, 0, 0, 1, 0]]
    assert words(["W,W,W"]).with_punctuation(z).tolist() == [[0, 0, 1, 0, 0]]


def test_unknown_words_and_adjacent_punctuation_are_unselected():
    z = torch.tensor([[1.0, 0.0, 0.0, 0.0, 1.0, 0.0, 1.0]])
    assert words(["W,?,W,W"]).with_punctuation(z).tolist() == [[1, 0, 0, 0, 1, 1, 1]]
    scores = torch.tensor([[2.0, 9.0, 9.0, 9.0, 3.0]])
    assert words(["W,?,W"]).ranked(scores).tolist() == [[2, 2, 2, 2, 3]]


def test_punctuation_ranks_as_the_lower_neighbour():
    scores = torch.tensor([[9.0, 3.0, 9.0, 1.0, 9.0, 2.0]])
    assert words([",W,W,W"]).ranked(scores).tolist() == [[1.0, 3.0, 1.0, 1.0, 1.0, 2.0]]


def test_gradient_reaches_the_neighbours_of_punctuation():
    z = torch.tensor([[0.3, 0.0, 0.7]], requires_grad=True)
    words(["W,W"]).with_punctuation(z)[0, 1].backward()
    assert z.grad.tolist() == [[1.0, 0.0, 0.0]]


@given(st.lists(st.text("W?,", min_size=1, max_size=12), min_size=1, max_size=4), st.randoms())
def test_padding_and_other_rows_do_not_matter(texts, random):
    width = max(map(len, texts)) + 2
    padded = words([text.ljust(width) for text in texts])
    z = torch.tensor([[random.random() for _ in range(width)] for _ in texts]) * padded.counted
    together, ranked = padded.with_punctuation(z), padded.ranked(z)
    assert (together[~padded.mask] == 0).all()
    for k, text in enumerate(texts):
        alone = words([text])
        own = z[k : k + 1, : len(text)]
        assert torch.equal(alone.with_punctuation(own)[0], together[k, : len(text)])
        if alone.counted.any():
            assert torch.equal(alone.ranked(own)[0], ranked[k, : len(text)])


def test_punctuation_follows_a_word_of_the_same_unit():
    z = torch.tensor([[0.0, 1.0, 1.0, 0.0, 0.0, 0.0]])
    unit = torch.tensor([[0, 0, 0, 0, 1, 1]])
    assert words([",WW,W,"]).with_punctuation(z, unit).tolist() == [[1, 1, 1, 1, 0, 0]]
    assert words([",WW,W,"]).with_punctuation(z, torch.arange(6)[None]).tolist() == z.tolist()
