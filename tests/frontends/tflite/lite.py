"""Models of TensorFlow Lite to try rules on: made by TensorFlow's converter or op by op, run by the interpreter."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import flatbuffers
import numpy as np
import tensorflow as tf
from flatbuffers import flexbuffers
from tensorflow.lite.python import schema_py_generated as schema

from onward.exporters import from_tflite
from onward.frontends.tflite.read import DTYPES
from onward.runners.onnxruntime import session

NUMBERS = {str(dtype.numpy()): number for number, dtype in DTYPES.items()} | {"object": 5}
"""The schema's number of a dtype."""


@dataclass
class Graph:
    """A graph under construction; its tensors go by their numbers."""

    flat: Flat
    made: Any = field(default_factory=schema.SubGraphT)

    def __post_init__(self) -> None:
        self.made.tensors, self.made.operators, self.made.inputs, self.made.outputs = [], [], [], []
        self.made.name = b"graph"

    def tensor(self, dtype: Any, shape: Sequence[int] | None = None, scale: Any = None, zero: int = 0) -> int:
        made = schema.TensorT()
        made.name = f"t{len(self.made.tensors)}".encode()
        made.type = NUMBERS[str(np.dtype(dtype))]
        made.shape = None if shape is None else list(shape)
        if scale is not None:
            made.quantization = schema.QuantizationParametersT()
            made.quantization.scale = np.atleast_1d(np.asarray(scale, np.float32))
            made.quantization.zeroPoint = np.full(made.quantization.scale.shape, zero, np.int64)
        self.made.tensors.append(made)
        return len(self.made.tensors) - 1

    def input(self, array: Any, **quantization: Any) -> int:
        array = np.asarray(array)
        number = self.tensor(array.dtype, array.shape, **quantization)
        self.made.inputs.append(number)
        return number

    def constant(self, array: Any, axis: int = 0, **quantization: Any) -> int:
        array = np.asarray(array)
        number = self.tensor(array.dtype, array.shape, **quantization)
        tensor = self.made.tensors[number]
        if tensor.quantization is not None:
            tensor.quantization.quantizedDimension = axis
        data = _packed_strings(array) if array.dtype.kind == "O" else array.tobytes()
        tensor.buffer = self.flat.buffer(data)
        return number

    def state(self, array: Any, **quantization: Any) -> int:
        """A tensor that keeps what an op leaves in it, zeros at first."""
        number = self.tensor(np.asarray(array).dtype, np.shape(array), **quantization)
        self.made.tensors[number].isVariable = True
        return number

    def op(
        self, op_type: str, inputs: Sequence[int | None], dtypes: Sequence[Any], **options: dict[str, Any]
    ) -> list[int]:
        """The outputs of an op; `options` is the name of their table in the schema, with what is in it."""
        made = schema.OperatorT()
        made.opcodeIndex = self.flat.code(op_type)
        made.inputs = [-1 if i is None else i for i in inputs]
        made.outputs = [
            d if isinstance(d, Made) else self.tensor(*(d if isinstance(d, tuple) else (d,))) for d in dtypes
        ]
        for table, given in options.items():
            held = getattr(schema, f"{table}T")()
            for key, value in given.items():
                assert hasattr(held, key), key
                setattr(held, key, value)
            first = getattr(schema.BuiltinOptions, table, None)
            if first is not None:
                made.builtinOptionsType, made.builtinOptions = first, held
            else:
                made.builtinOptions2Type, made.builtinOptions2 = getattr(schema.BuiltinOptions2, table), held
        self.made.operators.append(made)
        return list(made.outputs)

    def _made(self, what: Any) -> int:
        """A tensor that was made before, or of a dtype, or of a dtype and a shape."""
        return what if isinstance(what, Made) else self.tensor(*what) if isinstance(what, tuple) else self.tensor(what)

    def output(self, *tensors: int) -> None:
        self.made.outputs += tensors


class Made(int):
    """A tensor for an op to write that was made before."""


class Flat:
    """A file under construction."""

    def __init__(self) -> None:
        self.model = schema.ModelT()
        self.model.version, self.model.description = 3, b""
        self.model.operatorCodes, self.model.subgraphs, self.model.buffers = [], [], [schema.BufferT()]

    def graph(self) -> Graph:
        graph = Graph(self)
        self.model.subgraphs.append(graph.made)
        return graph

    def buffer(self, data: bytes) -> int:
        buffer = schema.BufferT()
        buffer.data = np.frombuffer(data, np.uint8)
        self.model.buffers.append(buffer)
        return len(self.model.buffers) - 1

    def code(self, op_type: str) -> int:
        made = schema.OperatorCodeT()
        made.builtinCode = getattr(schema.BuiltinOperator, op_type, schema.BuiltinOperator.CUSTOM)
        made.deprecatedBuiltinCode = min(made.builtinCode, 127)
        made.version = VERSIONS.get(op_type, 1)
        if made.builtinCode == schema.BuiltinOperator.CUSTOM:
            made.customCode = op_type.encode()
        self.model.operatorCodes.append(made)
        return len(self.model.operatorCodes) - 1

    def bytes(self) -> bytes:
        builder = flatbuffers.Builder(1024)
        builder.Finish(self.model.Pack(builder), b"TFL3")
        return bytes(builder.Output())


