"""The matching layer against sparsemax and a general QP layer: forward + backward, batch 16, float32."""

from __future__ import annotations

import entmax
import torch
from qpth.qp import QPFunction

from benchmarks.timing import median_ms, print_table
from rationalizer import ops

BATCH = 16
KINDS = {"XorAtMostOne": {"rows": "exactly_one"}, "AtMostOne2": {}, "Budget 4": {"budget": 4}}
TARGETS = {(12, 16): 10.0, (24, 32): 25.0}  # times sparsemax on the same tensor
FASTER_THAN_QP = 20.0


def qp_layer(m: int, n: int, rows: str = "at_most_one", budget: int | None = None):
    """The same problem for qpth: min ½‖z‖² − s·z, z >= 0, in float64 (it does not converge in float32)."""
    eye, one = torch.eye, torch.ones
    row_sums = torch.kron(eye(m), one(1, n)).double()
    below = [-eye(m * n).double(), torch.kron(one(1, m), eye(n)).double()]
    right = [torch.zeros(m * n).double(), one(n).double()]
    a, b = torch.empty(0).double(), torch.empty(0).double()
    if rows == "exactly_one":
        a, b = row_sums, one(m).double()
    else:
        below.append(row_sums)
        right.append(one(m).double())
    if budget is not None:
        below.append(one(1, m * n).double())
        right.append(torch.tensor([float(budget)]).double())
    quadratic, g, h = eye(m * n).double(), torch.cat(below), torch.cat(right)
    solve = QPFunction(verbose=-1, check_Q_spd=False)

    def layer(scores: torch.Tensor) -> torch.Tensor:
        z = solve(quadratic, -scores.double().flatten(1), g, h, a, b)
        return z.reshape(scores.shape).to(scores.dtype)

    return layer


def forward_backward(layer, scores: torch.Tensor, **timing) -> float:
    weights = torch.randn_like(scores)

    def step() -> None:
        leaf = scores.detach().requires_grad_()
        layer(leaf).backward(weights)

    return median_ms(step, **timing)


def main() -> None:
    torch.manual_seed(0)
    table = []
    for (m, n), target in TARGETS.items():
        for scale in (3.0, 60.0):
            scores = scale * torch.randn(BATCH, m, n)
            for name, options in KINDS.items():
                ours = forward_backward(lambda s, o=options: ops.matching(s, **o), scores)
                # Measured next to each other: the machine may be slower a second later.
                base = forward_backward(lambda s: entmax.sparsemax(s, dim=-1), scores)
                general = forward_backward(qp_layer(m, n, **options), scores, seconds=0.0, least=1)
                met = ours <= target * base and FASTER_THAN_QP * ours <= general
                row = (f"{m}x{n}", scale, name, ours, base, ours / base, f"<= {target:g}")
                table.append((*row, general, general / ours, "met" if met else "missed"))
    header = (
        "size",
        "scale",
        "kind",
        "ms",
        "sparsemax ms",
        "ratio",
        "target",
        "QP layer ms",
        "QP / ours (>= 20)",
        "",
    )
    print_table(header, table)


if __name__ == "__main__":
    main()
