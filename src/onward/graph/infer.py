"""Types and shapes of every value, node by node, from what the graph's inputs and weights are declared to be.

What a file says about the values in between is not believed: it is often stale. Each node is asked by itself, through
the inference function of its schema, so weights never enter a protobuf message, a node that fails harms no other, and
nodes that are alike (the layers of a network) are asked once.
"""

import math
from collections.abc import Sequence
from functools import cache
from typing import Any, NamedTuple

import onnx
import onnx_ir as ir

from onward.graph.constants import tensor_of
from onward.graph.infer_bodies import BODIES, UNKNOWN, Kind, kind_of
from onward.graph.infer_own import CORRECTIONS, added_kinds
from onward.graph.infer_types import infer_types
from onward.graph.known import Dim, Known
from onward.graph.values import Items
from onward.hub.types import read_type, write_type
from onward.registry import cached_by_schema

DATA_LIMIT = 256
"""The most elements of a constant that inference functions get to see: axes and shapes, not weights."""
FLOATS_LIMIT = 16
"""The same of floats: scales of Resize, limits of Range."""

DECLARED = "onward.declared_shape"
"""The shape that a file declares for a body's output, where it is kept: a loop that never runs gives tensors of it."""

_SIMPLE = {ir.AttributeType.INT, ir.AttributeType.FLOAT, ir.AttributeType.STRING}
_LISTS = {ir.AttributeType.INTS, ir.AttributeType.FLOATS, ir.AttributeType.STRINGS}
_FLOATS = {ir.DataType.FLOAT, ir.DataType.DOUBLE}
_NUMBERS = {ir.DataType.INT64, ir.DataType.INT32, ir.DataType.BOOL} | _FLOATS

_WINDOWS = {"Conv": 2, "ConvTranspose": 2, "MaxPool": 1, "AveragePool": 1, "LpPool": 1}
"""How many inputs of each op are, like its result, of two dimensions more than its kernel."""


def infer(model: ir.Model, answers: "Answers | None" = None) -> "Inference":
    """Set the type and shape of every value of `model` that follow from its inputs and weights, in place.

    Outputs of ops that have no schema keep what they are declared to be. `answers` of an earlier inference spare this
    one the same questions.
    """
    inference = Inference(model, answers)
    inference.graph(model.graph)
    return inference


class _Question(NamedTuple):
    """All that an inference function looks at: nodes with equal questions have equal answers."""

    domain: str
    op_type: str
    version: int
    inputs: tuple[bool, ...]
    outputs: int
    attributes: tuple[Any, ...]
    types: tuple[Any, ...]
    data: tuple[bytes, ...]


Answers = dict[_Question, list[bytes]]


