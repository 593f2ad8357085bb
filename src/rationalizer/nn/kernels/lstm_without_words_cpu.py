"""An LSTM over each text, and over the text without each of some words, with max pooling.

The variants of a text share the steps before the missing word. All of them advance together, one row each, so that the
recurrent weights are read once per step. Rows do not affect each other: a text has the same results in every batch.
"""

import numpy as np

from rationalizer.ops.kernels.numba_runtime import reordering

# tanh x = x · p(x²) / q(x²) within a few units in the last place of float32, ±1 beyond LARGEST (the coefficients of
# Eigen). Unlike the C library's function, the compiler turns it into vector instructions.
LARGEST, HALF = np.float32(7.9053111), np.float32(0.5)
P0, P1, P2 = np.float32(4.89352455891786e-03), np.float32(6.37261928875436e-04), np.float32(1.48572235717979e-05)
P3, P4, P5 = np.float32(5.12229709037114e-08), np.float32(-8.60467152213735e-11), np.float32(2.00018790482477e-13)
P6 = np.float32(-2.76076847742355e-16)
Q0, Q1 = np.float32(4.89352518554385e-03), np.float32(2.26843463243900e-03)
Q2, Q3 = np.float32(1.18534705686654e-04), np.float32(1.19825839466702e-06)


@reordering
def tanh(x):
    x = min(max(x, -LARGEST), LARGEST)
    y = x * x
    p = P0 + y * (P1 + y * (P2 + y * (P3 + y * (P4 + y * (P5 + y * P6)))))
    return x * p / (Q0 + y * (Q1 + y * (Q2 + y * Q3)))


@reordering
def sigmoid(x):
    return HALF + HALF * tanh(HALF * x)


@reordering
def add_products(gates, h, weights):
    """gates += h @ weights."""
    size = h.shape[1]
    whole = size // 8 * 8
    for k in range(0, whole, 8):  # eight rows of the weights stay in the cache for all rows of h
        for row in range(h.shape[0]):
            out = gates[row]
            a, b, c, d = h[row, k], h[row, k + 1], h[row, k + 2], h[row, k + 3]
            e, f, g, i = h[row, k + 4], h[row, k + 5], h[row, k + 6], h[row, k + 7]
            for j in range(out.shape[0]):
                first = (a * weights[k, j] + b * weights[k + 1, j]) + (c * weights[k + 2, j] + d * weights[k + 3, j])
                last = (e * weights[k + 4, j] + f * weights[k + 5, j]) + (g * weights[k + 6, j] + i * weights[k + 7, j])
                out[j] += first + last
    for k in range(whole, size):
        for row in range(h.shape[0]):
            out, a = gates[row], h[row, k]
            for j in range(out.shape[0]):
                out[j] += a * weights[k, j]


@reordering
def step(gates, h, c, top):
    """One step of each row: from the sums before the nonlinearities to the new states and their maximum so far."""
    size = h.shape[1]
    for row in range(gates.shape[0]):
        sums, hidden, cell, most = gates[row], h[row], c[row], top[row]
        for j in range(size):
            kept = sigmoid(sums[size + j]) * cell[j]
            cell[j] = kept + sigmoid(sums[j]) * tanh(sums[2 * size + j])
            hidden[j] = sigmoid(sums[3 * size + j]) * tanh(cell[j])
            most[j] = max(most[j], hidden[j])


@reordering
def max_states_without(first, last, backwards, lengths, inputs, row_of, weights, places, starts, out):
    """The maximum of each state over the positions of a text, in the directions of the text or backwards.

    inputs: (words + 1, 4 · hidden) products with the input weights, plus the bias; the last row: of an empty word.
    row_of: (texts, n) the row of `inputs` of each word.
    weights: (hidden, 4 · hidden) the recurrent weights.
    places: the words to leave out, those of text i in places[starts[i] : starts[i + 1]], in ascending order.
    out: (texts + places, hidden); the rows of text i start at starts[i] + i: the text itself, then each variant.
    """
    empty = inputs[inputs.shape[0] - 1]
    for text in range(first, last):
        start, variants, length = starts[text], starts[text + 1] - starts[text], lengths[text]
        h = np.zeros((1 + variants, weights.shape[0]), inputs.dtype)
        c, top = np.zeros_like(h), np.full_like(h, -np.inf)
        gates = np.empty((1 + variants, weights.shape[1]), inputs.dtype)
        rows = 1  # that have started: the text itself, and the variants whose missing word has been reached
        for t in range(length):
            place = length - 1 - t if backwards else t
            gates[:rows] = inputs[row_of[text, place]]
            if rows <= variants and place == places[start + (variants - rows if backwards else rows - 1)]:
                h[rows], c[rows], top[rows] = h[0], c[0], top[0]
                gates[rows] = empty
                rows += 1
            add_products(gates[:rows], h[:rows], weights)
            step(gates[:rows], h, c, top)
        out[start + text] = top[0]
        for k in range(variants):
            out[start + text + 1 + k] = top[variants - k if backwards else 1 + k]
