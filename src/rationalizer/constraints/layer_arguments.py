"""From constraints to the arguments of the layers, for the texts of a batch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from rationalizer.constraints.base import BatchItem, Constraint, ConstraintConflict, Constraints
from rationalizer.constraints.selection_table import EXCESS_REMEDY, find_excess
from rationalizer.plurals import count_of
from rationalizer.text import Budget, Example, SentenceRule, is_punctuation, sentence_numbers

if TYPE_CHECKING:  # PyTorch takes seconds to import, and exported models do without it
    import torch
    from torch import Tensor

Mask = NDArray[np.bool_]
CONFLICT_REMEDY = "raise the budget, or leave a constraint out"


@dataclass(frozen=True)
class LayerConstraints:
    """Constraints on a batch's selections besides their budgets: arguments of `ops.spans` and `ops.spans_map`."""

    spans: int | None = None
    shortest: int = 1
    longest: int | None = None
    unit: Tensor | None = None  # (batch, n) int64: words with the same number are selected together
    fixed: Tensor | None = None  # (batch, n) int8: 1 must be selected, -1 must not
    group: Tensor | None = None  # (batch, n) int64: sentence numbers
    per_group: int | None = None  # largest number of words selected in each of them
    # Not arguments of the ops: constraints that add factors of a graph, and the texts they are for.
    factors: tuple[Any, ...] = ()
    texts: tuple[BatchItem, ...] = ()

    def arguments(self) -> dict[str, Any]:
        names = [item.name for item in fields(self) if item.name not in ("factors", "texts")]
        return {name: getattr(self, name) for name in names}

    @property
    def has_arguments(self) -> bool:
        """Whether any argument of the ops differs from its default."""
        defaults = LayerConstraints().arguments()
        return any(hasattr(value, "shape") or value != defaults[key] for key, value in self.arguments().items())

    def to(self, device: torch.device | str) -> Self:
        moved: dict[str, Any] = {k: v.to(device) for k, v in self.arguments().items() if hasattr(v, "shape")}
        return replace(self, **moved)

    def repeat(self, times: int) -> Self:
        """Each row several times, one after the other."""
        found = self.arguments().items()
        repeated: dict[str, Any] = {k: v.repeat_interleave(times, dim=0) for k, v in found if hasattr(v, "shape")}
        return replace(self, **repeated)

    def at_most(self, **bounds: int) -> Self:
        """The same with these upper bounds, unless they are tighter already."""
        tighter: dict[str, Any] = {
            key: bound if getattr(self, key) is None else min(bound, getattr(self, key))
            for key, bound in bounds.items()
        }
        return replace(self, **tighter)

    def allow_any(self, budget: Tensor, counted: Tensor) -> Tensor:
        """(batch,) bool: whether a non-empty selection is feasible under the budgets (batch,)."""
        if self.unit is None and self.shortest == 1:  # then any single word can be
            return (counted if self.fixed is None else counted & (self.fixed >= 0)).any(-1)
        import torch

        from rationalizer import ops

        return ops.spans_map(torch.ones(counted.shape), budget, mask=counted, **self.arguments()).any(-1)


class TextRequirements:
    """The requirements of all constraints on the words of one text."""

    def __init__(self, item: BatchItem, rule: SentenceRule) -> None:
        self.item = item
        self.example = cast("Example", item.example)
        self._rule: SentenceRule = rule
        n = len(self.example.tokens)
        self.together = np.zeros(max(n - 1, 0), dtype=bool)  # whether a token and the next are selected together
        self.must, self.never = np.zeros(n, dtype=bool), np.zeros(n, dtype=bool)

    @cached_property
    def sentence(self) -> NDArray[np.int64]:
        """The sentence number of each token."""
        return sentence_numbers(self.example, self._rule)

    @property
    def unit(self) -> NDArray[np.int64]:
        """A number per token, equal for tokens that are selected together."""
        return np.cumsum([False, *~self.together], dtype=np.int64)

    @property
    def fixed(self) -> NDArray[np.int8]:
        return self.must.astype(np.int8) - self.never.astype(np.int8)

    def overlaps(self, spans: Sequence[tuple[int, int]], *, but_last: bool = False) -> Mask:
        """Whether each token overlaps one of the spans of characters [start, end); with `but_last`, not counting the
        last token of each span."""
        starts, ends = self._offsets
        asked = np.array(spans, dtype=np.int64).reshape(-1, 2)
        first = np.searchsorted(ends, asked[:, 0], "right")
        beyond = np.maximum(np.searchsorted(starts, asked[:, 1], "left") - but_last, first)
        changes = np.zeros(len(self.must) + 1, dtype=np.int64)  # of the number of spans that a token overlaps
        np.add.at(changes, first, 1)
        np.subtract.at(changes, beyond, 1)
        return changes.cumsum()[:-1] > 0

    @cached_property
    def _offsets(self) -> NDArray[np.int64]:
        return np.array(self.example.offsets, dtype=np.int64).reshape(-1, 2).T

    def find_conflict(self, counted: Mask, budget: int) -> str | None:
        """Why the required words cannot all be selected, if there is a simple reason."""
        tokens, must = self.example.tokens, self.must
        unit = self.unit
        both = must & np.isin(unit, unit[self.never & counted])
        if both.any():
            word = tokens[int(both.argmax())]
            other = "it" if self.never[int(both.argmax())] else "a word that it is selected together with"
            return f"{word!r} must be selected, but {other} never may"
        unknown = must & ~counted & [not is_punctuation(token) for token in tokens]
        if unknown.any():
            return f"{tokens[int(unknown.argmax())]!r} must be selected, but the model does not know the word"
        required = int((np.isin(unit, unit[must & counted]) & counted).sum())
        if required > budget:
            return f"{count_of(required, 'word')} must be selected, but the budget allows {budget}"
        return None