VERSIONS = {"BROADCAST_TO": 2}
"""Of ops whose first version the interpreter does not have any more."""


def _packed_strings(array: Any) -> bytes:
    items = [item if isinstance(item, bytes) else item.encode() for item in array.reshape(-1)]
    starts = np.cumsum([8 + 4 * len(items), *map(len, items)])
    return np.asarray([len(items), *starts], np.int32).tobytes() + b"".join(items)


def single(op_type: str, arrays: Sequence[Any], dtypes: Sequence[Any], **options: Any) -> bytes:
    """A model of one op; arrays are its inputs, and constants where they come in a tuple of one."""
    flat = Flat()
    graph = flat.graph()
    inputs = [
        None if array is None else graph.constant(array[0]) if isinstance(array, tuple) else graph.input(array)
        for array in arrays
    ]
    graph.output(*graph.op(op_type, inputs, dtypes, **options))
    return flat.bytes()


def of_old_converters(lite: bytes, zero: int = 0) -> bytes:
    """The same file, with signed weights typed as uint8."""
    model = schema.ModelT.InitFromPackedBuf(lite, 0)
    for tensor in (tensor for graph in model.subgraphs for tensor in graph.tensors):
        if tensor.type == schema.TensorType.INT8:
            tensor.type = schema.TensorType.UINT8
            tensor.quantization.zeroPoint = np.full_like(tensor.quantization.zeroPoint, zero)
    builder = flatbuffers.Builder(1024)
    builder.Finish(model.Pack(builder), b"TFL3")
    return bytes(builder.Output())


def op_types(lite: bytes) -> set[str]:
    names = {number: name for name, number in vars(schema.BuiltinOperator).items() if isinstance(number, int)}
    codes = schema.ModelT.InitFromPackedBuf(lite, 0).operatorCodes
    return {names[max(code.builtinCode, code.deprecatedBuiltinCode)] for code in codes}


def steps(lite: bytes) -> list[float | None]:
    """The step of each output, or of the integers that a DEQUANTIZE at the end makes it of; None for plain ones."""
    model = schema.ModelT.InitFromPackedBuf(lite, 0)
    graph = model.subgraphs[0]
    made = {int(op.outputs[0]): op for op in graph.operators if len(op.outputs)}
    found: list[float | None] = []
    for number in map(int, graph.outputs):
        if number in made and model.operatorCodes[made[number].opcodeIndex].builtinCode == 6:
            number = int(made[number].inputs[0])
        scale = graph.tensors[number].quantization
        found.append(None if scale is None or scale.scale is None else float(scale.scale[0]))
    return found


def converted(function: Callable[..., Any], arrays: Sequence[Any], kind: str = "float") -> bytes:
    """What TensorFlow's converter makes of a function: in floats, or quantised where ops have kernels for it."""
    specs = [tf.TensorSpec(array.shape, array.dtype) for array in map(np.asarray, arrays)]
    concrete = tf.function(function).get_concrete_function(*specs)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete])
    if kind != "float":  # weights only, unless activations are named
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if kind in ("int8", "int16"):
        converter.representative_dataset = lambda: _samples(arrays)
    ops = tf.lite.OpsSet
    if kind == "stablehlo":
        converter.optimizations = []
        converter.target_spec.supported_ops = [ops.EXPERIMENTAL_STABLEHLO_OPS]
    if kind == "int16":
        wide = ops.EXPERIMENTAL_TFLITE_BUILTINS_ACTIVATIONS_INT16_WEIGHTS_INT8
        converter.target_spec.supported_ops = [wide, ops.TFLITE_BUILTINS]
    return bytes(converter.convert())


def _samples(arrays: Sequence[Any]) -> Iterator[list[Any]]:
    yield list(arrays)


def named(**options: Any) -> bytes:
    """Options of an op that is no builtin one, as a map."""
    builder = flexbuffers.Builder()
    kinds = {bool: builder.Bool, int: builder.Int, float: builder.Float}
    with builder.Map():
        for name, value in options.items():
            builder.Key(name)
            if isinstance(value, list):
                with builder.TypedVector():
                    for item in value:
                        builder.Int(item)
            else:
                kinds[type(value)](value)
    return bytes(builder.Finish())


def interpreted(lite: bytes, *arrays: Any, delegates: bool = True) -> list[Any]:
    """What the interpreter gives, as a program gets it, or without the kernels of XNNPACK."""
    resolver = tf.lite.experimental.OpResolverType
    kind = resolver.AUTO if delegates else resolver.BUILTIN_WITHOUT_DEFAULT_DELEGATES
    interpreter = tf.lite.Interpreter(model_content=lite, experimental_op_resolver_type=kind)
    interpreter.allocate_tensors()
    for detail, array in zip(interpreter.get_input_details(), arrays, strict=True):
        interpreter.set_tensor(detail["index"], array)
    interpreter.invoke()
    return [interpreter.get_tensor(detail["index"]) for detail in interpreter.get_output_details()]


def on_runtime(lite: bytes, *arrays: Any, opset: int | None = None) -> list[Any]:
    made = session(from_tflite(lite, opset=opset, check=False))
    feeds = {slot.name: np.asarray(array) for slot, array in zip(made.get_inputs(), arrays, strict=True)}
    return list(made.run(None, feeds))
