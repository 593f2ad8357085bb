"""All ops on word scores in one table, so that every test of the contract runs on every op."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch
from hypothesis import strategies as st
from torch import Tensor, nn

from rationalizer import ops

Layer = Callable[..., Tensor]

# Functions of (scores, mask), with all other arguments given; all are projections.
LAYERS: dict[str, Layer] = {
    "sparsemax": lambda s, mask=None: ops.sparsemax(s, mask=mask, temperature=0.5),
    "fusedmax": lambda s, mask=None: ops.fusedmax(s, mask=mask, tv=0.3, temperature=0.5),
    "budget": lambda s, mask=None: ops.budget(s, 3, mask=mask, temperature=0.5),
    "pair_budget": lambda s, mask=None: ops.pair_budget(s, 3, mask=mask, transition=0.4, temperature=0.5),
    "sequence_budget": lambda s, mask=None: ops.sequence_budget(s, 3, mask=mask, transition=0.4, temperature=0.5),
    "anti_contiguous": lambda s, mask=None: ops.sequence_budget(s, 3, mask=mask, transition=-0.4, temperature=0.5),
    "spans": lambda s, mask=None: ops.spans(s, 3, transition=0.4, mask=mask, temperature=0.5, spans=2, longest=2),
    "budget_at_least": lambda s, mask=None: ops.budget(s, 3, at_least=2, mask=mask, temperature=0.5),
    "budget_exactly": lambda s, mask=None: ops.budget(s, 3, at_least=3, mask=mask, temperature=0.5),
    "pair_at_least": lambda s, mask=None: ops.pair_budget(s, 3, at_least=2, mask=mask, transition=0.4, temperature=0.5),
    "pair_exactly": lambda s, mask=None: ops.pair_budget(s, 3, at_least=3, mask=mask, transition=0.4, temperature=0.5),
    "sequence_at_least": lambda s, mask=None: ops.sequence_budget(
        s, 3, at_least=2, mask=mask, transition=0.4, temperature=0.5
    ),
    "sequence_exactly": lambda s, mask=None: ops.sequence_budget(
        s, 3, at_least=3, mask=mask, transition=0.4, temperature=0.5
    ),
    "anti_contiguous_at_least": lambda s, mask=None: ops.sequence_budget(
        s, 3, at_least=2, mask=mask, transition=-0.4, temperature=0.5
    ),
    "spans_at_least": lambda s, mask=None: ops.spans(
        s, 3, at_least=2, transition=0.4, mask=mask, temperature=0.5, spans=2
    ),
    "spans_exactly": lambda s, mask=None: ops.spans(
        s, 3, at_least=3, transition=0.4, mask=mask, temperature=0.5, spans=2
    ),
}
DISCRETE: dict[str, Layer] = {
    "sequence_budget_map": lambda s, mask=None: ops.sequence_budget_map(s, 3, mask=mask, transition=0.4),
    "spans_map": lambda s, mask=None: ops.spans_map(s, 3, transition=0.4, mask=mask, spans=2),
    "sequence_budget_map_at_least": lambda s, mask=None: ops.sequence_budget_map(
        s, 3, at_least=2, mask=mask, transition=0.4
    ),
    "spans_map_at_least": lambda s, mask=None: ops.spans_map(s, 3, at_least=2, transition=0.4, mask=mask, spans=2),
    "sequence_budget_map_exactly": lambda s, mask=None: ops.sequence_budget_map(
        s, 3, at_least=3, mask=mask, transition=0.4
    ),
    "spans_map_exactly": lambda s, mask=None: ops.spans_map(s, 3, at_least=3, transition=0.4, mask=mask, spans=2),
    "sequence_budget_maps": lambda s, mask=None: ops.sequence_budget_maps(s, 4, mask=mask, transition=0.4)[..., 2, :],
    "top_k": lambda s, mask=None: ops.top_k(s, 3, mask=mask),
    "contiguous": lambda s, mask=None: ops.contiguous(s, 3, mask=mask),
}
EVERY = LAYERS | DISCRETE
ON_HOST = {"sequence_budget_maps"} | {name for name in DISCRETE if name.startswith("spans")}  # for CUDA tensors too


class Classifier(nn.Module):
    """A scorer, a layer and a head."""

    def __init__(self, layer: Layer) -> None:
        super().__init__()
        self.scorer, self.head, self.layer = nn.Linear(8, 1), nn.Linear(8, 3), layer

    def forward(self, x: Tensor, mask: Tensor) -> Tensor:
        z = self.layer(self.scorer(x).squeeze(-1), mask)
        return self.head((z[..., None] * x).sum(1))


def random_mask(rows: int, n: int, generator: torch.Generator) -> Tensor:
    """No mask, padding on the right, on the left, everything masked, and then random masks."""
    mask = torch.rand(rows, n, generator=generator) < 0.7
    mask[0] = True
    mask[1] = torch.arange(n) < n // 2
    mask[2] = torch.arange(n) >= n // 2
    mask[3] = False
    return mask


@st.composite
def chains(draw: st.DrawFn, longest: int = 8, sign: str = "+") -> tuple[np.ndarray, np.ndarray, int]:
    """(scores, transitions, budget): every scale, ties, constant scores, zero and huge transitions."""
    n = draw(st.integers(1, longest))
    scale = draw(st.sampled_from([0.1, 1.0, 3.0, 30.0, 1e3, 2e4]))
    unit = st.floats(-1, 1, allow_subnormal=False)
    scores = np.array(draw(st.lists(unit, min_size=n, max_size=n)))
    if draw(st.booleans()):
        scores = np.round(scores * 3) / 3  # ties
    ratio = draw(st.sampled_from([0.0, 0.003, 0.1, 1.0, 10.0]))
    edges = np.abs(np.array(draw(st.lists(unit, min_size=n - 1, max_size=n - 1))))
    if draw(st.booleans()):
        edges[:] = 1.0
    if sign == "±":
        edges *= np.array(draw(st.lists(st.sampled_from([-1.0, 1.0]), min_size=n - 1, max_size=n - 1)))
    return scores * scale, edges * scale * ratio, draw(st.integers(0, n + 1))


def row(values: np.ndarray) -> Tensor:
    return torch.from_numpy(values)[None]
