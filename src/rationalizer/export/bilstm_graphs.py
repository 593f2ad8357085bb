"""The ONNX graphs of a BiLSTM model, built by hand: the same computations as `NumpyNetworks`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from onnx import ModelProto, TensorProto

from rationalizer.export.graph_builder import GraphBuilder, Signature
from rationalizer.export.numpy_bilstm import LSTM_PARTS, Weights

GATES = (0, 3, 1, 2)  # PyTorch's order is input, forget, cell, output; that of ONNX input, output, forget, cell


def bilstm_graphs(weights: Weights, facts: Mapping[str, Any], *, pairs: bool) -> dict[str, ModelProto]:
    """The graphs `scores` and `output`, and `states` for pairs.

    Args:
        weights: those of the model by name, without the word vectors.
        facts: `network` of the model's facts.
        pairs: whether the model is for pairs of texts.
    """
    size = weights["encoder.generator.forwards.weight_ih_l0"].shape[1]
    text: Signature = {"vectors": ("float32", ("n", size))}
    output: Signature = {"output": ("float32", (len(weights["head.linear.bias"]),))}
    states = weights["encoder.generator.forwards.weight_hh_l0"].shape[1] * 2 + (size if facts["word_scores"] else 0)
    if not pairs:
        selection: Signature = {**text, "weights": ("float32", ("n",))}
        return {
            "scores": ModelGraph(weights, facts).scores().build("scores", text, {"scores": ("float32", ("n",))}),
            "output": ModelGraph(weights, facts).output().build("output", selection, output),
        }
    sides: Signature = {"premise": ("float32", ("m", states)), "hypothesis": ("float32", ("n", states))}
    links: Signature = {"scores": ("float32", ("m", "n"))}
    aligned: Signature = {**sides, "weights": ("float32", ("m", "n"))}
    graph = ModelGraph(weights, facts)
    graph.states("states")
    return {
        "states": graph.build("states", text, {"states": ("float32", ("n", states))}),
        "scores": pair_scores(ModelGraph(weights, facts), weights, facts).build("scores", sides, links),
        "output": ModelGraph(weights, facts).pair_output().build("output", aligned, output),
    }


def pair_scores(graph: GraphBuilder, weights: Weights, facts: Mapping[str, Any], scale: float = 1.0) -> GraphBuilder:
    """The scores of word pairs: products of states, minus the threshold."""
    product = graph.add("MatMul", "premise", graph.add("Transpose", "hypothesis", perm=[1, 0]))
    threshold = weights["threshold"] if facts["threshold"] else np.float32(0)
    scaled = graph.add("Mul", product, graph.constant(scale))
    graph.add("Sub", scaled, graph.constant(threshold), output="scores")
    return graph


class ModelGraph(GraphBuilder):
    """The parts of the graphs. Methods that return the graph add all of it."""

    def __init__(self, weights: Weights, facts: Mapping[str, Any]) -> None:
        super().__init__()
        self.weights, self.facts = weights, facts

    def states(self, output: str | None = None) -> str:
        """The generator's states."""
        states = [self._bilstm("encoder.generator", "vectors")[0]]
        states += ["vectors"] if self.facts["word_scores"] else []
        return self.add("Concat", *states, output=output, axis=1)

    def scores(self) -> ModelGraph:
        states = self.states()
        weight, bias = self.weights["method.scorer.weight"], self.weights.get("method.scorer.bias")
        if self.facts["attention"]:
            states = self.add("Tanh", self._linear(states, "method.hidden"))
            weight = weight * np.float32(weight.shape[1] ** -0.5)
        self.add("Squeeze", self.linear(states, weight, bias), self.integers(1), output="scores")
        return self

    def output(self) -> ModelGraph:
        z = self.add("Unsqueeze", "weights", self.integers(1))
        chosen = self.add("Not", self.add("Equal", z, self.constant(0.0)))
        # Not only a product: 0 · x would have the sign of x.
        visible = self.add("Where", chosen, self.add("Mul", z, "vectors"), self.constant(0.0))
        pooled = self._bilstm_pooled(self.facts["predictor"], visible)
        if self.facts["closed_gaps"]:  # without selected words there is one row, which is not selected
            some = self.add("ReduceMax", self.add("Cast", chosen, to=TensorProto.FLOAT), keepdims=0)
            pooled = self.add("Where", self.add("Cast", some, to=TensorProto.BOOL), pooled, self.constant(0.0))
        features = [pooled]
        if self.facts["word_sums"]:
            total = self.add("Max", self.add("ReduceSum", "weights", keepdims=0), self.constant(1e-6))
            sums = self.add("ReduceSum", visible, self.integers(0), keepdims=0)
            features.append(self.add("Div", sums, self.add("Sqrt", total)))
        self._predict(*features)
        return self

    def pair_output(self) -> ModelGraph:
        to_premise = self.add("MatMul", "weights", "hypothesis")
        to_hypothesis = self.add("MatMul", self.add("Transpose", "weights", perm=[1, 0]), "premise")
        if self.facts["faithful"]:
            composed = self._linear(to_premise, "compose_premise")
        else:
            composed = self._linear(self._compare("premise", to_premise), "compose")
        p = self._encode_and_pool(composed)
        if self.facts["closes_premise"]:  # without links, the one row of the premise holds no word
            some = self.add("Cast", self.add("ReduceMax", "weights", keepdims=0), to=TensorProto.BOOL)
            p = self.add("Where", some, p, self.constant(0.0))
        h = self._encode_and_pool(self._linear(self._compare("hypothesis", to_hypothesis), "compose"))
        self._predict(p, h, self.add("Sub", p, h), self.add("Mul", p, h))
        return self

    def _compare(self, own: str, aligned: str) -> str:
        others = (self.add("Sub", own, aligned), self.add("Mul", own, aligned))
        return self.add("Concat", own, aligned, *others, axis=1)

    def _encode_and_pool(self, composed: str) -> str:
        return self._bilstm_pooled("composed", self.add("Relu", composed))

    def _linear(self, values: str, name: str) -> str:
        return self.linear(values, self.weights[f"{name}.weight"], self.weights[f"{name}.bias"])

    def _predict(self, *features: str) -> None:
        joined = self.add("Concat", *features, axis=0)
        outputs = self._linear(joined, "head.linear")
        target = self.facts["target"]
        if target is None:
            self.add("Softmax", outputs, output="output", axis=0)
            return
        outputs = self.add("Sigmoid", outputs) if target["sigmoid"] else outputs
        scaled = self.add("Mul", outputs, self.constant(target["deviation"]))
        self.add("Add", scaled, self.constant(target["mean"]), output="output")

    def _bilstm_pooled(self, name: str, vectors: str) -> str:
        return self._pool(*self._bilstm(name, vectors))

    def _bilstm(self, name: str, vectors: str) -> tuple[str, int]:
        """The states (n, 2 · hidden), and hidden."""
        parts: dict[str, list[Any]] = {part: [] for part in LSTM_PARTS}
        for direction in ("forwards", "backwards"):
            for part, collected in parts.items():
                gates = np.split(self.weights[f"{name}.{direction}.{part}_l0"], 4)
                collected.append(np.concatenate([gates[k] for k in GATES]))
        bias = np.concatenate([np.stack(parts["bias_ih"]), np.stack(parts["bias_hh"])], axis=1)
        hidden = parts["weight_hh"][0].shape[1]
        sequence = self.add("Unsqueeze", vectors, self.integers(1))
        constants = [self.constant(np.stack(parts["weight_ih"])), self.constant(np.stack(parts["weight_hh"]))]
        states = self.add(
            "LSTM", sequence, *constants, self.constant(bias), direction="bidirectional", hidden_size=hidden
        )
        return self.add("Reshape", states, self.integers(-1, 2 * hidden)), hidden

    def _pool(self, states: str, hidden: int) -> str:
        """One vector from all states."""
        how = self.facts["pooling"]
        if how == "last":  # of each direction: at the last word left to right, at the first word right to left
            first = self.add("Slice", states, self.integers(-1, 0), self.integers(2**31, hidden))
            second = self.add("Slice", states, self.integers(0, hidden), self.integers(1, 2**31))
            return self.add("Reshape", self.add("Concat", first, second, axis=1), self.integers(-1))
        pooled = [] if how == "mean" else [self.add("ReduceMax", states, axes=[0], keepdims=0)]
        pooled += [] if how == "max" else [self.add("ReduceMean", states, axes=[0], keepdims=0)]
        return self.add("Concat", *pooled, axis=0)
