"""One text, or two, with their tokens, the tokens' places in the text, and what is known about them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from rationalizer.text.errors import InputError


@dataclass(frozen=True, slots=True)
class Example:
    """A text as the models see it, tied to the text as the user wrote it.

    Token k stands at `text[slice(*offsets[k])]`: what is said of tokens can be shown on the original text.
    `sentence_lengths` says how many tokens each sentence has, where the data knows; else a rule finds them.
    `annotation` is what people marked; of several, `annotator_masks` has what each of them did.
    """

    text: str
    tokens: tuple[str, ...]
    offsets: tuple[tuple[int, int], ...]
    label: int | float | None = None
    annotation: tuple[bool, ...] | None = None
    sentence_lengths: tuple[int, ...] | None = None
    annotator_masks: tuple[tuple[bool, ...], ...] | None = None  # what each person marked, where that is known

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
        """The numbers of the tokens that people marked; none where nobody did."""
        return tuple(k for k, marked in enumerate(self.annotation or ()) if marked)

    @property
    def shape(self) -> tuple[int, ...]:
        """Of what is said about it: a number per token."""
        return (len(self.tokens),)

    @property
    def length(self) -> int:
        """What batches are sorted by."""
        return len(self.tokens)


PREMISE_BITS = 20  # from which on the premise's length stands in that of a pair


@dataclass(frozen=True, slots=True)
class PairExample:
    """Two texts with one label. `alignment` holds the (premise word, hypothesis word) pairs that belong together;
    `group` names the part of the data that the pair is counted in, where results are reported by part.
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
        """The pairs of words that people aligned; none where nobody did."""
        return self.alignment or ()

    @property
    def shape(self) -> tuple[int, ...]:
        """Of what is said about it: a number per pair of words."""
        return len(self.premise.tokens), len(self.hypothesis.tokens)

    @property
    def length(self) -> int:
        """What batches are sorted by: the premise, which is mostly longer, and then the hypothesis."""
        return (len(self.premise.tokens) << PREMISE_BITS) + len(self.hypothesis.tokens)

    @staticmethod
    def sides(length: Any) -> tuple[Any, Any]:
        """The words of the premise and of the hypothesis again, from a `length` or an array of them."""
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
