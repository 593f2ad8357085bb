"""The languages of a model's training texts, and whether a text is in another one.

The detector is py3langid: naive Bayes on character n-grams, without a download. The figures behind the constants are in
`docs/how-to/other-languages.md`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from rationalizer.text.example import Example

MIN_WORDS = 5  # shorter texts are not checked
MAX_CHARACTERS = 300  # the rest of a longer text is not looked at
COMMON_WORDS = 100
COMMON_SHARE = 0.4  # of the words of a text: with as many common words its language is known without the detector
MIN_SHARE = 0.05  # of the sample: languages with less are not the model's
FEWEST_TEXTS = 10  # of the sample; with fewer, a model's languages are unknown
LARGEST_PROBABILITY = 0.02  # of the model's languages, for a text in another one
NOT_A_LANGUAGE = "zxx"  # numbers, markup, identifiers

NAMES = {
    **{"ar": "Arabic", "bg": "Bulgarian", "ca": "Catalan", "cs": "Czech", "cy": "Welsh", "da": "Danish"},
    **{"de": "German", "el": "Greek", "en": "English", "es": "Spanish", "et": "Estonian", "eu": "Basque"},
    **{"fa": "Persian", "fi": "Finnish", "fr": "French", "ga": "Irish", "gl": "Galician", "he": "Hebrew"},
    **{"hi": "Hindi", "hr": "Croatian", "hu": "Hungarian", "id": "Indonesian", "is": "Icelandic", "it": "Italian"},
    **{"ja": "Japanese", "ko": "Korean", "lt": "Lithuanian", "lv": "Latvian", "nb": "Norwegian", "nl": "Dutch"},
    **{"nn": "Norwegian", "no": "Norwegian", "pl": "Polish", "pt": "Portuguese", "ro": "Romanian", "ru": "Russian"},
    **{"sk": "Slovak", "sl": "Slovenian", "sr": "Serbian", "sv": "Swedish", "th": "Thai", "tr": "Turkish"},
    **{"uk": "Ukrainian", "ur": "Urdu", "vi": "Vietnamese", "zh": "Chinese"},
}


@dataclass(frozen=True)
class Languages:
    """The languages of training texts, the most frequent first; none if they are unknown."""

    codes: tuple[str, ...] = ()  # ISO 639
    common_words: tuple[str, ...] = ()  # the most frequent words, in lower case

    @classmethod
    def of(cls, texts: Iterable[Example]) -> Languages:
        """Find the languages of a sample of texts."""
        totals: Counter[str] = Counter()
        frequencies: Counter[str] = Counter()
        count = 0
        for text in texts:
            words = _letter_words(text)
            frequencies.update(map(str.lower, words))
            if len(words) >= MIN_WORDS:
                totals.update(_probabilities(text.text))
                count += 1
        if count < FEWEST_TEXTS:
            return cls()
        codes = [code for code, total in totals.most_common() if total >= MIN_SHARE * count and code != NOT_A_LANGUAGE]
        return cls(tuple(codes), tuple(word for word, _ in frequencies.most_common(COMMON_WORDS)))

    @classmethod
    def from_json(cls, stored: dict[str, Any] | None) -> Languages:
        return cls() if stored is None else cls(tuple(stored["codes"]), tuple(stored["common_words"]))

    def to_json(self) -> dict[str, Any]:
        return {"codes": list(self.codes), "common_words": list(self.common_words)}

    @property
    def names(self) -> str:
        known = dict.fromkeys(NAMES[code] for code in self.codes if code in NAMES)
        return " and ".join(known) or _name(self.codes[0])

    def other_language(self, text: Example) -> str | None:
        """Return the name of the text's language if it is none of these; None also if the text is too short to say."""
        words = _letter_words(text)
        if not self.codes or len(words) < MIN_WORDS:
            return None
        common = self._common
        if sum(word.lower() in common for word in words) >= COMMON_SHARE * len(words):
            return None
        probabilities = _probabilities(text.text)
        best = max(probabilities, key=probabilities.__getitem__)
        own = sum(probabilities.get(code, 0.0) for code in self.codes)
        return None if own >= LARGEST_PROBABILITY or best == NOT_A_LANGUAGE else _name(best)

    @cached_property
    def _common(self) -> Collection[str]:
        return frozenset(self.common_words)


def _letter_words(text: Example) -> Sequence[str]:
    return [word for word in text.tokens if _has_letters(word)]


def _has_letters(word: str) -> bool:
    return any(map(str.isalpha, word))


def _name(code: str) -> str:
    return NAMES.get(code, f"the language {code!r}")


def _probabilities(text: str) -> dict[str, float]:
    return dict(_detector().rank(text[:MAX_CHARACTERS]))


@lru_cache(maxsize=1)
def _detector() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier  # loads a model: not needed by most programs

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
