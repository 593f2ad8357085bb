"""From constraints to the numbers that the layers take, for the texts of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from rationalizer import ops
from rationalizer.constraints.base import Constraint, ConstraintConflict, Constraints
from rationalizer.text import Budget, Example, SentenceRule, is_punctuation, sentence_numbers
from rationalizer.text.errors import short_repr

Flags = NDArray[np.bool_]


@dataclass(frozen=True)
class LayerConstraints:
    """What is asked of a batch's selections beyond their budgets: arguments of `ops.spans` and `ops.spans_map`."""

    spans: int | None = None
    shortest: int = 1
    longest: int | None = None
    unit: Tensor | None = None  # (batch, n) int64: words with the same number are selected together
    fixed: Tensor | None = None  # (batch, n) int8: 1 must, -1 never
    group: Tensor | None = None  # (batch, n) int64: sentences, of each of which
    per_group: int | None = None  # at most so many words are selected
    # What users' own factors ask, which is not for the ops: the constraints that make them, of these texts.
    factors: tuple[Any, ...] = ()
    texts: tuple[TextInBatch, ...] = ()

    def arguments(self) -> dict[str, Any]:
        names = [item.name for item in fields(self) if item.name not in ("factors", "texts")]
        return {name: getattr(self, name) for name in names}

    @property
    def has_programme(self) -> bool:
        """Whether it asks for anything that the ops know."""
        plain = LayerConstraints().arguments()
        return any(isinstance(v, Tensor) or v != plain[k] for k, v in self.arguments().items())

    def to(self, device: torch.device | str) -> Self:
        moved: dict[str, Any] = {k: v.to(device) for k, v in self.arguments().items() if isinstance(v, Tensor)}
        return replace(self, **moved)

    def at_most(self, **most: int) -> Self:
        """With upper limits that are no looser than these."""
        tight: dict[str, Any] = {
            key: n if getattr(self, key) is None else min(n, getattr(self, key)) for key, n in most.items()
        }
        return replace(self, **tight)

    def possible(self, budget: Tensor, counted: Tensor) -> Tensor:
        """(batch,) bool: whether anything can be selected at all, under budgets (batch,) of the words `counted`."""
        if self.unit is None and self.shortest == 1:  # then any single word can be
            return (counted if self.fixed is None else counted & (self.fixed >= 0)).any(-1)
        return ops.spans_map(torch.ones(counted.shape), budget, mask=counted, **self.arguments()).any(-1)


class TextInBatch(NamedTuple):
    """A text among those at hand."""

    example: Example
    position: int
    of: int  # how many there are

    def conflict(self, constraints: Constraints, reason: str, remedy: str) -> ConstraintConflict:
        problem = f"({short_repr(self.example.text)}) under {_named(constraints)}: {reason}"
        return ConstraintConflict(problem, remedy, unit="text", index=self.position)


class TextRequirements:
    """What is asked of the words of one text, as one constraint after the other adds to it."""

    def __init__(self, text: TextInBatch, rule: SentenceRule) -> None:
        self.source = text
        self.example = text.example
        self._rule: SentenceRule = rule
        n = len(self.example.tokens)
        self.together = np.zeros(max(n - 1, 0), dtype=bool)  # whether a token and the next are selected together
        self.must, self.never = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)

    @cached_property
    def sentence(self) -> NDArray[np.int64]:
        """The number of each token's sentence."""
        return sentence_numbers(self.example, self._rule)

    @property
    def unit(self) -> NDArray[np.int64]:
        """Tokens that are selected together have the same number."""
        return np.cumsum([False, *~self.together], dtype=np.int64)

    @property
    def fixed(self) -> NDArray[np.int8]:
        return self.must.astype(np.int8) - self.never.astype(np.int8)

    def touched(self, start: int, end: int) -> slice:
        """The tokens with a character in [start, end)."""
        starts, ends = self._places
        return slice(int(np.searchsorted(ends, start, "right")), int(np.searchsorted(starts, end, "left")))

    @cached_property
    def _places(self) -> NDArray[np.int64]:
        """(2, tokens) where tokens start and end, in their order."""
        return np.array(self.example.offsets, dtype=np.int64).reshape(-1, 2).T

    def clash(self, counted: Flags, budget: int) -> str | None:
        """What keeps the must-words from being selected, as far as it can be said in plain words."""
        tokens, must = self.example.tokens, self.must
        unit = self.unit
        both = must & np.isin(unit, unit[self.never & counted])
        if both.any():
            word = tokens[int(both.argmax())]
            own = "it" if self.never[int(both.argmax())] else "a word that it is selected together with"
            return f"{word!r} must be selected, but {own} never may"
        unknown = must & ~counted & [not is_punctuation(token) for token in tokens]
        if unknown.any():
            return f"{tokens[int(unknown.argmax())]!r} must be selected, but the model does not know the word"
        wanted = int((np.isin(unit, unit[must & counted]) & counted).sum())
        if wanted > budget:
            return f"{wanted} words must be selected, but the budget allows {budget}"
        return None