class Inference:
    """What is known about the values of one model. Nodes may be asked again, after changes to the graph."""

    def __init__(self, model: ir.Model, answers: Answers | None = None) -> None:
        self.depth = 0
        """How many nodes with graphs inside surround the current node."""
        self._opsets = {"" if d == "ai.onnx" else d: v for d, v in model.opset_imports.items()}
        self.answers: Answers = {} if answers is None else answers
        self._known = Known()

    def graph(self, graph: ir.Graph) -> None:
        """Infer a whole graph, the graphs inside it included."""
        self.enter(graph)
        for node in graph:
            self.node(node)

    def enter(self, graph: ir.Graph) -> None:
        """Type what a graph starts with: its weights, and its inputs if it is the model's own graph."""
        if self.depth == 0:
            for value in graph.inputs:
                if not value.is_initializer():
                    value.shape = _plausible(value.shape)
        for value in graph.initializers.values():
            if not _is_open(value):
                _type_as(value, value.const_value)

    def inside(self, graph: ir.Graph, inputs: Sequence[Kind]) -> list[Kind]:
        """The kinds of a body's outputs, given those of its inputs."""
        for value, kind in zip(graph.inputs, inputs, strict=False):
            _set(value, kind)
        for value in graph.outputs:
            value.meta.setdefault(DECLARED, value.shape)
        self.depth += 1
        try:
            self.graph(graph)
        finally:
            self.depth -= 1
        return [kind_of(value) for value in graph.outputs]

    def numbers(self, value: ir.Value) -> Items | None:
        """The elements of a small integer value that follow from shapes and constants."""
        return self._known.numbers(value)

    def decided(self, condition: ir.Value | None) -> bool | None:
        """The one value that a condition can have, or None."""
        numbers = None if condition is None else self._known.numbers(condition)
        return bool(numbers.flat[0]) if numbers is not None and numbers.size == 1 else None

    def node(self, node: ir.Node) -> None:
        """Set the types of the outputs of `node`, whose inputs have been inferred."""
        version = node.version = node.version or self._opsets.get(node.domain)
        schema = None if version is None else _schema(node.domain, node.op_type, version)
        is_open = any(attribute.is_ref() for attribute in node.attributes.values())  # only calls of its function tell
        if schema is None or version is None or is_open:
            for value, kind in zip(node.outputs, added_kinds(node), strict=False):
                self._known.forget(value)
                if kind.type is not None and (value.type is None or value.shape is None):
                    _set(value, kind)
            return
        is_standard = node.domain == ""
        if is_standard and node.op_type == "Constant":
            constant = node.outputs[0]
            constant.const_value = tensor_of(node)
            _type_as(constant, constant.const_value)
            return
        if is_standard and node.op_type in BODIES:
            kinds = BODIES[node.op_type](self, node)
        else:
            kinds = [_decoded(answer) for answer in self._ask(node, schema, version)]
            if is_standard:
                if node.op_type in CORRECTIONS and not (_is_static(node) and all(k.dims is not None for k in kinds)):
                    kinds = CORRECTIONS[node.op_type](node, kinds)
                self._refine(node, kinds)
        for value, kind in zip(node.outputs, kinds, strict=False):
            _set(value, kind)
        infer_types(node)
        self._known.node(node)

    def _ask(self, node: ir.Node, schema: onnx.defs.OpSchema, version: int) -> list[bytes]:
        if not schema.has_type_and_shape_inference_function:
            return [b""] * len(node.outputs)
        question = _Question(
            node.domain,
            node.op_type,
            schema.since_version,
            tuple([value is not None for value in node.inputs]),
            len(node.outputs),
            tuple([_hashable(attribute) for attribute in node.attributes.values()]),
            tuple([_key(kind_of(value)) for value in node.inputs]),
            tuple([b"" if value is None else self._data(value) for value in node.inputs]),
        )
        answer = self.answers.get(question)
        if answer is None:
            answer = self.answers[question] = self._answer(node, schema, question, version)
        return answer

    def _answer(self, node: ir.Node, schema: onnx.defs.OpSchema, question: _Question, version: int) -> list[bytes]:
        known = schema.attributes  # with others, which Onward adds to some nodes, the schema would refuse to answer
        proto = onnx.NodeProto(
            op_type=node.op_type,
            domain=node.domain,
            input=[f"i{i}" if present else "" for i, present in enumerate(question.inputs)],
            output=[f"o{i}" for i in range(question.outputs)],
            attribute=[ir.serde.serialize_attribute(a) for name, a in node.attributes.items() if name in known],
        )
        types = {f"i{i}": encoded for i, v in enumerate(node.inputs) if (encoded := _encoded(kind_of(v)))}
        data = {f"i{i}": d for i, d in enumerate(question.data) if d}
        opsets = {**self._opsets, node.domain: version}
        try:
            found = schema._infer_node_outputs(proto.SerializeToString(), types, data, {}, opsets, onnx.IR_VERSION)
        except Exception:  # the schemas' own code refuses in many ways, none of which concerns other nodes
            found = {}
        return [found.get(f"o{i}", b"") for i in range(question.outputs)]

    def _data(self, value: ir.Value) -> bytes:
        """A constant, or what is known to be computed from shapes alone, as a serialised tensor."""
        if value.dtype not in _NUMBERS:
            return b""
        tensor = ir.convenience.get_const_tensor(value)
        if tensor is not None:
            shape = tensor.shape.numpy()
            fits = math.prod(shape) <= (FLOATS_LIMIT if tensor.dtype in _FLOATS else DATA_LIMIT)
            return _tensor(tensor.dtype, tuple(shape), tensor.tobytes()) if fits else b""
        numbers = self._known.numbers(value)
        if numbers is None or value.dtype is None:
            return b""
        return _tensor(value.dtype, numbers.shape, numbers.astype(value.dtype.numpy()).tobytes())

    def _refine(self, node: ir.Node, kinds: list[Kind]) -> None:
        """Add the dimensions that follow from numbers of which only some are known, and ranks from weights."""
        if node.op_type in _WINDOWS and len(kinds[0].dims or ()) < 3:  # ONNX stops halfway in some of them
            kinds[0] = _window(node, kinds[0])
            return
        shape = self._known.shape(node)
        if shape is None or not kinds or kinds[0].type is None:
            return
        inferred = kinds[0].dims if kinds[0].dims is not None else (None,) * len(shape)
        if len(inferred) == len(shape):
            better = tuple(_better(a, b) for a, b in zip(shape, inferred, strict=True))
            kinds[0] = Kind(kinds[0].type, better)


