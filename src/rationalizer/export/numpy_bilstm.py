"""The networks of BiLSTM models in NumPy: `HighlightModel` and `PairModel` with a `VectorEncoder`, for one text.

A short text takes about a millisecond. That is less than the time to import any other library for networks.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rationalizer.export.word_inputs import Feeds

Array = NDArray[np.float32]
Weights = Mapping[str, Array]
LSTM_PARTS = ("weight_ih", "weight_hh", "bias_ih", "bias_hh")


class NumpyNetworks:
    """The graphs `scores`, `states` and `output` of an exported BiLSTM model.

    Args:
        weights: those of the model, by their names in it.
        facts: `network` of a model's facts, see `model_facts`.
    """

    def __init__(self, weights: Weights, facts: Mapping[str, Any]) -> None:
        self.weights, self.facts = weights, facts

    def states(self, feeds: Feeds) -> Feeds:
        vectors = feeds["vectors"]
        states = self._bilstm("encoder.generator", vectors)
        return {"states": np.concatenate([states, vectors], 1) if self.facts["word_scores"] else states}

    def scores(self, feeds: Feeds) -> Array:
        if "premise" in feeds:
            scores: Array = feeds["premise"] @ feeds["hypothesis"].T
            return scores - self.weights["threshold"] if self.facts["threshold"] else scores
        states = self.states(feeds)["states"]
        if not self.facts["attention"]:
            weight, bias = self._linear("method.scorer")
            return (states @ weight.T + bias)[:, 0]
        weight, bias = self._linear("method.hidden")
        scale = np.float32(states.shape[1] ** -0.5)
        return (np.tanh(states @ weight.T + bias) @ self.weights["method.scorer.weight"].T)[:, 0] * scale

    def output(self, feeds: Feeds) -> Array:
        return self._predict(self._pair_features(feeds) if "premise" in feeds else self._text_features(feeds))

    def _text_features(self, feeds: Feeds) -> Array:
        z = feeds["weights"][:, None]
        visible = np.where(z != 0, z * feeds["vectors"], np.float32(0))
        present = z[:, 0] != 0 if self.facts["closed_gaps"] else np.ones(len(z), np.bool_)
        pooled = _pool(self._bilstm(self.facts["predictor"], visible), present, self.facts["pooling"])
        if not self.facts["word_sums"]:
            return pooled
        return np.concatenate([pooled, visible.sum(0) / np.sqrt(np.maximum(z.sum(), np.float32(1e-6)))])

    def _pair_features(self, feeds: Feeds) -> Array:
        premise, hypothesis, z = feeds["premise"], feeds["hypothesis"], feeds["weights"]
        to_premise, to_hypothesis = z @ hypothesis, z.T @ premise
        composed = [to_premise, _compare(hypothesis, to_hypothesis)]
        names = ["compose_premise", "compose"]
        if not self.facts["faithful"]:
            composed[0], names[0] = _compare(premise, to_premise), "compose"
        pooled = []
        for features, name in zip(composed, names, strict=True):
            weight, bias = self._linear(name)
            states = self._bilstm("composed", np.maximum(features @ weight.T + bias, 0))
            pooled.append(_pool(states, np.ones(len(states), np.bool_), self.facts["pooling"]))
        p, h = pooled
        if self.facts["closes_premise"] and not z.any():  # the one row of the premise holds no word
            p = np.zeros_like(p)
        return np.concatenate([p, h, p - h, p * h])

    def _predict(self, features: Array) -> Array:
        weight, bias = self._linear("head.linear")
        outputs = weight @ features + bias
        target = self.facts["target"]
        if target is None:
            powers = np.exp(outputs - outputs.max())
            return powers / powers.sum()
        outputs = _sigmoid(outputs) if target["sigmoid"] else outputs
        return outputs * np.float32(target["deviation"]) + np.float32(target["mean"])

    def _linear(self, name: str) -> tuple[Array, Array]:
        return self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]

    def _bilstm(self, name: str, vectors: Array) -> Array:
        """(n, 2 · hidden) states of both directions, computed side by side."""
        inputs, recurrent = [], []
        for direction, sequence in (("forwards", vectors), ("backwards", vectors[::-1])):
            w_ih, w_hh, b_ih, b_hh = (
                self.weights[f"{name}.{direction}.{part}_l0"]
                for part in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
            )
            inputs.append(sequence @ w_ih.T + (b_ih + b_hh))
            recurrent.append(w_hh.T)
        gates, weight = np.stack(inputs, 1)[:, :, None], np.stack(recurrent)  # (n, 2, 1, 4h), (2, h, 4h)
        hidden = weight.shape[1]
        state, cell = np.zeros((2, 1, hidden), np.float32), np.zeros((2, 1, hidden), np.float32)
        states = np.empty((len(vectors), 2, hidden), np.float32)
        for t in range(len(vectors)):
            i, f, g, o = np.split(gates[t] + state @ weight, 4, axis=-1)
            cell = _sigmoid(f) * cell + _sigmoid(i) * np.tanh(g)
            state = _sigmoid(o) * np.tanh(cell)
            states[t] = state[:, 0]
        return np.concatenate([states[:, 0], states[::-1, 1]], 1)


def _sigmoid(x: Array) -> Array:
    return np.float32(0.5) * np.tanh(np.float32(0.5) * x) + np.float32(0.5)  # exp would overflow


def _compare(own: Array, aligned: Array) -> Array:
    return np.concatenate([own, aligned, own - aligned, own * aligned], 1)


def _pool(states: Array, present: NDArray[np.bool_], how: str) -> Array:
    """The states of the present positions as one vector, see `nn.heads.pool`."""
    if how == "max-mean":
        return np.concatenate([_pool(states, present, "max"), _pool(states, present, "mean")])
    if not present.any():
        return np.zeros(states.shape[1], np.float32)
    half = states.shape[1] // 2
    if how == "last":
        return np.concatenate([states[-1, :half], states[0, half:]])
    pooled: Array = states[present].max(0) if how == "max" else states[present].mean(0)
    return pooled
