"""Random inputs for extractors."""

import torch

from rationalizer.nn import EXTRACTORS

SIZE = 12


def batch(lengths=(9, 4, 1), spread=0.2):
    """States about as large as an untrained encoder's."""
    torch.manual_seed(0)
    mask = torch.arange(max(lengths))[None] < torch.tensor(lengths)[:, None]
    return spread * torch.randn(*mask.shape, SIZE) * mask[..., None], mask


def build(method, **options):
    torch.manual_seed(1)
    return EXTRACTORS[method](SIZE, **options)
