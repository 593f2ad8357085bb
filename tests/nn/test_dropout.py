"""Dropout: the same distribution as `torch.nn.Dropout`."""

import math

import pytest
import torch

from rationalizer.nn.dropout import Dropout


@pytest.mark.parametrize("p", [0.05, 0.3, 0.5, 0.95])
def test_share_and_scale(p):
    torch.manual_seed(0)
    n = 1_000_003  # not a multiple of the elements that one draw serves
    out = Dropout(p)(torch.ones(n, dtype=torch.float64))
    kept = out > 0
    assert abs(kept.double().mean() - (1 - p)) < 5 * math.sqrt(p * (1 - p) / n) + 2**-16
    torch.testing.assert_close(out[kept], torch.full_like(out[kept], 1 / (1 - p)), rtol=2**-16 / (1 - p), atol=0)


def test_neighbours_are_independent():
    torch.manual_seed(1)
    kept = (Dropout(0.5)(torch.ones(400_000)) > 0).double() - 0.5
    for distance in (1, 2, 3, 4, 8):
        assert abs((kept[distance:] * kept[:-distance]).mean()) < 5 * 0.25 / math.sqrt(len(kept))


def test_gradient_is_that_of_the_kept_elements():
    torch.manual_seed(2)
    values = torch.randn(3, 5, 7, requires_grad=True)
    out = Dropout(0.4)(values)
    out.sum().backward()
    torch.testing.assert_close(values.grad * values, out)
    assert (values.grad == 0).any()


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.bfloat16])
def test_keeps_dtype_and_shape_of_any_size(dtype):
    for shape in [(0, 3), (1,), (2, 3, 1)]:
        out = Dropout(0.5)(torch.ones(shape, dtype=dtype))
        assert out.shape == torch.Size(shape)
        assert out.dtype == dtype


def test_a_tiny_probability_drops_something():
    torch.manual_seed(3)
    assert (Dropout(1e-6)(torch.ones(10**6)) == 0).any()


def test_same_seed_same_mask_and_other_calls_differ():
    dropout, values = Dropout(0.5), torch.ones(100)
    torch.manual_seed(4)
    first, second = dropout(values), dropout(values)
    torch.manual_seed(4)
    assert torch.equal(dropout(values), first)
    assert not torch.equal(first, second)


def test_evaluation_and_the_ends_of_the_range():
    values = torch.randn(10)
    assert torch.equal(Dropout(0.5).eval()(values), values)
    assert torch.equal(Dropout(0.0)(values), values)
    assert torch.equal(Dropout(1.0)(values), torch.zeros(10))
