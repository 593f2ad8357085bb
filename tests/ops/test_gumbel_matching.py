"""The stochastic baseline: distributions, noise, masks, reproducibility."""

from __future__ import annotations

import pytest
import torch

from rationalizer import ops


def randn(*shape: int, seed: int = 0) -> torch.Tensor:
    return torch.randn(*shape, generator=seeded(seed))


def seeded(seed: int) -> torch.Generator:
    return torch.Generator().manual_seed(seed)


def test_rows_and_columns_are_distributions():
    rows, columns = ops.gumbel_matching(randn(3, 4, 6), temperature=0.5, training=True)
    assert torch.allclose(rows.sum(-1), torch.ones(3, 4))
    assert torch.allclose(columns.sum(-2), torch.ones(3, 6))


def test_both_directions_share_the_noise():
    rows, columns = ops.gumbel_matching(randn(4, 6), temperature=1.0, training=True)
    # log rows − log columns is one normalizer per row minus one per column, for any noise.
    difference = rows.log() - columns.log()
    centred = difference - difference.mean(0) - difference.mean(1, keepdim=True) + difference.mean()
    assert centred.abs().max() <= 1e-5


def test_generator_determines_the_sample():
    scores = randn(2, 4, 6)
    one = ops.gumbel_matching(scores, temperature=1.0, training=True, generator=seeded(1))
    same = ops.gumbel_matching(scores, temperature=1.0, training=True, generator=seeded(1))
    other = ops.gumbel_matching(scores, temperature=1.0, training=True, generator=seeded(2))
    assert torch.equal(one.rows, same.rows)
    assert torch.equal(one.columns, same.columns)
    assert not torch.equal(one.rows, other.rows)


def test_samples_follow_the_softmax():
    """The Gumbel-max trick: a row's largest entry falls on column j with probability softmax(scores)_j."""
    scores = randn(1, 5, seed=3)
    rows = ops.gumbel_matching(scores.expand(40_000, 1, 5), temperature=1.0, training=True, generator=seeded(0)).rows
    frequency = torch.bincount(rows.argmax(-1).flatten(), minlength=5) / 40_000
    assert (frequency - scores.softmax(-1)[0]).abs().max() <= 0.01


def test_evaluation_selects_best_of_each_side():
    scores = torch.tensor([[3.0, 1.0, 0.0], [4.0, 2.0, 2.0]], requires_grad=True)
    rows, columns = ops.gumbel_matching(scores, temperature=0.1, training=False)
    assert rows.tolist() == [[1, 0, 0], [1, 0, 0]]
    assert columns.tolist() == [[0, 0, 0], [1, 1, 1]]
    assert not rows.requires_grad


@pytest.mark.parametrize("training", [True, False])
def test_masked_entries_are_zero_and_ignored(training):
    row_mask = torch.tensor([[True, False, True, True], [False, False, False, False]])
    column_mask = torch.tensor([[True, True, False, True, False], [True, True, True, True, True]])
    real = row_mask[:, :, None] & column_mask[:, None, :]
    scores = randn(2, 4, 5).masked_fill(~real, torch.nan).requires_grad_()
    both = ops.gumbel_matching(scores, temperature=0.5, training=training, row_mask=row_mask, column_mask=column_mask)
    for part, dim in zip(both, (-1, -2), strict=True):
        assert (part[~real] == 0).all()
        assert torch.allclose(part.sum(dim), real.any(dim).float())
    if training:
        (both.rows.square().sum() + both.columns.square().sum()).backward()
        assert (scores.grad[~real] == 0).all()
        assert scores.grad.isfinite().all()
        assert scores.grad[real].abs().sum() > 0
    else:
        truncated = ops.gumbel_matching(scores.detach()[0][real[0]].reshape(3, 3), temperature=0.5, training=False)
        assert torch.equal(both.rows[0][real[0]].reshape(3, 3), truncated.rows)


@pytest.mark.parametrize("training", [True, False])
@pytest.mark.parametrize("temperature", [5e-324, 1e-39])
def test_too_low_temperature_raises(temperature, training):
    with pytest.raises(ValueError, match="temperature"):
        ops.gumbel_matching(torch.ones(1, 2, 3), temperature=temperature, training=training)


def test_gradcheck():
    scores = randn(2, 3, 4).double().requires_grad_()
    call = lambda s: tuple(ops.gumbel_matching(s, temperature=0.7, training=True, generator=seeded(5)))  # noqa: E731
    assert torch.autograd.gradcheck(call, (scores,))


def test_types_shapes_and_compilation():
    scores = randn(2, 3, 4, 5).permute(1, 0, 3, 2).to(torch.bfloat16)
    rows, columns = ops.gumbel_matching(scores, temperature=0.5, training=True)
    assert rows.dtype == columns.dtype == torch.bfloat16
    assert rows.shape == columns.shape == (3, 2, 5, 4)
    for training in (True, False):
        for shape in ((0, 3, 4), (2, 0, 4), (2, 3, 0)):
            assert ops.gumbel_matching(torch.zeros(shape), temperature=1.0, training=training).columns.shape == shape
    compiled = torch.compile(
        lambda s: ops.gumbel_matching(s, temperature=0.5, training=True).rows,
        fullgraph=True,
        backend="aot_eager",
    )
    values = randn(2, 4, 6).requires_grad_()
    rows = compiled(values)
    rows.square().sum().backward()
    assert torch.allclose(rows.sum(-1), torch.ones(2, 4))
    assert values.grad.abs().sum() > 0
