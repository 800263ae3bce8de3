"""TensorFlow Lite models as ONNX models."""

from __future__ import annotations

import os
import pathlib
from collections.abc import Callable, Iterable
from typing import Any

import numpy.typing as npt
import onnx_ir as ir

from onward.errors import UnsupportedError
from onward.formats.tflite import check_content, flex_node, open_content
from onward.frontends.opset import OPSET, brought_to, written_opset
from onward.frontends.states import SUFFIX, mark
from onward.frontends.tensorflow.convert import RULES as TENSORFLOW_RULES
from onward.frontends.tensorflow.finish import finished
from onward.frontends.tensorflow.registry import RULES as TENSORFLOW
from onward.frontends.tensorflow.translate import Translator
from onward.frontends.tflite.flex import is_flex
from onward.frontends.tflite.read import DTYPES, Lite, dtype_of, name_of, read, scale_of
from onward.frontends.tflite.registry import CUSTOM, RULES
from onward.frontends.tflite.rules.state import Resources
from onward.frontends.tflite.translate import GraphWalk
from onward.graph.build import Tensor
from onward.model import Model
from onward.registry import import_files
from onward.runners.calls import Run

EIGHT_BITS = 20
"""The last opset before QuantizeLinear got an attribute that ONNX Runtime 1.31 does not keep right: it moves nodes
about, makes uint8 of int8, and then does not load what it made. 16 bits are not affected, and need the next opset."""
EDGE_TPU = "edgetpu-custom-op"
"""What the compiler of Coral's Edge TPU leaves in a file."""


def converted(
    source: str | os.PathLike[str] | bytes, opset: int | None, signature: str | None = None
) -> tuple[Model, Callable[[], Run]]:
    """The model, and what opens the interpreter, to be run beside it."""
    import_files(TENSORFLOW_RULES)
    import_files("onward.frontends.tflite.rules")
    lite = read(source)
    if opset is None:
        opset = EIGHT_BITS if quantised(lite, ir.DataType.INT8) and not quantised(lite, ir.DataType.INT16) else OPSET
    check_content(lite.data, "the model given" if isinstance(source, bytes) else str(source))
    _check(lite)
    translator = Translator(written_opset(opset))
    translator.model.graph.name = "model" if isinstance(source, bytes) else pathlib.Path(source).stem
    number = lite.graph_of(signature)
    graph, names = lite.graphs[number], lite.names(number)
    is_open = not lite.keeps_sizes()
    arguments = [_input(translator, graph.tensors[index], names.inputs[int(index)], is_open) for index in graph.inputs]
    kept = [translator.op.names.value(names.outputs[int(index)]) for index in graph.outputs]
    resources = Resources.of(lite)
    results = GraphWalk(lite, number, translator, resources).run(arguments)
    for name, result in zip(kept, results, strict=True):
        if not isinstance(result, Tensor):
            raise UnsupportedError(f"output {name!r} is of a kind that ONNX does not have")
        named = translator.op.Identity(result)
        named.value.name = name
        translator.model.graph.outputs.append(named.value)
    states = _write_states(translator, resources)
    model = finished(translator, Model(translator.model))
    _begin(model, states)
    mark(model, [output.name or "" for output in model.ir.graph.outputs[len(graph.outputs) :]])
    model = brought_to(opset, model)
    if opset > EIGHT_BITS and quantised(lite, ir.DataType.INT8):
        _check_loads(model)
    return model, lambda: open_content(lite.data, signature).run


def _write_states(translator: Translator, resources: Resources) -> dict[str, npt.NDArray[Any]]:
    """What a call leaves in variables is an output `<name>_next`; what they begin with, by the names of inputs."""
    states: dict[str, npt.NDArray[Any]] = {}
    for variable in resources.states():
        assert variable.now is not None
        output = translator.op.Identity(variable.now)
        output.value.name = translator.op.names.value(f"{variable.name}{SUFFIX}")
        translator.model.graph.outputs.append(output.value)
        if variable.before is not None and variable.before.value.name is not None and variable.initial is not None:
            states[variable.before.value.name] = variable.initial
    return states


def _begin(model: Model, states: dict[str, npt.NDArray[Any]]) -> None:
    """Inputs for states need not be given: they are, by default, what the interpreter begins with."""
    graph = model.ir.graph
    for value in graph.inputs:
        if value.name in states:
            value.const_value = ir.Tensor(states[value.name], name=value.name)
            graph.register_initializer(value)


def quantised(lite: Lite, dtype: ir.DataType) -> bool:
    """Whether numbers stand as integers of this dtype for others anywhere."""
    tensors = (tensor for graph in lite.graphs for tensor in graph.tensors)
    return any(DTYPES.get(tensor.type) == dtype and scale_of(tensor) is not None for tensor in tensors)


def _check_loads(model: Model) -> None:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    try:
        onnxruntime.InferenceSession(model.to_proto().SerializeToString(), options)
    except Exception as error:
        raise UnsupportedError(
            f"ONNX Runtime does not load this model of 8 bits in an opset after {EIGHT_BITS}: {error}"
        ) from error


def _input(translator: Translator, tensor: Any, name: str, is_open: bool) -> Tensor:
    sizes = tensor.shapeSignature if is_open and tensor.shapeSignature is not None else tensor.shape
    dims = [
        int(n) if n >= 0 else "batch" if i == 0 else f"{name}_dim{i}"
        for i, n in enumerate(() if sizes is None else sizes)
    ]
    return translator.input(name, dtype_of(tensor), dims)


def _check(lite: Lite) -> None:
    """Refuse all ops without a rule at once."""
    missing: dict[str, list[str]] = {}
    for graph in lite.graphs:
        for operator in graph.operators or ():
            op_type, rules = lite.op_type(operator), RULES
            if is_flex(op_type):
                op_type, rules = flex_node(operator.customOptions).op, TENSORFLOW
            if op_type not in rules:
                where = name_of(graph.tensors[operator.outputs[0]]) if len(operator.outputs) else name_of(graph)
                missing.setdefault(op_type, []).append(where)
    if missing:
        listed = "; ".join(f"{op} ({', '.join(where[:3])})" for op, where in sorted(missing.items()))
        said = f"there is no rule for {len(missing)} op{'s' if len(missing) > 1 else ''}: {listed}"
        raise UnsupportedError(said + _next_step(missing))


def _next_step(missing: Iterable[str]) -> str:
    """What to do about custom ops that nothing knows."""
    custom = sorted(op.removeprefix(CUSTOM) for op in missing if op.startswith(CUSTOM))
    if EDGE_TPU in custom:
        return f"; {EDGE_TPU} is code for Coral's Edge TPU: convert the file that its compiler was given"
    if custom:
        return (
            f"; a plugin makes a custom op known, with op.from_tensorflow({custom[0]!r}):"
            f" `onward plugins new my.lab::{custom[0]}` prints one to fill in, which --plugin loads"
        )
    return ""
