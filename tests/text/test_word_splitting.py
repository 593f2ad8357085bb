import re
import sys
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rationalizer.text.word_splitting import _parser, align, is_punctuation, is_unspaced, join, split_words

PIECES = [
    "<br />",
    "<BR>",
    "http://",
    "www.",
    ".com",
    "U.S.",
    "a@b.c",
    ":-)",
    "<3",
    ">_<",
    "👩‍👧",
    "🇩🇪",
    "字",
    "かカー",
    "ไทย",
]
TEXTS = st.one_of(
    st.text(st.characters(exclude_categories=())),  # with NUL and lone surrogates
    st.lists(st.one_of(st.sampled_from(PIECES), st.sampled_from("aZ9.,'’-_@#&$%*+:;!?()<>/br \n\x1c\u0301\u200d"))).map(
        "".join
    ),
)


class Letters:
    """A parser that cuts everywhere."""

    def parse(self, run):
        return list(run)


def words(text):
    return list(split_words(text)[0])


def whole(text):
    """The text cut at its spaces, with which `words` agrees where no token but these is wanted."""
    return text.split(" ")


@pytest.mark.parametrize(
    "text",
    [
        "wouldn't mosser's o'clock wouldn’t don´t don`t can't've rock'n'roll l'été n't 's 'em '90s rock 'n' roll",
        "well-known café-bar mother-in-law 2019-2020 4-star snake_case f**k",
        "10.50 1,000,000 9/11 10:30 3.5% $10.50 €5 5€ .45 $.50 1st 24/7 7.5/10 30+ A+ B- C++",
        "U.S. e.g. i.e. p.m. Ph.D. B.Sc. J.R.R. Mr. U.S.-led anti-U.S.",
        "AT&T R&B M&Ms w/o b/c",
        "http://x.y/z?q=1 www.x.y/z?q=1 https://en.wikipedia.org/wiki/A_(b) x.co.uk/foo imdb.com a.b+c@d-e.com",
        "@user_1 #metoo #1 &amp; #39;",
        "👨‍👩‍👧‍👦 👍🏽 🇩🇪 1️⃣ ❤️ 🏴󠁧󠁢󠁥󠁮󠁧󠁿 ☺ ★★★☆",
        ":) :-( ;D <3 :'( ^^ ^_^ -_- :)) =P :/ 8-) (: ¯\\_(ツ)_/¯",
        "cafe\u0301 नमस्ते สวัสดีครับ مُحَمَّد می\u200cخواهم a\u00adb",
        "-- - ... ?! !!! … *** '' ``",
    ],
)
def test_single_tokens(text):
    assert words(text) == whole(text)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("The end. A film.The", "The end . A film . The"),
        ("so,5 stars.10/10", "so , 5 stars . 10/10"),
        ("It was 9.5. Or 60's.A lot", "It was 9.5 . Or 60's . A lot"),
        ("in the U.S.The, (U.S.), U.S...", "in the U.S. The , ( U.S. ) , U.S ..."),
        ("word—word word--word -5 pre- _so_", "word — word word -- word - 5 pre - _ so _"),
        ("and/or this&that", "and / or this & that"),
        ("see http://x.y/z?q=1, (www.x.y/a_(b)). a@b.com!", "see http://x.y/z?q=1 , ( www.x.y/a_(b) ) . a@b.com !"),
        ("@user's IMDb.com's", "@user 's IMDb.com 's"),
        ("😂😂🇩🇪🇫🇷1️⃣2️⃣", "😂 😂 🇩🇪 🇫🇷 1️⃣ 2️⃣"),
        ("great:) fine;-).", "great :) fine ;-) ."),
        ("(see:(1)) x:D said:\\", "( see : ( 1 ) ) x : D said : \\"),
        ("('Hi!'), \"[so]\"...", "( ' Hi ! ' ) , \" [ so ] \" ..."),
        ('wait...what?!"', 'wait ... what ?! "'),
        ("a <b> <<c", "a < b > < < c"),
        ("U.S.'s 20-$30 B-movie", "U.S.'s 20 - $30 B-movie"),
        ("mossers' 'they say' 's'", "mossers ' ' they say ' ' s '"),
    ],
)
def test_tokens(text, tokens):
    assert words(text) == whole(tokens)


