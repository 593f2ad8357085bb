"""A small builder of ONNX graphs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from onnx import ModelProto, TensorProto, checker, helper, numpy_helper

OPSET, IR_VERSION = 17, 8  # old enough for all runtimes of the last years
SMALL = 1024  # numbers; larger constants that are exact in half precision are stored in it
Shape = Sequence[int | str]  # a string is a length that varies
Signature = Mapping[str, tuple[str, Shape]]  # name -> type and shape
TYPES = {"float32": TensorProto.FLOAT, "int64": TensorProto.INT64}


class GraphBuilder:
    """Collects nodes and constants. Methods return the names of their results."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.constants: list[Any] = []

    def add(self, kind: str, *inputs: str, output: str | None = None, **attributes: Any) -> str:
        """Add a node; return the name of its first output."""
        name = output or f"{kind}_{len(self.nodes)}"
        self.nodes.append(helper.make_node(kind, inputs, [name], **attributes))
        return name

    def constant(self, values: Any, dtype: Any = np.float32) -> str:
        array = np.asarray(values, dtype=dtype)
        name = f"constant_{len(self.constants)}"
        half = array.astype(np.float16) if array.dtype == np.float32 and array.size > SMALL else None
        exact = half is not None and np.array_equal(half.astype(np.float32), array)
        self.constants.append(numpy_helper.from_array(half if half is not None and exact else array, name))
        return self.add("Cast", name, to=TensorProto.FLOAT) if exact else name

    def integers(self, *values: int) -> str:
        return self.constant(values, np.int64)

    def linear(self, values: str, weight: NDArray[Any], bias: NDArray[Any] | None) -> str:
        product = self.add("MatMul", values, self.constant(weight.T))
        return product if bias is None else self.add("Add", product, self.constant(bias))

    def build(self, name: str, inputs: Signature, outputs: Signature) -> ModelProto:
        def values(signature: Signature) -> list[Any]:
            return [helper.make_tensor_value_info(key, TYPES[kind], shape) for key, (kind, shape) in signature.items()]

        graph = helper.make_graph(self.nodes, name, values(inputs), values(outputs), self.constants)
        opsets = [helper.make_opsetid("", OPSET)]
        model = helper.make_model(graph, opset_imports=opsets, ir_version=IR_VERSION, producer_name="rationalizer")
        checker.check_model(model, full_check=True)
        return model
