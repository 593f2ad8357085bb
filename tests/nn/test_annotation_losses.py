"""Annotation losses: each layer's Fenchel–Young loss against the nearest feasible selection."""

import itertools

import numpy as np
import pytest
import torch

from rationalizer import ops
from rationalizer.constraints import LayerConstraints
from rationalizer.nn import ALIGNERS, EXTRACTORS, Extraction
from rationalizer.nn.annotation_losses import prioritize_links
from rationalizer.text import Budget
from tests.nn.tiny_models import highlight_model, pair_model, texts

SCORED = sorted(name for name, method in EXTRACTORS.items() if method.has_annotation_loss)


def test_all_methods_with_scores_have_an_annotation_loss():
    assert set(EXTRACTORS) - set(SCORED) == {"full-text"}
    assert all(aligner.has_annotation_loss for aligner in ALIGNERS.values())


def conjugate(layer, s, mask, budget):
    """max_z ⟨s/T, z⟩ − Ω(z), where Ω is known in closed form."""
    z = layer.attend(s, mask) if hasattr(layer, "attend") else layer.relax(s, mask, budget, None)[0]
    value = (s / layer.temperature * z).sum() - 0.5 * z.square().sum()
    return value - layer.tv * (z[:, 1:] - z[:, :-1]).abs().sum() if hasattr(layer, "tv") else value


@pytest.mark.parametrize("method", ["spectra", "pair-budget", "sparsemax", "fusedmax"])
@pytest.mark.parametrize("marks", [[0, 1, 0, 0, 0, 0, 1], [1, 1, 1, 0, 0, 1, 1]])
def test_gradient_is_that_of_the_fenchel_young_loss(method, marks):
    s = torch.randn(1, 7, generator=torch.Generator().manual_seed(3), dtype=torch.float64) * 0.3
    mask, budget, marked = torch.ones(1, 7, dtype=torch.bool), torch.tensor([3]), torch.tensor([marks]).bool()
    structured = method in ("spectra", "pair-budget")
    layer = EXTRACTORS[method](1, **({"transition": 0.0} if structured else {}))

    def loss(s):
        if structured:  # against the best of the selections in which the marked words come first
            return (conjugate(layer, s, mask, budget) - conjugate(layer, s + 50 * marked, mask, budget)) / sum(marks)
        return conjugate(layer, s, mask, budget) - (s / layer.temperature * marked).sum() / sum(marks)

    scores = s.clone().requires_grad_()
    z = layer.attend(s, mask) if hasattr(layer, "attend") else layer.relax(s, mask, budget, None)[0]
    layer.annotation_loss(Extraction(z, scores), marked, mask, budget).sum().backward()
    for k, step in enumerate(1e-6 * torch.eye(7, dtype=torch.float64)):
        expected = (loss(s + step) - loss(s - step)) / 2e-6
        assert scores.grad[0, k].item() == pytest.approx(expected.item(), abs=1e-5)


@pytest.mark.parametrize("method", ["spectra", "pair-budget"])
def test_removed_words_give_their_weights_to_all_others(method):
    layer, budget = EXTRACTORS[method](1), torch.tensor([2, 2])
    mask = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]).bool()
    none, removed = torch.zeros_like(mask), torch.zeros_like(mask)
    removed[0, 1] = True
    s = torch.tensor([[0.1, 3.0, 0.2, 2.0, 0.3], [3.0, 0.1, 0.2, 0.0, 0.0]], requires_grad=True)
    z, _ = layer.relax(s.detach(), mask, budget, None)
    layer.annotation_loss(Extraction(z, s), none, mask, budget, removed).sum().backward()
    assert s.grad[1].abs().max() < 1e-6  # nothing is known about the other text
    assert s.grad[0, 1] > 0
    assert s.grad[0, [0, 2, 3, 4]].numpy() == pytest.approx(-s.grad[0, 1].item() / 4, abs=1e-6)


def test_annotated_words_are_not_removed():
    model = highlight_model("spectra").eval()
    words = model.encoder.collate(texts())
    some = words.mask & (torch.arange(words.mask.shape[1]) < 3)
    output = model(words, budget=Budget.share(0.5))
    without, both = (model.annotation_loss(output, some, removed) for removed in (None, some))
    assert torch.equal(without, both)
    assert model.annotation_loss(output, torch.zeros_like(some), some).count_nonzero() > 0
    attention = highlight_model("sparsemax").eval()  # lowers all words without an annotation anyway
    output = attention(words, budget=Budget.share(0.5))
    assert torch.equal(*(attention.annotation_loss(output, some, removed) for removed in (None, ~some)))


def test_target_is_the_nearest_feasible_alignment():
    generator = np.random.default_rng(0)
    cells = [(i, j) for i in range(3) for j in range(3)]
    chosen = [c for k in range(3) for c in itertools.combinations(cells, k)]  # up to two links
    matchings = [c for c in chosen if len({i for i, _ in c}) == len({j for _, j in c}) == len(c)]
    side = torch.ones(1, 3, dtype=torch.bool)
    for _ in range(20):
        s, marked = generator.normal(size=(3, 3)), generator.random((3, 3)) < 0.4
        gold = {cell for cell in cells if marked[cell]}
        best = min(matchings, key=lambda c: (len(gold ^ set(c)), -sum(s[cell] for cell in c)))
        nearest = prioritize_links(
            torch.tensor(s)[None], torch.tensor(marked)[None], torch.ones(1, 3, 3, dtype=torch.bool)
        )
        found = ops.matching_map(nearest, row_mask=side, column_mask=side, budget=torch.tensor([2]))
        assert {tuple(cell) for cell in found[0].nonzero().tolist()} == set(best)


