"""From onnx-ir to protobuf, with what `read` kept because onnx-ir has no room for it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import onnx
import onnx_ir as ir

from onward.errors import ConversionError
from onward.hub.large_tensors import Held, held_by, held_in
from onward.hub.tensors import SparseTensor, Store, write_tensor
from onward.hub.types import write_type
from onward.hub.wording import quote, write_map

# What a graph keeps in its `meta` for the sake of being written as it was read:
DESCRIBED = "onward.described"
"""The initializers' values that have an info of their own: set of values."""
SPARE_INFOS = "onward.spare_infos"
"""Infos of inputs and outputs, which are described already, and of names the graph does not have: by name."""
OUTPUT_INFOS = "onward.output_infos"
"""Infos of outputs that are also inputs or initializers, described differently there: by position."""
ANNOTATED = "onward.annotated"
"""Value to its quantization annotation."""
SPARE_ANNOTATIONS = "onward.spare_annotations"
"""Quantization annotations of names that the graph does not own."""

Kind = ir.AttributeType
Type = ir.DataType

_TYPE_VERSIONS = {
    Type.BFLOAT16: 4,
    **dict.fromkeys((Type.FLOAT8E4M3FN, Type.FLOAT8E4M3FNUZ, Type.FLOAT8E5M2, Type.FLOAT8E5M2FNUZ), 9),
    **dict.fromkeys((Type.UINT4, Type.INT4), 10),
    Type.FLOAT4E2M1: 11,
    Type.FLOAT8E8M0: 12,
    **dict.fromkeys((Type.UINT2, Type.INT2), 13),
    **dict.fromkeys((Type.FLOAT6E2M3, Type.FLOAT6E3M2), 14),
}
"""The IR version that brought each element type younger than the format."""


