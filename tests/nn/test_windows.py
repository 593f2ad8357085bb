"""Windows: long texts in rows of limited length."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rationalizer.nn.encoders.windows import lay_out

MARGIN = 5
COUNTS = st.lists(st.lists(st.integers(0, MARGIN), min_size=1, max_size=60), min_size=1, max_size=3)


def padded(rows):
    longest = max(map(len, rows))
    return torch.tensor([row + [0] * (longest - len(row)) for row in rows])


@given(COUNTS, st.integers(4 * MARGIN, 12 * MARGIN))
def test_every_word_has_one_window_with_context(rows, capacity):
    counts = padded(rows)
    layout = lay_out(counts, capacity, MARGIN)
    length = layout.word.shape[1]
    assert length <= capacity
    for text, words in enumerate(counts.tolist()):
        starts = [sum(words[:j]) for j in range(len(words))]
        for j, count in enumerate(words):
            if not count:
                continue
            row, first = divmod(int(layout.home[text, j]), length)
            assert layout.text[row] == text
            for k in range(count):
                at = row, first + k
                assert layout.real[at]
                assert (layout.word[at], layout.part[at]) == (j, k)
            # Beside it stand the words within the margin, except those that the text does not have.
            shown = set(layout.word[row][layout.real[row]].tolist())
            near = [i for i, start in enumerate(starts) if words[i] and 0 <= starts[j] - start <= MARGIN - words[i]]
            assert shown.issuperset(near)


@given(COUNTS, st.integers(4 * MARGIN, 12 * MARGIN))
def test_rows_contain_whole_words_and_end_with_padding(rows, capacity):
    counts = padded(rows)
    layout = lay_out(counts, capacity, MARGIN)
    for text, word, part, real in zip(layout.text, layout.word, layout.part, layout.real, strict=True):
        assert (real.long().diff() <= 0).all()
        there = list(zip(word[real].tolist(), part[real].tolist(), strict=True))
        assert there == [(j, k) for j in dict.fromkeys(word[real].tolist()) for k in range(int(counts[text, j]))]


def test_short_text_has_one_row():
    layout = lay_out(torch.tensor([[2, 3, 1], [1, 1, 0]]), 6, 1)
    assert layout.text.tolist() == [0, 1]
    assert layout.word[0].tolist() == [0, 0, 1, 1, 1, 2]
    assert layout.word[1, :2].tolist() == [0, 1]
    assert layout.real.sum(1).tolist() == [6, 2]


@pytest.mark.parametrize("words", [1_000, 4_000])
def test_number_of_rows_is_linear_in_length(words):
    layout = lay_out(torch.full((1, words), 2), 100, 20)
    assert len(layout.text) == -(-2 * words // 60)


def test_texts_without_tokens():
    layout = lay_out(torch.zeros((2, 3), dtype=torch.int64), 10, 2)
    assert len(layout.text) == 2
    assert not layout.real.any()
