"""From protobuf to onnx-ir, checking each message as it is read.

A file is untrusted: every way it can be malformed ends here in one `InvalidModelError` that names the
place. What onnx-ir has no room for is kept in the `meta` of its graph or value, where `write` finds it.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Iterable, Sequence
from typing import Any

import onnx
import onnx_ir as ir

from onward.errors import InvalidModelError
from onward.hub.large_tensors import SMALLEST, hold, location_of
from onward.hub.oddities import odd
from onward.hub.tensors import embed, read_sparse, read_tensor, tensors_in
from onward.hub.types import read_type
from onward.hub.weights import Weights
from onward.hub.wording import all_text, known, metadata, node_label, quote, remark, string_map, text
from onward.hub.write import ANNOTATED, DESCRIBED, OUTPUT_INFOS, SPARE_ANNOTATIONS, SPARE_INFOS, write_value

Scope = dict[str, ir.Value]
Kind = ir.AttributeType

_FIELD_KINDS = {
    "f": Kind.FLOAT,
    "i": Kind.INT,
    "s": Kind.STRING,
    "t": Kind.TENSOR,
    "g": Kind.GRAPH,
    "sparse_tensor": Kind.SPARSE_TENSOR,
    "tp": Kind.TYPE_PROTO,
    "floats": Kind.FLOATS,
    "ints": Kind.INTS,
    "strings": Kind.STRINGS,
    "tensors": Kind.TENSORS,
    "graphs": Kind.GRAPHS,
    "sparse_tensors": Kind.SPARSE_TENSORS,
    "type_protos": Kind.TYPE_PROTOS,
}
_KIND_FIELDS = {kind: field for field, kind in _FIELD_KINDS.items()}
_MESSAGES = {Kind.TENSOR, Kind.GRAPH, Kind.SPARSE_TENSOR, Kind.TYPE_PROTO}


class Reader:
    """Reads one model. `in_order` tells whether every value was produced before it was used."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.in_order = True
        self._pending: set[ir.Value] = set()
        self._configurations: dict[str, ir.ModelConfiguration] = {}
        self._parameters: set[str] = set()

    def model(self, proto: onnx.ModelProto) -> ir.Model:
        if not proto.HasField("graph"):
            raise InvalidModelError("the model has no graph")
        known(proto, "the model")
        if proto.ir_version > onnx.IR_VERSION:
            newest = f"onnx {onnx.__version__} knows up to {onnx.IR_VERSION}"
            raise InvalidModelError(f"the model has IR version {proto.ir_version}, and {newest}: upgrade onnx")
        for config in proto.configuration:
            all_text(config, "the model's configuration")
            if config.name in self._configurations:
                raise InvalidModelError(f"the device configuration {quote(config.name)} is given twice")
            self._configurations[config.name] = ir.serde.deserialize_model_configuration(config)
        opsets = _opsets(proto.opset_import, "the model")
        values: Scope = {}
        graph = self.graph(proto.graph, values, (), "the graph")
        graph.opset_imports.update(opsets)
        functions: dict[ir.OperatorIdentifier, ir.Function] = {}
        for function_proto in proto.functions:
            function = self._function(function_proto)
            if functions.setdefault(function.identifier(), function) is not function:
                raise InvalidModelError(f"the model-local function {quote(function.name)} is defined twice")
        return ir.Model(
            graph,
            ir_version=proto.ir_version,
            producer_name=remark(proto.producer_name, "producer_name"),
            producer_version=remark(proto.producer_version, "producer_version"),
            domain=remark(proto.domain, "the model's domain"),
            model_version=proto.model_version or None,
            doc_string=remark(proto.doc_string, "the model's doc_string"),
            functions=list(functions.values()),
            metadata_props=metadata(proto.metadata_props, "the model's metadata"),
            device_configurations=tuple(self._configurations.values()),
        )

    def training(self, proto: onnx.TrainingInfoProto, graph: ir.Graph) -> list[ir.Graph]:
        """Check training information, which stays in protobuf; large weights are held beside it, others moved into it.

        Its graphs see all values of the model's graph. Returned as onnx-ir reads them.
        """
        known(proto, "training info")
        scope = {value.name: value for node in graph for value in node.outputs if value.name}
        scope |= {value.name: value for value in [*graph.inputs, *graph.initializers.values()] if value.name}
        for bindings in (proto.initialization_binding, proto.update_binding):
            string_map(bindings, "training info: a binding")
        graphs = []
        for name in ("initialization", "algorithm"):
            part = getattr(proto, name)
            where = f"training info: {name}"
            for tensor in part.initializer:
                if tensor.data_location == onnx.TensorProto.EXTERNAL:
                    data = read_tensor(tensor, self.weights, where)
                    if data.nbytes >= SMALLEST:
                        hold(tensor, data, self.weights.held)
            for tensor in tensors_in(part):
                if location_of(tensor) is None:
                    embed(tensor, self.weights, where)
            graphs.append(self.graph(part, {}, (scope,), where))
        return graphs

    def graph(self, proto: onnx.GraphProto, values: Scope, outer: Sequence[Scope], where: str) -> ir.Graph:
        """Fills `values` with the graph's own; `outer` are the scopes around it, innermost last."""
        known(proto, where)
        inputs = []
        for info in proto.input:
            value = ir.Value(name=_fresh(info.name, values, f"{where}: input"))
            _describe(value, info, f"input {quote(value.name)}")
            values[info.name] = value
            inputs.append(value)
        initializers = self._initializers(proto, values, where)
        declared = set(values)
        self._declare(proto.node, values)
        infos, described = _infos(proto.value_info, where), set()
        for name in (infos.keys() & values.keys()) - {info.name for info in (*proto.input, *proto.output)}:
            if name in declared:
                described.add(values[name])
            _hint(values[name], infos.pop(name), f"value {quote(name)}")
        annotated, annotations = self._annotations(proto, values, where)
        nodes = [self._node(node, values, outer) for node in proto.node]
        outputs, output_infos = [], {}
        for position, info in enumerate(proto.output):
            name = text(info.name, f"{where}: output")
            if name not in values:
                nodes.append(_identity(name, values, outer, where))
                value = nodes[-1].outputs[0]
            else:
                value = values[name]
            if name in declared:
                if write_value(onnx.ValueInfoProto(), value) != info:
                    output_infos[position] = info
            else:
                _describe(value, info, f"output {quote(name)}")
                declared.add(name)
            outputs.append(value)
        graph = ir.Graph(
            inputs,
            outputs,
            nodes=nodes,
            initializers=initializers,
            doc_string=remark(proto.doc_string, f"{where}: doc_string"),
            name=remark(proto.name, f"{where}: name"),
            metadata_props=metadata(proto.metadata_props, f"{where}: metadata"),
        )
        graph.meta.update({DESCRIBED: described, SPARE_INFOS: infos, OUTPUT_INFOS: output_infos})
        graph.meta.update({ANNOTATED: annotated, SPARE_ANNOTATIONS: annotations})
        return graph

    def _initializers(self, proto: onnx.GraphProto, values: Scope, where: str) -> list[ir.Value]:
        result: Scope = {}
        inputs = dict(values)
        tensors: list[ir.TensorProtocol] = [
            *(read_tensor(tensor, self.weights, f"{where}: initializer") for tensor in proto.initializer),
            *(read_sparse(t, self.weights, f"{where}: sparse initializer") for t in proto.sparse_initializer),
        ]
        for tensor in tensors:
            name = tensor.name or ""
            if not name:
                odd(f"{where}: an initializer without a name, which nothing can read, is left out")
                continue
            if name in result:
                odd(f"{where}: the initializer {quote(name)} is given twice, of which the last is kept")
            value = inputs.get(name)
            if value is None:
                value = ir.Value(name=name, type=ir.TensorType(tensor.dtype), shape=tensor.shape)  # type: ignore[arg-type]
            value.const_value = tensor
            result[name] = values[name] = value
        return list(result.values())

    def _declare(self, nodes: Iterable[onnx.NodeProto], values: Scope) -> None:
        """Every node's outputs, before any node is read: a node may use what a later one produces."""
        for node in nodes:
            for name in node.output:
                if name:
                    value = ir.Value(name=_fresh(name, values, f"{node_label(node)}: output"))
                    values[name] = value
                    self._pending.add(value)

    def _annotations(
        self, proto: onnx.GraphProto, values: Scope, where: str
    ) -> tuple[dict[ir.Value, dict[str, str]], list[onnx.TensorAnnotation]]:
        """The quantization annotations of the graph's own values, and those of other names."""
        annotated: dict[ir.Value, dict[str, str]] = {}
        spare = []
        for annotation in proto.quantization_annotation:
            all_text(annotation, f"{where}: quantization annotation")
            names = string_map(annotation.quant_parameter_tensor_names, f"{where}: quantization annotation")
            value = values.get(annotation.tensor_name)
            if value is None or names is None or annotated.setdefault(value, names) != names:
                spare.append(annotation)
        return annotated, spare

    def _node(self, proto: onnx.NodeProto, values: Scope, outer: Sequence[Scope]) -> ir.Node:
        where = node_label(proto)
        known(proto, where)
        inputs = [self._lookup(name, values, outer, where) for name in proto.input]
        attributes: dict[str, ir.Attr] = {}
        for attribute in proto.attribute:
            read = self._attribute(attribute, values, outer, where)
            if attributes.setdefault(read.name, read) is not read:
                raise InvalidModelError(f"{where}: attribute {quote(read.name)} is given twice")
        if not text(proto.op_type, where):
            raise InvalidModelError(f"{where}: it has no operator")
        outputs = [values[name] if name else ir.Value(name="") for name in proto.output]
        self._pending.difference_update(outputs)
        return ir.Node(
            text(proto.domain, where),
            proto.op_type,
            inputs,
            attributes,
            overload=text(proto.overload, where),
            outputs=outputs,
            name=text(proto.name, where),
            doc_string=remark(proto.doc_string, where),
            metadata_props=metadata(proto.metadata_props, where),
            device_configurations=self._devices(proto, values, outer, where),
        )

    def _lookup(self, name: Any, values: Scope, outer: Sequence[Scope], where: str) -> ir.Value | None:
        if not name:
            return None
        value = _find(name, values, outer)
        if value is None:
            raise InvalidModelError(f"{where}: it reads {quote(text(name, where))}, which nothing produces")
        if value in self._pending:
            self.in_order = False
        return value

    def _devices(
        self, proto: onnx.NodeProto, values: Scope, outer: Sequence[Scope], where: str
    ) -> tuple[ir.NodeDeviceConfiguration, ...]:
        result = []
        for device in proto.device_configurations:
            all_text(device, where)
            scope = collections.ChainMap(values, *reversed(outer))
            if not device.configuration_id or not all(spec.tensor_name in scope for spec in device.sharding_spec):
                raise InvalidModelError(f"{where}: a device configuration has no name, or names an unknown tensor")
            read = ir.serde.deserialize_node_device_configuration(device, values=scope)
            named = self._configurations.get(device.configuration_id, read.configuration)
            result.append(dataclasses.replace(read, configuration=named))
        return tuple(result)

    def _attribute(self, proto: onnx.AttributeProto, values: Scope, outer: Sequence[Scope], where: str) -> ir.Attr:
        name = text(proto.name, where)
        where = f"{where}: attribute {quote(name)}"
        known(proto, where)
        doc = remark(proto.doc_string, where)
        present = [field.name for field, _ in proto.ListFields() if field.name in _FIELD_KINDS]
        try:
            kind = Kind(proto.type)
        except ValueError:
            raise InvalidModelError(f"{where}: type {proto.type} is not known") from None
        if proto.ref_attr_name:
            reference = text(proto.ref_attr_name, where)
            if present or reference not in self._parameters:
                raise InvalidModelError(f"{where}: it refers to {quote(reference)}, which no function has")
            return ir.RefAttr(name, reference, kind, doc_string=doc)
        if kind is Kind.UNDEFINED and present:  # the first version of the format had no types
            kind = _FIELD_KINDS[present[0]]
        if not name or kind is Kind.UNDEFINED or (kind in _MESSAGES and not present):
            raise InvalidModelError(f"{where}: it has no {'value' if name else 'name'}")
        if present not in ([], [_KIND_FIELDS[kind]]):
            raise InvalidModelError(f"{where}: its type is {kind}, its value is in {' and '.join(present)}")
        return ir.Attr(name, kind, self._attribute_value(kind, proto, values, outer, where), doc_string=doc)

    def _attribute_value(
        self, kind: Kind, proto: onnx.AttributeProto, values: Scope, outer: Sequence[Scope], where: str
    ) -> Any:
        content = getattr(proto, _KIND_FIELDS[kind])
        match kind:
            case Kind.STRING:
                return _decoded(content)
            case Kind.STRINGS:
                return [_decoded(item) for item in content]
            case Kind.TENSOR:
                return read_tensor(content, self.weights, where)
            case Kind.TENSORS:
                return [read_tensor(tensor, self.weights, where) for tensor in content]
            case Kind.SPARSE_TENSOR:
                return read_sparse(content, self.weights, where)
            case Kind.SPARSE_TENSORS:
                return [read_sparse(tensor, self.weights, where) for tensor in content]
            case Kind.GRAPH:
                return self.graph(content, {}, (*outer, values), where)
            case Kind.GRAPHS:
                return [self.graph(graph, {}, (*outer, values), where) for graph in content]
            case Kind.TYPE_PROTO:
                return ir.TypeAndShape(*read_type(content, where))
            case Kind.TYPE_PROTOS:
                return [ir.TypeAndShape(*read_type(type_, where)) for type_ in content]
        return content

    def _function(self, proto: onnx.FunctionProto) -> ir.Function:
        name = text(proto.name, "a model-local function")
        where = f"function {quote(name)}"
        known(proto, where)
        values: Scope = {}
        inputs = []
        for input_name in proto.input:
            inputs.append(ir.Value(name=_fresh(input_name, values, f"{where}: input")))
            values[input_name] = inputs[-1]
        attributes: dict[str, ir.Attr] = {}
        for default in proto.attribute_proto:
            attributes[_fresh(default.name, attributes, where)] = self._attribute(default, {}, (), where)
        for attribute in proto.attribute:
            attributes[_fresh(attribute, attributes, where)] = ir.Attr(attribute, Kind.UNDEFINED, None)
        self._declare(proto.node, values)
        infos = _infos(proto.value_info, where)
        for value_name in infos.keys() & values.keys():
            _hint(values[value_name], infos.pop(value_name), f"{where}: value {quote(value_name)}")
        self._parameters = set(attributes)
        nodes = [self._node(node, values, ()) for node in proto.node]
        self._parameters = set()
        for output in proto.output:
            if output not in values:
                raise InvalidModelError(f"{where}: no node produces its output {quote(text(output, where))}")
        graph = ir.Graph(
            inputs,
            [values[output] for output in proto.output],
            nodes=nodes,
            doc_string=remark(proto.doc_string, where),
            opset_imports=_opsets(proto.opset_import, where),
            name=name,
            metadata_props=metadata(proto.metadata_props, where),
        )
        graph.meta[SPARE_INFOS] = infos
        domain, overload = text(proto.domain, where), text(proto.overload, where)
        return ir.Function(domain, name, overload, graph=graph, attributes=list(attributes.values()))


