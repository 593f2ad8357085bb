"""One text, or two, with their tokens, offsets, labels and annotations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rationalizer.text.errors import InputError


@dataclass(frozen=True, slots=True)
class Example:
    """A text as the models see it, tied to the text as the user wrote it.

    Token k is `text[slice(*offsets[k])]`, so that rationales can be shown on the original text. `sentence_lengths` are
    the sentences' numbers of tokens, if the data has them; otherwise a rule splits sentences. `annotation` is what
    people marked; if there are several annotators, `annotator_masks` has the mask of each.
    """

    text: str
    tokens: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]
    label: int | float | None = None
    annotation: tuple[bool, ...] | None = None
    sentence_lengths: tuple[int, ...] | None = None
    annotator_masks: tuple[tuple[bool, ...], ...] | None = None

    def __post_init__(self) -> None:
        if len(self.offsets) != len(self.tokens):
            raise InputError(
                f"one offset a token is needed, got {len(self.offsets)} offsets for {len(self.tokens)} tokens"
            )
        if self.annotation is not None and len(self.annotation) != len(self.tokens):
            raise InputError(
                f"an annotation has a flag a token, got {len(self.annotation)} for {len(self.tokens)} tokens"
            )
        if self.sentence_lengths is not None and sum(self.sentence_lengths) != len(self.tokens):
            raise InputError(
                f"the sentences have {sum(self.sentence_lengths)} tokens, but the text has {len(self.tokens)}",
                "count what stands in the column tokens, or leave sentence_lengths out",
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
        """The shape of its scores: one number per token."""
        return (len(self.tokens),)

    @property
    def length(self) -> int:
        """The key by which batches are sorted."""
        return len(self.tokens)


PREMISE_BITS = 20  # the premise's length is stored above this bit of a pair's `length`


@dataclass(frozen=True, slots=True)
class PairExample:
    """Two texts with one label. `alignment` holds the annotated (premise word, hypothesis word) links;
    `group` names the group in which the pair is scored, if scores are broken down by group.
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
    def shape(self) -> tuple[int, ...]:
        """The shape of its scores: one number per pair of words."""
        return len(self.premise.tokens), len(self.hypothesis.tokens)

    @property
    def length(self) -> int:
        """The key by which batches are sorted: the premise's length, which is mostly larger, then the hypothesis's."""
        return (len(self.premise.tokens) << PREMISE_BITS) + len(self.hypothesis.tokens)

    @staticmethod
    def sides(length: Any) -> tuple[Any, Any]:
        """The lengths of premise and hypothesis, from a `length` or an array of them."""
        return length >> PREMISE_BITS, length & ((1 << PREMISE_BITS) - 1)

    def __post_init__(self) -> None:
        m, n = len(self.premise.tokens), len(self.hypothesis.tokens)
        for i, j in self.alignment or ():
            if not (0 <= i < m and 0 <= j < n):
                raise InputError(
                    f"the aligned pair ({i}, {j}) lies outside the {m} words of the premise and the {n} of "
                    "the hypothesis",
                    "words are counted from 0",
                )


AnyExample = Example | PairExample
