"""The ONNX graphs of a transformer model, built by hand for encoders with the architecture of BERT and RoBERTa."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto

from rationalizer.export.bilstm_graphs import ModelGraph, pair_scores
from rationalizer.export.graph_builder import Signature
from rationalizer.export.model_facts import ModelFacts, NotExportableError, float_weights
from rationalizer.models.atomic_files import read_arrays
from rationalizer.text.subwords import MAX_SUBWORDS
from rationalizer.text.word_vectors import quantize

ARCHITECTURES = ("bert", "roberta", "xlm-roberta")
LOWEST = float(np.finfo(np.float32).min)
Files = dict[str, bytes]


def export_transformer(
    folder: Path, facts: ModelFacts, eight_bit: bool
) -> tuple[Files, dict[str, Any], dict[str, ModelProto]]:
    """The tokenizer's file, the manifest's entry `encoder`, and the graphs."""
    config, subwords, options = facts.encoder["config"], facts.encoder["subwords"], facts.network["options"]
    _check(config)
    window = options["window"] or facts.encoder["capacity"]
    encoder = {
        "kind": "transformer",
        "tokenizer": "tokenizer.json",
        **{key: subwords[key] for key in ("prefix", "suffix", "mask", "unknown")},
        "filler": subwords["mask"] or 0,
        "room": window - len(subwords["prefix"]) - len(subwords["suffix"]),
        "overlap": max(MAX_SUBWORDS, window // 8) if options["overlap"] is None else options["overlap"],
        "gaps": options["gaps"],
        "unselected": options["unselected"],
    }
    weights = float_weights(read_arrays(folder / "model.safetensors")[0])
    size = config["hidden_size"]
    rows: Signature = {"tokens": ("int64", ("rows", "length")), "attended": ("int64", ("rows", "length"))}
    words: Signature = {"index": ("int64", ("n", "k")), "share": ("float32", ("n", "k"))}
    output: Signature = {"output": ("float32", (len(weights["head.linear.bias"]),))}

    def graph() -> _Graph:
        return _Graph(weights, facts.network, config, encoder, eight_bit)

    whole, graphs = {**rows, **words}, {}
    if facts.manifest["pairs"]:
        sides: Signature = {"premise": ("float32", ("m", size)), "hypothesis": ("float32", ("n", size))}
        states = graph()
        states.states("states")
        graphs["states"] = states.build("states", whole, {"states": ("float32", ("n", size))})
        scores = pair_scores(graph(), weights, facts.network, size**-0.5)
        graphs["scores"] = scores.build("scores", sides, {"scores": ("float32", ("m", "n"))})
        inputs: Signature = {**sides, "weights": ("float32", ("m", "n"))}
        graphs["output"] = graph().pair_output().build("output", inputs, output)
    else:
        graphs["scores"] = graph().scores().build("scores", whole, {"scores": ("float32", ("n",))})
        inputs = {**whole, "token_weights": ("float32", ("rows", "length")), "weights": ("float32", ("n",))}
        graphs["output"] = graph().output().build("output", inputs, output)
    return {"tokenizer.json": json.dumps(subwords["tokenizer"]).encode()}, encoder, graphs


def _check(config: Mapping[str, Any]) -> None:
    kind = config["model_type"]
    if kind not in ARCHITECTURES:
        raise NotExportableError(
            f"a transformer of the type {kind!r} cannot be exported", f"exported are {', '.join(ARCHITECTURES)}"
        )
    expected = {"hidden_act": "gelu", "position_embedding_type": "absolute", "is_decoder": False}
    for name, value in expected.items():
        if config.get(name, value) != value:
            raise NotExportableError(
                f"a transformer with {name}={config[name]!r} cannot be exported", f"exported are those with {value!r}"
            )


class _Graph(ModelGraph):
    def __init__(
        self,
        weights: Mapping[str, NDArray[np.float32]],
        facts: Mapping[str, Any],
        config: Mapping[str, Any],
        encoder: Mapping[str, Any],
        eight_bit: bool,
    ) -> None:
        super().__init__(weights, facts)
        self.config, self.encoder, self.eight_bit = config, encoder, eight_bit

    def states(self, output: str | None = None) -> str:
        """The generator's states of the words."""
        return self._word_states(self._encode("encoder.generator", "tokens", None), output)

    def output(self) -> _Graph:
        rows = self._encode(self.facts["predictor"], "tokens", "token_weights")
        z = self.add("Unsqueeze", "weights", self.integers(1))
        chosen = self.add("Not", self.add("Equal", z, self.constant(0.0)))
        self._predict(self._pool_chosen(self._word_states(rows), z, chosen), self._global_state(rows))
        return self

    def _pool_chosen(self, states: str, z: str, chosen: str) -> str:
        how, pooled = self.facts["pooling"], []
        some = self.add("ReduceMax", self.add("Cast", chosen, to=TensorProto.FLOAT), keepdims=0)
        some = self.add("Cast", some, to=TensorProto.BOOL)
        if how != "mean":
            kept = self.add("Where", chosen, states, self.constant(LOWEST))
            best = self.add("ReduceMax", kept, axes=[0], keepdims=0)
            pooled.append(self.add("Where", some, best, self.constant(0.0)))
        if how != "max":
            total = self.add("ReduceSum", self.add("Mul", z, states), self.integers(0), keepdims=0)
            weight = self.add("Where", some, self.add("ReduceSum", z, keepdims=0), self.constant(1.0))
            pooled.append(self.add("Div", total, weight))
        return self.add("Concat", *pooled, axis=0)

    def _global_state(self, rows: str) -> str:
        """The mean over all rows of the first special token, or without one of all attended tokens."""
        if self.encoder["prefix"]:
            first = self.add("Gather", rows, self.integers(0), axis=1)
            return self.add("ReduceMean", first, axes=[0, 1], keepdims=0)
        attended = self.add("Unsqueeze", self.add("Cast", "attended", to=TensorProto.FLOAT), self.integers(2))
        total = self.add("ReduceSum", self.add("Mul", rows, attended), self.integers(1), keepdims=0)
        count = self.add("Max", self.add("ReduceSum", attended, self.integers(1), keepdims=0), self.constant(1.0))
        return self.add("ReduceMean", self.add("Div", total, count), axes=[0], keepdims=0)

    def _word_states(self, rows: str, output: str | None = None) -> str:
        """The mean state of each word's tokens."""
        flat = self.add("Reshape", rows, self.integers(-1, self.config["hidden_size"]))
        weighted = self.add("Mul", self.add("Gather", flat, "index"), self.add("Unsqueeze", "share", self.integers(2)))
        return self.add("ReduceSum", weighted, self.integers(1), output=output, keepdims=0)

    def _encode(self, name: str, tokens: str, weights: str | None) -> str:
        """The states (rows, length, size) of all tokens, weighted as `TransformerEncoder._input` does."""
        embedded = self._embed(name, tokens)
        if weights is not None:
            z = self.add("Unsqueeze", weights, self.integers(2))
            embedded = self.add("Mul", z, embedded)
            if self.encoder["unselected"] != "zero" and self.encoder["mask"] is not None:
                mask = self.constant(self.weights[f"{name}.embeddings.word_embeddings.weight"][self.encoder["mask"]])
                embedded = self.add("Add", embedded, self.add("Mul", self.add("Sub", self.constant(1.0), z), mask))
        table = self.weights[f"{name}.embeddings.position_embeddings.weight"]
        offset = 0 if self.config["model_type"] == "bert" else self.config["pad_token_id"] + 1
        length = self.add("Gather", self.add("Shape", tokens), self.integers(1))
        positions = self.add("Slice", self.constant(table[offset:]), self.integers(0), length)
        kind = self.weights[f"{name}.embeddings.token_type_embeddings.weight"][0]
        states = self.add("Add", self.add("Add", embedded, positions), self.constant(kind))
        states = self._normalize(states, f"{name}.embeddings.LayerNorm")
        attended = self.add("Cast", "attended", to=TensorProto.BOOL)
        attended = self.add("Unsqueeze", attended, self.integers(1, 2))  # (rows, 1, 1, length)
        for layer in range(self.config["num_hidden_layers"]):
            states = self._layer(states, attended, f"{name}.encoder.layer.{layer}")
        return states

    def _embed(self, name: str, tokens: str) -> str:
        table = self.weights[f"{name}.embeddings.word_embeddings.weight"]
        if not self.eight_bit:
            return self.add("Gather", self.constant(table), tokens)
        codes, scales = quantize(table)
        rows = self.add("Cast", self.add("Gather", self.constant(codes, np.int8), tokens), to=TensorProto.FLOAT)
        return self.add("Mul", rows, self.add("Gather", self.constant(scales[:, None]), tokens))

    def _layer(self, states: str, attended: str, name: str) -> str:
        heads = self.config["num_attention_heads"]
        shape = self.integers(0, 0, heads, self.config["hidden_size"] // heads)

        def split(kind: str, perm: list[int]) -> str:
            values = self._dense(states, f"{name}.attention.self.{kind}")
            return self.add("Transpose", self.add("Reshape", values, shape), perm=perm)

        products = self.add("MatMul", split("query", [0, 2, 1, 3]), split("key", [0, 2, 3, 1]))
        scaled = self.add("Mul", products, self.constant((self.config["hidden_size"] // heads) ** -0.5))
        attention = self.add("Softmax", self.add("Where", attended, scaled, self.constant(LOWEST)), axis=-1)
        mixed = self.add("Transpose", self.add("MatMul", attention, split("value", [0, 2, 1, 3])), perm=[0, 2, 1, 3])
        mixed = self.add("Reshape", mixed, self.integers(0, 0, self.config["hidden_size"]))
        mixed = self.add("Add", self._dense(mixed, f"{name}.attention.output.dense"), states)
        states = self._normalize(mixed, f"{name}.attention.output.LayerNorm")
        inner = self._dense(states, f"{name}.intermediate.dense")
        erf = self.add("Erf", self.add("Div", inner, self.constant(2**0.5)))
        inner = self.add("Mul", self.add("Mul", inner, self.add("Add", erf, self.constant(1.0))), self.constant(0.5))
        outer = self.add("Add", self._dense(inner, f"{name}.output.dense"), states)
        return self._normalize(outer, f"{name}.output.LayerNorm")

    def _dense(self, values: str, name: str) -> str:
        weight, bias = self.weights[f"{name}.weight"], self.weights[f"{name}.bias"]
        if not self.eight_bit:
            return self.linear(values, weight, bias)
        codes, scales = quantize(weight)
        # The runtime multiplies these constants once, when it loads the graph.
        decoded = self.add("Cast", self.constant(codes.T, np.int8), to=TensorProto.FLOAT)
        product = self.add("MatMul", values, self.add("Mul", decoded, self.constant(scales)))
        return self.add("Add", product, self.constant(bias))

    def _normalize(self, values: str, name: str) -> str:
        constants = [self.constant(self.weights[f"{name}.{part}"]) for part in ("weight", "bias")]
        return self.add("LayerNormalization", values, *constants, axis=-1, epsilon=self.config["layer_norm_eps"])
