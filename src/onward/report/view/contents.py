"""What a model consists of, as plain data for a page: graphs with their nodes, values and weights. Nothing is run."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import Any

import onnx
import onnx_ir as ir

from onward.backends.emit.scopes import scope_of
from onward.backends.emit.statements import Scope
from onward.errors import OnwardError
from onward.graph.infer import infer
from onward.graph.origin import origin
from onward.graph.walk import all_nodes
from onward.model import Model
from onward.report.describe import dtype_name, nbytes, value_info
from onward.report.view.kinds import kind_of_op
from onward.report.view.statistics import Statistics
from onward.report.wording import printable

LONGEST = 300
"""Characters of a name or an attribute."""
MOST_ITEMS = 32
"""Of a list in an attribute, and of a small tensor."""
MOST_STATISTICS = 4000
"""Tensors that are looked at, the largest first."""
MOST_INFERRED = 20_000
"""Nodes of a model whose shapes are inferred where the file does not say them."""


@dataclass
class Part:
    """A graph that can be looked at: the model's own, one inside a node, or a function."""

    title: str
    kind: str
    up: int | None = None
    """The part that it is in."""
    nodes: list[int] = field(default_factory=list)
    inputs: list[int] = field(default_factory=list)
    outputs: list[int] = field(default_factory=list)
    outside: list[int] = field(default_factory=list)
    """What it reads of the graphs around it."""


@dataclass
class Contents:
    """Places in these lists are what one refers to another by."""

    parts: list[Part] = field(default_factory=list)
    nodes: list[dict[str, Any]] = field(default_factory=list)
    values: list[dict[str, Any]] = field(default_factory=list)
    weights: list[dict[str, Any]] = field(default_factory=list)
    scopes: list[Scope] = field(default_factory=list)
    """Of each node: the module that it belongs to."""
    origins: list[str] = field(default_factory=list)
    """Of each node: what generated code knows it by."""


def contents(model: Model) -> Contents:
    return _Reader(model).read()


