"""Split texts into words with their character offsets."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import cache, lru_cache
from importlib.metadata import version
from itertools import accumulate, pairwise
from typing import Any, Literal, get_args

import regex

from rationalizer.text.errors import InputError

Offsets = tuple[tuple[int, int], ...]
SplitRule = Literal["words", "spaces", "segments"]

_SPACE = r"\s\x1c-\x1f"  # as str.isspace; `regex` does not count \x1c-\x1f as white space
_KANA_MARKS = "ーｰﾞﾟ"  # long vowel and voiced consonant marks, used in both kana and assigned to neither script
_KANA = rf"\p{{Hiragana}}\p{{Katakana}}{_KANA_MARKS}"
_CJK = rf"[[\p{{Han}}{_KANA}]&&[\p{{L}}\p{{N}}]]"
_SOUTHEAST_ASIAN = r"[[\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}]&&[\p{L}\p{M}\p{N}]]"
_UNSPACED = rf"{_CJK}{_SOUTHEAST_ASIAN}"
_APOSTROPHE = r"'’‘＇`´\x92"  # all characters that people type for an apostrophe
_LETTER = rf"[\p{{L}}--[{_UNSPACED}]]"
_START = rf"[[\p{{L}}\p{{N}}]--[{_UNSPACED}]]"
_URL = rf'[^{_SPACE}<>"“”()\u3000-\u303F\uFF00-\uFFEF{_UNSPACED}]'
_URL_REST = rf"(?:{_URL}*+\({_URL}*+\))*+{_URL}*(?<=[\w/#=&%+~$)-])"
_EMOJI = r"[[\p{So}--[¦°\u2500-\u25FF\uFFFC\uFFFD]]||[\p{Extended_Pictographic}--\p{P}]]"
# Variation selectors, skin tones, regional flags.
_EMOJI_MODIFIERS = r"[\p{M}\U0001F3FB-\U0001F3FF\U000E0020-\U000E007F]*+"

# Emoticons are separated from words, except that ":)" may follow a word directly. No word may follow an emoticon:
# "(see:(1))" contains none, and the "<" of "<br>" is not part of one.
_EMOTICON = r"""(?:
    (?: [:;] ['’]? -? [()]++
      | (?<!\w) (?: [>}]? [:;=] ['’]? [-~^o]? (?: [()]++ | [DPpOoSsXx] )
                  | :-?3 | </?3++ | \^[_.-]?\^ | -(?:_++|\.)- | >[_.]++< | \\o/ )
      | (?<!\S) [>}]? [:;=] -? [\]\[}{|/\\*]
    ) (?! [\w%"“/] )
  | (?<!\S) (?: \( [-']? [:;=] | ¯\\_\(ツ\)_/¯ ) (?!\S)
)"""

# Apostrophes, hyphens and similar characters join parts into one word. Dots only join abbreviations: "film.The" is two
# words.
_PART = rf"""(?:
    (?<![{_APOSTROPHE}]) {_LETTER} (?: \.{_LETTER}(?![\p{{L}}\p{{M}}\p{{N}}]) )++ (?: \.(?!\.) )?+
  | (?: Ph\.D | [BM]\.(?:Sc|Ed|Phil) | Messrs | Mr | Mrs | Ms | Dr | Prof | St | Jr | Sr | vs ) \.(?!\.)
  | {_START} (?: [a-zA-Z0-9]++ | [[\p{{L}}\p{{M}}\p{{N}}\u00AD\u200C\u200D]--[{_UNSPACED}]] )*+
)"""
_WORD = rf"""
    {_PART}
    (?:
      (?: [{_APOSTROPHE}·׳״‐‑-] | _++ | (?<=\d)[.,:/⁄](?=\d) | (?<=\p{{L}})\*{{1,9}}+(?=\p{{L}})
        | (?<=\p{{Lu}})&(?=\p{{Lu}}) | (?<=(?<![\w'’])\p{{L}})[&/](?=\p{{L}}(?!\w))
      ) {_PART}
    )*+
    (?: (?<=\d) (?: [%‰°] | \p{{Sc}} | \+(?![\w+]) ) )?+
"""

# Punctuation: a run of the same character is one token ("--", "***", "''"), and so is any run of sentence ends
# ("...", "?!"); each bracket is a token of its own. An underscore is a letter inside a word and punctuation around it
# (_so_). Bounded and possessive repeats (++) keep the time linear in the length of any text.
_TOKEN = regex.compile(
    rf"""(?![{_SPACE}]) (?:
    (?i:<br)[{_SPACE}]*+/?+[{_SPACE}]*+>               # white space in HTML: matched, but in no group
  | (?<token>                                          # a shortcut for the most frequent tokens
      [A-Z]?[a-z]++(?=[{_SPACE},!?)"]) | [a-z]{{3,}}+(?=\.[{_SPACE}<]) | [.,](?=[{_SPACE}])
    )
  | (?<run> {_CJK}[{_CJK}\p{{M}}]*+ | {_SOUTHEAST_ASIAN}[{_SOUTHEAST_ASIAN}\p{{M}}\u200C\u200D]*+ )
  | (?=[\p{{L}}\p{{N}}]) (?<token>
      (?: (?i:https?|ftp):// | (?i:www)\.(?=\w) ) {_URL_REST}
    | (?: [a-zA-Z0-9-]{{1,63}}+\. ){{1,4}} (?i:com|org|net|edu|gov|info|co\.[a-z]{{2}}) (?:\.[a-z]{{2}})?+ (?!\w)
      (?: / {_URL_REST} )?+
    | \w[\w.+-]{{0,63}}+@[\w-]++(?:\.[\w-]++)++
    | [0-9]\uFE0F?+\u20E3
    | (?: 8-\) | [A-DF][+-] | C\+\+ | [CF]\# ) (?![\w+-])   # an emoticon, grades, programming languages
    | (?:quot|nbsp|[lg]t);                             # &quot; in corpora that lost the "&"
    | {_WORD}
    )
  | (?<token>
      {_EMOTICON}
    | \p{{Regional_Indicator}}{{2}} | [#*]\uFE0F?+\u20E3
    | (?: [★☆⭐]\uFE0F?+ ){{2,}}+ | {_EMOJI}{_EMOJI_MODIFIERS}(?:\u200D{_EMOJI}{_EMOJI_MODIFIERS})*+
    | [{_APOSTROPHE}] (?i: [stdm] | ll | [rv]e | em | til | t(?:i|wa)s | cause | bout | \d\ds? | n['’]?+ ) (?![\w'’])
    | &?\#x?\d{{2,6}}+; | &\w{{2,8}}+; | (?<!\w)[@#＠＃](?=_*+[\p{{L}}\p{{N}}])\w++
    | (?: \p{{Sc}}\.?+ | (?<![^{_SPACE}])\. ) (?=\d) {_WORD}
    | (?: [.!?…！？]++ | [\p{{Ps}}\p{{Pe}}<>] | (?<mark>[^{_SPACE}])(?P=mark)*+ ) \p{{M}}*+
    ))""",
    regex.VERSION1 | regex.VERBOSE,
)
_SOLID = regex.compile(rf"(?<token>[^{_SPACE}]++)")
_WORDLIKE = regex.compile(rf"[\p{{L}}\p{{N}}] | {_EMOJI} | ^{_EMOTICON}$", regex.VERSION1 | regex.VERBOSE)
_LETTERS = regex.compile(rf"(?<unspaced>[[{_UNSPACED}]&&\p{{L}}])|\p{{L}}", regex.VERSION1)
_PIECE = regex.compile(
    rf"\p{{Han}}\p{{M}}*+|[\p{{Katakana}}{_KANA_MARKS}\p{{M}}]++|[\p{{Hiragana}}{_KANA_MARKS}\p{{M}}]++|.++"
)


@lru_cache(maxsize=1 << 16)
def _span(start: int, end: int) -> tuple[int, int]:
    return start, end


def split_words(text: str, rule: SplitRule = "words") -> tuple[tuple[str, ...], Offsets]:
    """Split a text into tokens and their character spans, with text[start:end] == token.

    Rules:
        words: words, numbers, addresses, emoji and the like, and the punctuation between them. In scripts written
            without spaces, each Han character and each run of one kana is a token; runs of Thai, Lao, Khmer and Burmese
            are not split.
        segments: the same, but Chinese, Japanese and Thai are split into words and short phrases by the package budoux.
        spaces: split at white space, for tokenized texts.

    >>> split_words("Warm,<br />isn't it?!")
    (('Warm', ',', "isn't", 'it', '?!'), ((0, 4), (4, 5), (11, 16), (17, 19), (19, 21)))
    """
    if rule not in get_args(SplitRule):
        raise InputError(f"unknown rule {rule!r}: use one of {', '.join(map(repr, get_args(SplitRule)))}")
    divide = _segmenter(text) if rule == "segments" else _PIECE.findall
    spans: list[tuple[int, int]] = []
    for match in (_SOLID if rule == "spaces" else _TOKEN).finditer(text):
        kind = match.lastgroup
        if kind == "token":
            spans.append(match.span())
        elif kind == "run":
            spans += pairwise(accumulate(map(len, divide(match.group())), initial=match.start()))
    # Equal tokens and spans are shared objects: corpora repeat them by the million.
    tokens = tuple([sys.intern(text[start:end]) for start, end in spans])
    return tokens, tuple([_span(*span) for span in spans])


def rule_version(rule: SplitRule) -> str:
    """A string that changes whenever the rule splits texts differently."""
    if rule == "spaces":
        return _SOLID.pattern
    return f"{_TOKEN.pattern}\n{_PIECE.pattern if rule == 'words' else version('budoux')}"


def browser_patterns() -> dict[str, str]:
    """The patterns of the rules "words" and "spaces", for a page that splits texts itself."""
    patterns = {"token": _TOKEN, "solid": _SOLID, "wordlike": _WORDLIKE, "piece": _PIECE}
    return {name: pattern.pattern for name, pattern in patterns.items()}


def _segmenter(text: str) -> Callable[[str], list[str]]:
    """Return a function that splits runs of unspaced scripts. It depends on the whole text, which tells Japanese from
    Chinese."""
    language = "japanese"
    if not regex.search(rf"[{_KANA}]", text):
        # Of the characters used only in Taiwan or only in China, the other country's legacy character set has few.
        han = "".join(regex.findall(r"\p{Han}", text))
        traditional = len(han.encode("big5", "ignore")) > len(han.encode("gb2312", "ignore"))
        language = "traditional_chinese" if traditional else "simplified_chinese"
    _parser(language)  # so that a missing package raises for any text

    def divide(run: str) -> list[str]:
        southeast_asian = regex.match(_SOUTHEAST_ASIAN, run, regex.VERSION1)
        if southeast_asian and not regex.search(r"\p{Thai}", run):
            return [run]
        pieces = "\n".join(_parser("thai" if southeast_asian else language).parse(run))
        # Combining marks and vowels stay with their letter.
        return regex.sub(r"\n(?=[\p{M}ำຳ])", "", pieces).split("\n")

    return divide


@cache
def _parser(language: str) -> Any:
    try:
        import budoux
    except ImportError as error:
        raise ImportError(
            'the rule "segments" needs the package budoux: pip install ".[segment]" in a checkout; '
            'or use the rule "words"'
        ) from error
    return getattr(budoux, f"load_default_{language}_parser")()


def is_punctuation(token: str) -> bool:
    """Whether a token contains no letter, digit or emoji, and is no emoticon."""
    # Long tokens seldom recur, and requests to a server must not fill its memory.
    return _is_punctuation(token) if len(token) <= 64 else _WORDLIKE.search(token) is None


@lru_cache(maxsize=1 << 16)
def _is_punctuation(token: str) -> bool:
    return _WORDLIKE.search(token) is None


def is_unspaced(text: str) -> bool:
    """Whether over a fifth of the letters belong to scripts without spaces, for which the rule "segments" is better."""
    if text.isascii():
        return False
    letters = [match.lastgroup for match in _LETTERS.finditer(text)]
    return 5 * letters.count("unspaced") > len(letters)


def join(tokens: Sequence[str]) -> tuple[str, Offsets]:
    """Join tokens by spaces; return the text and each token's span in it."""
    offsets, start = [], 0
    for token in tokens:
        offsets.append(_span(start, start + len(token)))
        start += len(token) + 1
    return " ".join(tokens), tuple(offsets)


def align(tokens: Sequence[str], text: str) -> Offsets:
    """Return the spans of tokens in their text, matched from left to right.

    Only white space may lie between two tokens, so that a token never matches a later occurrence by chance.
    """
    offsets, end = [], 0
    for k, token in enumerate(tokens):
        start = text.find(token, end)
        if start < 0 or text[end:start].strip():
            raise InputError(
                f"token {k + 1} ({token!r}) does not follow {text[max(0, end - 20) : end]!r} in the text",
                "leave the text column out to have the tokens joined by spaces",
            )
        end = start + len(token)
        offsets.append(_span(start, end))
    return tuple(offsets)