def _window(node: ir.Node, kind: Kind) -> Kind:
    """The rank of a convolution or a pooling, from any of its tensors or its kernel; its tensors are of it as well."""
    tensors = [value for value in node.inputs[: _WINDOWS[node.op_type]] if value is not None]
    kernel = node.attributes.get("kernel_shape")
    ranks = [len(value.shape) for value in tensors if value.shape is not None]
    ranks += [] if kernel is None else [2 + len(kernel.as_ints())]
    if not ranks:
        return kind
    for value in tensors:
        producer = value.producer()
        if value.shape is None and producer is not None and producer.graph is node.graph:
            value.shape = ir.Shape([None] * ranks[0])
    filters = tensors[1].shape if node.op_type == "Conv" else None
    channels = filters[0] if filters is not None and isinstance(filters[0], int) else None
    return Kind(kind.type or tensors[0].type, (None, channels, *[None] * (ranks[0] - 2)))


def _is_static(node: ir.Node) -> bool:
    return all(v is None or (v.shape is not None and v.shape.is_static()) for v in node.inputs)


def _better(a: Dim, b: Dim) -> Dim:
    """A number says more than a name, and a name more than nothing."""
    return a if isinstance(a, int) or (isinstance(a, str) and not isinstance(b, int)) else b


def _set(value: ir.Value, kind: Kind) -> None:
    """The shape follows from inference alone; a declared element type is kept where inference gives none."""
    if kind.type is not None:
        value.type = kind.type
    value.shape = None if kind.dims is None else ir.Shape(kind.dims)


def _type_as(value: ir.Value, tensor: ir.TensorProtocol | None) -> None:
    if tensor is not None:
        value.type = ir.TensorType(tensor.dtype)
        value.shape = tensor.shape  # type: ignore[assignment]


def _is_open(value: ir.Value) -> bool:
    """Whether this is an input that may be given in other sizes than its default has."""
    return value.is_graph_input() and value.shape is not None and not value.shape.is_static()


def _plausible(shape: ir.Shape | None) -> ir.Shape | None:
    """A declared shape without the zeros by which some exporters mean that they do not know."""
    if shape is None or 0 not in shape.dims:
        return shape
    return ir.Shape([None if dim == 0 else dim for dim in shape])


@cache
def _encoded(kind: Kind) -> bytes:
    """A serialised `TypeProto`, empty where nothing is known."""
    proto = onnx.TypeProto()
    if kind.type is not None:
        write_type(proto, kind.type, None if kind.dims is None else ir.Shape(kind.dims))
    return bytes(proto.SerializeToString())


@cache
def _decoded(answer: bytes) -> Kind:
    proto = onnx.TypeProto.FromString(answer)
    if not answer or (proto.HasField("tensor_type") and not proto.tensor_type.elem_type):
        return UNKNOWN
    type_, shape = read_type(proto, "an inferred type")
    dims = None if shape is None else tuple(d if isinstance(d, int) else d.value for d in shape)
    return Kind(type_, dims)


@cached_by_schema
def _schema(domain: str, op_type: str, version: int) -> onnx.defs.OpSchema | None:
    try:
        return onnx.defs.get_schema(op_type, version, domain)
    except onnx.defs.SchemaError:
        return None


def _key(kind: Kind) -> tuple[Any, ...]:
    """A kind as part of a question: the hash of a type takes long, that of an element type does not."""
    is_plain = type(kind.type) is ir.TensorType
    return (kind.type.dtype if is_plain else kind.type), kind.dims  # type: ignore[union-attr]


def _hashable(attribute: ir.Attr) -> tuple[str, Any]:
    kind, value = attribute.type, attribute.value
    if kind in _LISTS:
        value = tuple(value)
    elif kind == ir.AttributeType.TENSOR:
        is_small = value.size <= DATA_LIMIT and value.dtype != ir.DataType.STRING
        value = (value.dtype, tuple(value.shape.numpy()), value.tobytes() if is_small else id(value))
    elif kind not in _SIMPLE:
        value = id(value)
    return attribute.name, value


def _tensor(dtype: ir.DataType, shape: tuple[int, ...], data: bytes) -> bytes:
    return bytes(onnx.TensorProto(data_type=dtype.value, dims=shape, raw_data=data).SerializeToString())
