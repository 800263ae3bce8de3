"""ONNX → Keras: the source of a functional model, and the model made by running that very source."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import onnx_ir as ir

from onward.backends.emit.custom_ops.rules import with_plugins
from onward.backends.emit.emitter import Emitter
from onward.backends.emit.expr import Ref, Var, ops
from onward.backends.emit.helpers import load_runtime, sort_imports
from onward.backends.emit.modules.tracing import located
from onward.backends.emit.names import class_names, identifier
from onward.backends.emit.package import Source, Trainable, choose, emit, guarded, imports, plain
from onward.backends.emit.statements import Assign
from onward.backends.emit.target import Target
from onward.backends.emit.tree import Function, TreeNode
from onward.backends.emit.weights import Tensor
from onward.backends.keras.module import Builder, LayerWriter, Names, partly_frozen
from onward.backends.keras.parts import Piece, Tangled, absorbed, cut
from onward.backends.keras.target import KerasTarget
from onward.backends.tensorflow.convert import RUNTIME, channels_last
from onward.backends.tensorflow.convert import load_rules as load_tensorflow
from onward.backends.tensorflow.kernels import TENSORFLOW as TENSORFLOW_KERNELS
from onward.backends.tensorflow.missing_kernels import checked, compute_elsewhere
from onward.backends.tensorflow.saved_model import argument_names
from onward.backends.tensorflow.target import DTYPES, tf
from onward.backends.tensorflow.target import TARGET as TENSORFLOW
from onward.errors import UnsupportedError
from onward.hub.collector import no_garbage_collection
from onward.layout.channels_last import Moved
from onward.model import Model
from onward.registry import import_files

Pieces = tuple[Emitter, Function, list[Piece]]

OWN_LAYERS = load_runtime("onward.backends.keras.runtime")
"""Layers that Keras lacks, which are copied into generated code."""

MARK = "a Keras model, converted from ONNX."
"""What the first line of every generated source ends with."""

IMPORTS = {
    "math": "import math",
    "Any": "from typing import Any",
    "np": "import numpy as np",
    "tf": "import tensorflow as tf",
    "keras": "import keras",
    "layers": "from keras import layers",
}


@dataclass(frozen=True)
class KerasSource(Source):
    """The source of a model, with the weights of each of its layers in the order in which Keras has them."""

    layers: Mapping[str, list[Tensor]] = field(default_factory=dict)
    net: Any = None
    """The model, once it has been made."""


def load_rules() -> None:
    """Register the rules of every family."""
    load_tensorflow()
    import_files("onward.backends.keras.rules")


def generate(
    model: Model,
    trainable: Trainable = True,
    inputs_nhwc: Iterable[str] = (),
    outputs_nhwc: Iterable[str] = (),
    trains: bool = False,
    shaped: bool = False,
) -> KerasSource:
    """The Keras source of a model, the inputs and outputs named so channels last. `model` is left as it is.

    With `trains`, no layer merges weights, or is frozen, which would change more than its weights in training. With
    `shaped`, layers of its own tell the shapes of what they give.
    """
    load_rules()
    with no_garbage_collection():
        graph, moved = channels_last(model, inputs_nhwc, outputs_nhwc)
        _check(graph.graph)
        with guarded("looking for kernels"):
            compute_elsewhere(graph, checked("none"), TENSORFLOW_KERNELS)
        with guarded("choosing Keras' layers for its nodes"):
            found = _layered(graph, trains, trainable)
            if shaped:
                _tell_shapes(found, model.ir.graph.outputs)
            emitter, function, pieces = found
        chosen = choose(emitter.weights, trainable)
        freeze = False if trains else chosen
        with guarded("writing source code"):
            writer = LayerWriter(TreeNode(()), class_names(graph.graph), freeze=freeze)
            return _source(model, writer, emitter, function, pieces, moved)


def _check(graph: ir.Graph) -> None:
    """A functional model takes and gives tensors, whose rank it must know."""
    for kind, values in (("input", graph.inputs), ("output", graph.outputs)):
        for value in values:
            if value.type is not None and not isinstance(value.type, ir.TensorType):
                raise UnsupportedError(f"a Keras model has tensors, and its {kind} {value.name!r} is a {value.type}")
    for value in _fed(graph):
        if value.shape is None:
            raise UnsupportedError(f"a Keras model must know the rank of its inputs, and {value.name!r} has none")


def _fed(graph: ir.Graph) -> list[ir.Value]:
    return [value for value in graph.inputs if not value.is_initializer()]


def _layered(graph: ir.Model, trains: bool, trainable: Trainable) -> Pieces:
    """The computation in pieces; those nodes have layers of Keras that do not stand alone among others, and that train
    all of their weights or none."""
    without: set[ir.Node] = set()
    try:
        while True:
            found = _pieces(graph, KerasTarget(without, trains))
            more = absorbed(found[2])
            if not more and not trains:
                weights = found[0].weights
                more = partly_frozen(found[2], weights, choose(weights, trainable))
            if not more:
                return found
            without |= more
    except Tangled:
        return _pieces(graph, TENSORFLOW)


def _pieces(graph: ir.Model, target: Target) -> Pieces:
    emitter, function = emit(graph, target, flags=("training",))
    for i, (value, result) in enumerate(zip(graph.graph.outputs, function.results, strict=True)):
        if not isinstance(result, Ref) or result._var.kind == "host":
            var = Var(value.name or "", "tensor")
            function.block.body.append(Assign([var], result))
            function.results[i] = Ref(var)
    return emitter, function, cut(function, emitter.weights)


def _tell_shapes(found: Pieces, declared: Sequence[ir.Value]) -> None:
    """Let layers of our own give tensors of the shapes that the file knows, where TensorFlow cannot infer them."""
    emitter, function, pieces = found
    ends = {_var(result): value for result, value in zip(function.results, declared, strict=True)}
    values = emitter.values()
    for piece in pieces:
        for i, var in enumerate(piece.outputs):
            value = values.get(var) if var is not None else None
            shape = None if value is None else emitter.shape(value)
            known = ends[var].shape if var in ends else None
            if piece.function is None:
                continue
            if shape is not None:
                piece.function.results[i] = tf.ensure_shape(piece.function.results[i], list(shape))
            elif known is not None:
                piece.function.results[i] = ops.declared(piece.function.results[i], len(known))


def _source(
    model: Model, writer: LayerWriter, emitter: Emitter, function: Function, pieces: list[Piece], moved: Moved
) -> KerasSource:
    writer.reserved |= load_runtime(RUNTIME).definitions.keys() | OWN_LAYERS.definitions.keys()
    fed = {value.name or "": value for value in _fed(model.ir.graph)}
    inputs = argument_names(fed)
    builder = Builder(emitter.weights, Names(inputs.values()), writer.freeze)
    arguments = function.arguments[: len(fed)]
    for var, (name, value) in zip(arguments, fed.items(), strict=True):
        builder.input(var, value, inputs[name], moved.inputs.get(name))
    names = [value.name or "" for value in model.ir.graph.outputs]
    results = {name: _var(result) for name, result in zip(names, function.results, strict=True)}
    builder.pieces(pieces, writer, dict(zip(results.values(), argument_names(results).values(), strict=True)))
    title = identifier(plain(model.name), "model")
    used, helpers = with_plugins(RUNTIME, writer.helpers).chosen(writer.helpers)
    layered, own = OWN_LAYERS.chosen(builder.kinds & OWN_LAYERS.definitions.keys())
    built_by = builder.lines(arguments, results, title, writer.taken)
    body = "\n\n\n".join([*helpers, *own, *writer.classes, "\n".join(built_by)]) + "\n"
    if writer.classes:
        package = f"{title}-{hashlib.sha256(body.encode()).hexdigest()[:8]}"
        body = f'PACKAGE = "{package}"\n"""Under this name Keras finds the layers, and no others."""\n\n\n{body}'
    lines = sort_imports(used | layered | imports(body, IMPORTS))
    text = "\n".join([f'"""{title}: {MARK}"""', "", *lines, "", *([] if writer.classes else [""]), body])
    tensors = {f"{layer}/{i}": t for layer, own in builder.layers.items() for i, t in enumerate(own)}
    return KerasSource(
        text,
        None,
        tensors,
        DTYPES,
        input_orders=moved.inputs,
        output_orders=moved.outputs,
        layers=builder.layers,
        lines=located([*writer.traced, built_by], text),
    )


def _var(result: Any) -> Var:
    assert isinstance(result, Ref)
    return result._var


def built(
    model: Model,
    trainable: Trainable = True,
    inputs_nhwc: Iterable[str] = (),
    outputs_nhwc: Iterable[str] = (),
    trains: bool = False,
    module: str = "onward_generated",
) -> KerasSource:
    """The source, as a module of that name, with the model that it makes."""
    from onward.backends.keras.load import run

    inputs_nhwc, outputs_nhwc = list(inputs_nhwc), list(outputs_nhwc)
    source = generate(model, trainable, inputs_nhwc, outputs_nhwc, trains)
    try:
        return replace(source, net=run(source, module))
    except UnsupportedError:
        source = generate(model, trainable, inputs_nhwc, outputs_nhwc, trains, shaped=True)
        return replace(source, net=run(source, module))
