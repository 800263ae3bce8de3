"""Data and a model of one node, by which a custom op is tried."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import onnx
import onnx_ir as ir

from onward.errors import OnwardError
from onward.graph.infer import infer
from onward.model import Model
from onward.plugins.kinds import number_of
from onward.plugins.op import CustomOp
from onward.plugins.schema import Attribute, Formal

SIDE = 3
"""The size of each of two axes of what is made up: a square, which matrices may have to be."""
WORDS = ("one", "two", "three")


class Trial(NamedTuple):
    """What an op is tried on."""

    inputs: dict[str, Any]
    """By name; one that is left out is not there."""
    attributes: dict[str, Any]
    arguments: list[Any]
    """The inputs in order, None where one is left out."""


def trial(op: CustomOp, seed: int = 0) -> Trial:
    """From `@op.sample`, or made up by the schema."""
    rng = np.random.default_rng(seed)
    given = [_made_up(formal, op, rng) for formal in op.inputs] if op.samples is None else op.samples(rng)
    given_by_nodes = [one for one in op.attributes if one.required and one.default is None]
    attributes = {one.name: _value(one, place) for place, one in enumerate(given_by_nodes)}
    if isinstance(given, tuple) and len(given) == 2 and isinstance(given[1], dict):
        given, own = given
        attributes |= own
    arguments = [None if x is None else np.asarray(x) for x in (given if isinstance(given, tuple | list) else [given])]
    if len(arguments) > len(op.inputs) and not (op.inputs and op.inputs[-1].option == "*"):
        raise OnwardError(f"{op.key}: @op.sample gives {len(arguments)} inputs, and the schema has {len(op.inputs)}")
    names = [op.inputs[i].name if i < len(op.inputs) else f"{op.inputs[-1].name}_{i}" for i in range(len(arguments))]
    return Trial({n: x for n, x in zip(names, arguments, strict=True) if x is not None}, attributes, arguments)


def _made_up(formal: Formal, op: CustomOp, rng: np.random.Generator) -> Any:
    dtype = op.types[formal.type][0] if formal.type in op.types else formal.type
    shape = (SIDE, SIDE)
    if dtype == "string":
        return rng.choice(np.array(WORDS, object), shape)
    kind = np.dtype(onnx.helper.tensor_dtype_to_np_dtype(number_of(dtype)))
    if kind == np.bool_:
        return rng.random(shape) < 0.5
    return rng.integers(0, SIDE, shape).astype(kind) if kind.kind in "iu" else rng.normal(size=shape).astype(kind)


def _value(one: Attribute, place: int) -> Any:
    """Numbers differ, since of two that are equal, such as limits, nothing may be left."""
    value = {int: 1, bool: 1, float: 0.5 + place, str: "a"}[one.kind]
    return [value] if one.is_list else value


def model_of(op: CustomOp, given: Trial, domain: str | None = None) -> Model:
    """A model of one node, all of whose inputs are the graph's."""
    values = {
        name: ir.Value(name=name, type=ir.TensorType(_dtype(array)), shape=ir.Shape(array.shape))
        for name, array in given.inputs.items()
    }
    names = iter(values)
    inputs = [None if array is None else values[next(names)] for array in given.arguments]
    plain = {key: int(v) if isinstance(v, bool) else v for key, v in given.attributes.items()}
    attributes = ir.convenience.convert_attributes(plain)
    count = sum(1 for formal in op.outputs if formal.option != "?")
    node = ir.Node(domain or op.domain, op.name, inputs, attributes, num_outputs=count, name=op.name.lower())
    for formal, output in zip(op.outputs, node.outputs, strict=False):
        output.name = formal.name if formal.name not in values else f"{formal.name}_out"
    opsets = {"": 20, domain or op.domain: op.version}
    graph = ir.Graph(list(values.values()), list(node.outputs), nodes=[node], opset_imports=opsets, name=op.name)
    model = ir.Model(graph, ir_version=10, producer_name="onward")
    infer(model)
    return Model(model)


def _dtype(array: np.ndarray[Any, Any]) -> ir.DataType:
    return ir.DataType.STRING if array.dtype.kind in "OUS" else ir.DataType.from_numpy(array.dtype)