class TextConstraint(Constraint):
    """A constraint on the rationales of single texts."""

    def update_layer(self, layer: LayerConstraints) -> LayerConstraints:
        """Return the layer's arguments, tightened for all texts."""
        return layer

    def update_text(self, text: TextRequirements) -> None:
        """Add constraints on the words of one text, in place."""


def combine_text_constraints(
    constraints: Constraints, texts: Sequence[BatchItem], rule: SentenceRule
) -> tuple[LayerConstraints, list[TextRequirements]]:
    """Return the layer's arguments that are the same for all texts, and the requirements of each text."""
    layer = LayerConstraints()
    requirements = [TextRequirements(text, rule) for text in texts]
    for constraint in constraints:
        assert isinstance(constraint, TextConstraint), constraint
        layer = constraint.update_layer(layer)
        for text in requirements:
            constraint.update_text(text)
    if layer.longest is not None and layer.shortest > layer.longest:
        raise ConstraintConflict(
            f"{', '.join(map(str, constraints))}: a span cannot have at least {layer.shortest} words and at most "
            f"{layer.longest}"
        )
    return layer, requirements


def build_layer_constraints(
    constraints: Constraints,
    texts: Sequence[BatchItem],
    counted: Tensor,
    budget: Budget,
    rule: SentenceRule,
    *,
    check: bool = True,
) -> LayerConstraints:
    """The layer's arguments for a batch.

    Args:
        constraints: all of them `TextConstraint`.
        texts: the batch.
        counted: (batch, n) bool, True on the words that can be selected.
        budget: the largest share, or number, of words that a rationale may contain.
        rule: how texts are split into sentences.
        check: raise `ConstraintConflict` if a text has no selection that satisfies all constraints.
    """
    layer, requirements = combine_text_constraints(constraints, texts, rule)
    n = counted.shape[1]
    if any(text.together.any() for text in requirements):
        layer = replace(layer, unit=_pad([text.unit for text in requirements], n))
    if any(text.must.any() or text.never.any() for text in requirements):
        layer = replace(layer, fixed=_pad([text.fixed for text in requirements], n))
    if layer.factors:
        layer = replace(layer, texts=tuple(texts))
    if layer.per_group is not None:
        layer = replace(layer, group=_pad([text.sentence for text in requirements], n))
    if check:
        _check(layer, requirements, counted, budget, constraints)
    return layer


def _pad(rows: Sequence[NDArray[Any]], n: int) -> Tensor:
    import torch

    return torch.from_numpy(np.stack([np.pad(row, (0, n - len(row)), mode="edge") for row in rows]))


def _check(
    layer: LayerConstraints,
    texts: Sequence[TextRequirements],
    counted: Tensor,
    budget: Budget,
    constraints: Constraints,
) -> None:
    """Raise `ConstraintConflict` for a text without a feasible selection, or with one that takes too much memory."""
    allowed = budget.word_limit(counted)
    for row, text in enumerate(texts):
        selectable = counted[row, : len(text.must)].numpy()
        reason = find_excess(layer, text, selectable, int(allowed[row]))
        if reason is not None:
            raise text.item.conflict(constraints, reason, EXCESS_REMEDY)
        if not text.must.any():  # the empty selection is feasible
            continue
        reason = text.find_conflict(selectable, int(allowed[row]))
        if reason is None and not _is_feasible(layer, row, counted, allowed):
            reason = f"no selection of at most {int(allowed[row])} words satisfies all of them"
        if reason is not None:
            raise text.item.conflict(constraints, reason, CONFLICT_REMEDY)


def _is_feasible(layer: LayerConstraints, row: int, counted: Tensor, allowed: Tensor) -> bool:
    import torch

    from rationalizer import ops

    one = slice(row, row + 1)
    own: dict[str, Any] = {name: v[one] if hasattr(v, "shape") else v for name, v in layer.arguments().items()}
    try:
        ops.spans_map(torch.zeros(1, counted.shape[1]), allowed[one], mask=counted[one], **own)
    except ops.InfeasibleError:
        return False
    return True
