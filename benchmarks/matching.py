"""The matching layer against sparsemax and a general QP layer: forward + backward, batch 16, float32."""

from __future__ import annotations

import cvxpy
import entmax
import torch
from cvxpylayers.torch import CvxpyLayer

from benchmarks.timing import median_ms, print_table, verdict
from rationalizer import ops

BATCH = 16
KINDS = {"XorAtMostOne": {"rows": "exactly_one"}, "AtMostOne2": {}, "Budget 4": {"budget": 4}}
TARGETS = {(12, 16): 10.0, (24, 32): 25.0}  # largest ratio to sparsemax on the same tensor
FASTER_THAN_QP = 20.0


def qp_layer(m: int, n: int, rows: str = "at_most_one", budget: int | None = None):
    """Return a layer that solves the same problem as a general convex program."""
    scores, z = cvxpy.Parameter((m, n)), cvxpy.Variable((m, n), nonneg=True)
    row_sums, column_sums = cvxpy.sum(z, axis=1), cvxpy.sum(z, axis=0)
    constraints = [column_sums <= 1, row_sums == 1 if rows == "exactly_one" else row_sums <= 1]
    if budget is not None:
        constraints.append(cvxpy.sum(z) <= budget)
    problem = cvxpy.Problem(
        cvxpy.Minimize(0.5 * cvxpy.sum_squares(z) - cvxpy.sum(cvxpy.multiply(scores, z))), constraints
    )
    layer = CvxpyLayer(problem, parameters=[scores], variables=[z])
    return lambda s: layer(s)[0]


def one_step(layer, scores: torch.Tensor):
    weights = torch.randn_like(scores)

    def step() -> None:
        leaf = scores.detach().requires_grad_()
        layer(leaf).backward(weights)

    return step


def sparsemax_ms(scores: torch.Tensor) -> float:
    """Return the faster of one thread and all threads: on a busy machine threads wait for each other."""
    step = one_step(lambda s: entmax.sparsemax(s, dim=-1), scores)
    threads = torch.get_num_threads()
    with_all = median_ms(step)
    torch.set_num_threads(1)
    try:
        return min(with_all, median_ms(step))
    finally:
        torch.set_num_threads(threads)


def main() -> None:
    torch.manual_seed(0)
    table = []
    for (m, n), target in TARGETS.items():
        for scale in (3.0, 60.0):
            scores = scale * torch.randn(BATCH, m, n)
            for name, options in KINDS.items():
                ours = median_ms(one_step(lambda s, o=options: ops.matching(s, **o), scores))
                base = sparsemax_ms(scores)
                general = median_ms(one_step(qp_layer(m, n, **options), scores), seconds=0.0, least=1)
                met = ours <= target * base and FASTER_THAN_QP * ours <= general
                row = (f"{m}x{n}", scale, name, ours, base, ours / base, f"<= {target:g}")
                table.append((*row, general, general / ours, f">= {FASTER_THAN_QP:g}", verdict(met)))
    header = ("size", "scale", "kind", "ms", "sparsemax ms", "ratio", "target")
    print_table((*header, "QP layer ms", "QP/ours", "target", ""), table)


if __name__ == "__main__":
    main()
