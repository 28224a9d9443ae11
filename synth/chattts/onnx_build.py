"""Writes ONNX graphs node by node: names, constants and quantization, so that graphs.py reads like the computation.

Only operators that onnxruntime and TensorRT both know. Knows no model.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

OPSET = 24  # TensorScatter, Attention
IR = 11
TYPES = {"float32": TensorProto.FLOAT, "float16": TensorProto.FLOAT16, "bfloat16": TensorProto.BFLOAT16}
INT64, BOOL, FLOAT = TensorProto.INT64, TensorProto.BOOL, TensorProto.FLOAT
Array = NDArray[np.generic]


class Graph:
    """A graph that computes in `precision`; with `scales` its layers of those names are quantized to INT8."""

    def __init__(self, name: str, precision: str, scales: Mapping[str, float] | None = None) -> None:
        self._name = name
        self._scales = scales or {}
        self.type = TYPES[precision]
        self.inputs: dict[str, tuple[int | str, ...]] = {}
        self._nodes: list[onnx.NodeProto] = []
        self._inputs: list[onnx.ValueInfoProto] = []
        self._outputs: list[onnx.ValueInfoProto] = []
        self._constants: dict[str, onnx.TensorProto] = {}
        self._count = 0

    def input(self, name: str, kind: int, shape: Sequence[int | str]) -> str:
        self._inputs.append(helper.make_tensor_value_info(name, kind, shape))
        self.inputs[name] = tuple(shape)
        return name

    def output(self, name: str, value: str, kind: int, shape: Sequence[int | str]) -> None:
        self._nodes.append(helper.make_node("Identity", [value], [name]))
        self._outputs.append(helper.make_tensor_value_info(name, kind, shape))

    def op(self, kind: str, *inputs: str, outputs: int = 1, **attributes: Any) -> str:
        """One node; the name of its (first) output, the others are `NAME.1`, …"""
        self._count += 1
        name = f"{kind.lower()}_{self._count}"
        names = [name, *(f"{name}.{n}" for n in range(1, outputs))]
        self._nodes.append(helper.make_node(kind, list(inputs), names, name=name, **attributes))
        return name

    def renamed(self, kind: str, name: str, *inputs: str, **attributes: Any) -> None:
        """One node whose output is an output of the graph: nothing may come between a cache and its name."""
        self._nodes.append(helper.make_node(kind, list(inputs), [name], name=f"make_{name}", **attributes))

    def declare(self, name: str, kind: int, shape: Sequence[int | str]) -> None:
        self._outputs.append(helper.make_tensor_value_info(name, kind, shape))

    def number(self, value: float, kind: int | None = None) -> str:
        """A scalar, of the graph's own kind unless said otherwise."""
        kind = self.type if kind is None else kind
        return self._constant(f"number_{kind}_{value!r}", np.asarray(value), kind)

    def integers(self, *values: int) -> str:
        return self._constant(f"integers_{'_'.join(map(str, values))}", np.asarray(values), INT64)

    def weight(self, name: str, value: Array, kind: int | None = None) -> str:
        return self._constant(name, value, self.type if kind is None else kind)

    def linear(self, name: str, x: str, weight: Array, bias: Array | None = None) -> str:
        """x times the transpose of `weight` [out, in], quantized where there is a scale for it."""
        if name in self._scales:
            x, matrix = self._quantized(name, x, weight)
        else:
            matrix = self.weight(f"{name}.weight", weight.T)
        y = self.op("MatMul", x, matrix)
        return y if bias is None else self.op("Add", y, self.weight(f"{name}.bias", bias))

    def cast(self, x: str, kind: int) -> str:
        return self.op("Cast", x, to=kind)

    def slice(self, x: str, begin: int, end: int, axis: int) -> str:
        return self.op("Slice", x, self.integers(begin), self.integers(end), self.integers(axis))

    def bytes(self) -> bytes:
        graph = helper.make_graph(self._nodes, self._name, self._inputs, self._outputs, list(self._constants.values()))
        model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=IR)
        model.producer_name = "voxgate"
        return model.SerializeToString(deterministic=True)

    def _quantized(self, name: str, x: str, weight: Array) -> tuple[str, str]:
        """Explicit quantize and dequantize around both factors: activations by one scale, weights by one per output."""
        steps = np.maximum(np.abs(weight).max(axis=1), 1e-8) / 127
        whole = np.clip(np.rint(weight / steps[:, None]), -127, 127).astype(np.int8)
        scale = self.number(self._scales[name])
        zero = self._constant("zero_int8", np.asarray(0), TensorProto.INT8)
        quantized = self.op("QuantizeLinear", x, scale, zero)
        rounded = self.op("DequantizeLinear", quantized, scale, zero)
        stored = self._constant(f"{name}.int8", whole.T, TensorProto.INT8)
        matrix = self.op("DequantizeLinear", stored, self.weight(f"{name}.steps", steps), axis=1)
        return rounded, matrix

    def _constant(self, name: str, value: Array, kind: int) -> str:
        if name not in self._constants:
            self._constants[name] = _tensor(name, value, kind)
        return name


def _tensor(name: str, value: Array, kind: int) -> onnx.TensorProto:
    if kind == TensorProto.BFLOAT16:  # round to nearest, ties to even; numpy has no such numbers
        bits = np.ascontiguousarray(value, np.float32).view(np.uint32)
        rounded = ((bits + 0x7FFF + (bits >> 16 & 1)) >> 16).astype("<u2")
        return helper.make_tensor(name, kind, np.shape(value), rounded.tobytes(), raw=True)
    stored = np.ascontiguousarray(value, helper.tensor_dtype_to_np_dtype(kind))
    return numpy_helper.from_array(stored.reshape(np.shape(value)), name)
