"""A corpus of text pairs that needs no download: generated sentences with known alignments and labels.

A sentence says who does what to whom, how often, where and when: "Two old nurses often help young dogs inside the barn
at noon." The hypothesis is drawn first, independently of the label, so that it tells nothing about it; the premise is
made from it. Words in the same slot are aligned, and the label follows from them:

contradiction   some aligned words are opposites (young/old, help/hinder, often/never), or agent and patient are
                swapped;
neutral         otherwise, if the hypothesis says more: one of its words has no counterpart, or a more general one
                (premise animals, hypothesis dogs);
entailment      otherwise: all its words are the premise's, synonyms, or more general. The premise may say more.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from rationalizer.data.corpus import Corpus
from rationalizer.data.generated_sampling import pick, read_word_lists, sample_corpus
from rationalizer.text.budget import Budget
from rationalizer.text.example import Example, PairExample
from rationalizer.text.word_splitting import SplitRule, split_words

CLASSES = ("entailment", "neutral", "contradiction")
P_PHRASE = 0.5  # that a hypothesis has a given optional phrase
P_GENERAL = 0.3  # that a noun of a hypothesis is a general one
P_NEVER = 0.4  # that a frequency in a hypothesis is "never"
P_REWORDED = 0.5  # that a premise's word is drawn again from the hypothesis' word and its synonyms
P_NARROWED = 0.6  # that a premise is more specific where the hypothesis is general
P_ADDED = 0.3  # that a premise has a phrase that the hypothesis lacks
P_TWICE = 0.4  # that a hypothesis says more than the premise in a second slot
P_ALSO = 0.4  # that a hypothesis that contradicts the premise says more as well
P_TIME_FIRST = 0.25

NEVER = "never"
SWAPPED = "swapped"
Relation = Literal["same", "opposite", "narrower", "broader"]


@dataclass(frozen=True)
class Sense:
    """The relations of a word to others."""

    synonyms: tuple[str, ...]
    opposites: tuple[str, ...] = ()
    general: str | None = None
    specific: tuple[str, ...] = ()


LEXICON: dict[str, Sense] = {}


def _add_opposites(lines: Sequence[str]) -> tuple[tuple[str, ...], ...]:
    """Add lines "synonyms / synonyms of the opposite" to the lexicon; return the words of each line."""
    groups = []
    for line in lines:
        sides = [tuple(side.split()) for side in line.split("/")]
        for side, other in (sides, sides[::-1]):
            LEXICON.update((word, Sense(side, other)) for word in side)
        groups.append(sides[0] + sides[1])
    return tuple(groups)


def _add_families(families: dict[str, list[str]]) -> tuple[tuple[str, ...], ...]:
    """Add general words and lists of synonyms below them to the lexicon; return each family, the general word first."""
    groups = []
    for general, members in families.items():
        concepts = [tuple(member.split()) for member in members]
        words = tuple(word for concept in concepts for word in concept)
        LEXICON[general] = Sense((general,), specific=words)
        LEXICON.update((word, Sense(concept, general=general)) for concept in concepts for word in concept)
        groups.append((general, *words))
    return tuple(groups)


_WORDS: dict[str, Any] = read_word_lists("pairs")
OPPOSITES = {kind: _add_opposites(lines) for kind, lines in _WORDS["opposites"].items()}
NOUNS, PLACES = (_add_families(_WORDS["families"][kind]) for kind in ("nouns", "places"))


def relation(premise: str, hypothesis: str) -> Relation | None:
    """Return the relation of a premise's word to a hypothesis' word: `narrower` if it is the more specific one."""
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


# The slots of a sentence. Agent and patient keep the names of their slots when they are swapped: words in slots of the
# same name are aligned.
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
Slots = dict[str, str]  # the word in each slot


def generated_pairs(
    *, seed: int = 0, train: int = 4800, dev: int = 300, test: int = 300, rule: SplitRule = "words"
) -> Corpus:
    """Generate premises and hypotheses with their alignments; each three in a row have the three labels."""

    def sample(generator: np.random.Generator) -> Iterator[PairExample]:
        while True:
            yield from [_pair(generator, int(label), rule) for label in generator.permutation(3)]

    sizes, budget = (train, dev, test), Budget.share(1)
    return sample_corpus("pairs", CLASSES, sample, sizes, budget=budget, seed=seed, rule=rule)


def _pair(generator: np.random.Generator, label: int, rule: SplitRule) -> PairExample:
    hypothesis = _hypothesis(generator)
    premise, swapped = _premise(generator, hypothesis, CLASSES[label])
    sentences = [
        _sentence(words, swapped and words is premise, generator.random() < P_TIME_FIRST, rule)
        for words in (premise, hypothesis)
    ]
    (first, premise_slots), (second, hypothesis_slots) = sentences
    alignment = [(i, hypothesis_slots.index(slot)) for i, slot in enumerate(premise_slots) if slot in hypothesis_slots]
    return PairExample(first, second, label, tuple(alignment))


def _sentence(words: Slots, swapped: bool, time_first: bool, rule: SplitRule) -> tuple[Example, list[str]]:
    """Return the sentence and the slot of each of its words."""
    agent, patient = (_SECOND, _FIRST) if swapped else (_FIRST, _SECOND)
    order = (*agent, "frequency", "verb", *patient, *_WHERE)
    order = (*_WHEN, *order) if time_first else (*order, *_WHEN)
    slots = [slot for slot in order if slot in words]
    text = " ".join(words[slot] for slot in slots).capitalize() + "."
    return Example(text, *split_words(text, rule)), slots


def _hypothesis(generator: np.random.Generator) -> Slots:
    words = {"verb": pick(generator, pick(generator, OPPOSITES["verbs"]))}
    for slot, family in zip(("first", "second"), generator.permutation(len(NOUNS)), strict=False):
        words[slot] = _noun(generator, NOUNS[family])
    for phrase in _PHRASES:
        if generator.random() < P_PHRASE:
            words |= _phrase(generator, phrase, words, generator.random() < P_NEVER)
    if "first quality" not in words and LEXICON[words["first"]].specific:
        # Every hypothesis must say something, about the agent, that a premise may lack.
        words |= _phrase(generator, ("first quality",), words, False)
    return words


def _phrase(generator: np.random.Generator, phrase: tuple[str, ...], words: Slots, negated: bool) -> Slots:
    """Draw words for a phrase of a sentence that has `words` already."""
    if phrase == _WHERE:
        return {
            "in": pick(generator, OPPOSITES["prepositions"][0]),
            "the": "the",
            "place": _noun(generator, PLACES[0]),
        }
    if phrase == _WHEN:
        at = pick(generator, ("at", "in"))
        return {"at": at, "time": pick(generator, pick(generator, OPPOSITES["times" if at == "at" else "seasons"]))}
    if phrase == ("frequency",):
        return {"frequency": NEVER if negated else pick(generator, LEXICON[NEVER].opposites)}
    if phrase == ("number",):
        return {"number": pick(generator, pick(generator, OPPOSITES["numbers"]))}
    # The two qualities of a sentence are unrelated, so that the alignment is unambiguous.
    unrelated = [line for line in OPPOSITES["adjectives"] if not set(line) & set(words.values())]
    return {phrase[0]: pick(generator, pick(generator, unrelated))}


def _noun(generator: np.random.Generator, family: Sequence[str]) -> str:
    return family[0] if generator.random() < P_GENERAL else pick(generator, family[1:])


def _premise(generator: np.random.Generator, hypothesis: Slots, label: str) -> tuple[Slots, bool]:
    """Return a premise for a hypothesis and a label, and whether agent and patient are swapped."""
    opposed = _opposed(generator, hypothesis) if label == "contradiction" else ""
    # In a negated sentence the entailment around the verb is reversed (saying more is entailed): keep those phrases.
    is_negated = NEVER in hypothesis.values() or opposed == "frequency"
    phrases = [phrase for phrase in _PHRASES if opposed not in phrase and (phrase[0] in _FIRST or not is_negated)]
    nouns = [slot for slot in ("first", "second", "place") if slot in hypothesis]
    nouns = ["first"] if is_negated else [noun for noun in nouns if noun != "place" or _WHERE in phrases]
    words = {}
    for slot, word in hypothesis.items():
        sense = LEXICON.get(word, Sense((word,)))
        if slot == opposed:
            words[slot] = pick(generator, sense.opposites)
        elif sense.specific and slot in nouns and generator.random() < P_NARROWED:
            words[slot] = pick(generator, sense.specific)
        else:
            words[slot] = pick(generator, sense.synonyms) if generator.random() < P_REWORDED else word
    if label == "neutral" or (label == "contradiction" and generator.random() < P_ALSO):
        present = [phrase for phrase in phrases if phrase[0] in hypothesis]
        general = {noun: name for noun in nouns if (name := LEXICON[hypothesis[noun]].general) is not None}
        choices = [*present, *((noun,) for noun in general)]
        chosen = [choices[k] for k in generator.permutation(len(choices))[: 2 if generator.random() < P_TWICE else 1]]
        words |= {noun: general[noun] for (noun, *_) in chosen if noun in general}
        dropped = {slot for phrase in chosen if phrase in present for slot in phrase}
        words = {slot: word for slot, word in words.items() if slot not in dropped}
    for phrase in phrases:
        if phrase[0] not in hypothesis and generator.random() < P_ADDED:
            words |= _phrase(generator, phrase, hypothesis | words, negated=False)
    return words, opposed == SWAPPED


def _opposed(generator: np.random.Generator, hypothesis: Slots) -> str:
    """Choose the slot whose word a contradiction replaces by its opposite, or `SWAPPED`."""
    if NEVER in hypothesis.values():
        return "frequency"
    slots = [slot for slot, word in hypothesis.items() if word in LEXICON and LEXICON[word].opposites]
    return pick(generator, [*slots, SWAPPED])
