import pytest
from hypothesis import given
from hypothesis import strategies as st

from rationalizer.data.tokenize import align, join, split, tokenize


def test_words_and_punctuation():
    assert tokenize("A warm, funny film.")[0] == ("A", "warm", ",", "funny", "film", ".")
    assert tokenize("don't ... stop")[0] == ("don", "'", "t", "...", "stop")


@pytest.mark.parametrize("markup", ["<br />", "<br/>", "<BR>", "<br /><br />"])
def test_html_line_breaks_are_white_space_and_offsets_stay_on_the_original(markup):
    text = f"Bad.{markup}Good!"
    tokens, offsets = tokenize(text)
    assert tokens == ("Bad", ".", "Good", "!")
    assert [text[a:b] for a, b in offsets] == ["Bad", ".", "Good", "!"]


def test_other_markup_is_kept():
    assert tokenize("a <b> c")[0] == ("a", "<", "b", ">", "c")


@given(st.text())
def test_offsets_point_at_the_tokens_and_leave_only_space_between(text):
    tokens, offsets = tokenize(text)
    assert tuple(text[a:b] for a, b in offsets) == tokens
    covered = {k for a, b in offsets for k in range(a, b)}
    rest = "".join(" " if k in covered else c for k, c in enumerate(text))
    for markup in ("<br />", "<br/>", "<br>"):
        rest = rest.lower().replace(markup, "")
    assert "br" in rest or not rest.strip()


@given(st.lists(st.text(alphabet=st.characters(exclude_categories=["Z", "C"]), min_size=1), min_size=1))
def test_joined_tokens_come_back(tokens):
    text, offsets = join(tokens)
    assert [text[a:b] for a, b in offsets] == tokens
    assert align(tokens, text) == offsets


def test_split_keeps_the_text_as_it_is():
    assert split("  a  ``b'' \n c") == (("a", "``b''", "c"), ((2, 3), (5, 10), (13, 14)))


def test_tokens_align_with_the_text_they_were_cut_from():
    assert align(["It", "'s", "good"], "It's  good") == ((0, 2), (2, 4), (6, 10))


def test_tokens_that_are_not_in_the_text_are_named():
    with pytest.raises(ValueError, match=r"token 2 \('bad'\).*leave the text column out"):
        align(["It", "bad"], "It is bad")