class Writer:
    """Writes one model, and finds the lowest IR version that can say all of it.

    `store`, when given, may put the bytes of large tensors outside the protobuf message.
    """

    def __init__(self, store: Store | None = None) -> None:
        self._store = store
        self._version = 3

    def model(self, model: ir.Model, at_least: int = 0) -> onnx.ModelProto:
        """The whole model, with IR version `at_least` or the lowest possible above it."""
        proto = onnx.ModelProto()
        for field in ("producer_name", "producer_version", "domain", "model_version", "doc_string"):
            if value := getattr(model, field):
                setattr(proto, field, value)
        self._opsets(proto.opset_import, model.opset_imports)
        write_map(proto.metadata_props, model.metadata_props)
        for configuration in model.device_configurations:
            self._need(11)
            proto.configuration.append(ir.serde.serialize_model_configuration(configuration))
        self._graph(proto.graph, model.graph)
        for function in model.functions.values():
            self._function(proto.functions.add(), function)
        proto.ir_version = max(at_least, self._version)
        return proto

    def training(self, protos: Any, infos: Iterable[onnx.TrainingInfoProto], held: Held) -> None:
        """Training infos, with the tensors that they refer to."""
        protos.extend(infos)
        for proto in held_in(protos):
            tensor, name = held_by(proto, held), proto.name
            assert tensor is not None, "see held_in"
            proto.Clear()
            self._tensor(proto, tensor)
            proto.name = name

    def _need(self, ir_version: int) -> None:
        self._version = max(self._version, ir_version)

    def _opsets(self, protos: Any, opsets: dict[str, int]) -> None:
        for domain, version in opsets.items():
            protos.add(domain=domain, version=version)
        self._need(onnx.helper.find_min_ir_version_for(protos, ignore_unknown=True))

    def _metadata(self, protos: Any, metadata: dict[str, str]) -> None:
        if metadata:
            self._need(10)
            write_map(protos, metadata)

    def _graph(self, proto: onnx.GraphProto, graph: ir.Graph) -> None:
        proto.name = graph.name or ""
        if graph.doc_string:
            proto.doc_string = graph.doc_string
        self._metadata(proto.metadata_props, graph.metadata_props)
        for value in graph.inputs:
            self._value(proto.input.add(), value)
        for value in graph.initializers.values():
            self._initializer(proto, value, value in graph.meta.get(DESCRIBED, ()))
        for node in graph:
            self._node(proto.node.add(), node)
            self._value_infos(proto.value_info, (v for v in node.outputs if not v.is_graph_output()))
        output_infos = graph.meta.get(OUTPUT_INFOS, {})
        for position, value in enumerate(graph.outputs):
            kept = output_infos.get(position)
            if kept is not None and kept.name == value.name:
                proto.output.append(kept)
            else:
                self._value(proto.output.add(), value)
        self._kept(proto, graph)

    def _kept(self, proto: onnx.GraphProto, graph: ir.Graph) -> None:
        """Annotations, and the infos of names that no inner value of the graph took in the meantime."""
        infos = graph.meta.get(SPARE_INFOS)
        if infos:
            inner = set(graph.initializers) | {value.name for node in graph for value in node.outputs}
            inner -= {value.name for value in [*graph.inputs, *graph.outputs]}
            proto.value_info.extend(info for name, info in infos.items() if name not in inner)
        for value, names in graph.meta.get(ANNOTATED, {}).items():
            producer = value.producer()
            if value.graph is graph or (producer is not None and producer.graph is graph):
                annotation = proto.quantization_annotation.add(tensor_name=value.name)
                write_map(annotation.quant_parameter_tensor_names, names)
        proto.quantization_annotation.extend(graph.meta.get(SPARE_ANNOTATIONS, ()))
        if proto.quantization_annotation:
            self._need(5)

    def _initializer(self, proto: onnx.GraphProto, value: ir.Value, described: bool) -> None:
        tensor = value.const_value
        if tensor is None:
            raise ConversionError(f"initializer {quote(value.name)} has no value")
        if isinstance(tensor, SparseTensor):
            self._need(6)
            proto.sparse_initializer.append(tensor.proto)
            proto.sparse_initializer[-1].values.name = value.name
        else:
            self._tensor(proto.initializer.add(), tensor)
            proto.initializer[-1].name = value.name
        if not value.is_graph_input():
            self._need(4)
            if described or value.doc_string or value.metadata_props:
                self._value_infos(proto.value_info, [value])

    def _value_infos(self, protos: Any, values: Iterable[ir.Value]) -> None:
        for value in values:
            if value.name and (value.type or value.doc_string or value.metadata_props):
                self._value(protos.add(), value)

    def _value(self, proto: onnx.ValueInfoProto, value: ir.Value) -> None:
        write_value(proto, value)
        self._type_version(value.type)
        if value.metadata_props:
            self._need(10)

    def _type_version(self, type_: ir.TypeProtocol | None) -> None:
        if type_ is not None:
            self._need(_TYPE_VERSIONS.get(type_.dtype, 0))
            if isinstance(type_, ir.OptionalType | ir.SparseTensorType):
                self._need(8)

    def _node(self, proto: onnx.NodeProto, node: ir.Node) -> None:
        proto.op_type = node.op_type
        for field in ("domain", "name", "overload", "doc_string"):
            if value := getattr(node, field):
                setattr(proto, field, value)
        if node.overload:
            self._need(10)
        self._metadata(proto.metadata_props, node.metadata_props)
        proto.input.extend(value.name if value is not None else "" for value in node.inputs)
        proto.output.extend(value.name or "" for value in node.outputs)
        for attribute in node.attributes.values():
            self._attribute(proto.attribute.add(), attribute)
        for configuration in node.device_configurations:
            self._need(11)
            proto.device_configurations.append(ir.serde.serialize_node_device_configuration(configuration))

    def _tensor(self, proto: onnx.TensorProto, tensor: ir.TensorProtocol) -> None:
        self._need(_TYPE_VERSIONS.get(tensor.dtype, 0))
        if tensor.metadata_props:
            self._need(10)
        write_tensor(proto, tensor, self._store)

    def _attribute(self, proto: onnx.AttributeProto, attribute: ir.Attr) -> None:
        proto.name = attribute.name
        proto.type = attribute.type.value
        if attribute.doc_string:
            proto.doc_string = attribute.doc_string
        if attribute.is_ref():
            proto.ref_attr_name = attribute.ref_attr_name
            return
        value = attribute.value
        match attribute.type:
            case Kind.FLOAT:
                proto.f = value
            case Kind.INT:
                proto.i = value
            case Kind.STRING:
                proto.s = _encoded(value)
            case Kind.FLOATS:
                proto.floats.extend(value)
            case Kind.INTS:
                proto.ints.extend(value)
            case Kind.STRINGS:
                proto.strings.extend(map(_encoded, value))
            case Kind.TENSOR:
                self._tensor(proto.t, value)
            case Kind.TENSORS:
                for tensor in value:
                    self._tensor(proto.tensors.add(), tensor)
            case Kind.GRAPH:
                self._graph(proto.g, value)
            case Kind.GRAPHS:
                for graph in value:
                    self._graph(proto.graphs.add(), graph)
            case Kind.SPARSE_TENSOR:
                self._need(6)
                proto.sparse_tensor.CopyFrom(value.proto)
            case Kind.SPARSE_TENSORS:
                self._need(6)
                proto.sparse_tensors.extend(tensor.proto for tensor in value)
            case Kind.TYPE_PROTO:
                proto.tp.SetInParent()
                self._type_attribute(proto.tp, value)
            case Kind.TYPE_PROTOS:
                for item in value:
                    self._type_attribute(proto.type_protos.add(), item)
            case _:
                raise ConversionError(f"attribute {quote(attribute.name)} has no type")

    def _type_attribute(self, proto: onnx.TypeProto, value: ir.TypeAndShape) -> None:
        self._type_version(value.type)
        if value.type is not None:
            write_type(proto, value.type, value.shape)

    def _function(self, proto: onnx.FunctionProto, function: ir.Function) -> None:
        self._need(8)
        for field in ("domain", "name", "overload", "doc_string"):
            if value := getattr(function, field):
                setattr(proto, field, value)
        if function.overload:
            self._need(10)
        self._opsets(proto.opset_import, function.opset_imports)
        self._metadata(proto.metadata_props, function.metadata_props)
        proto.input.extend(value.name for value in function.inputs)
        proto.output.extend(value.name for value in function.outputs)
        for attribute in function.attributes.values():
            if attribute.type is Kind.UNDEFINED:
                proto.attribute.append(attribute.name)
            else:
                self._need(9)
                self._attribute(proto.attribute_proto.add(), attribute)
        self._value_infos(proto.value_info, function.inputs)
        for node in function:
            self._node(proto.node.add(), node)
            self._value_infos(proto.value_info, node.outputs)
        proto.value_info.extend(function.graph.meta.get(SPARE_INFOS, {}).values())
        if proto.value_info:
            self._need(10)


