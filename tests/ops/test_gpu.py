"""CUDA tensors give what CPU tensors give, on their own device."""

import pytest
import torch

from tests.ops.layers import EVERY, random_mask

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device"),
]


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("layer", EVERY.values(), ids=EVERY.keys())
def test_same_as_cpu(layer, dtype):
    generator = torch.Generator().manual_seed(0)
    scores = torch.randn(16, 40, dtype=dtype, generator=generator)
    mask = random_mask(16, 40, generator)
    weights = torch.randn(16, 40, dtype=dtype, generator=generator)
    results = []
    for device in ("cpu", "cuda"):
        leaf = scores.to(device).requires_grad_()
        z = layer(leaf, mask.to(device))
        assert z.device.type == device
        gradient = torch.autograd.grad((z * weights.to(device)).sum(), leaf)[0] if z.requires_grad else z
        results.append((z.detach().cpu(), gradient.cpu()))
    for ours, theirs in zip(*results, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6)
