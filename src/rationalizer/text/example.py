"""One text, or two, with their tokens, offsets, labels and annotations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from rationalizer.plurals import count_of
from rationalizer.text.errors import InputError, short_repr

# The index of a class, or a value; for several labels or targets a tuple, with None for what is not given.
LabelValue = int | float | tuple[int | float | None, ...] | None


@dataclass(frozen=True, slots=True)
class Example:
    """A text with its tokens and their positions in it.

    Token k is `text[slice(*offsets[k])]`, so that rationales can be shown on the original text. `sentence_lengths` has
    the number of tokens of each sentence; if it is None, a rule finds the sentences. `annotation` flags the tokens that
    people marked; with several annotators, `annotator_masks` has one mask per annotator. `removed` flags those that a
    model had selected and people unmarked. `label_annotations` has the annotation of each label or target, if people
    marked words for each; `annotation` is then their union.
    """

    text: str
    tokens: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]
    label: LabelValue = None
    annotation: tuple[bool, ...] | None = None
    sentence_lengths: tuple[int, ...] | None = None
    annotator_masks: tuple[tuple[bool, ...], ...] | None = None
    weight: float = 1.0  # factor of the text's loss in training
    label_annotations: Mapping[str, tuple[bool, ...]] | None = None
    removed: tuple[bool, ...] | None = None

    def __post_init__(self) -> None:
        if len(self.offsets) != len(self.tokens):
            raise InputError(
                f"expected one offset per token, got {len(self.offsets)} for {count_of(len(self.tokens), 'token')}"
            )
        if self.annotation is not None and len(self.annotation) != len(self.tokens):
            raise InputError(
                f"annotation: expected one flag per token, got {len(self.annotation)} for "
                f"{count_of(len(self.tokens), 'token')}"
            )
        if self.sentence_lengths is not None and sum(self.sentence_lengths) != len(self.tokens):
            raise InputError(
                f"the sentences have {sum(self.sentence_lengths)} tokens, but the text has {len(self.tokens)}",
                "count the tokens in the column `tokens`, or omit `sentence_lengths`",
            )

    @property
    def texts(self) -> tuple[Example, ...]:
        return (self,)

    @property
    def annotated(self) -> tuple[int, ...]:
        """The indices of the annotated tokens; empty without an annotation."""
        return tuple(k for k, marked in enumerate(self.annotation or ()) if marked)

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the scores: one per token."""
        return (len(self.tokens),)

    @property
    def length(self) -> int:
        """The key by which batches are sorted."""
        return len(self.tokens)


PREMISE_BITS = 20  # a pair's `length` is (premise length << PREMISE_BITS) + hypothesis length


@dataclass(frozen=True, slots=True)
class PairExample:
    """Two texts with one label. `alignment` holds the annotated (premise word, hypothesis word) links;
    `group` names the pair's group for scores that are broken down by group.
    """

    premise: Example
    hypothesis: Example
    label: int | float | None = None
    alignment: tuple[tuple[int, int], ...] | None = None
    group: str | None = None

    @property
    def texts(self) -> tuple[Example, ...]:
        return self.premise, self.hypothesis

    @property
    def annotated(self) -> tuple[tuple[int, int], ...]:
        """The annotated links; empty without an alignment."""
        return self.alignment or ()

    @property
    def weight(self) -> float:
        """The factor of the pair's loss in training: its premise's."""
        return self.premise.weight

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the scores: one per pair of words."""
        return len(self.premise.tokens), len(self.hypothesis.tokens)

    @property
    def length(self) -> int:
        """The key by which batches are sorted: first the premise's length, usually larger, then the hypothesis's."""
        return (len(self.premise.tokens) << PREMISE_BITS) + len(self.hypothesis.tokens)

    @staticmethod
    def sides(length: Any) -> tuple[Any, Any]:
        """Return the lengths of premise and hypothesis, given a `length` or an array of lengths."""
        return length >> PREMISE_BITS, length & ((1 << PREMISE_BITS) - 1)

    def __post_init__(self) -> None:
        m, n = len(self.premise.tokens), len(self.hypothesis.tokens)
        for i, j in self.alignment or ():
            if not (0 <= i < m and 0 <= j < n):
                raise InputError(
                    f"the aligned pair ({i}, {j}) is out of range for a premise of {m} and a hypothesis of {n} words",
                    "words are counted from 0",
                )


AnyExample = Example | PairExample


def with_weight(example: AnyExample, weight: Any) -> AnyExample:
    """Return the example with this weight; InputError unless it is a number of at least 0."""
    try:
        number = math.nan if isinstance(weight, bool) else float(weight)
    except (TypeError, ValueError):
        number = math.nan
    if not 0 <= number < math.inf:
        raise InputError(
            f"a weight must be a number of at least 0, got {short_repr(weight)}", "correct it or omit weights"
        )
    if isinstance(example, PairExample):
        return replace(example, premise=replace(example.premise, weight=number))
    return replace(example, weight=number)
