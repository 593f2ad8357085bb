"""Learning from people: losses of the scores that are 0 where a layer selects just what they marked.

A layer that solves z = argmax ⟨s/T, z⟩ − Ω(z) brings its own loss along, the Fenchel–Young loss (Blondel et al., 2020;
SparseMAP's, of Niculae et al., 2018):

    L(s; y) = max_z [⟨s/T, z⟩ − Ω(z)] − [⟨s/T, y⟩ − Ω(y)] >= 0,   ∇L = (z − y)/T,   L = 0 just where z = y.

Its gradient needs nothing but the selection z that was made anyway, however Ω and the constraints look.
"""

from __future__ import annotations

from torch import Tensor


def layer_loss(scores: Tensor, z: Tensor, wanted: Tensor, temperature: float) -> Tensor:
    """(batch,) with the gradient of the layer's Fenchel–Young loss, for each wanted word: of its value, which training
    does not need, it is only the part that is linear in the scores."""
    pull = (z.float() - wanted.float()).detach() / temperature
    return per_marked(pull * scores.float(), wanted)


def per_marked(losses: Tensor, wanted: Tensor) -> Tensor:
    """Summed over a text, or over the word pairs of two, for each that is wanted: one weight serves all lengths."""
    return losses.flatten(1).sum(-1) / wanted.flatten(1).float().sum(-1).clamp(min=1)


def lifted(scores: Tensor, marked: Tensor, possible: Tensor, bonus: float = 0.0) -> Tensor:
    """Scores by which the best selection is, of all that are allowed, the one nearest to what is marked (it differs in
    the fewest places), and of several such the one with the best scores; `bonus` is what each place can add to these.

    So a budget stays hard where people marked more than it allows: the model chooses among their words.
    """
    known = scores.detach().double().masked_fill(~possible, 0.0)
    total = known.abs().flatten(1).sum(-1) + abs(bonus) * possible.flatten(1).sum(-1)
    step = (1 + 2 * total).reshape(-1, *[1] * (scores.ndim - 1))
    return known + step * (2.0 * marked - 1.0)