def test_invisible_characters_separate_words():
    assert words("a\u200bb !\u0301 \u0301") == ["a", "\u200b", "b", "!\u0301", "\u0301"]


@pytest.mark.parametrize("markup", ["<br />", "<br/>", "<BR>", "<br /><Br\n>", "<br / >"])
def test_html_line_breaks_are_white_space(markup):
    text = f"Bad.{markup}Good:){markup}http://a.b{markup}<3"
    tokens, offsets = split_words(text)
    assert tokens == ("Bad", ".", "Good", ":)", "http://a.b", "<3")
    assert tuple(text[a:b] for a, b in offsets) == tokens


def test_rule_words_on_unspaced_scripts():
    assert words("我爱iPhone。") == ["我", "爱", "iPhone", "。"]
    assert words("私はスーパーマンがすごーい2019年") == ["私", "は", "スーパーマン", "がすごーい", "2019", "年"]
    assert words("か\u3099カ\u3099ｶﾞ字\U000e0100") == ["か\u3099", "カ\u3099ｶﾞ", "字\U000e0100"]
    assert words("วันนี้ดี100บาท ខ្ញុំស្រឡាញ់។ ພາສາລາວ မြန်မာ၊") == [
        "วันนี้ดี", "100", "บาท", "ខ្ញុំស្រឡាញ់", "។", "ພາສາລາວ", "မြန်မာ", "၊",
    ]  # fmt: skip
    assert words("ក\u200cខ ก字") == ["ក\u200cខ", "ก", "字"]
    assert words("見てhttp://x.jp/a。です") == ["見", "て", "http://x.jp/a", "。", "です"]


@pytest.mark.parametrize(
    ("text", "tokens"),
    [
        ("私は映画館で映画を見ました。", "私は 映画館で 映画を 見ました 。"),
        ("我今天去电影院看电影", "我 今天 去 电影院 看 电影"),
        ("วันนี้อากาศดีมาก", "วัน นี้ อากาศ ดี มาก"),
        ("Wasn't 9.5, ខ្ញុំស្រឡាញ់!", "Wasn't 9.5 , ខ្ញុំស្រឡាញ់ !"),
    ],
)
def test_rule_segments(text, tokens):
    pytest.importorskip("budoux")
    found, offsets = split_words(text, "segments")
    assert list(found) == whole(tokens)
    assert tuple(text[a:b] for a, b in offsets) == found


@pytest.mark.parametrize(
    ("text", "language"),
    [("電影很好看", "traditional_chinese"), ("电影很好看", "simplified_chinese"), ("電影 の", "japanese")],
)
def test_whole_text_determines_the_parser(text, language, monkeypatch):
    asked = []
    monkeypatch.setattr(f"{split_words.__module__}._parser", lambda name: asked.append(name) or Letters())
    split_words(text, "segments")
    assert set(asked) == {language}


def test_segments_never_start_with_a_combining_mark(monkeypatch):
    monkeypatch.setattr(f"{split_words.__module__}._parser", lambda name: Letters())
    assert split_words("ทำนี้ か\u3099き", "segments")[0] == ("ทำ", "นี้", "か\u3099", "き")


def test_scripts_without_parser_are_not_split(monkeypatch):
    monkeypatch.setattr(f"{split_words.__module__}._parser", lambda name: Letters())
    assert split_words("ភាសា ລາວ ကခ กข", "segments")[0] == ("ភាសា", "ລາວ", "ကခ", "ก", "ข")


def test_missing_budoux_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(sys.modules, "budoux", None)
    _parser.cache_clear()
    with pytest.raises(ImportError, match=r'"segments" needs the package budoux: pip install "\.\[segment\]".*"words"'):
        split_words("no such script", "segments")


def test_unknown_rule_raises():
    with pytest.raises(ValueError, match=r"'letters'.*'words', 'spaces', 'segments'"):
        split_words("a", "letters")


def test_rule_spaces_splits_at_white_space_only():
    assert split_words("  a  ``b'' \n c<br />", "spaces") == (
        ("a", "``b''", "c<br", "/>"),
        ((2, 3), (5, 10), (13, 17), (18, 20)),
    )


