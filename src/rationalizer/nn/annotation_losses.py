"""Losses that train scores to select what people annotated.

A layer that solves z = argmax ⟨s/T, z⟩ − Ω(z) has a Fenchel–Young loss (Blondel et al., 2020; SparseMAP's, of Niculae
et al., 2018) against a single y, or against the best y of a set C of selections:

    L(s; C) = max_z [⟨s/T, z⟩ − Ω(z)] − max_{y ∈ C} [⟨s/T, y⟩ − Ω(y)] >= 0,   ∇L = (z − y)/T,   L = 0 if z is in C.

Its gradient needs only the two selections z and y, for any Ω and any constraints.
"""

from __future__ import annotations

from torch import Tensor

from rationalizer.nn.precision import at_least_float32


def fenchel_young_loss(scores: Tensor, z: Tensor, target: Tensor, temperature: float) -> Tensor:
    """(batch,) values with the gradient of the Fenchel–Young loss. The value itself is only its linear part ⟨s, ∇L⟩,
    since training needs the gradient alone."""
    scores = at_least_float32(scores)
    gradient = (z.to(scores) - target.to(scores)).detach() / temperature
    return (gradient * scores).flatten(1).sum(-1)


def per_annotated(losses: Tensor, annotation: Tensor) -> Tensor:
    """Divide each text's loss by its number of annotated words or pairs, so that one weight suits all lengths."""
    return losses / annotation.flatten(1).sum(-1).clamp(min=1)


def prioritize_words(
    scores: Tensor, annotation: Tensor, mask: Tensor, *, transition: float, temperature: float
) -> Tensor:
    """Scores under which the layer selects annotated words before all others.

    If the annotation exceeds the budget, the budget stays hard; if it is smaller, the layer fills the rest of the
    budget by score, since annotations are seldom complete.
    """
    known = scores.detach().masked_fill(~mask, 0.0)
    step = 2 * (temperature + 4 * abs(transition) + 2 * known.abs().amax(-1, keepdim=True))
    return known + step * annotation


def move_weights(z: Tensor, source: Tensor, target: Tensor) -> Tensor:
    """The selection whose `source` words have given their weights to the `target` words, in equal parts. Nobody knows
    which words should take their place, and the total stays, so that the budget remains filled."""
    moved = (z * source).sum(-1, keepdim=True) / target.sum(-1, keepdim=True).clamp(min=1)
    return z * ~source + moved * target


def prioritize_links(scores: Tensor, annotation: Tensor, possible: Tensor) -> Tensor:
    """Scores under which the best alignment is the feasible one that differs from the annotation in the fewest links;
    the original scores break ties."""
    known = scores.detach().double().masked_fill(~possible, 0.0)
    step = 1 + 2 * known.abs().sum((-2, -1), keepdim=True)
    return known + step * (2.0 * annotation - 1.0)