class _Reader:
    def __init__(self, model: Model) -> None:
        self.model = model
        self.found = Contents()
        self._places: dict[ir.Value, int] = {}
        self._weights: dict[int, ir.TensorProtocol] = {}
        self._made_in: dict[int, int] = {}
        self._inferred = _inferred(model)
        self._functions: dict[ir.OperatorIdentifier, int] = {}
        self._holders: dict[int, int] = {}
        """By part: the node that it is in."""

    def read(self) -> Contents:
        functions = self.model.ir.functions
        for place, identifier in enumerate(functions, 1):
            self._functions[identifier] = place
        own = self.model.ir.graph
        self.found.parts = [Part(own.name or "graph", "graph"), *(Part(name, "function") for _, name, _ in functions)]
        self._graph(own, 0, self.model.opset)
        for place, function in enumerate(functions.values(), 1):
            self._graph(function.graph, place, dict(function.opset_imports))
        self._statistics()
        return self.found

    def _graph(self, graph: ir.Graph, place: int, opsets: dict[str, int]) -> None:
        part = self.found.parts[place]
        for value in graph.initializers.values():
            self._constant(value, value.const_value, "initializer")
        part.inputs = [self._made(value, place) for value in graph.inputs if not value.is_initializer()]
        bodies: list[tuple[ir.Graph, int]] = []
        for node in graph:
            tensor = _constant(node)
            if tensor is not None:
                self._constant(node.outputs[0], tensor, "constant")
                continue
            part.nodes.append(self._node(node, place, opsets, bodies))
        part.outputs = [self._value(value) for value in graph.outputs]
        for body, inner in bodies:
            self._graph(body, inner, opsets)
        self._captured(place)

    def _captured(self, place: int) -> None:
        """What a body reads of the graphs around it, the node that holds it reads."""
        part = self.found.parts[place]
        if part.up is None:
            return
        nodes = (self.found.nodes[number] for number in part.nodes)
        read = [value for node in nodes for _, value in node["inputs"]] + part.outputs
        read += [value for node in nodes for value in node.get("captured", ())]
        foreign = [v for v in read if self._made_in.get(v, place) != place and "weight" not in self.found.values[v]]
        part.outside = list(dict.fromkeys(foreign))
        holder = self.found.nodes[self._holders[place]]
        holder["captured"] = list(dict.fromkeys([*holder.get("captured", ()), *part.outside]))

    def _made(self, value: ir.Value, place: int) -> int:
        number = self._value(value)
        self._made_in[number] = place
        return number

    def _value(self, value: ir.Value) -> int:
        place = self._places.get(value)
        if place is None:
            place = self._places[value] = len(self.found.values)
            info = value_info(value)
            if (info["shape"] is None or info["dtype"] is None) and value.name in self._inferred:
                info = value_info(self._inferred[value.name])
            dims = info["shape"]
            shape = None if dims is None else [printable("?" if dim is None else str(dim), 40) for dim in dims]
            type_ = info["dtype"] if info["type"].startswith("tensor(") and info["dtype"] else info["type"]
            self.found.values.append({"name": printable(value.name or "", LONGEST), "type": type_, "shape": shape})
        return place

    def _constant(self, value: ir.Value, tensor: ir.TensorProtocol | None, kind: str) -> None:
        if tensor is None:
            return
        place = self._value(value)
        self.found.values[place]["weight"] = len(self.found.weights)
        self._weights[len(self.found.weights)] = tensor
        self.found.weights.append(
            {
                "name": printable(value.name or "", LONGEST),
                "kind": kind,
                "type": dtype_name(tensor.dtype),
                "shape": [int(dim) for dim in tensor.shape.numpy()],
                "count": int(tensor.size),
                "bytes": nbytes(tensor),
                "readers": [],
            }
        )

    def _node(self, node: ir.Node, place: int, opsets: dict[str, int], bodies: list[tuple[ir.Graph, int]]) -> int:
        number = len(self.found.nodes)
        takes, gives = _formal(node.op_type, node.domain, opsets.get(node.domain, 0))
        inputs = [
            (_slot(takes, i, len(node.inputs)), self._value(v)) for i, v in enumerate(node.inputs) if v is not None
        ]
        for _, value in inputs:
            if (weight := self.found.values[value].get("weight")) is not None:
                self.found.weights[weight]["readers"].append(number)
        outputs = [
            (_slot(gives, i, len(node.outputs)), self._made(v, place)) for i, v in enumerate(node.outputs) if v.name
        ]
        function = self._functions.get(node.op_identifier())
        described: dict[str, Any] = {
            "name": printable(node.name or "", LONGEST),
            "op": printable(node.op_type),
            "domain": printable(node.domain),
            "kind": "control" if function is not None else kind_of_op(node.op_type),
            "part": place,
            "inputs": inputs,
            "outputs": outputs,
        }
        self.found.nodes.append(described)
        self.found.scopes.append(scope_of(node))
        self.found.origins.append(str(origin(node)))
        described["line"] = self._line(node, inputs)
        if node.doc_string:
            described["doc"] = printable(node.doc_string, LONGEST)
        if function is not None:
            described["function"] = function
        attributes = []
        for name, attribute in node.attributes.items():
            held = _graphs(attribute)
            for i, body in enumerate(held):
                title = name if len(held) == 1 else f"{name} {i + 1}"
                self.found.parts.append(Part(f"{printable(node.name or node.op_type)} · {title}", "subgraph", place))
                described.setdefault("bodies", []).append((title, len(self.found.parts) - 1))
                self._holders[len(self.found.parts) - 1] = number
                bodies.append((body, len(self.found.parts) - 1))
            if not held:
                attributes.append((printable(name), attribute_text(attribute)))
        if attributes:
            described["attributes"] = attributes
        return number

    def _line(self, node: ir.Node, inputs: Sequence[tuple[str, int]]) -> str:
        """What a box says below the op: the size of its weight, else the end of its name."""
        for _, value in inputs:
            weight = self.found.values[value].get("weight")
            if weight is not None and len(shape := self.found.weights[weight]["shape"]) > 1:
                return "×".join(map(str, shape))
        name = node.name or next((v.name for v in node.outputs if v.name), "") or ""
        return printable(name, LONGEST)

    def _statistics(self) -> None:
        look = Statistics()
        largest = sorted(self._weights, key=lambda place: -self.found.weights[place]["count"])
        for place in largest[:MOST_STATISTICS]:
            weight, tensor = self.found.weights[place], self._weights[place]
            if weight["count"] <= MOST_ITEMS:
                weight["items"] = tensor_text(tensor)
            if found := look.of(tensor):
                weight["statistics"] = found


