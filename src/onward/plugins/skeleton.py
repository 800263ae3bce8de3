"""A plugin to fill in: what `onward plugins new` prints for an op, from the nodes of a model that has it."""

from __future__ import annotations

import re
from collections.abc import Sequence

import onnx_ir as ir

from onward.errors import OnwardError
from onward.graph.infer import infer
from onward.graph.walk import all_nodes
from onward.model import Model

_TYPES = {
    ir.AttributeType.INT: "int",
    ir.AttributeType.FLOAT: "float",
    ir.AttributeType.STRING: "str",
    ir.AttributeType.INTS: "list[int]",
    ir.AttributeType.FLOATS: "list[float]",
    ir.AttributeType.STRINGS: "list[str]",
}

TEXT = '''\
"""The op {key}, for Onward: fill in what is needed, then `onward plugins check {file}`."""

import numpy as np

from onward.plugins import CustomOp

op = CustomOp(
    "{key}",
    version={version},
    inputs="{inputs}",
    outputs="{outputs}",
    types={{{types}}},
    attributes={{{attributes}}},
)


@op.infer  # the dtype and shape of what it gives: `{first}.like(shape=…, dtype="int64")` for others
def _({signature}):
    return {first}


@op.numpy  # the reference: what verify trusts, and what ONNX Runtime calls
def _({signature}):
    raise NotImplementedError("not filled in yet")


@op.torch  # what generated code of PyTorch says; op.tensorflow, op.keras and op.jax alike
def _({signature}):
    raise NotImplementedError("not filled in yet")


@op.vjp  # the gradient of each input, in ONNX ops (c.op.Exp(x), g * x) and in op(c, …), or else op.no_gradient()
def _(c, g, {signature}):
    return {nones}


# Instead of all of these, @op.body: an onnxscript function, which runs everywhere and has a gradient by itself.
# On ONNX Runtime, op.library("libop.so"); where frameworks have it as an op of their own, op.from_torch("library::op").
'''


def skeleton(key: str, model: Model | None = None) -> str:
    """The source of a plugin for an op, with the inputs and attributes that the model's nodes of it have."""
    domain, _, name = key.rpartition("::")
    if not domain or not name.isidentifier():
        raise OnwardError(f"{key!r} names no custom op: write it as domain::Name, such as com.acme::FancyGelu")
    nodes = [] if model is None else _nodes(model.ir.clone(), domain, name)
    if model is not None and not nodes:
        others = sorted({f"{n.domain}::{n.op_type}" for n in all_nodes(model.ir.graph) if n.domain})
        there = f"it has {', '.join(others)}" if others else "all of its ops are ONNX's own"
        raise OnwardError(f"the model has no {key}; {there}")
    count = max((len(node.inputs) for node in nodes), default=1)
    inputs = ["x"] if count == 1 else [f"x{i}" for i in range(1, count + 1)]
    kinds = [_kind([node.inputs[i] if i < len(node.inputs) else None for node in nodes]) for i in range(count)]
    results = max((len(node.outputs) for node in nodes), default=1)
    outputs = ["y"] if results == 1 else [f"y{i}" for i in range(1, results + 1)]
    made = [_dtypes([n.outputs[i] for n in nodes if i < len(n.outputs)]) or kinds[0][0] for i in range(results)]
    letters: dict[tuple[str, ...], str] = {}
    for dtypes in [*(dtypes for dtypes, _ in kinds), *made]:
        letters.setdefault(dtypes or ("float", "double"), "T" if not letters else f"T{len(letters) + 1}")
    typed = [f"{n}:{letters[d or ('float', 'double')]}{o}" for n, (d, o) in zip(inputs, kinds, strict=True)]
    given = [f"{n}:{letters[d or ('float', 'double')]}" for n, d in zip(outputs, made, strict=True)]
    types = ", ".join(f'"{letter}": {list(dtypes)}' for dtypes, letter in letters.items()).replace("'", '"')
    attributes = _attributes(nodes)
    listed = ", ".join(f'"{attribute}": {kind}' for attribute, kind in attributes.items())
    return TEXT.format(
        key=key,
        file=f"{re.sub(r'(?<=[a-z0-9])(?=[A-Z])', '_', name).lower()}.py",
        version=_version(model, domain),
        inputs=" ".join(typed),
        outputs=" ".join(given),
        types=types,
        attributes=listed,
        first=inputs[0],
        signature=", ".join([*inputs, *(["*", *attributes] if attributes else [])]),
        nones=", ".join("None" for _ in inputs),
    )


def _nodes(model: ir.Model, domain: str, name: str) -> list[ir.Node]:
    infer(model)
    inside = [node for function in model.functions.values() for node in function]
    return [n for n in (*all_nodes(model.graph), *inside) if n.domain == domain and n.op_type == name]


def _version(model: Model | None, domain: str) -> int:
    return 1 if model is None else model.ir.opset_imports.get(domain, 1)


def _kind(values: Sequence[ir.Value | None]) -> tuple[tuple[str, ...], str]:
    """The dtypes that an input has been seen with, and whether some nodes leave it out."""
    present = [value for value in values if value is not None]
    return _dtypes(present), "?" if len(present) < len(values) else ""


def _dtypes(values: Sequence[ir.Value]) -> tuple[str, ...]:
    return tuple(sorted({value.dtype.name.lower() for value in values if value.dtype is not None}))


def _attributes(nodes: Sequence[ir.Node]) -> dict[str, str]:
    """The type of each attribute; one that some nodes leave out need not be given."""
    found: dict[str, str] = {}
    for node in nodes:
        for name, attribute in node.attributes.items():
            found.setdefault(name, _TYPES.get(attribute.type, "str"))
    return {n: t if all(n in node.attributes for node in nodes) else f"{t} | None" for n, t in found.items()}