def taught(method, marked, budget, limits=None, steps=80):
    """Return the selections of a method trained on annotations only."""
    torch.manual_seed(0)
    layer, states = EXTRACTORS[method](12), 0.5 * torch.randn(1, len(marked), 12)
    mask, words = torch.ones(1, len(marked), dtype=torch.bool), torch.tensor([budget])
    marks, limited = torch.tensor([marked], dtype=torch.bool), {} if limits is None else {"constraints": limits}
    optimizer = torch.optim.Adam(layer.parameters(), lr=0.1)
    for _ in range(steps):
        optimizer.zero_grad()
        layer.annotation_loss(layer(states, mask, words, **limited), marks, mask, words).sum().backward()
        optimizer.step()
    return layer.decode(states, mask, words, **limited)


@pytest.mark.parametrize("method", SCORED)
def test_method_learns_to_select_annotated_words(method):
    marked = [0, 1, 1, 0, 0, 0, 1, 0]
    found = taught(method, marked, budget=3)
    if method == "hardkuma":  # its values are 0, 1 or between
        assert (found.z[0] > 0.5).int().tolist() == marked
    else:
        assert (found.z[0] != 0).int().tolist() == marked


@pytest.mark.parametrize("method", ["spectra", "pair-budget"])
def test_budget_is_hard_and_used_fully(method):
    many = taught(method, [1, 1, 0, 1, 1, 1, 0, 1], budget=2).z[0]
    assert many.sum() == 2
    assert not many[[2, 6]].any()
    few = taught(method, [0, 0, 1, 0, 0, 0, 0, 0], budget=4).z[0]
    assert few.sum() == 4
    assert few[2] == 1


def test_constraints_are_satisfied():
    marked = [1, 0, 0, 1, 1, 0, 1, 1]
    found = taught("spectra", marked, budget=4, limits=LayerConstraints(spans=1)).z[0].int().tolist()
    assert len("".join(map(str, found)).replace("0", " ").split()) == 1
    assert sum(a & b for a, b in zip(found, marked, strict=True)) == 3  # as many as one span of four words can have


@pytest.mark.parametrize("method", sorted(ALIGNERS))
def test_aligner_learns_from_annotated_links(method):
    layer = ALIGNERS[method]()
    rows, columns = torch.ones(1, 4, dtype=torch.bool), torch.ones(1, 3, dtype=torch.bool)
    marked = torch.zeros(1, 4, 3, dtype=torch.bool)
    for link in ((0, 1), (1, 0), (1, 1), (3, 2)):  # word 1 of the first text has two links
        marked[0][link] = True
    torch.manual_seed(0)
    scores = torch.randn(1, 4, 3, requires_grad=True)
    optimizer = torch.optim.Adam([scores], lr=0.1)
    budget = torch.tensor([3])
    for _ in range(80):
        optimizer.zero_grad()
        layer.annotation_loss(layer(scores, rows, columns, budget), marked, rows, columns, budget).sum().backward()
        optimizer.step()
    z = layer.decode(scores.detach(), rows, columns, budget).z[0]
    if method in ("softmax", "gumbel"):  # every word gets a partner, even without a link
        best = z.argmax(0)
        assert all(marked[0, i, j] for j, i in enumerate(best.tolist()))
        assert all(marked[0, i, z[i].argmax()] for i in (0, 1, 3))
    else:
        assert (z != 0).int().tolist() == [[0, 1, 0], [1, 0, 0], [0, 0, 0], [0, 0, 1]]


def test_texts_without_annotation_add_nothing():
    model = highlight_model().train()
    words = model.encoder.collate(texts())
    marked = torch.zeros_like(words.mask)
    marked[0, 0] = True
    marked[1] = words.punctuation[1]  # punctuation alone, which cannot be selected
    output = model(words, budget=Budget.parse(0.3))
    losses = model.annotation_loss(output, marked)
    assert losses[1:].tolist() == [0, 0, 0]
    (gradient,) = torch.autograd.grad(losses.sum(), output.selection.scores)
    assert gradient[0].any()
    assert not gradient[1:].any()


def test_threshold_is_learned():
    model = pair_model(threshold=True).eval()
    sides = [model.encoder.collate(texts((4, 5), seed=k, with_punctuation=False)) for k in range(2)]
    before = model(*sides, budget=Budget.parse(2)).scores
    with torch.no_grad():
        model.threshold += 1
    torch.testing.assert_close(model(*sides, budget=Budget.parse(2)).scores, before - 1)
    output = model.train()(*sides, budget=Budget.parse(2))  # no words are aligned
    marked = torch.zeros_like(output.z, dtype=torch.bool)
    marked[:, 0, 0] = True
    model.annotation_loss(output, marked).sum().backward()
    assert model.threshold.grad > 0
