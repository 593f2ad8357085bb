"""Constraints given by factors of a graph."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from rationalizer.constraints.layer_arguments import LayerConstraints, TextConstraint
from rationalizer.constraints.pair_layer_arguments import PairConstraint, PairLayerConstraints
from rationalizer.text import Example, PairExample

if TYPE_CHECKING:
    from rationalizer.graph import Factor, Variable


class FactorConstraint(TextConstraint):
    """A constraint given by factors (`rationalizer.graph.Factor`). Subclass it, and register the class under a name.

    >>> @register("few-sentences", "few-sentences=2")
    ... @dataclass(frozen=True, repr=False)
    ... class FewSentences(FactorConstraint):
    ...     most: Count
    ...
    ...     def factors(self, z, texts):
    ...         return [InFewSentences(z, texts, self.most)]

    The layer is then LP-SparseMAP over the budget, the transition scores and these factors. The decision is the best
    selection that satisfies all of them, found by branch and bound. A saved model stores the constraint's name, so the
    module that registers it must be imported before the model is loaded, or be an entry point of the group
    `rationalizer.plugins`.
    """

    def factors(self, z: Variable, texts: Sequence[Example]) -> Iterable[Factor]:
        """Return the factors of a batch.

        Args:
            z: (batch, n), one variable per token; masked where it cannot be selected.
            texts: the batch; `z[b, i]` belongs to `texts[b].tokens[i]`.
        """
        raise NotImplementedError(f"{type(self).__name__} must define factors(z, texts)")

    def update_layer(self, layer: LayerConstraints) -> LayerConstraints:
        return replace(layer, factors=(*layer.factors, self))


class PairFactorConstraint(PairConstraint):
    """A constraint on alignments given by factors.

    >>> @register("few-far", "few-far=1")
    ... @dataclass(frozen=True, repr=False)
    ... class FewFar(PairFactorConstraint):
    ...     most: Count
    ...
    ...     def factors(self, z, pairs):
    ...         i, j = (torch.arange(side) for side in z.shape[1:])
    ...         far = (i[:, None] - j).abs() > 3
    ...         return [Budget(z[:, far], self.most)] if far.any() else []

    The layer is then LP-SparseMAP over the method's matchings and these factors. The decision is the best matching that
    satisfies all of them.
    """

    def factors(self, z: Variable, pairs: Sequence[PairExample]) -> Iterable[Factor]:
        """Return the factors of a batch.

        Args:
            z: (batch, m, n), one variable per pair of tokens; masked where it cannot be aligned.
            pairs: the batch; `z[b, i, j]` belongs to `pairs[b].premise.tokens[i]` and
                `pairs[b].hypothesis.tokens[j]`.
        """
        raise NotImplementedError(f"{type(self).__name__} must define factors(z, pairs)")

    def update_layer(self, layer: PairLayerConstraints) -> PairLayerConstraints:
        return replace(layer, factors=(*layer.factors, self))
