"""Learning from people: losses of the scores that are 0 where a layer selects what they marked.

A layer that solves z = argmax ⟨s/T, z⟩ − Ω(z) brings its own loss along, the Fenchel–Young loss (Blondel et al., 2020;
SparseMAP's, of Niculae et al., 2018), against a single y or against the best of a set C of selections:

    L(s; C) = max_z [⟨s/T, z⟩ − Ω(z)] − max_{y ∈ C} [⟨s/T, y⟩ − Ω(y)] >= 0,   ∇L = (z − y)/T,   L = 0 where z is in C.

Its gradient needs nothing but the two selections z and y, however Ω and the constraints look.
"""

from __future__ import annotations

from torch import Tensor

from rationalizer.nn.precision import single_or_more


def layer_loss(scores: Tensor, z: Tensor, wanted: Tensor, temperature: float) -> Tensor:
    """(batch,) with the gradient of the layer's Fenchel–Young loss: of its value, which training does not need, it is
    only the part that is linear in the scores."""
    scores = single_or_more(scores)
    pull = (z.to(scores) - wanted.to(scores)).detach() / temperature
    return (pull * scores).flatten(1).sum(-1)


def per_marked(losses: Tensor, marked: Tensor) -> Tensor:
    """For each word, or pair of words, that is marked: one weight serves all lengths."""
    return losses / marked.flatten(1).sum(-1).clamp(min=1)


def raised(scores: Tensor, marked: Tensor, mask: Tensor, *, transition: float, temperature: float) -> Tensor:
    """Scores by which the marked words come before all others: the layer selects all of them, or as many as it may, and
    only then what else it would.

    So the budget stays hard where people marked more, and is used up where they marked less: marks are seldom complete.
    """
    known = scores.detach().masked_fill(~mask, 0.0)
    step = 2 * (temperature + 4 * abs(transition) + 2 * known.abs().amax(-1, keepdim=True))
    return known + step * marked


def lifted(scores: Tensor, marked: Tensor, possible: Tensor) -> Tensor:
    """Scores by which the best alignment is, of all that are allowed, the one nearest to the marked one (it differs in
    the fewest links), and of several such the one with the best scores."""
    known = scores.detach().double().masked_fill(~possible, 0.0)
    step = 1 + 2 * known.abs().sum((-2, -1), keepdim=True)
    return known + step * (2.0 * marked - 1.0)
