import pickle
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rationalizer.text import vector_lookup as module
from rationalizer.text.vector_lookup import VectorLookup
from rationalizer.text.word_vectors import BUNDLED, load_vectors

WORDS = load_vectors(BUNDLED).words
LOOKUP = VectorLookup(WORDS)
SMALL = [
    "the",
    "The",
    "bar",
    "cafe",
    "ca",
    "n't",
    "'s",
    "email",
    "1000",
    "5",
    "great",
    "excellent",
    "Paris",
    "NATO",
    "...",
]


def found(token, lookup=LOOKUP, words=WORDS):
    return lookup.kind(token), " ".join([words[row] for row in lookup.find_rows(token)])


@pytest.mark.parametrize(
    ("token", "kind", "words"),
    [
        ("awful", "exact", "awful"),
        ("AWFUL", "exact", "awful"),
        (":)", "exact", ":)"),
        ("Mr.", "exact", "mr."),
        ("ﬁne", "variant", "fine"),
        ("ＦＵＬＬ", "variant", "full"),
        ("co\u00adffee", "variant", "coffee"),
        ("café", "variant", "cafe"),
        ("Pokémon", "variant", "pokemon"),
        ("U.S", "variant", "u.s."),
        ("wouldn't", "parts", "would n't"),
        ("wouldn’t", "parts", "would n't"),
        ("Wouldn't've", "parts", "would n't 've"),
        ("can't", "parts", "ca n't"),
        ("I'm", "parts", "i 'm"),
        ("hotel's", "parts", "hotel 's"),
        ("didnt", "parts", "did n't"),
        ("thats", "parts", "that 's"),
        ("youre", "parts", "you 're"),
        ("out-dated", "parts", "outdated"),
        ("café-bar", "parts", "cafe bar"),
        ("and/or", "parts", "and or"),
        ("don't-care", "parts", "do n't care"),
        ("bar-qwzxqq", None, ""),
        ("4-star", "parts", "4 star"),
        ("24/7", "parts", "24 7"),
        ("7am", "parts", "7 am"),
        ("movie...but", "parts", "movie but"),
        (").", "parts", ") ."),
        ("$49", "number", "49"),
        ("10.50", "number", "10"),
        ("3.5%", "number", "3"),
        ("3,457", "number", "3000"),
        ("8,765", "number", "8000"),
        ("007", "exact", "007"),
        ("98765432", "number", "100000"),
        ("1234567890123", None, ""),
        ("#great", "variant", "great"),
        ("@john", "variant", "john"),
        ("(great!)", "variant", "great"),
        ("dogs'", "variant", "dogs"),
        ("\"wouldn't", "parts", "would n't"),
        ("sooooo", "variant", "so"),
        ("goood", "variant", "good"),
        ("tooo", "variant", "too"),
        ("noooowwww", "variant", "now"),
        ("......", "variant", "..."),
        ("<3", None, ""),
        (":-/", None, ""),
        ("😀", None, ""),
        ("great😀", "parts", "great"),
        ("recieved", "spelling", "received"),
        ("excelent", "spelling", "excellent"),
        ("untill", "spelling", "until"),
        ("restarants", "spelling", "restaurants"),
        ("definately", "spelling", "definitely"),
        ("Definately", "spelling", "definitely"),
        ("larderx", None, ""),
        ("larder", None, ""),  # would be larger
        ("permier", "spelling", "premier"),
        ("Permier", None, ""),  # perhaps a name
        ("Indien", None, ""),  # would be indian
        ("Bridgers", None, ""),  # a name, which would be bridges
        ("hotle", None, ""),  # too short
        ("qwzxqq", None, ""),
        ("", None, ""),
        (" ", None, ""),
    ],
)
def test_kind_and_rows_with_bundled_vectors(token, kind, words):
    assert found(token) == (kind, words)