def _opsets(protos: Iterable[onnx.OperatorSetIdProto], where: str) -> dict[str, int]:
    """Domain to version, under '' for ai.onnx."""
    result: dict[str, int] = {}
    for proto in protos:
        domain = text(proto.domain, f"{where}: opset import")
        domain = "" if domain == "ai.onnx" else domain
        label = f"opset {proto.version} of {domain or 'ai.onnx'}"
        if result.get(domain, proto.version) != proto.version:
            odd(f"{where} imports opset {result[domain]} and then {label}, which is the one that counts")
        newest = NEWEST_OPSETS.get(domain)
        if newest and (proto.version > newest or (not domain and proto.version < 1)):
            raise InvalidModelError(f"{where} imports {label}; onnx {onnx.__version__} knows 1 to {newest}")
        result[domain] = proto.version
    if not result:
        raise InvalidModelError(f"{where} imports no opset, so that its operators have no meaning")
    return result


def _newest_opsets() -> dict[str, int]:
    newest = {"": onnx.defs.onnx_opset_version()}
    for (domain, version), _ in onnx.helper.OP_SET_ID_VERSION_MAP.items():
        if domain != "ai.onnx":
            newest[domain] = max(version, newest.get(domain, 0))
    return newest


NEWEST_OPSETS = _newest_opsets()