def _inferred(model: Model) -> dict[str, ir.Value]:
    """What is known of the types of values, by name, where the file does not say all of them."""
    nodes = list(model.ir.graph)
    if len(nodes) > MOST_INFERRED or all(v.shape is not None and v.dtype is not None for n in nodes for v in n.outputs):
        return {}
    copy = model.ir.clone()
    try:
        infer(copy)
    except OnwardError:
        return {}
    made = [value for node in all_nodes(copy.graph) for value in node.outputs]
    counts = Counter(value.name for value in made)
    return {value.name: value for value in made if value.name and counts[value.name] == 1}


def _constant(node: ir.Node) -> ir.TensorProtocol | None:
    """The tensor of a Constant node: it is shown as a weight is."""
    if node.op_type != "Constant" or node.domain:
        return None
    value = next((a.value for a in node.attributes.values() if not a.is_ref()), None)
    if isinstance(value, ir.TensorProtocol):
        return value
    return ir.convenience.get_const_tensor(node.outputs[0])


def _graphs(attribute: ir.Attr) -> list[ir.Graph]:
    if attribute.is_ref():
        return []
    if attribute.type == ir.AttributeType.GRAPH:
        return [attribute.as_graph()]
    return list(attribute.as_graphs()) if attribute.type == ir.AttributeType.GRAPHS else []


def attribute_text(attribute: ir.Attr) -> str:
    if attribute.is_ref():
        return f"@{printable(attribute.ref_attr_name or '')}"
    value = attribute.value
    if isinstance(value, ir.TensorProtocol):
        head = f"{dtype_name(value.dtype)} {list(value.shape.numpy())}"
        return f"{head} {tensor_text(value)}" if value.size <= MOST_ITEMS else head
    if isinstance(value, str | bytes):
        return printable(value.decode(errors="replace") if isinstance(value, bytes) else value, LONGEST)
    if isinstance(value, float):
        return f"{value:g}"
    if isinstance(value, Iterable):
        items = list(value)
        listed = ", ".join(_item(item) for item in items[:MOST_ITEMS])
        return printable(f"[{listed}{f', … {len(items):,} in all' if len(items) > MOST_ITEMS else ''}]", LONGEST)
    return printable(str(value), LONGEST)


def _item(item: object) -> str:
    return f"{item:g}" if isinstance(item, float) else printable(str(item), 60)


def tensor_text(tensor: ir.TensorProtocol) -> str:
    """The elements of a small tensor."""
    if isinstance(tensor, ir.StringTensor):
        items: list[Any] = [text.decode(errors="replace") for text in tensor.string_data()]
    else:
        items = tensor.numpy().reshape(-1).tolist()
    listed = ", ".join(_item(item) for item in items[:MOST_ITEMS])
    return printable(f"[{listed}]" if tensor.shape.rank() else listed, LONGEST)


@cache
def _formal(op: str, domain: str, version: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """What the op calls its inputs and outputs; the last ones end in … where there may be any number."""
    try:
        schema = onnx.defs.get_schema(op, version, domain)
    except onnx.defs.SchemaError:
        return (), ()
    variadic = onnx.defs.OpSchema.FormalParameterOption.Variadic

    def named(formal: Sequence[onnx.defs.OpSchema.FormalParameter]) -> tuple[str, ...]:
        return tuple(one.name + ("…" if one.option == variadic else "") for one in formal)

    return named(schema.inputs), named(schema.outputs)


def _slot(names: Sequence[str], place: int, count: int) -> str:
    if not names:
        return str(place) if count > 1 else ""
    if place < len(names) and not names[place].endswith("…"):
        return names[place]
    return f"{names[-1].removesuffix('…')} {place - len(names) + 1}" if names[-1].endswith("…") else str(place)