def test_exact_case_takes_precedence():
    lookup = VectorLookup(SMALL)
    assert [found(token, lookup, SMALL)[1] for token in ["the", "The", "THE"]] == ["the", "The", "the"]
    assert found("paris", lookup, SMALL) == ("variant", "Paris")
    assert found("nato", lookup, SMALL) == ("variant", "NATO")


def test_known_accented_word_keeps_its_accents():
    words = ["cafe", "café"]
    assert found("CAFÉ", VectorLookup(words), words) == ("exact", "café")


def test_unknown_ending_is_dropped_except_negation():
    words = ["would", "hotel"]
    assert found("hotel's", VectorLookup(words), words) == ("parts", "hotel")
    assert found("wouldn't", VectorLookup(words), words) == (None, "")


def test_first_candidate_in_the_list_wins():
    for words in (["conducted", "conductor"], ["conductor", "conducted"]):
        assert found("conducter", VectorLookup(words), words) == ("spelling", words[0])
    words = ["same", "same"]
    assert VectorLookup(words).find_rows("same") == (0,)


def test_rare_words_are_no_spelling_corrections():
    words = [*[f"x{k}" for k in range(module.CORRECTION_ROWS)], "received"]
    assert VectorLookup(words).find_rows("recieved") == ()
    assert VectorLookup(words[1:]).find_rows("recieved") == (len(words) - 2,)


def test_number_of_parts_is_limited():
    assert len(LOOKUP.find_rows("-".join(["great"] * module.MAX_PARTS))) == module.MAX_PARTS
    assert LOOKUP.find_rows("-".join(["great"] * (module.MAX_PARTS + 1))) == ()


def test_long_tokens_match_exactly_or_not_at_all():
    assert LOOKUP.find_rows("great".ljust(module.MAX_LENGTH, "!")) == LOOKUP.find_rows("great")
    assert LOOKUP.find_rows("great".ljust(module.MAX_LENGTH + 1, "!")) == ()
    assert LOOKUP.find_rows("great" * 1_000_000) == ()
    assert VectorLookup(["w" * 1000]).find_rows("W" * 1000) == (0,)


def test_cache_is_bounded(monkeypatch):
    monkeypatch.setattr(module, "CACHE_SIZE", 10)
    lookup = VectorLookup(WORDS)
    for _ in range(2):
        assert [lookup.find_rows(word) for word in WORDS[:100]] == [(row,) for row in range(100)]
        assert len(lookup._cache) <= 10
    assert pickle.loads(pickle.dumps(lookup)).find_rows("wouldn't") == LOOKUP.find_rows("wouldn't")


def test_lookup_is_fast():
    started = time.perf_counter()
    lookup = VectorLookup(WORDS)
    assert time.perf_counter() - started < 0.5
    for k in range(2000):
        lookup.find_rows(f"unknownword{'abcdefghij'[k % 10]}{'qwxz'[k % 4] * 2}{k}")
    assert time.perf_counter() - started < 5


TOKENS = st.one_of(
    st.text(),
    st.text(st.characters(exclude_categories=())),  # surrogates and all
    st.from_regex(r"[a-zA-Zé]{0,9}[-'/.’]?(n't|'s|\d{1,9}|[a-z]{0,9})[%!.)]{0,3}", fullmatch=True),
    st.text("aeo'-.,/$%#@ 019é’ﬁ😀:)", max_size=12),
)


@given(TOKENS, st.sampled_from([(LOOKUP, WORDS), (VectorLookup(SMALL), SMALL), (VectorLookup([]), ())]))
def test_rows_are_valid_for_any_token(token, table):
    lookup, words = table
    rows = lookup.find_rows(token)
    assert isinstance(rows, tuple)
    assert len(rows) <= module.MAX_PARTS
    assert all(type(row) is int and 0 <= row < len(words) for row in rows)
    assert (lookup.kind(token) is None) == (rows == ())
    if token in words:
        assert rows == (words.index(token),)
    assert VectorLookup(words).find_rows(token) == rows
