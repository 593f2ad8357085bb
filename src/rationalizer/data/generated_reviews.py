"""A corpus that needs no download: generated reviews of places to eat and stay, with known rationales.

A review has three sentences: an opinion on the target aspect, opinions on one or two other aspects, and sometimes a
remark without opinion. An opinion is four words: a degree or a negation, two adjectives and the aspect's noun, as in
"barely helpful lovely neglect". The adjectives and the noun each vote for or against, a negation reverses the
adjectives, and the majority of the three is the opinion. The label is the opinion on the target aspect, and the
annotation its four words: all of them are needed, and no word of another sentence helps. The aspects share most
adjectives, so that counting good and bad words predicts the label only in part.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from rationalizer.data.corpus import Corpus
from rationalizer.data.generated_sampling import capitalise, pick, read_word_lists, sample_corpus
from rationalizer.text.budget import Budget
from rationalizer.text.example import Example
from rationalizer.text.word_splitting import SplitRule, split_words

CLASSES = ("negative", "positive")
SENTENCES = 3
P_TWO_OTHERS = 0.7  # that both other sentences are opinions
P_NEGATED = 0.1  # that an opinion is negated
P_MIXED = 0.5  # probability that one of an opinion's three words contradicts the other two
P_OWN = 0.2  # that an adjective is one of the aspect's own
ENDINGS = (".", ".", ".", "!")


class Opposites(NamedTuple):
    """Bad and good words; `opposites[True]` are the good ones."""

    bad: tuple[str, ...]
    good: tuple[str, ...]

    @classmethod
    def from_json(cls, stored: dict[str, str]) -> Opposites:
        return cls(tuple(stored["bad"].split()), tuple(stored["good"].split()))


class Aspect(NamedTuple):
    nouns: Opposites
    adjectives: Opposites


_WORDS: dict[str, Any] = read_word_lists("reviews")
ASPECTS = {
    name: Aspect(Opposites.from_json(words["nouns"]), Opposites.from_json(words["adjectives"]))
    for name, words in _WORDS["aspects"].items()
}
SHARED = Opposites.from_json(_WORDS["shared_adjectives"])
DEGREES, NEGATIONS = _WORDS["degrees"].split(), _WORDS["negations"].split()
STATEMENTS: list[str] = _WORDS["statements"]
REMARKS: dict[str, list[str]] = {template: words.split() for template, words in _WORDS["remarks"].items()}


def generated_reviews(
    *,
    seed: int = 0,
    train: int = 4000,
    dev: int = 500,
    test: int = 500,
    correlation: float = 0.0,
    aspect: str = "service",
    rule: SplitRule = "words",
) -> Corpus:
    """Generate reviews labelled with the opinion on `aspect`.

    Each other opinion agrees with the label with probability (1 + correlation) / 2: at 0 the other sentences are
    independent of the label, at 1 they all agree with it, at -1 they all contradict it.
    """
    if aspect not in ASPECTS:
        raise ValueError(f"aspect must be one of {', '.join(ASPECTS)}, got {aspect!r}")
    if not -1 <= correlation <= 1:
        raise ValueError(f"correlation must lie between -1 and 1, got {correlation!r}")

    def sample(generator: np.random.Generator) -> Iterator[Example]:
        while True:
            yield _review(generator, aspect, correlation, rule)

    sizes, budget = (train, dev, test), Budget.share(0.22)
    return sample_corpus("reviews", CLASSES, sample, sizes, budget=budget, seed=seed, rule=rule)


def _review(generator: np.random.Generator, target: str, correlation: float, rule: SplitRule) -> Example:
    label = bool(generator.integers(2))
    others = [name for name in ASPECTS if name != target]
    topics = [target, *generator.permutation(others)[: 2 if generator.random() < P_TWO_OTHERS else 1]]
    topics += [""] * (SENTENCES - len(topics))  # a remark
    text, start, end = "", 0, 0
    for name in generator.permutation(topics):
        if name == "":
            remark = pick(generator, tuple(REMARKS))
            sentence = remark.format(pick(generator, REMARKS[remark]))
        else:
            agrees = name == target or generator.random() < (1 + correlation) / 2
            opinion = _opinion(generator, ASPECTS[name], label == agrees)
            sentence = pick(generator, STATEMENTS).format(opinion)
            if name == target:
                start = len(text) + sentence.index(opinion)
                end = start + len(opinion)
        text += capitalise(sentence) + pick(generator, ENDINGS) + " "
    text = text.rstrip()
    tokens, offsets = split_words(text, rule)
    annotation = tuple(first < end and start < last for first, last in offsets)
    return Example(text, tokens, offsets, int(label), annotation)


def _opinion(generator: np.random.Generator, aspect: Aspect, is_good: bool) -> str:
    votes = [is_good, is_good, is_good]
    if generator.random() < P_MIXED:
        votes[generator.integers(3)] = not is_good
    negated = generator.random() < P_NEGATED
    adjectives: list[str] = []
    for vote in votes[:2]:
        choices = (aspect.adjectives if generator.random() < P_OWN else SHARED)[vote != negated]
        adjectives.append(pick(generator, [word for word in choices if word not in adjectives]))
    opening = pick(generator, NEGATIONS if negated else DEGREES)
    return " ".join([opening, *adjectives, pick(generator, aspect.nouns[votes[2]])])
