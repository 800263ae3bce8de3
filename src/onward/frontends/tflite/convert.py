"""TensorFlow Lite models as ONNX models."""

from __future__ import annotations

import os
import pathlib
from typing import Any

from onward.canon.build import Tensor
from onward.errors import UnsupportedError
from onward.frontends.tensorflow.convert import OPSET, checked_opset, load_rules
from onward.frontends.tensorflow.finish import finished
from onward.frontends.tensorflow.translate import Translator
from onward.frontends.tflite.read import Lite, dtype_of, name_of, read
from onward.frontends.tflite.registry import RULES
from onward.frontends.tflite.translate import GraphWalk
from onward.model import Model


def from_tflite(source: str | os.PathLike[str] | bytes, *, opset: int = OPSET) -> Model:
    """A model of TensorFlow Lite, by its path or as bytes, as an ONNX model; quantised ones have QDQ pairs."""
    checked_opset(opset)
    load_rules()
    load_rules("tflite")
    lite = read(source)
    _check(lite)
    translator = Translator(opset)
    translator.model.graph.name = "model" if isinstance(source, bytes) else pathlib.Path(source).stem
    graph = lite.graphs[0]
    arguments = [_input(translator, graph.tensors[index]) for index in graph.inputs]
    results = GraphWalk(lite, 0, translator).run(arguments)
    for index, result in zip(graph.outputs, results, strict=True):
        if not isinstance(result, Tensor):
            raise UnsupportedError(f"output {name_of(graph.tensors[index])!r} is no tensor that ONNX has")
        named = translator.op.Identity(result)
        named.value.name = translator.op.names.value(name_of(graph.tensors[index]))
        translator.model.graph.outputs.append(named.value)
    return finished(translator, Model(translator.model))


def _input(translator: Translator, tensor: Any) -> Tensor:
    sizes = tensor.shapeSignature if tensor.shapeSignature is not None else tensor.shape
    name = name_of(tensor)
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
            op_type = lite.op_type(operator)
            if op_type not in RULES:
                missing.setdefault(op_type, []).append(name_of(graph.tensors[operator.outputs[0]]))
    if missing:
        listed = "; ".join(f"{op} ({', '.join(where[:3])})" for op, where in sorted(missing.items()))
        raise UnsupportedError(f"no rule for {len(missing)} op{'s' if len(missing) > 1 else ''}: {listed}")
