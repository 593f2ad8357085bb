"""A corpus that needs no download: seeded reviews of places to eat and stay, whose rationales are known.

A review has several sentences, each with an opinion on one aspect; all aspects share most of their opinion
words. The label is the opinion on the target aspect alone, so that counting good and bad words does not tell
it: one has to find the sentence, and to see whether its opinion is negated.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from rationalizer.data.corpus import Corpus
from rationalizer.data.example import Example
from rationalizer.data.tokenize import tokenize

CLASSES = ("negative", "positive")


@dataclass(frozen=True)
class Aspect:
    """The words for one aspect. Much of `wanted` is good and much of `unwanted` is bad; the other nouns are neither."""

    nouns: tuple[str, ...]
    wanted: tuple[str, ...]
    unwanted: tuple[str, ...]
    good: tuple[str, ...]
    bad: tuple[str, ...]


def _aspect(*words: str) -> Aspect:
    return Aspect(*(tuple(group.split()) for group in words))


ASPECTS = {
    "food": _aspect(
        "food soup dinner breakfast menu dessert pasta",
        "choice freshness portion",
        "waste grease aftertaste",
        "delicious tasty flavourful savoury",
        "bland stale overcooked greasy",
    ),
    "service": _aspect(
        "service staff waiter manager reception chef concierge",
        "patience attention courtesy",
        "delay queue wait",
        "attentive courteous helpful prompt",
        "rude careless unhelpful slow",
    ),
    "location": _aspect(
        "location neighbourhood street area district garden harbour",
        "greenery view scenery",
        "traffic noise distance",
        "central scenic walkable leafy",
        "remote noisy unsafe isolated",
    ),
    "room": _aspect(
        "room bed bathroom suite balcony carpet furniture",
        "space comfort daylight",
        "clutter dust damp",
        "spacious spotless airy cosy",
        "cramped dirty musty shabby",
    ),
    "price": _aspect(
        "price rate pricing package offer deal tariff",
        "discount value refund",
        "bill fee surcharge",
        "affordable fair competitive sensible",
        "excessive inflated unfair steep",
    ),
    "music": _aspect(
        "music band playlist pianist sound singer concert",
        "variety talent harmony",
        "volume echo distortion",
        "melodic soothing lively rhythmic",
        "deafening repetitive shrill tuneless",
    ),
}
GOOD = (
    "excellent wonderful great superb lovely fantastic charming impressive delightful pleasant outstanding perfect "
    "splendid brilliant remarkable amazing enjoyable terrific marvellous fabulous beautiful memorable satisfying "
    "exceptional admirable refreshing stunning graceful welcome solid good fine exquisite magnificent"
).split()
BAD = (
    "awful terrible poor horrible dreadful disappointing mediocre unpleasant dismal lousy appalling atrocious "
    "frustrating annoying miserable inferior pathetic depressing abysmal forgettable unbearable regrettable ghastly "
    "tedious inadequate unacceptable weak bad sad ugly wretched hopeless grim tiresome"
).split()
LARGE = "considerable enormous endless substantial huge immense".split()
SMALL = "minimal tiny slight negligible scant meagre".split()
DEGREES = "very really truly quite rather so especially particularly".split()
NEGATIONS = "not never hardly".split()
VERBS = "was seemed felt looked remained".split()
NEGATED, AMOUNT, OWN = (
    0.3,
    0.5,
    0.2,
)  # how often an opinion is negated, is on an amount, uses the aspect's own words

STATEMENTS = ("the {}", "our {}", "their {}", "overall the {}", "here the {}")
FILLERS = (
    "we came here on {}",
    "my {} booked it for us",
    "it was our {} visit",
    "i was in town with my {}",
)
FILLINGS = (
    "monday tuesday wednesday thursday friday saturday sunday".split(),
    "sister brother partner colleague cousin uncle friend".split(),
    "first second third fourth fifth last".split(),
    "family team daughter son parents friends".split(),
)
ENDINGS = (".", ".", ".", "!")


def reviews(
    *,
    seed: int = 0,
    train: int = 4000,
    dev: int = 500,
    test: int = 500,
    correlation: float = 0.0,
    aspect: str = "service",
) -> Corpus:
    """Reviews labelled with the opinion on `aspect`; every text differs from every other.

    The gold rationale is one run of tokens: from the aspect's word to the end of its opinion, as in "staff
    was not very helpful". Each other aspect's opinion agrees with the label with probability (1 +
    correlation) / 2.
    """
    if aspect not in ASPECTS:
        raise ValueError(f"aspect must be one of {', '.join(ASPECTS)}, got {aspect!r}")
    if not -1 <= correlation <= 1:
        raise ValueError(f"correlation must lie between -1 and 1, got {correlation!r}")
    if min(train, dev, test) < 0:
        raise ValueError(f"a split cannot have fewer than 0 reviews, got {train}, {dev}, {test}")
    generator = np.random.default_rng(seed)
    seen: dict[str, Example] = {}
    while len(seen) < train + dev + test:
        example = _review(generator, aspect, correlation)
        seen.setdefault(example.text, example)
    examples = list(seen.values())
    return Corpus(
        name="reviews",
        task="classification",
        classes=CLASSES,
        train=examples[:train],
        dev=examples[train : train + dev],
        test=examples[train + dev :],
        budget=0.2,
    )


def _review(generator: np.random.Generator, target: str, correlation: float) -> Example:
    label = int(generator.integers(2))
    others = [name for name in ASPECTS if name != target]
    told = [target, *generator.permutation(others)[:2]]
    sentences: list[tuple[str, str | None]] = []
    for name in generator.permutation(told):
        agrees = name == target or generator.random() < (1 + correlation) / 2
        opinion = _opinion(generator, ASPECTS[name], bool(label) == agrees)
        sentences.append((_pick(generator, STATEMENTS).format(opinion), opinion if name == target else None))
    if generator.random() < 0.3:
        kind = int(generator.integers(len(FILLERS)))
        sentences.insert(0, (FILLERS[kind].format(_pick(generator, FILLINGS[kind])), None))

    text, start, end = "", 0, 0
    for sentence, gold in sentences:
        if gold is not None:
            start = len(text) + sentence.index(gold)
            end = start + len(gold)
        text += sentence[0].upper() + sentence[1:] + _pick(generator, ENDINGS) + " "
    text = text.rstrip()
    tokens, offsets = tokenize(text)
    rationale = tuple(start <= first and last <= end for first, last in offsets)
    return Example(text, tokens, offsets, label, rationale)


def _opinion(generator: np.random.Generator, aspect: Aspect, good: bool) -> str:
    negated = generator.random() < NEGATED
    praised = good != negated
    if generator.random() < AMOUNT:
        wanted = generator.random() < 0.5
        noun = _pick(generator, aspect.wanted if wanted else aspect.unwanted)
        word = _pick(generator, LARGE if wanted == praised else SMALL)
    else:
        noun = _pick(generator, aspect.nouns)
        own = generator.random() < OWN
        word = _pick(generator, (aspect.good if own else GOOD) if praised else (aspect.bad if own else BAD))
    words = [noun, _pick(generator, VERBS)]
    if negated:
        words.append(_pick(generator, NEGATIONS))
    if not negated or generator.random() < 0.5:
        words.append(_pick(generator, DEGREES))
    return " ".join([*words, word])


def _pick(generator: np.random.Generator, choices: Sequence[str]) -> str:
    return choices[int(generator.integers(len(choices)))]