class TextConstraint(Constraint):
    """A constraint on the highlights of single texts."""

    def update_layer(self, layer: LayerConstraints) -> LayerConstraints:
        """Tightens what is asked of all texts alike."""
        return layer

    def update_text(self, text: TextRequirements) -> None:
        """Adds to what is asked of one text's words."""


def build_layer_constraints(
    constraints: Constraints,
    texts: Sequence[TextInBatch],
    counted: Tensor,
    budget: Budget,
    rule: SentenceRule,
    *,
    check: bool = True,
) -> LayerConstraints:
    """The limits of a batch.

    Args:
        constraints: all of them `TextConstraint`.
        texts: the batch's.
        counted: (batch, n) bool, True on the words that can be selected.
        budget: what may be selected, at most.
        rule: where sentences end.
        check: raise `ConstraintConflict` if a text has no selection that satisfies all constraints.
    """
    limits = LayerConstraints()
    drafts = [TextRequirements(text, rule) for text in texts]
    for constraint in constraints:
        assert isinstance(constraint, TextConstraint), constraint
        limits = constraint.update_layer(limits)
        for draft in drafts:
            constraint.update_text(draft)
    if limits.longest is not None and limits.shortest > limits.longest:
        raise ConstraintConflict(
            f"{_named(constraints)}: a span cannot have at least {limits.shortest} words and at most {limits.longest}"
        )
    n = counted.shape[1]
    if any(draft.together.any() for draft in drafts):
        limits = replace(limits, unit=_padded([draft.unit for draft in drafts], n))
    if any(draft.must.any() or draft.never.any() for draft in drafts):
        limits = replace(limits, fixed=_padded([draft.fixed for draft in drafts], n))
    if limits.factors:
        limits = replace(limits, texts=tuple(texts))
    if limits.per_group is not None:
        limits = replace(limits, group=_padded([draft.sentence for draft in drafts], n))
    if check:
        _check(limits, drafts, counted, budget, constraints)
    return limits


def _padded(rows: Sequence[NDArray[Any]], n: int) -> Tensor:
    return torch.from_numpy(np.stack([np.pad(row, (0, n - len(row)), mode="edge") for row in rows]))


def _check(
    limits: LayerConstraints,
    drafts: Sequence[TextRequirements],
    counted: Tensor,
    budget: Budget,
    constraints: Constraints,
) -> None:
    """`ConstraintConflict` where a text has no selection. Without must-words there always is the empty one."""
    rows = [row for row, draft in enumerate(drafts) if draft.must.any()]
    if not rows:
        return
    allowed = budget.words(counted)
    for row in rows:
        draft = drafts[row]
        flags = counted[row, : len(draft.must)].numpy()
        reason = draft.clash(flags, int(allowed[row]))
        if reason is None and not _feasible(limits, row, counted, allowed):
            reason = f"no selection of at most {int(allowed[row])} words keeps to all of them"
        if reason is not None:
            raise draft.source.conflict(constraints, reason, "raise the budget, or leave a constraint out")


def _feasible(limits: LayerConstraints, row: int, counted: Tensor, allowed: Tensor) -> bool:
    one = slice(row, row + 1)
    own: dict[str, Any] = {name: v[one] if isinstance(v, Tensor) else v for name, v in limits.arguments().items()}
    try:
        ops.spans_map(torch.zeros(1, counted.shape[1]), allowed[one], mask=counted[one], **own)
    except ValueError as error:
        if "no feasible selection" not in str(error):  # but too many states, say
            raise
        return False
    return True


def _named(constraints: Constraints) -> str:
    return ", ".join(map(str, constraints))
