"""`onward.diff`: what was added, removed and changed from one model to another."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

import onnx
import onnx_ir as ir

from onward.editing.differences import Change, Difference, Kind, Line
from onward.editing.match import Pairs, match
from onward.editing.sides import Numbers, Side, graphs_of, own_attributes
from onward.editing.training_graphs import algorithms, bindings
from onward.editing.weights import Weights, contents, dtype_name, is_setting
from onward.editing.weights import typed as typed_constant
from onward.graph.constants import plain_constants
from onward.graph.walk import all_nodes
from onward.hub.collector import no_garbage_collection
from onward.hub.types import write_type
from onward.hub.write import function_bytes
from onward.model import Model, load

Given: TypeAlias = Model | str | os.PathLike[str] | bytes | onnx.ModelProto
LONGEST = 200
"""Characters of a value that is told."""


def diff(first: Given, second: Given) -> Difference:
    """What the second model adds to the first, lacks of it, and has otherwise.

    Nodes are matched by what they compute, by name, and by their neighbours; so a node that is put in does not make all
    that follow it look changed, nor do new names. Weights are compared by content: equal, changed and by how much,
    renamed, tied. Inputs and outputs, opsets, metadata, functions, graphs inside nodes and training information are
    compared as well. Nothing is run: models that differ may compute the same.

    >>> import onward
    >>> model = onward.load("examples/digits/digits.onnx")
    >>> onward.diff(model, onward.extract(model, outputs="mean")).counts()["node"]
    {'removed': 1}
    """
    one, other = load(first), load(second)
    with no_garbage_collection():
        return _compared(_plain(one), _plain(other))


def _plain(model: Model) -> Model:
    """With constants in the form that is read here: nearly all have it already."""
    odd = {"sparse_value", "value_string", "value_strings"}
    if all(odd.isdisjoint(node.attributes) for node in all_nodes(model.ir.graph) if node.op_type == "Constant"):
        return model
    copy = model.copy()
    plain_constants(copy.ir)
    return copy


def _compared(one: Model, other: Model) -> Difference:
    found = Difference(str(one.path or one.name), str(other.path or other.name))
    numbers = Numbers()
    found.changes += _facts(one, other)
    found.changes += _ends(one.ir, other.ir)
    graphs = _Graphs(numbers, one.ir.opset_imports, other.ir.opset_imports)
    inputs = _paired(one.ir.graph.inputs, other.ir.graph.inputs)
    lines = graphs.compare(one.ir.graph, other.ir.graph, inputs, "")
    found.nodes = len(lines[0].nodes), len(lines[1].nodes)
    found.lines = list(_side_by_side(*lines, graphs.told))
    found.changes += graphs.changes
    found.changes += _functions(one.ir, other.ir, numbers)
    found.changes += _training(one, other, numbers)
    return found


def _facts(first: Model, second: Model) -> Iterator[Change]:
    """Opsets, versions, metadata."""
    yield from _entries("opset", {k or "ai.onnx": str(v) for k, v in first.opset.items()},
                        {k or "ai.onnx": str(v) for k, v in second.opset.items()})  # fmt: skip
    names = ("producer_name", "producer_version", "domain", "model_version", "doc_string")
    known = [{name: str(getattr(model.ir, name) or "") for name in names} for model in (first, second)]
    known[0]["ir_version"], known[1]["ir_version"] = str(first.ir_version or ""), str(second.ir_version or "")
    yield from _entries("metadata", *({k: v for k, v in one.items() if v} for one in known))
    yield from _entries("metadata", first.ir.metadata_props, second.ir.metadata_props)
    graphs = [model.ir.graph.metadata_props for model in (first, second)]
    yield from _entries("metadata", *graphs)


def _entries(part: str, first: Mapping[str, str], second: Mapping[str, str]) -> Iterator[Change]:
    for name in dict.fromkeys((*first, *second)):
        if name not in second:
            yield Change(part, "removed", name, (_short(first[name]),))
        elif name not in first:
            yield Change(part, "added", name, (_short(second[name]),))
        elif first[name] != second[name]:
            yield Change(part, "changed", name, (_text_change(first[name], second[name]),))


def _paired(first: Sequence[ir.Value], second: Sequence[ir.Value]) -> list[tuple[ir.Value, ir.Value]]:
    """Inputs or outputs of equal names, and the others in their order where as many are left on either side."""
    names = {value.name: value for value in second}
    pairs = [(value, names[value.name]) for value in first if value.name in names]
    known = {value for pair in pairs for value in pair}
    left = [[value for value in side if value not in known] for side in (first, second)]
    return pairs + (list(zip(*left, strict=True)) if len(left[0]) == len(left[1]) else [])


def _same_ends(first: ir.Graph, second: ir.Graph) -> list[tuple[ir.Value, ir.Value]]:
    """The outputs that are told as the same, under another name maybe."""
    pairs = _paired(first.outputs, second.outputs)
    return [(a, b) for a, b in pairs if a.name == b.name or typed(a) == typed(b)]


def _ends(first: ir.Model, second: ir.Model) -> Iterator[Change]:
    for part in ("input", "output"):
        sides = [list(getattr(model.graph, f"{part}s")) for model in (first, second)]
        names = [{value.name: value for value in side} for side in sides]
        left = [[v for v in side if v.name not in other] for side, other in zip(sides, names[::-1], strict=True)]
        renamed = {}
        if len(left[0]) == len(left[1]):
            renamed = {a: b for a, b in zip(*left, strict=True) if typed(a) == typed(b)}
        for value in sides[0]:
            if value.name in names[1]:
                before, after = typed(value), typed(names[1][value.name])
                if before != after:
                    yield Change(part, "changed", value.name or "", (f"{before} → {after}",))
            elif value in renamed:
                yield Change(part, "renamed", value.name or "", (f"is called {renamed[value].name!r} now",))
            else:
                yield Change(part, "removed", value.name or "", (typed(value),))
        yield from (Change(part, "added", v.name or "", (typed(v),)) for v in left[1] if v not in set(renamed.values()))
        order = [[v.name for v in side if v.name in other] for side, other in zip(sides, names[::-1], strict=True)]
        if order[0] != order[1]:
            yield Change(part, "changed", "their order", (f"{order[0]} → {order[1]}",))


class _Graphs:
    """Compares graphs, those inside nodes as well, and collects what differs."""

    def __init__(self, numbers: Numbers, *opsets: Mapping[str, int]) -> None:
        self.numbers, self.opsets = numbers, opsets
        self.changes: list[Change] = []
        self.told: dict[ir.Node, Change] = {}
        """By node, of the second graph where it has one, what differs of it."""

    def compare(
        self, first: ir.Graph, second: ir.Graph, inputs: list[tuple[ir.Value, ir.Value]], where: str,
        outer: list[tuple[ir.Value, ir.Value]] | None = None,
    ) -> tuple[Side, Side, Pairs]:  # fmt: skip
        known = [{pair[place]: i for i, pair in enumerate(inputs)} for place in (0, 1)]
        around: list[dict[ir.Value, int]] = [
            {pair[place]: self.numbers("around", i) for i, pair in enumerate(outer or ())} for place in (0, 1)
        ]
        one = Side(first, self.opsets[0], self.numbers, known[0], around[0])
        other = Side(second, self.opsets[1], self.numbers, known[1], around[1])
        pairs = match(one, other)
        weights = Weights(one, other, pairs)
        twins = dict([*inputs, *(outer or ())])
        twins |= {a: b for node, twin in pairs.items() for a, b in zip(node.outputs, twin.outputs, strict=False)}
        for node in one.nodes:
            twin = pairs.get(node)
            if twin is None:
                self._tell(node, Change("node", "removed", label(node), _reading(node), spelled(node), where))
            else:
                self._compare_nodes(node, twin, twins, weights, where)
        found = set(pairs.values())
        for node in other.nodes:
            if node not in found:
                self._tell(node, Change("node", "added", label(node), _reading(node), spelled(node), where))
        self.changes += weights.changes(where)
        results = zip(first.outputs, second.outputs, strict=False) if where else _same_ends(first, second)
        matched = {*pairs, *found}
        for a, b in results:
            if (a.producer() is None and b.producer() is None) or {a.producer(), b.producer()} & matched:
                self._compare_results(a, b, twins, weights, where)
        return one, other, pairs

    def _compare_results(
        self, a: ir.Value, b: ir.Value, twins: Mapping[ir.Value, ir.Value], weights: Weights, where: str
    ) -> None:
        """Whether two outputs are the same result of the same node, the same input, or the same constant."""
        held = Side.constant(a), Side.constant(b)
        if held[0] is not None and held[1] is not None:
            is_same = b in weights.pairs.get(a, ()) or self.numbers.of(held[0]) == self.numbers.of(held[1])
        else:
            is_same = twins.get(a) is b
        if not is_same:
            words = f"{_told(a, with_maker=True)} → {_told(b, with_maker=True)}"
            self.changes.append(Change("output", "changed", a.name or "", (words,), where=where))

    def _tell(self, node: ir.Node, change: Change) -> None:
        self.told[node] = change
        self.changes.append(change)

    def _compare_nodes(
        self, node: ir.Node, twin: ir.Node, twins: Mapping[ir.Value, ir.Value], weights: Weights, where: str
    ) -> None:
        details = []
        if (node.domain, node.op_type, node.overload) != (twin.domain, twin.op_type, twin.overload):
            details.append(f"{spelled(node)} → {spelled(twin)}")
        details += self._attributes(node, twin)
        details += _inputs(node, twin, twins, weights)
        details += _outputs(node, twin)
        if details:
            self._tell(twin, Change("node", "changed", label(node), tuple(details), spelled(node), where))
        elif node.name and twin.name and node.name != twin.name:
            words = f"is called {twin.name!r} now"
            self._tell(twin, Change("node", "renamed", label(node), (words,), spelled(node), where))
        for name, attribute in node.attributes.items():
            place = f"{where}{', ' if where else ''}{name} of {spelled(node)} {label(node)!r}"
            for inner in zip(graphs_of(attribute), graphs_of(twin.attributes.get(name)), strict=False):
                inputs = list(zip(inner[0].inputs, inner[1].inputs, strict=False))
                self.compare(*inner, inputs, place, list(twins.items()))

    def _attributes(self, node: ir.Node, twin: ir.Node) -> Iterator[str]:
        first, second = (own_attributes(n, opsets) for n, opsets in zip((node, twin), self.opsets, strict=True))
        for name in dict.fromkeys((*first, *second)):
            a, b = first.get(name), second.get(name)
            graphs = len(graphs_of(a)), len(graphs_of(b))
            if any(graphs):
                if graphs[0] != graphs[1]:
                    yield f"{name}: {'added' if a is None else 'removed' if b is None else 'of other graphs'}"
            elif a is None or b is None or self.numbers.attribute(a) != self.numbers.attribute(b):
                yield f"{name}: {_attribute(a)} → {_attribute(b)}"


def _inputs(node: ir.Node, twin: ir.Node, twins: Mapping[ir.Value, ir.Value], weights: Weights) -> Iterator[str]:
    count = max(len(node.inputs), len(twin.inputs))
    for place in range(count):
        a, b = ((n.inputs[place] if place < len(n.inputs) else None) for n in (node, twin))
        if a is None or b is None:
            if a is not b:
                yield f"input {place}: {_told(a)} → {_told(b)}"
        elif is_setting(a) or is_setting(b):
            if weights.first.before.get(a) != weights.second.before.get(b):
                yield f"input {place}: {' → '.join(_two_contents(a, b))}"
        elif a in weights.pairs:
            if b not in weights.pairs[a]:
                yield f"input {place}: {_told(a)} → {_told(b)}"
        elif Side.constant(a) is not None and Side.constant(b) is not None:
            if weights.first.before.get(a) != weights.second.before.get(b):
                yield f"input {place}: {contents(a)} → {contents(b)}, of other numbers"
        elif twins.get(a) is not b:
            is_named_so = a.name == b.name
            yield f"input {place}: {_told(a, is_named_so)} → {_told(b, is_named_so)}"


def _two_contents(a: ir.Value, b: ir.Value) -> tuple[str, str]:
    """Two small constants in words, with their types where the numbers alone would not tell them apart."""
    texts = contents(a), contents(b)
    if texts[0] != texts[1]:
        return texts
    typed_ = [typed_constant(value) for value in (a, b)]
    return f"{typed_[0]} {texts[0]}", f"{typed_[1]} {texts[1]}"


def _outputs(node: ir.Node, twin: ir.Node) -> Iterator[str]:
    for a, b in zip(node.outputs, twin.outputs, strict=False):
        if a.type is not None and b.type is not None and (a.type != b.type or (a.shape and b.shape)):
            before, after = typed(a), typed(b)
            if before != after:
                yield f"{a.name}: {before} → {after}"
    named = [sum(bool(value.name) for value in each.outputs) for each in (node, twin)]
    if named[0] != named[1]:
        yield f"outputs: {named[0]} → {named[1]}"


def _functions(first: ir.Model, second: ir.Model, numbers: Numbers) -> Iterator[Change]:
    for key in dict.fromkeys((*first.functions, *second.functions)):
        name = "::".join(part for part in key if part)
        one, other = first.functions.get(key), second.functions.get(key)
        if one is None or other is None:
            kind: Kind = "added" if one is None else "removed"
            yield Change("function", kind, name)
        elif function_bytes(one) != function_bytes(other):
            graphs = _Graphs(numbers, one.opset_imports, other.opset_imports)
            inputs = list(zip(one.inputs, other.inputs, strict=False))
            graphs.compare(one.graph, other.graph, inputs, f"function {name}")
            details = [f"{what}: {_short(str(a))} → {_short(str(b))}" for what, a, b in (
                ("inputs", [v.name for v in one.inputs], [v.name for v in other.inputs]),
                ("outputs", [v.name for v in one.outputs], [v.name for v in other.outputs]),
                ("opsets", dict(one.opset_imports), dict(other.opset_imports)),
            ) if a != b]  # fmt: skip
            yield Change("function", "changed", name, tuple(details))
            yield from graphs.changes


def _training(first: Model, second: Model, numbers: Numbers) -> Iterator[Change]:
    counts = len(first.training_info), len(second.training_info)
    for index in range(max(counts)):
        name = f"training info {index}"
        if index >= min(counts):
            yield Change("training", "added" if counts[0] < counts[1] else "removed", name)
            continue
        changes = [*_entries("training", bindings(first, index), bindings(second, index))]
        for part, one, other in algorithms(first, second, index):
            graphs = _Graphs(numbers, first.opset, second.opset)
            graphs.compare(one, other, _paired(one.inputs, other.inputs), f"{part} of {name}")
            changes += graphs.changes
        if changes:
            yield Change("training", "changed", name)
            yield from changes


def _side_by_side(first: Side, second: Side, pairs: Pairs, told: Mapping[ir.Node, Change]) -> Iterator[Line]:
    """Both graphs in one order: what is gone stands where it was."""
    back = {twin: node for node, twin in pairs.items()}
    gone = iter([node for node in first.nodes if node not in pairs])
    pending = next(gone, None)
    for twin in second.nodes:
        node = back.get(twin)
        if node is not None:
            while pending is not None and first.order[pending] < first.order[node]:
                yield Line("removed", in_words(pending), "")
                pending = next(gone, None)
        change = told.get(twin)
        kind: Kind = "same" if change is None else change.kind
        details = () if change is None or kind == "added" else change.details
        yield Line(kind, in_words(node) if node is not None else "", in_words(twin), details)
    while pending is not None:
        yield Line("removed", in_words(pending), "")
        pending = next(gone, None)


def in_words(node: ir.Node) -> str:
    names = ", ".join(value.name or "" if value is not None else "" for value in node.inputs)
    return f"{', '.join(value.name or '' for value in node.outputs)} = {spelled(node)}({names})"


def label(node: ir.Node) -> str:
    return node.name or next((value.name for value in node.outputs if value.name), "")


def spelled(node: ir.Node) -> str:
    return f"{node.domain}.{node.op_type}" if node.domain not in ("", "ai.onnx") else node.op_type


def typed(value: ir.Value) -> str:
    """`float32 [batch, 3]`"""
    if value.type is None:
        return "of a type that the file does not say"
    if isinstance(value.type, ir.TensorType):
        dims = "" if value.shape is None else f" [{', '.join(_dim(dim) for dim in value.shape)}]"
        return f"{dtype_name(value.type.dtype)}{dims}"
    proto = onnx.TypeProto()
    write_type(proto, value.type, value.shape)
    return " ".join(str(proto).split())


def _dim(dim: int | ir.SymbolicDim) -> str:
    return str(dim) if isinstance(dim, int) else dim.value or "?"


def _reading(node: ir.Node) -> tuple[str, ...]:
    names = [value.name or "" for value in node.inputs if value is not None]
    return (f"reads {', '.join(names)}",) if names else ()


def _told(value: ir.Value | None, with_maker: bool = False) -> str:
    if value is None:
        return "nothing"
    maker = value.producer() if with_maker else None
    return repr(value.name) if maker is None else f"{value.name!r} of {spelled(maker)}"


def _attribute(attribute: ir.Attr | None) -> str:
    if attribute is None:
        return "left out"
    if attribute.is_ref():
        return f"as the call says ({attribute.ref_attr_name})"
    value = attribute.value
    if attribute.type is ir.AttributeType.TENSOR:
        size = value.size
        return str(value.numpy().tolist()) if size <= 16 else f"{dtype_name(value.dtype)} {list(value.shape.numpy())}"
    return _short(str(list(value) if isinstance(value, tuple) else value))


def _text_change(first: str, second: str) -> str:
    """Two texts; of long ones, what comes where they begin to differ."""
    same = (place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b)
    start = next(same, min(len(first), len(second)))
    start = max(0, start - LONGEST // 4) if max(len(first), len(second)) > LONGEST else 0
    lead = "…" if start else ""
    return f"{lead}{_short(first[start:])} → {lead}{_short(second[start:])}"


def _short(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
