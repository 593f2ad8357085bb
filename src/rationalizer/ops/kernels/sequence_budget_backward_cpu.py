"""The exact gradient of H:SeqBudget: the projection onto the face of the solution."""

import numpy as np

from rationalizer.ops.kernels.bits_cpu import word_count
from rationalizer.ops.kernels.budget_cpu import gather_real, scatter_real
from rationalizer.ops.kernels.face_projection_cpu import project_onto_support
from rationalizer.ops.kernels.numba_runtime import jit
from rationalizer.ops.kernels.pair_budget_cpu import gather_edges, pair_budget_backward_row, scatter_edges


@jit
def project_row_onto_support(grad, mask, size, support, grad_s, grad_r, g, h, edges):
    """Project the gradient of one row onto the affine hull of the first `size` sequences of `support`.

    `g`, `h` and `edges` are scratch memory of the row's length.
    """
    count = gather_real(grad, mask, g)
    project_onto_support(g[:count], support[:size, : word_count(count)], size, h[:count], edges)
    scatter_real(h, mask, grad_s)
    scatter_edges(edges, mask, grad_r)


@jit
def sequence_budget_backward_rows(first, last, grad, z, transition, mask, tight, support_size, support, grad_s, grad_r):
    """Multiply the gradients `grad` of rows `first` to `last` by the Jacobian of z in scores and in transitions.

    The Jacobian in the scores is the orthogonal projector onto the directions of the face on which z lies: the face of
    PAIR + BUDGET if `support_size` is 0 (closed form), otherwise the affine hull of the sequences in `support`.
    """
    n = z.shape[1]
    g, real_z, r, h, edges = np.empty(n), np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for row in range(first, last):
        size = support_size[row]
        if size > 0:
            project_row_onto_support(grad[row], mask[row], size, support[row], grad_s[row], grad_r[row], g, h, edges)
            continue
        count = gather_real(grad[row], mask[row], g)
        gather_real(z[row], mask[row], real_z)
        gather_edges(transition[row], mask[row], r)
        pair_budget_backward_row(g[:count], real_z[:count], r, tight[row], h[:count], edges)
        scatter_real(h, mask[row], grad_s[row])
        scatter_edges(edges, mask[row], grad_r[row])