@pytest.mark.parametrize("rule", ["words", "spaces", "segments"])
@pytest.mark.parametrize("text", ["", " \n\t\x1c\u3000"])
def test_empty_text_has_no_tokens(rule, text):
    if rule == "segments":
        pytest.importorskip("budoux")
    assert split_words(text, rule) == ((), ())


@pytest.mark.parametrize("rule", ["words", "segments"])
@given(text=TEXTS)
def test_all_other_characters_are_covered_by_tokens(rule, text):
    if rule == "segments":
        pytest.importorskip("budoux")
    tokens, offsets = split_words(text, rule)
    solid = re.sub(r"<br\s*/?\s*>|\s", "", text, flags=re.IGNORECASE)
    assert "".join(tokens) == solid
    assert tuple(text[a:b] for a, b in offsets) == tokens
    assert not any(re.search(r"\s", token) for token in tokens)
    ends = [0, *(end for _, end in offsets)]
    assert all(end <= start < after for end, (start, after) in zip(ends, offsets, strict=False))
    assert split_words(text, rule) == (tokens, offsets)


@given(TEXTS)
def test_white_space_matches_str_isspace(text):
    assert list(split_words(text, "spaces")[0]) == text.split()


def test_equal_tokens_and_spans_are_shared():
    (first, *_), (span, *_) = split_words("warmest of all")
    (second, *_), (other, *_) = split_words("warmest yet")
    assert first is second
    assert span is other


@pytest.mark.parametrize(("unit", "count"), [("a-", 2), ("'", 1), ("http://", 1), ("1,", 2)])
def test_single_token_of_a_million_characters(unit, count):
    assert len(split_words(unit * (1_000_000 // len(unit)))[0]) == count


def test_text_of_a_hundred_thousand_tokens():
    assert split_words("(" * 100_000)[0] == ("(",) * 100_000


# fmt: off
UNITS = ["a-", "'", "http://", "http://(", "www.!", "1,", "a.", "a+", "a@", "a_", "a*", "A&", "<br", "<br ", ":(", "&a",
         "😀\u200d", "字", ".com", "x.co."]
# fmt: on


@pytest.mark.parametrize("unit", UNITS)
def test_time_is_linear_in_length(unit):
    def seconds(length):
        text = unit * (length // len(unit))
        start = time.process_time()
        split_words(text)
        return time.process_time() - start

    seconds(1000)
    # Four times the text: four times as long, not sixteen.
    assert seconds(200_000) < 9 * seconds(50_000) + 0.2


@pytest.mark.parametrize(
    "token", [".", "...", "?!", "--", "—", '"', "''", "(", "«", "。", "、", "$", "+", "_", "*", "•", "●", "\u200b", ""]
)
def test_punctuation(token):
    assert is_punctuation(token)


@pytest.mark.parametrize(
    "token",
    ["a", "'s", "5", "½", "-5", "字", "ไ", "😀", "🇩🇪", "1️⃣", "❤️", "★★☆", "♪", ":)", "<3", "^^", "-_-", "(:", ":'("],
)
def test_words_and_emoji_are_not_punctuation(token):
    assert not is_punctuation(token)


@pytest.mark.parametrize(
    ("text", "unspaced"),
    [
        ("A warm film", False),
        ("Ein schöner Film", False),
        ("Я люблю кино", False),
        ("영화가 좋다", False),
        ("the word 映画 means film", False),
        ("", False),
        ("。、…", False),
        ("映画 film", True),
        ("映画が好き", True),
        ("我爱电影", True),
        ("ภาษาไทย", True),
        ("ພາສາລາວ", True),
        ("ភាសាខ្មែរ", True),
        ("မြန်မာ", True),
    ],
)
def test_is_unspaced(text, unspaced):
    assert is_unspaced(text) is unspaced


@given(st.lists(st.text(alphabet=st.characters(exclude_categories=["Z", "C"]), min_size=1), min_size=1))
def test_join_round_trip(tokens):
    text, offsets = join(tokens)
    assert [text[a:b] for a, b in offsets] == tokens
    assert align(tokens, text) == offsets


def test_align_round_trip():
    assert align(["It", "'s", "good"], "It's  good") == ((0, 2), (2, 4), (6, 10))


def test_align_names_missing_token():
    with pytest.raises(ValueError, match=r"token 2 \('bad'\).*leave the text column out"):
        align(["It", "bad"], "It is bad")
