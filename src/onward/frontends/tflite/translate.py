"""Walks a graph of TensorFlow Lite and lets rules write each op as ONNX; quantised tensors are integers between ops."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.errors import OnwardError, UnsupportedError
from onward.frontends.tensorflow.translate import Translator
from onward.frontends.tensorflow.values import Complex
from onward.frontends.tensorflow.writer import Writer
from onward.frontends.tflite.eight_bits import as_read
from onward.frontends.tflite.flex import is_flex, written
from onward.frontends.tflite.read import Lite, Scale, dtype_of, name_of, scale_of
from onward.frontends.tflite.registry import RULES
from onward.frontends.tflite.rules.state import Resources
from onward.graph.build import Tensor

AS_THEY_ARE = {
    "ASSIGN_VARIABLE", "BITCAST", "CALL_ONCE", "CAST", "DENSIFY", "DEQUANTIZE", "IF", "MATRIX_DIAG", "MATRIX_SET_DIAG",
    "QUANTIZE", "RANK", "READ_VARIABLE", "SCATTER_ND", "SHAPE", "SPARSE_TO_DENSE", "STABLEHLO_CASE",
    "STABLEHLO_COMPOSITE", "WHILE", "ZEROS_LIKE",
}  # fmt: skip
"""Ops that take quantised tensors as the integers they are, and give such."""


@dataclass
class Call:
    """One op: its options, and what it takes and gives, as the file says it."""

    type: str
    options: Any
    custom: Any
    """The bytes that are the options of an op that is no builtin one."""
    inputs: list[Any]
    outputs: list[Any]
    graph: GraphWalk
    version: int
    alone: set[ir.Value] = field(default_factory=set)
    """Weights that are integers in the file, while what they meet and what comes out are numbers."""

    def scale(self, i: int, output: bool = False) -> Scale | None:
        tensor = (self.outputs if output else self.inputs)[i]
        return None if tensor is None else scale_of(tensor)

    def is_result(self, i: int) -> bool:
        """Whether an output is one of the graph, or goes into other graphs, which may hand it on."""
        graph, lite = self.graph.graph, self.graph.lite
        branches = [operator for operator in graph.operators if lite.op_type(operator) == "IF"]
        ends = [graph.outputs, *(operator.inputs for operator in branches)]
        return any(self.outputs[i] is graph.tensors[n] for end in ends for n in end)


class GraphWalk:
    """One graph of the file, and the values of its tensors."""

    def __init__(self, lite: Lite, number: int, translator: Translator, resources: Resources) -> None:
        self.lite, self.graph, self.translator, self.resources = lite, lite.graphs[number], translator, resources
        self.op = translator.op
        self.values: dict[int, Any] = {}
        self.integers: dict[ir.Value, tuple[Tensor, Scale, bool]] = {}
        """What numbers were made of."""

    def run(self, arguments: Sequence[Any]) -> list[Any]:
        for index, value in zip(self.graph.inputs, arguments, strict=True):
            self.values[int(index)] = value
        for operator in self.graph.operators or ():
            self._operator(operator)
        return [self.value(int(index)) for index in self.graph.outputs]

    def called(self, number: int, arguments: Sequence[Any]) -> list[Any]:
        """What another graph of the file makes of arguments."""
        return GraphWalk(self.lite, number, self.translator, self.resources).run(arguments)

    def value(self, index: int) -> Any:
        """A tensor as it is kept: quantised ones as integers."""
        if index not in self.values:
            tensor = self.graph.tensors[index]
            array = self.lite.array(tensor)
            if array is None:
                raise UnsupportedError(f"{name_of(tensor)}: nothing computes it")
            outer, self.op.scope = self.op.scope, f"{name_of(tensor)}/"
            self.values[index] = self.op.array(array)
            self.op.scope = outer
        return self.values[index]

    def _operator(self, operator: Any) -> None:
        op_type = self.lite.op_type(operator)
        rule = RULES.get(op_type)
        tensors = [None if i < 0 else self.graph.tensors[i] for i in operator.inputs if operator.inputs is not None]
        outputs = [self.graph.tensors[i] for i in operator.outputs]
        name = name_of(outputs[0]) if outputs else op_type
        if rule is None and not is_flex(op_type):
            raise UnsupportedError(f"there is no rule for the op {op_type} ({name!r})")
        options = operator.builtinOptions if operator.builtinOptions is not None else operator.builtinOptions2
        call = Call(
            op_type,
            options if options is not None else SimpleNamespace(),
            operator.customOptions,
            tensors,
            outputs,
            self,
            self.lite.model.operatorCodes[operator.opcodeIndex].version,
        )
        self.op.operation = call
        outer, self.op.scope = self.op.scope, f"{name}/"
        try:
            taken = [None if i < 0 else self._taken(call, int(i)) for i in operator.inputs]
            results = written(call, taken) if rule is None else rule.function(self.op, *taken)
        except OnwardError as error:
            raise type(error)(f"{op_type} {name!r}: {error}") from error
        finally:
            self.op.scope = outer
        for index, result in zip(operator.outputs, _listed(results), strict=False):
            self.values[int(index)] = self._given(op_type, int(index), result)

    def _taken(self, call: Call, index: int) -> Any:
        tensor = self.graph.tensors[index]
        if tensor.isVariable and index not in self.values:
            return None
        value, scale = self.value(index), scale_of(tensor)
        if scale is None or call.type in AS_THEY_ARE:
            return value
        alone = not any(map(scale_of, call.outputs))
        if alone and isinstance(value, Tensor):
            value, scale = as_read(self.op, call.type, value, scale)
        numbers = dequantized(self.op, value, scale, alone)
        if alone:
            call.alone.add(numbers.value)
        return numbers

    def _given(self, op_type: str, index: int, value: Any) -> Any:
        tensor = self.graph.tensors[index]
        scale = scale_of(tensor)
        if isinstance(value, Tensor) and scale is not None and op_type not in AS_THEY_ARE:
            value = quantized(self.op, value, scale, dtype_of(tensor))
        if isinstance(value, Tensor):
            if dtype_of(tensor) != value.dtype:
                value = value.cast(dtype_of(tensor))
            shape = tensor.shapeSignature if tensor.shapeSignature is not None else tensor.shape
            if shape is not None and len(shape) and value.dims is not None and len(value.dims) == len(shape):
                known = [int(n) if n >= 0 else d for n, d in zip(shape, value.dims, strict=True)]
                if tensor.shapeSignature is not None:
                    value.value.shape = ir.Shape(known)
        return value


def _listed(results: Any) -> list[Any]:
    return list(results) if isinstance(results, list | tuple) else [results]


def _parameters(op: Writer, scale: Scale, dtype: ir.DataType) -> tuple[Tensor, Tensor, dict[str, Any]]:
    whole = scale.scales.size == 1
    scales = scale.scales.reshape(()) if whole else scale.scales
    zeros = np.broadcast_to(scale.zeros, scale.scales.shape) if not whole else scale.zeros[:1].reshape(())
    options = {} if whole else {"axis": scale.axis}
    return op.constant(scales.copy()), op.constant(zeros.astype(dtype.numpy())), options


def dequantized(op: Writer, value: Tensor | Complex, scale: Scale, alone: bool = False) -> Tensor:
    """The numbers that integers stand for.

    Constants that stand `alone`, beside numbers that are no such integers, are written as arithmetic: of a
    DequantizeLinear there, ONNX Runtime would make something of its own, which is less exact.
    """
    assert isinstance(value, Tensor)
    if (alone and op.known(value) is not None) or value.dtype == ir.DataType.INT64:
        numbers = _outermost(op, value, scale)
    else:
        scales, zeros, options = _parameters(op, scale, value.dtype)
        numbers = op.DequantizeLinear(value, scales, zeros, **options)
    op.operation.graph.integers[numbers.value] = (value, scale, alone)
    return numbers


def _outermost(op: Writer, value: Tensor, scale: Scale) -> Tensor:
    """By arithmetic; of a constant, before all else, so that a loop does not do it again and again."""
    if op.known(value) is not None and op.graph is not op.model.graph:
        with op.inside(op.model.graph):
            return _outermost(op, value, scale)
    lying = [1] * op.rank(value, "integers that stand for numbers")
    if scale.scales.size > 1:
        lying[scale.axis] = -1
    zeros, scales = (array.astype(np.float32).reshape(lying) for array in (scale.zeros, scale.scales))
    numbers = value.cast(ir.DataType.FLOAT)
    return (numbers - op.constant(zeros) if zeros.any() else numbers) * op.constant(scales)


def turned(op: Writer, weight: Tensor, perm: list[int]) -> Tensor:
    """A weight in another order of axes; integers are turned before they are made numbers again."""
    made_of = op.operation.graph.integers.get(weight.value)
    if made_of is None:
        return op.arranged(weight, perm)
    integers, scale, alone = made_of
    turned = Scale(scale.scales, scale.zeros, perm.index(scale.axis) if scale.scales.size > 1 else 0)
    return dequantized(op, op.arranged(integers, perm), turned, alone)


def quantized(op: Writer, value: Tensor, scale: Scale, dtype: ir.DataType) -> Tensor:
    scales, zeros, options = _parameters(op, scale, dtype)
    return op.QuantizeLinear(value, scales, zeros, **options)