def _infos(protos: Iterable[onnx.ValueInfoProto], where: str) -> dict[str, onnx.ValueInfoProto]:
    """What a file says of values in between: hints, since all of it can be inferred."""
    infos: dict[str, onnx.ValueInfoProto] = {}
    unclear: set[str] = set()
    for proto in protos:
        name = text(proto.name, f"{where}: value info")
        if infos.setdefault(name, proto) != proto:
            unclear.add(name)
    for name in sorted(unclear):
        odd(f"{where}: value {quote(name)} is described twice, differently, and is inferred instead")
        del infos[name]
    return infos


def _hint(value: ir.Value, info: onnx.ValueInfoProto, where: str) -> None:
    """What a file says of a value in between; it is left out where it makes no sense."""
    before = value.type, value.shape
    try:
        _describe(value, info, where)
    except InvalidModelError as error:
        odd(f"{error}, and is inferred instead")
        value.type, value.shape = before


def _describe(value: ir.Value, info: onnx.ValueInfoProto, where: str) -> None:
    known(info, where)
    value.type, value.shape = read_type(info.type, where)
    value.doc_string = remark(info.doc_string, where)
    value.metadata_props.update(metadata(info.metadata_props, where) or {})


def _identity(name: str, values: Scope, outer: Sequence[Scope], where: str) -> ir.Node:
    """The node that hands a value from around a graph to its output, which in onnx-ir must be its own."""
    source = _find(name, {}, outer)
    if source is None:
        raise InvalidModelError(f"{where}: no node produces its output {quote(name)}")
    own = f"{name}_output"
    while own in values:
        own += "_"
    values[own] = ir.Value(name=own)
    return ir.Node("", "Identity", [source], outputs=[values[own]], name="")


def _find(name: str, values: Scope, outer: Sequence[Scope]) -> ir.Value | None:
    if name in values:
        return values[name]
    return next((scope[name] for scope in reversed(outer) if name in scope), None)


def _fresh(name: Any, taken: Iterable[str], where: str) -> str:
    if not text(name, where):
        raise InvalidModelError(f"{where}: it has no name")
    if name in taken:
        raise InvalidModelError(f"{where}: the name {quote(name)} is already taken")
    return str(name)


def _decoded(data: bytes) -> str | bytes:
    """A string attribute. Custom operators keep arbitrary bytes in them: those stay bytes."""
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data
