"""A corpus that needs no download: seeded reviews of places to eat and stay, whose rationales are known.

A review has three sentences: an opinion on the target aspect, opinions on one or two other aspects,
sometimes a remark without opinion. An opinion is four words: a degree or a negation, two adjectives, the
aspect's noun, as in "barely helpful lovely neglect". Adjectives and noun each speak for or against, a
negation turns the adjectives round, and the majority of the three is the opinion. The label is the opinion
on the target aspect, and the gold rationale its four words: all of them are needed, and no word of another
sentence helps. Aspects share most adjectives, so that counting good and bad words tells the label in part
only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from rationalizer.data.corpus import Corpus
from rationalizer.text.budget import Budget
from rationalizer.text.example import Example
from rationalizer.text.word_splitting import SplitRule, split_words

CLASSES = ("negative", "positive")
SENTENCES = 3
TWO_OTHERS = 0.7  # how often both sentences beside the target's are opinions
NEGATED = 0.1  # how often an opinion is negated
MIXED = 0.5  # how often one of an opinion's three words speaks against the other two
OWN = 0.2  # how often an adjective is one of the aspect's own


class Opposites(NamedTuple):
    """Opposites against and words for; `words[True]` are those for."""

    bad: tuple[str, ...]
    good: tuple[str, ...]


class Aspect(NamedTuple):
    nouns: Opposites
    adjectives: Opposites


def _words(bad: str, good: str) -> Opposites:
    return Opposites(tuple(bad.split()), tuple(good.split()))


ASPECTS = {
    "food": Aspect(
        _words("slop leftovers mush gruel", "feast delicacies treats banquet"),
        _words("bland stale overcooked greasy", "delicious tasty flavourful savoury"),
    ),
    "service": Aspect(
        _words("neglect delays excuses arrogance", "attention care hospitality courtesy"),
        _words("rude careless unhelpful slow", "attentive friendly helpful prompt"),
    ),
    "location": Aspect(
        _words("traffic noise pollution roadworks", "views scenery sunsets greenery"),
        _words("remote unsafe isolated gloomy", "central scenic walkable leafy"),
    ),
    "room": Aspect(
        _words("damp dust clutter mould", "comfort space daylight calm"),
        _words("cramped dirty musty shabby", "spacious spotless airy cosy"),
    ),
    "price": Aspect(
        _words("surcharges fees penalties markups", "bargains discounts savings refunds"),
        _words("excessive inflated unfair steep", "affordable fair generous sensible"),
    ),
    "music": Aspect(
        _words("racket feedback din distortion", "harmony melodies rhythm talent"),
        _words("deafening repetitive shrill tuneless", "melodic soothing lively rhythmic"),
    ),
}
SHARED = _words(
    "awful terrible poor horrible dreadful disappointing mediocre unpleasant dismal lousy appalling "
    "atrocious frustrating annoying miserable inferior pathetic depressing abysmal forgettable unbearable "
    "regrettable tedious inadequate weak grim",
    "excellent wonderful great superb lovely fantastic charming impressive delightful pleasant outstanding "
    "perfect splendid brilliant remarkable amazing enjoyable terrific marvellous fabulous beautiful "
    "memorable satisfying exceptional refreshing stunning",
)
DEGREES = ("very", "really", "truly", "quite", "rather", "so", "especially", "particularly")
NEGATIONS = ("hardly", "scarcely", "barely", "not")
STATEMENTS = ("we found {}", "there was {}", "expect {}", "it offers {}", "i remember their {}", "we had {}")
REMARKS = {
    "we came here on {}": ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"),
    "my {} booked it for us": ("sister", "brother", "partner", "colleague", "cousin", "uncle", "friend"),
    "it was our {} visit": ("first", "second", "third", "fourth", "fifth", "last"),
    "i was in town with my {}": ("family", "team", "daughter", "son", "parents", "friends"),
}
ENDINGS = (".", ".", ".", "!")


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
    """Reviews labelled with the opinion on `aspect`.

    Each other opinion agrees with the label with probability (1 + correlation) / 2: at 0 the other sentences
    say nothing about the label, at 1 they all agree with it, at -1 they all contradict it.
    """
    if aspect not in ASPECTS:
        raise ValueError(f"aspect must be one of {', '.join(ASPECTS)}, got {aspect!r}")
    if not -1 <= correlation <= 1:
        raise ValueError(f"correlation must lie between -1 and 1, got {correlation!r}")
    if min(train, dev, test) < 0:
        raise ValueError(f"a split cannot have fewer than 0 reviews, got {train}, {dev}, {test}")
    generator = np.random.default_rng(seed)
    examples = [_review(generator, aspect, correlation, rule) for _ in range(train + dev + test)]
    return Corpus(
        name="reviews",
        task="classification",
        classes=CLASSES,
        train=examples[:train],
        dev=examples[train : train + dev],
        test=examples[train + dev :],
        budget=Budget.share(0.22),
        rule=rule,
    )


def _review(generator: np.random.Generator, target: str, correlation: float, rule: SplitRule) -> Example:
    label = bool(generator.integers(2))
    others = [name for name in ASPECTS if name != target]
    told = [target, *generator.permutation(others)[: 2 if generator.random() < TWO_OTHERS else 1]]
    told += [""] * (SENTENCES - len(told))  # a remark
    text, start, end = "", 0, 0
    for name in generator.permutation(told):
        if name == "":
            remark = _pick(generator, tuple(REMARKS))
            sentence = remark.format(_pick(generator, REMARKS[remark]))
        else:
            agrees = name == target or generator.random() < (1 + correlation) / 2
            opinion = _opinion(generator, ASPECTS[name], label == agrees)
            sentence = _pick(generator, STATEMENTS).format(opinion)
            if name == target:
                start = len(text) + sentence.index(opinion)
                end = start + len(opinion)
        text += sentence[0].upper() + sentence[1:] + _pick(generator, ENDINGS) + " "
    text = text.rstrip()
    tokens, offsets = split_words(text, rule)
    rationale = tuple(first < end and start < last for first, last in offsets)
    return Example(text, tokens, offsets, int(label), rationale)


def _opinion(generator: np.random.Generator, aspect: Aspect, good: bool) -> str:
    votes = [good, good, good]
    if generator.random() < MIXED:
        votes[generator.integers(3)] = not good
    negated = generator.random() < NEGATED
    adjectives: list[str] = []
    for vote in votes[:2]:
        choices = (aspect.adjectives if generator.random() < OWN else SHARED)[vote != negated]
        adjectives.append(_pick(generator, [word for word in choices if word not in adjectives]))
    opening = _pick(generator, NEGATIONS if negated else DEGREES)
    return " ".join([opening, *adjectives, _pick(generator, aspect.nouns[votes[2]])])


def _pick(generator: np.random.Generator, choices: Sequence[str]) -> str:
    return choices[int(generator.integers(len(choices)))]
