"""What an upgrade entry works with: the old node's attributes, and a builder for the nodes it becomes."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any, Self

import numpy as np
import numpy.typing as npt
import onnx_ir as ir

from onward.errors import InvalidModelError, UnsupportedError
from onward.graph.infer_types import infer_types
from onward.graph.names import Names
from onward.graph.origin import copy_origin, origin

DIALECT = 21
"""The opset that entries write new nodes in; what changed after it is then applied to them as well."""

CONSTANT_LIMIT = 4096
"""The most elements a constant may have for its values to be read; weights are never loaded."""


def describe(node: ir.Node) -> str:
    return f"{origin(node)} (version {node.version})"


def take(node: ir.Node, name: str, default: Any = None) -> Any:
    """Remove attribute `name` from `node` and give its value, or `default` where it is not set."""
    found = node.attributes.pop(name, None)
    if found is None:
        return default
    if found.is_ref():
        raise UnsupportedError(
            f"{describe(node)}: attribute '{name}' refers to an attribute of the enclosing function; "
            "inline the model's functions first"
        )
    return found.value


def require(node: ir.Node, name: str) -> Any:
    """Like `take`, for an attribute that the old version demands."""
    value = take(node, name)
    if value is None:
        raise InvalidModelError(f"{describe(node)}: required attribute '{name}' is missing")
    return value


def attribute(name: str, value: Any) -> ir.Attr:
    """An attribute of the type that `value` is of (the general function of onnx-ir is slow for most)."""
    match value:
        case ir.Attr():
            return value
        case ir.Tensor():
            return ir.AttrTensor(name, value)
        case int():
            return ir.AttrInt64(name, int(value))
        case float():
            return ir.AttrFloat32(name, float(value))
        case str():
            return ir.AttrString(name, value)
        case list() | tuple() if value and all(isinstance(item, int) for item in value):
            return ir.AttrInt64s(name, list(map(int, value)))
    return ir.convenience.convert_attribute(name, value)


def put(node: ir.Node, **attributes: Any) -> None:
    for name, value in attributes.items():
        node.attributes[name] = attribute(name, value)


def input_of(node: ir.Node, index: int) -> ir.Value | None:
    """Input `index`, or None where it is absent (left out, or given an empty name)."""
    return node.inputs[index] if index < len(node.inputs) else None


def needed(node: ir.Node, index: int) -> ir.Value:
    value = input_of(node, index)
    if value is None:
        raise InvalidModelError(f"{describe(node)}: required input {index} is missing")
    return value


def set_inputs(node: ir.Node, values: Sequence[ir.Value | None]) -> None:
    """Make `values` the inputs of `node`, without absent ones at the end."""
    values = trim(values)
    node.resize_inputs(len(values))
    for index, value in enumerate(values):
        node.replace_input_with(index, value)


def trim(values: Sequence[ir.Value | None]) -> Sequence[ir.Value | None]:
    """`values` without absent ones at the end."""
    size = len(values)
    while size and values[size - 1] is None:
        size -= 1
    return values[:size]


def rank(value: ir.Value) -> int | None:
    return None if value.shape is None else value.shape.rank()


def dims(value: ir.Value) -> list[int | None] | None:
    """The dimensions of `value`, None for each that is not a known number; None if the rank is unknown."""
    if value.shape is None:
        return None
    return [d if isinstance(d, int) else None for d in value.shape.dims]


def is_used(value: ir.Value) -> bool:
    return bool(value.uses()) or value.is_graph_output()


class Rewriter:
    """Writes nodes in front of one old node, each with the origin of that node.

    `op("Reshape", x, shape, allowzero=1)` adds a node and gives its output; `op.replace(y)` makes the
    given values the outputs of the old node and removes it.
    """

    def __init__(self, model: ir.Model) -> None:
        self.names = Names(model)
        self._inputs_are_fixed = model.ir_version < 4
        self._inner: ir.Graph | None = None
        self.created: list[ir.Node] = []
        self.node: ir.Node
        self.graph: ir.Graph

    def at(self, node: ir.Node) -> Self:
        graph = node.graph
        assert graph is not None
        self.node, self.graph, self.created = node, graph, []
        return self

    def read(self, value: ir.Value | None) -> npt.NDArray[Any] | None:
        """The elements of a small value that no caller of the model can change, or None.

        Before IR version 4 every initializer was listed as an input as well, and meant to be fixed.
        """
        if value is None or (value.is_graph_input() and not (value.is_initializer() and self._inputs_are_fixed)):
            return None
        if (producer := value.producer()) is not None and len(producer.attributes) != 1:
            return None
        tensor = ir.convenience.get_const_tensor(value)
        return None if tensor is None or tensor.size > CONSTANT_LIMIT else tensor.numpy()

    def __call__(self, op_type: str, *inputs: ir.Value | None, **attributes: Any) -> ir.Value:
        return self.many(1, op_type, *inputs, **attributes)[0]

    def own(self, count: int, op_type: str, *inputs: ir.Value | None, **attributes: Any) -> Sequence[ir.Value]:
        """As `many`, for an op that Onward adds: one of the domain `onward`."""
        return self.many(count, f"onward::{op_type}", *inputs, **attributes)

    def many(self, count: int, op_type: str, *inputs: ir.Value | None, **attributes: Any) -> Sequence[ir.Value]:
        """As a call, for a node of `count` outputs."""
        new = self._new(count, op_type, inputs, attributes)
        if self._inner is not None:
            self._inner.append(new)
        else:
            self.graph.insert_before(self.node, new)
        return new.outputs

    @contextmanager
    def inside(self, graph: ir.Graph) -> Iterator[None]:
        """Write to the end of `graph`, the body of a node to come, instead of in front of the old node."""
        self._inner = graph
        try:
            yield
        finally:
            self._inner = None

    def again(self, inputs: Sequence[ir.Value | None], version: int, **attributes: Any) -> Sequence[ir.Value]:
        """A copy of the old node on other inputs, which is of `version` and goes on being rewritten."""
        given = {**self.node.attributes, **attributes}
        outputs = self.many(len(self.node.outputs), self.node.op_type, *inputs, **given)
        self.created[-1].version = version
        return outputs

    def follow(self, output: ir.Value, op_type: str, *inputs: ir.Value | None, **attributes: Any) -> None:
        """Put a node between `output` of the old node and all that use it; it takes over the name."""
        new = self._new(1, op_type, (output, *inputs), attributes)
        self.graph.insert_after(self.node, new)
        result = new.outputs[0]
        result.shape = output.shape
        output.replace_all_uses_with(result, replace_graph_outputs=True)
        new.replace_input_with(0, output)
        result.name, output.name = output.name, result.name

    def _new(
        self, count: int, op_type: str, inputs: Sequence[ir.Value | None], attributes: Mapping[str, Any]
    ) -> ir.Node:
        old = self.node
        base = next((o.name for o in old.outputs if o.name), None) or old.name or old.op_type
        domain, _, op_type = op_type.rpartition("::")
        new = ir.Node(
            domain,
            op_type,
            trim(inputs),
            [attribute(k, v) for k, v in attributes.items() if v is not None],
            outputs=[ir.Value(name=self.names.value(f"{base}_{op_type.lower()}")) for _ in range(count)],
            version=1 if domain else DIALECT,
            name=self.names.node(f"{old.name or base}_{op_type}"),
            metadata_props=dict(old.metadata_props),
        )
        copy_origin(new, old)
        self.created.append(new)
        infer_types(new)
        return new

    def constant(self, array: npt.NDArray[Any]) -> ir.Value:
        tensor = ir.Tensor(array)
        value = self("Constant", value=tensor)
        value.const_value, value.shape = tensor, tensor.shape
        return value

    def ints(self, values: Sequence[int] | int) -> ir.Value:
        return self.constant(np.array(values, dtype=np.int64))

    def floats(self, values: Sequence[float] | float) -> ir.Value:
        return self.constant(np.array(values, dtype=np.float32))

    def number(self, number: float, like: ir.Value) -> ir.Value:
        """A scalar of the element type of `like`, which need not be known."""
        if like.dtype is None:
            return self("CastLike", self.floats(number), like)
        return self.constant(np.array(number).astype(like.dtype.numpy()))

    def shape(self, x: ir.Value) -> ir.Value:
        """The dimensions of `x`: a constant where all are known."""
        known = dims(x)
        if known is not None and None not in known:
            return self.ints([d for d in known if d is not None])
        return self("Shape", x)

    def rank(self, x: ir.Value) -> ir.Value:
        """The rank of `x`, as a one-element vector."""
        known = rank(x)
        return self("Shape", self("Shape", x)) if known is None else self.ints([known])

    def reshape(self, x: ir.Value, shape: ir.Value) -> ir.Value:
        """`x` in exactly that shape: a 0 in it is a dimension of no elements."""
        return self("Reshape", x, shape, allowzero=1)

    def replace(self, *values: ir.Value | None) -> None:
        """Make `values` the outputs of the old node, under their old names, and remove it.

        Its own name goes to the node of the same op type, if there is one.
        """
        free = {output for node in self.created for output in node.outputs}
        for old, new in zip(self.node.outputs, values, strict=True):
            if new is None:
                continue
            if new in free:
                free.remove(new)
            else:
                new = self("Identity", new)
            self.redirect(old, new)
        heir = next((node for node in self.created if node.op_type == self.node.op_type), None)
        if heir is not None:
            heir.name = self.node.name
        self.graph.remove(self.node, safe=True)

    def redirect(self, old: ir.Value, new: ir.Value) -> None:
        """Let `new`, made by this rewriter, take over the name and the uses of `old`."""
        new.type = old.type if old.type is not None else new.type
        new.shape = old.shape if old.shape is not None else new.shape
        old.replace_all_uses_with(new, replace_graph_outputs=True)
        old.name, new.name = None, old.name