def function_bytes(function: ir.Function) -> bytes:
    """All that a file says of a function: equal bytes are equal functions."""
    proto = onnx.FunctionProto()
    Writer()._function(proto, function)
    return bytes(proto.SerializeToString(deterministic=True))


def copied(model: ir.Model) -> ir.Model:
    """A copy whose tensors are shared, with what is kept in the `meta` of its graphs, which onnx-ir's own forgets."""
    copy = model.clone()
    pairs = [(model.graph, copy.graph)]
    pairs += [(function.graph, copy.functions[key].graph) for key, function in model.functions.items()]
    while pairs:
        old, new = pairs.pop()
        annotated, described = old.meta.get(ANNOTATED), old.meta.get(DESCRIBED)
        if annotated or described:
            twin = dict(zip(_own(old), _own(new), strict=True))
            new.meta[ANNOTATED] = {twin[v]: dict(names) for v, names in (annotated or {}).items() if v in twin}
            new.meta[DESCRIBED] = {twin[value] for value in described or () if value in twin}
        for node, other in zip(old, new, strict=True):
            for name, attribute in node.attributes.items():
                if attribute.type is Kind.GRAPH and not attribute.is_ref():
                    pairs.append((attribute.as_graph(), other.attributes[name].as_graph()))
                elif attribute.type is Kind.GRAPHS and not attribute.is_ref():
                    pairs += zip(attribute.as_graphs(), other.attributes[name].as_graphs(), strict=True)
    return copy


def _own(graph: ir.Graph) -> list[ir.Value]:
    return [*graph.inputs, *graph.initializers.values(), *(value for node in graph for value in node.outputs)]


def write_value(proto: onnx.ValueInfoProto, value: ir.Value) -> onnx.ValueInfoProto:
    proto.name = value.name or ""
    if value.type is not None:
        write_type(proto.type, value.type, value.shape)
    if value.doc_string:
        proto.doc_string = value.doc_string
    write_map(proto.metadata_props, value.metadata_props)
    return proto


def _encoded(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else value
