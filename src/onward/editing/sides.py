"""One of two models to compare: what its nodes are by their own content, and by what is before and after them."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from onward.graph.walk import all_graphs, inner_graphs
from onward.hub.large_tensors import raw
from onward.hub.tensors import SparseTensor
from onward.verification.locate.cut import reads

Key = tuple[Any, ...]


class Numbers:
    """Gives equal keys equal numbers, for both sides alike."""

    def __init__(self) -> None:
        self._known: dict[Key, int] = {}
        self._prints: dict[int, tuple[ir.TensorProtocol, bytes]] = {}

    def __call__(self, *key: Any) -> int:
        return self._known.setdefault(key, len(self._known))

    def of(self, tensor: ir.TensorProtocol) -> bytes:
        """A fingerprint of type, shape and content."""
        known = self._prints.get(id(tensor))
        if known is None:
            known = self._prints[id(tensor)] = tensor, fingerprint(tensor)
        return known[1]

    def attribute(self, attribute: ir.Attr) -> Any:
        """What an attribute without graphs says, bit by bit: 0 and -0 are two numbers, and a NaN is itself."""
        if attribute.is_ref():
            return "reference", attribute.ref_attr_name
        value = attribute.value
        match attribute.type:
            case ir.AttributeType.TENSOR | ir.AttributeType.SPARSE_TENSOR:
                return self.of(value)
            case ir.AttributeType.TENSORS | ir.AttributeType.SPARSE_TENSORS:
                return tuple(map(self.of, value))
            case ir.AttributeType.FLOAT:
                return np.float32(value).tobytes()
            case ir.AttributeType.FLOATS:
                return np.asarray(value, np.float32).tobytes()
        return tuple(value) if isinstance(value, list | tuple) else str(value)


def fingerprint(tensor: ir.TensorProtocol) -> bytes:
    digest = hashlib.blake2b(f"{tensor.dtype.name}{tuple(tensor.shape.numpy())}".encode(), digest_size=16)
    if isinstance(tensor, SparseTensor):
        digest.update(tensor.proto.SerializeToString(deterministic=True))
    elif tensor.dtype == ir.DataType.STRING:
        for item in np.asarray(tensor.numpy()).reshape(-1):
            text = item if isinstance(item, bytes) else str(item).encode()
            digest.update(len(text).to_bytes(8, "little") + text)
    else:
        digest.update(raw(tensor))
    return digest.digest()


@dataclass
class Side:
    """One graph of one model."""

    graph: ir.Graph
    opsets: Mapping[str, int]
    numbers: Numbers
    inputs: Mapping[ir.Value, int]
    """Inputs of the graph, by the number that their counterparts on the other side have as well."""
    outer: Mapping[ir.Value, int] = field(default_factory=dict)
    """The same for the values of the graphs around it."""
    nodes: list[ir.Node] = field(init=False)
    """All but constants."""
    order: dict[ir.Node, int] = field(init=False)
    before: dict[ir.Value, int] = field(init=False)
    """By value, a number that stands for all that it is computed by."""
    here: dict[ir.Node, int] = field(init=False)
    """By node, the same of what it is computed by."""
    after: dict[ir.Node, int] = field(init=False)
    """By node, a number that stands for all that is made of it."""
    content: dict[ir.Node, int] = field(init=False)
    """By node, its op and attributes."""

    def __post_init__(self) -> None:
        self.nodes = [node for node in self.graph if self.constant(node.outputs[0] if node.outputs else None) is None]
        self.order = {node: place for place, node in enumerate(self.nodes)}
        self.before = {**self.outer}
        self.here, self.after, self.content = {}, {}, {}
        for value, number in self.inputs.items():
            self.before[value] = self.numbers("input", number)
        for node in self.nodes:
            key = tuple(self._before(value) for value in (*node.inputs, *self._captured(node)))
            self.content[node] = self._content(node)
            self.here[node] = self.numbers("node", self.content[node], key)
            self.before.update({value: self.numbers("out", self.here[node], i) for i, value in enumerate(node.outputs)})
        self._find_after()

    def _find_after(self) -> None:
        ends: dict[ir.Value, list[int]] = {}
        for place, value in enumerate(self.graph.outputs):
            ends.setdefault(value, []).append(self.numbers("end", place))
        for node in reversed(self.nodes):
            key = tuple(tuple(sorted(ends.get(value, ()))) for value in node.outputs)
            consts = tuple(self._before(v) if self.constant(v) is not None else None for v in node.inputs)
            self.after[node] = self.numbers("after", self.content[node], key, consts)
            for index, read in enumerate((*node.inputs, *self._captured(node))):
                if read is not None:
                    ends.setdefault(read, []).append(self.numbers("read", self.after[node], index))

    @staticmethod
    def constant(value: ir.Value | None) -> ir.TensorProtocol | None:
        """What a value holds that no caller can replace and no node computes."""
        if value is None or value.is_graph_input():
            return None
        made = value.producer()
        if made is not None and (made.op_type != "Constant" or made.domain not in ("", "ai.onnx")):
            return None
        return ir.convenience.get_const_tensor(value)

    def _captured(self, node: ir.Node) -> list[ir.Value]:
        given = set(node.inputs)
        return [value for value in reads(node) if value not in given] if any(inner_graphs(node)) else []

    def _before(self, value: ir.Value | None) -> int:
        if value is None:
            return -1
        if value not in self.before:
            tensor = self.constant(value)
            self.before[value] = self.numbers("free", value.name) if tensor is None else self.numbers(
                "constant", self.numbers.of(tensor)
            )  # fmt: skip
        return self.before[value]

    def _content(self, node: ir.Node) -> int:
        attributes = own_attributes(node, self.opsets)
        key = tuple((name, self._attribute(attributes[name])) for name in sorted(attributes))
        return self.numbers("op", node.domain, node.op_type, node.overload, key)

    def _attribute(self, attribute: ir.Attr) -> Any:
        if attribute.is_ref() or attribute.type not in (ir.AttributeType.GRAPH, ir.AttributeType.GRAPHS):
            return self.numbers.attribute(attribute)
        return tuple(map(self._inner, graphs_of(attribute)))

    def _inner(self, graph: ir.Graph) -> Key:
        """What a graph inside a node is; what it captures counts as an input of the node."""
        captured: dict[ir.Value, int] = {}
        own = {value for each in all_graphs(graph) for value in _values(each)}
        for node in (node for each in all_graphs(graph) for node in each):
            for value in node.inputs:
                if value is not None and value not in own and self.constant(value) is None:
                    captured.setdefault(value, self.numbers("captured", len(captured)))
        side = Side(graph, self.opsets, self.numbers, {v: i for i, v in enumerate(graph.inputs)}, captured)
        return tuple(side._before(value) for value in graph.outputs)


def graphs_of(attribute: ir.Attr | None) -> tuple[ir.Graph, ...]:
    """The graphs that an attribute holds."""
    if attribute is None or attribute.is_ref():
        return ()
    match attribute.type:
        case ir.AttributeType.GRAPH:
            return (attribute.as_graph(),)
        case ir.AttributeType.GRAPHS:
            return tuple(attribute.as_graphs())
    return ()


def _values(graph: ir.Graph) -> Iterable[ir.Value]:
    return (*graph.inputs, *graph.initializers.values(), *(value for node in graph for value in node.outputs))


def own_attributes(node: ir.Node, opsets: Mapping[str, int]) -> dict[str, ir.Attr]:
    """The attributes of a node that are not what they would be if they were left out."""
    defaults = _defaults(node.domain, node.op_type, opsets.get(node.domain, 0))
    return {
        name: a
        for name, a in node.attributes.items()
        if a.is_ref() or name not in defaults or not _same(a, defaults[name])
    }


@cache
def _defaults(domain: str, op_type: str, version: int) -> dict[str, Any]:
    try:
        schema = onnx.defs.get_schema(op_type, version, domain)
    except (onnx.defs.SchemaError, ValueError):
        return {}
    given = {name: a.default_value for name, a in schema.attributes.items()}
    return {name: onnx.helper.get_attribute_value(proto) for name, proto in given.items() if proto.type}


def _same(attribute: ir.Attr, default: Any) -> bool:
    value = attribute.value
    if isinstance(default, bytes):
        default = default.decode()
    if attribute.type in (ir.AttributeType.TENSOR, ir.AttributeType.GRAPH):
        return False
    if attribute.type is ir.AttributeType.FLOAT:
        return np.float32(value).tobytes() == np.float32(default).tobytes()  # -0 is not 0
    try:
        return bool((list(value) if isinstance(value, list | tuple) else value) == default)
    except ValueError:
        return False


_WEAK = re.compile(r"[\W\d_]*")


def is_weak(name: str | None, op_type: str = "") -> bool:
    """Whether a name is a mere number: `Conv_12`, `node_Conv_12`, `val_3`. Others may have the same by accident."""
    if not name:
        return True
    plain = re.sub(r"node|val|tensor|onnx", "", name.lower().replace(op_type.lower(), ""))
    return _WEAK.fullmatch(plain) is not None
