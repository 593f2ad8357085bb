"""A corpus that needs no download and reads like natural language: hotel reviews put together from clauses.

A review has three clauses about different aspects of the stay, and often a sentence without opinion. Each clause is
positive or negative; the label is that of the majority, and the annotation is the marked words of the clauses on its
side. The clauses were written for this corpus. They recur in many reviews, so a model that does well here knows these
clauses, not hotels; to judge methods use `generated_reviews`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import numpy as np

from rationalizer.data.corpus import Corpus
from rationalizer.data.generated_sampling import capitalise, pick, read_word_lists, sample_corpus
from rationalizer.text.budget import Budget
from rationalizer.text.example import Example
from rationalizer.text.word_splitting import SplitRule, split_words

CLASSES = ("negative", "positive")
P_MIXED = 0.6  # probability that one of the three clauses contradicts the other two
P_REMARK = 0.6  # that a sentence without opinion comes first
P_JOINED = 0.5  # that two clauses make one sentence

_WORDS: dict[str, Any] = read_word_lists("stays")
# By aspect: negative clauses, positive clauses. The words that decide are in brackets.
CLAUSES = {aspect: (sides["bad"], sides["good"]) for aspect, sides in _WORDS["clauses"].items()}
REMARKS: list[str] = _WORDS["remarks"]
_BRACKET = re.compile(r"[\[\]]")


def generated_stays(
    *, seed: int = 0, train: int = 800, dev: int = 100, test: int = 200, rule: SplitRule = "words"
) -> Corpus:
    """Generate reviews labelled with the opinion on the stay; the classes are about equally frequent."""

    def sample(generator: np.random.Generator) -> Iterator[Example]:
        while True:
            yield _review(generator, rule)

    sizes, budget = (train, dev, test), Budget.share(0.2)
    return sample_corpus("stays", CLASSES, sample, sizes, budget=budget, seed=seed, rule=rule)


def _review(generator: np.random.Generator, rule: SplitRule) -> Example:
    label = bool(generator.integers(2))
    sides = [label, label, label]
    if generator.random() < P_MIXED:
        sides[generator.integers(3)] = not label
    aspects = [list(CLAUSES)[k] for k in generator.permutation(len(CLAUSES))[:3]]
    clauses = [pick(generator, CLAUSES[aspect][side]) for aspect, side in zip(aspects, sides, strict=True)]
    # Only clauses on the label's side are a reason for it.
    clauses = [
        clause if side == label else _BRACKET.sub("", clause) for clause, side in zip(clauses, sides, strict=True)
    ]
    text, spans = _remove_brackets(" ".join(_sentences(generator, clauses, sides)))
    tokens, offsets = split_words(text, rule)
    annotation = tuple(any(first < end and start < last for start, end in spans) for first, last in offsets)
    return Example(text, tokens, offsets, int(label), annotation)


def _sentences(generator: np.random.Generator, clauses: list[str], sides: list[bool]) -> list[str]:
    parts = [pick(generator, REMARKS)] if generator.random() < P_REMARK else []
    if generator.random() < P_JOINED:
        first = int(generator.integers(2))  # this clause is joined with the next
        joined = f"{clauses[first]}{' and' if sides[first] == sides[first + 1] else ', but'} {clauses[first + 1]}"
        clauses = [*clauses[:first], joined, *clauses[first + 2 :]]
    return [capitalise(part) + "." for part in (*parts, *clauses)]


def _remove_brackets(marked: str) -> tuple[str, list[tuple[int, int]]]:
    """Return the text without brackets, and the spans that were in brackets."""
    text, starts, ends = "", [], []
    for piece in re.split(r"([\[\]])", marked):
        if piece == "[":
            starts.append(len(text))
        elif piece == "]":
            ends.append(len(text))
        else:
            text += piece
    return text, list(zip(starts, ends, strict=True))
