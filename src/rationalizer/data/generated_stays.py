"""A corpus that needs no download and reads like language: reviews of hotel stays, put together from clauses.

A review has three clauses, each on another side of the stay, and often a sentence that says nothing of it. Each clause
is for or against; the label is the side of two of the three or of all, and the rationale the marked words of the
clauses on that side. The clauses were written for this corpus. They come again in many reviews, so a model that does
well here knows these clauses, not hotels: for what it takes to judge methods there is `generated_reviews`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from rationalizer.data.corpus import Corpus
from rationalizer.text.budget import Budget
from rationalizer.text.example import Example
from rationalizer.text.word_splitting import SplitRule, split_words

CLASSES = ("negative", "positive")
MIXED = 0.6  # how often one of the three clauses is on the other side
REMARKED = 0.6  # how often a sentence without opinion comes first
JOINED = 0.5  # how often two clauses make one sentence

# What decides is marked; against, then for.
CLAUSES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "room": (
        (
            "the room [smelled of damp]",
            "our room was [cramped and dark]",
            "the carpet in the hall was [filthy]",
            "the bed was [so hard] that we woke up [aching]",
            "there was [mould] around the bathtub",
            "the walls were [paper-thin] and we heard every word from next door",
            "the shower was [broken] for two of our four days",
            "the sheets had [stains] on them",
        ),
        (
            "the room was [spotless]",
            "our room was [bright and spacious]",
            "the bed was [wonderfully comfortable]",
            "we had a [lovely view] over the harbour",
            "the bathroom was [gleaming]",
            "it was so [peaceful] that we slept like children",
            "the whole place had been [tastefully] renovated",
            "even the towels were [soft and fresh]",
        ),
    ),
    "staff": (
        (
            "the man at the desk was [rude]",
            "nobody at reception [cared] about our complaint",
            "the staff [ignored] us all evening",
            "the porter was [unfriendly] from the first minute",
            "they [lost] our booking and [blamed] us for it",
            "the waiters were [careless and slow]",
            "the manager [refused] to listen",
            "we had to [beg] for clean glasses",
        ),
        (
            "the staff was [friendly and helpful]",
            "everybody at the desk was [charming]",
            "the porter carried our bags with a [smile]",
            "they [remembered] our names after a day",
            "the manager [kindly] found us a larger room",
            "the waiters were [attentive] without being pushy",
            "they [patiently] explained the tickets for the tram",
            "we felt [welcome] from the first minute",
        ),
    ),
    "breakfast": (
        (
            "breakfast was [bland and cold]",
            "the coffee tasted [burnt]",
            "the bread at breakfast was [stale]",
            "there was [hardly anything] left at nine",
            "the eggs were [greasy]",
            "dinner made two of us [ill]",
        ),
        (
            "breakfast was [delicious]",
            "the coffee was [excellent]",
            "the bread was baked in the house and tasted [heavenly]",
            "there was a [generous] choice of fruit and cheese",
            "the omelettes were [perfect]",
            "dinner on the terrace was a [delight]",
        ),
    ),
    "location": (
        (
            "the street was [noisy] until three in the morning",
            "it lies in a [shabby] quarter behind the station",
            "the beach was [an hour] away and not ten minutes",
            "there is [nothing] around but a car park",
            "lorries [rattled] past our window all night",
            "we did not feel [safe] walking home",
        ),
        (
            "it is a [short walk] from the old town",
            "the garden is a [haven] in the middle of the city",
            "the tram stops [right outside]",
            "you step out of the door on to a [beautiful] square",
            "the neighbourhood is [lively] with cafes and small shops",
            "we watched the [gorgeous] sunset from the roof",
        ),
    ),
    "price": (
        (
            "it was far too [expensive] for what we got",
            "they charged us [hidden] fees at the end",
            "the bill was [wrong] and it took an hour to correct it",
            "the minibar is [shamelessly overpriced]",
            "we paid for parking that was [useless]",
        ),
        (
            "it was [good value] for the money",
            "the price was [fair]",
            "for that price it is a [bargain]",
            "they gave us a [discount] without being asked",
            "even the minibar was [reasonably] priced",
        ),
    ),
}
REMARKS = (
    "we stayed for three nights in May",
    "my sister had booked it for us",
    "we came by train from the coast",
    "it was our second visit to the city",
    "I was there for a conference",
    "we travelled with two small children",
    "we arrived late on a Friday",
    "our flight had been moved to the next day",
)
_MARK = re.compile(r"[\[\]]")


def generated_stays(
    *, seed: int = 0, train: int = 800, dev: int = 100, test: int = 200, rule: SplitRule = "words"
) -> Corpus:
    """Reviews labelled with what they say of the stay; as many of either class, about."""
    if min(train, dev, test) < 0:
        raise ValueError(f"a split cannot have fewer than 0 reviews, got {train}, {dev}, {test}")
    generator = np.random.default_rng(seed)
    examples = [_review(generator, rule) for _ in range(train + dev + test)]
    return Corpus(
        name="stays",
        task="classification",
        classes=CLASSES,
        train=examples[:train],
        dev=examples[train : train + dev],
        test=examples[train + dev :],
        budget=Budget.share(0.2),
        rule=rule,
    )


def _review(generator: np.random.Generator, rule: SplitRule) -> Example:
    label = bool(generator.integers(2))
    sides = [label, label, label]
    if generator.random() < MIXED:
        sides[generator.integers(3)] = not label
    aspects = [list(CLAUSES)[k] for k in generator.permutation(len(CLAUSES))[:3]]
    clauses = [_pick(generator, CLAUSES[aspect][side]) for aspect, side in zip(aspects, sides, strict=True)]
    # Only what speaks for the label is its reason.
    kept = [clause if side == label else _MARK.sub("", clause) for clause, side in zip(clauses, sides, strict=True)]
    marked = " ".join(_sentences(generator, kept, sides))
    text, spans = _unmarked(marked)
    tokens, offsets = split_words(text, rule)
    rationale = tuple(any(first < end and start < last for start, end in spans) for first, last in offsets)
    return Example(text, tokens, offsets, int(label), rationale)


def _sentences(generator: np.random.Generator, clauses: list[str], sides: list[bool]) -> list[str]:
    parts = [_pick(generator, REMARKS)] if generator.random() < REMARKED else []
    if generator.random() < JOINED:
        first = int(generator.integers(2))  # which clause is joined with the next
        joined = f"{clauses[first]}{' and' if sides[first] == sides[first + 1] else ', but'} {clauses[first + 1]}"
        clauses = [*clauses[:first], joined, *clauses[first + 2 :]]
    return [_capitalised(part) + "." for part in (*parts, *clauses)]


def _capitalised(sentence: str) -> str:
    return sentence[0].upper() + sentence[1:]


def _unmarked(marked: str) -> tuple[str, list[tuple[int, int]]]:
    """The text without its marks, and where they stood."""
    text, starts, ends = "", [], []
    for piece in re.split(r"([\[\]])", marked):
        if piece == "[":
            starts.append(len(text))
        elif piece == "]":
            ends.append(len(text))
        else:
            text += piece
    return text, list(zip(starts, ends, strict=True))


def _pick(generator: np.random.Generator, choices: Sequence[str]) -> str:
    return choices[int(generator.integers(len(choices)))]
