"""A corpus of text pairs that needs no download: seeded sentences whose alignments and labels are known.

A sentence says who does what to whom, how often, where and when: "Two old nurses often help young dogs inside
the barn at noon." The hypothesis is drawn first, without regard to the label, so that it tells nothing about it;
the premise is made from it. Words that fill the same place are aligned, and the label follows from them:

contradiction   some aligned words are opposites (young/old, help/hinder, often/never), or who does it and to
                whom are exchanged;
neutral         otherwise, if the hypothesis says more: a word of it has no counterpart, or a more general one
                (premise animals, hypothesis dogs);
entailment      otherwise: all its words are the premise's, or synonyms, or more general. The premise may say more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, TypeVar

import numpy as np

from rationalizer.data.corpus import Corpus
from rationalizer.text.budget import Budget
from rationalizer.text.example import Example, PairExample
from rationalizer.text.word_splitting import SplitRule, split_words

CLASSES = ("entailment", "neutral", "contradiction")
SAID = 0.5  # how often a hypothesis has each of the phrases it may have
GENERAL = 0.3  # how often a hypothesis' noun is a general one
NEGATED = 0.4  # how often a hypothesis that says how often says never
REWORDED = 0.5  # how often a premise's word is drawn anew from the hypothesis' one and its synonyms
NARROWED = 0.6  # how often a premise is more specific where the hypothesis is general
ADDED = 0.3  # how often a premise has a phrase that the hypothesis lacks
TWICE = 0.4  # how often a hypothesis says more than the premise in a second place
ALSO = 0.4  # how often one that contradicts the premise says more as well
TIME_FIRST = 0.25

ADJECTIVES = """
young youthful / old elderly
happy cheerful / sad unhappy
rich wealthy / poor needy
strong powerful / weak feeble
quiet silent / loud noisy
brave fearless / timid fearful
calm relaxed / nervous anxious
clean tidy / dirty filthy
"""
VERBS = """
help assist / hinder obstruct
praise applaud / criticize blame
love adore / hate despise
push shove / pull drag
chase pursue / avoid evade
trust believe / distrust doubt
"""
NUMBERS = """
many numerous / few
two / ten
three / seven
"""
FREQUENCIES = "often frequently / never"
PREPOSITIONS = "inside within / outside"
TIMES = """
dawn sunrise / dusk sunset
noon midday / midnight
"""
SEASONS = """
summer / winter
spring / autumn
"""
FAMILIES = """
animals: dogs hounds, cats felines, rabbits bunnies, horses
children: boys lads, girls, pupils students, toddlers infants
workers: cooks chefs, farmers growers, builders, cleaners janitors
artists: singers vocalists, actors performers, painters, writers authors
medics: doctors physicians, nurses, dentists, surgeons
"""
PLACES = "building: shop store, hospital clinic, church chapel, hotel inn, school, barn"

NEVER = "never"
EXCHANGED = "exchanged"
Relation = Literal["same", "opposite", "narrower", "broader"]
T = TypeVar("T")


@dataclass(frozen=True)
class Sense:
    """What a word has to do with others."""

    synonyms: tuple[str, ...]
    opposites: tuple[str, ...] = ()
    general: str | None = None
    specific: tuple[str, ...] = ()


LEXICON: dict[str, Sense] = {}


def _opposites(table: str) -> tuple[tuple[str, ...], ...]:
    """Reads lines "synonyms / synonyms of the opposite"; returns the words of each line."""
    lines = []
    for line in table.strip().splitlines():
        sides = [tuple(side.split()) for side in line.split("/")]
        for side, other in (sides, sides[::-1]):
            LEXICON.update((word, Sense(side, other)) for word in side)
        lines.append(sides[0] + sides[1])
    return tuple(lines)


def _families(table: str) -> tuple[tuple[str, ...], ...]:
    """Reads lines "general: synonyms, synonyms"; returns the words of each line, the general one first."""
    lines = []
    for line in table.strip().splitlines():
        general, _, members = line.partition(":")
        concepts = [tuple(member.split()) for member in members.split(",")]
        words = tuple(word for concept in concepts for word in concept)
        LEXICON[general] = Sense((general,), specific=words)
        LEXICON.update((word, Sense(concept, general=general)) for concept in concepts for word in concept)
        lines.append((general, *words))
    return tuple(lines)


_ADJECTIVES, _VERBS, _NUMBERS = _opposites(ADJECTIVES), _opposites(VERBS), _opposites(NUMBERS)
_FREQUENCIES, _PREPOSITIONS = _opposites(FREQUENCIES), _opposites(PREPOSITIONS)
_TIMES, _SEASONS = _opposites(TIMES), _opposites(SEASONS)
_FAMILIES, _PLACES = _families(FAMILIES), _families(PLACES)


def relation(premise: str, hypothesis: str) -> Relation | None:
    """What a premise's word is to a hypothesis' one: `narrower` if it is the more specific of the two."""
    if premise == hypothesis:
        return "same"
    one, other = LEXICON.get(premise), LEXICON.get(hypothesis)
    if one is None or other is None:
        return None
    if hypothesis in one.synonyms:
        return "same"
    if hypothesis in one.opposites:
        return "opposite"
    if one.general == hypothesis:
        return "narrower"
    return "broader" if other.general == premise else None


# The places of a sentence. Whoever acts and whoever is acted on take their places' names along when they are
# exchanged: words in places of the same name are aligned.
_FIRST = ("number", "first quality", "first")
_SECOND = ("second quality", "second")
_WHERE = ("in", "the", "place")
_WHEN = ("at", "time")
_PHRASES: tuple[tuple[str, ...], ...] = (
    ("number",),
    ("first quality",),
    ("frequency",),
    ("second quality",),
    _WHERE,
    _WHEN,
)
Places = dict[str, str]  # the word in each place


def generated_pairs(
    *, seed: int = 0, train: int = 4800, dev: int = 300, test: int = 300, rule: SplitRule = "words"
) -> Corpus:
    """Premises and hypotheses with their gold alignments; every three in a row have the three labels."""
    if min(train, dev, test) < 0:
        raise ValueError(f"a split cannot have fewer than 0 pairs, got {train}, {dev}, {test}")
    generator = np.random.default_rng(seed)
    examples: list[PairExample] = []
    while len(examples) < train + dev + test:
        examples += [_pair(generator, int(label), rule) for label in generator.permutation(3)]
    return Corpus(
        name="pairs",
        task="classification",
        classes=CLASSES,
        train=examples[:train],
        dev=examples[train : train + dev],
        test=examples[train + dev : train + dev + test],
        budget=Budget.share(1),
        rule=rule,
    )


def _pair(generator: np.random.Generator, label: int, rule: SplitRule) -> PairExample:
    hypothesis = _hypothesis(generator)
    premise, exchanged = _premise(generator, hypothesis, CLASSES[label])
    told = [
        _told(words, exchanged and words is premise, generator.random() < TIME_FIRST, rule)
        for words in (premise, hypothesis)
    ]
    (first, premise_places), (second, hypothesis_places) = told
    alignment = [
        (i, hypothesis_places.index(place)) for i, place in enumerate(premise_places) if place in hypothesis_places
    ]
    return PairExample(first, second, label, tuple(alignment))


def _told(words: Places, exchanged: bool, time_first: bool, rule: SplitRule) -> tuple[Example, list[str]]:
    """The sentence, and the place that each of its words fills."""
    agent, patient = (_SECOND, _FIRST) if exchanged else (_FIRST, _SECOND)
    order = (*agent, "frequency", "verb", *patient, *_WHERE)
    order = (*_WHEN, *order) if time_first else (*order, *_WHEN)
    places = [place for place in order if place in words]
    text = " ".join(words[place] for place in places).capitalize() + "."
    return Example(text, *split_words(text, rule)), places


def _hypothesis(generator: np.random.Generator) -> Places:
    words = {"verb": _pick(generator, _pick(generator, _VERBS))}
    for place, family in zip(("first", "second"), generator.permutation(len(_FAMILIES)), strict=False):
        words[place] = _noun(generator, _FAMILIES[family])
    for phrase in _PHRASES:
        if generator.random() < SAID:
            words |= _phrase(generator, phrase, words, generator.random() < NEGATED)
    if "first quality" not in words and LEXICON[words["first"]].specific:
        # So that every hypothesis says something, and of the subject, that a premise may lack.
        words |= _phrase(generator, ("first quality",), words, False)
    return words


def _phrase(generator: np.random.Generator, phrase: tuple[str, ...], words: Places, negated: bool) -> Places:
    """Words for a phrase of the sentence that has `words` already."""
    if phrase == _WHERE:
        return {
            "in": _pick(generator, _PREPOSITIONS[0]),
            "the": "the",
            "place": _noun(generator, _PLACES[0]),
        }
    if phrase == _WHEN:
        at = _pick(generator, ("at", "in"))
        return {"at": at, "time": _pick(generator, _pick(generator, _TIMES if at == "at" else _SEASONS))}
    if phrase == ("frequency",):
        return {"frequency": NEVER if negated else _pick(generator, LEXICON[NEVER].opposites)}
    if phrase == ("number",):
        return {"number": _pick(generator, _pick(generator, _NUMBERS))}
    # Two qualities in a sentence have nothing to do with each other, so that it is plain what is aligned with what.
    unrelated = [line for line in _ADJECTIVES if not set(line) & set(words.values())]
    return {phrase[0]: _pick(generator, _pick(generator, unrelated))}


def _noun(generator: np.random.Generator, family: Sequence[str]) -> str:
    return family[0] if generator.random() < GENERAL else _pick(generator, family[1:])


def _premise(generator: np.random.Generator, hypothesis: Places, label: str) -> tuple[Places, bool]:
    """A premise to which the hypothesis stands as the label says; whether agent and patient are exchanged."""
    opposed = _opposed(generator, hypothesis) if label == "contradiction" else ""
    # To say less of the verb's company entails in a plain sentence, to say more in a negated one: there it is kept.
    kept = NEVER in hypothesis.values() or opposed == "frequency"
    phrases = [phrase for phrase in _PHRASES if opposed not in phrase and (phrase[0] in _FIRST or not kept)]
    nouns = [place for place in ("first", "second", "place") if place in hypothesis]
    nouns = ["first"] if kept else [noun for noun in nouns if noun != "place" or _WHERE in phrases]
    words = {}
    for place, word in hypothesis.items():
        sense = LEXICON.get(word, Sense((word,)))
        if place == opposed:
            words[place] = _pick(generator, sense.opposites)
        elif sense.specific and place in nouns and generator.random() < NARROWED:
            words[place] = _pick(generator, sense.specific)
        else:
            words[place] = _pick(generator, sense.synonyms) if generator.random() < REWORDED else word
    if label == "neutral" or (label == "contradiction" and generator.random() < ALSO):
        said = [phrase for phrase in phrases if phrase[0] in hypothesis]
        general = {noun: name for noun in nouns if (name := LEXICON[hypothesis[noun]].general) is not None}
        choices = [*said, *((noun,) for noun in general)]
        chosen = [choices[k] for k in generator.permutation(len(choices))[: 2 if generator.random() < TWICE else 1]]
        words |= {noun: general[noun] for (noun, *_) in chosen if noun in general}
        dropped = {place for phrase in chosen if phrase in said for place in phrase}
        words = {place: word for place, word in words.items() if place not in dropped}
    for phrase in phrases:
        if phrase[0] not in hypothesis and generator.random() < ADDED:
            words |= _phrase(generator, phrase, hypothesis | words, negated=False)
    return words, opposed == EXCHANGED


def _opposed(generator: np.random.Generator, hypothesis: Places) -> str:
    """The place whose word a contradiction turns into its opposite, or `EXCHANGED`."""
    if NEVER in hypothesis.values():
        return "frequency"
    places = [place for place, word in hypothesis.items() if word in LEXICON and LEXICON[word].opposites]
    return _pick(generator, [*places, EXCHANGED])


def _pick(generator: np.random.Generator, choices: Sequence[T]) -> T:
    return choices[int(generator.integers(len(choices)))]
