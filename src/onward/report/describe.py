"""What a model contains, as plain data: what `onward inspect --json` prints. Nothing of the model is executed."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import onnx_ir as ir

from onward.backends.coverage import coverage, covered, split
from onward.formats.dataframe.schema import PREFIX, ColumnSchema, schema_of
from onward.graph.names import EXTENSIONS
from onward.graph.walk import all_nodes
from onward.hub.tensors import SparseTensor
from onward.model import Model
from onward.plugins.find import serving


def describe(model: Model) -> dict[str, Any]:
    """Everything about the model but its weights one by one; the keys are documented in docs/reference/inspect.md."""
    known = about(model) | {"ops": _ops(model), "backends": {name: _verdict(model, name) for name in covered()}}
    order = ("ops", "functions", "plugins", "training", "data_processing", "backends")
    return {key: value for key, value in known.items() if key not in order} | {key: known[key] for key in order}


def about(model: Model) -> dict[str, Any]:
    """The same without what backends support, which takes long to find out."""
    graph = model.ir.graph
    tensors = list(_tensors(model.ir))
    inputs = [value for value in graph.inputs if not value.is_initializer()]
    return {
        "file": str(model.path) if model.path else None,
        "graph": graph.name or "",
        "doc": model.ir.doc_string or graph.doc_string or "",
        "ir_version": model.ir_version or model.ir.ir_version,
        "opsets": {domain or "ai.onnx": version for domain, version in model.opset.items()},
        "producer": {"name": model.ir.producer_name or "", "version": model.ir.producer_version or ""},
        "domain": model.ir.domain or "",
        "model_version": model.ir.model_version or 0,
        "metadata": dict(model.ir.metadata_props),
        "size": {
            "file": model.path.stat().st_size if model.path else None,
            "external": sum(path.stat().st_size for path in model.data_files),
            "weights": sum(nbytes(tensor) for _, tensor in tensors),
        },
        "data_files": [path.name for path in model.data_files],
        "parameters": parameters_of(model),
        "inputs": [value_info(value) for value in inputs],
        "outputs": [value_info(value) for value in graph.outputs],
        "functions": [
            {"name": name, "domain": domain, "overload": overload, "nodes": sum(1 for _ in all_nodes(function.graph))}
            for (domain, name, overload), function in model.ir.functions.items()
        ],
        "plugins": [str(plugin) for plugin in serving({f"{n.domain}::{n.op_type}" for n in all_nodes(graph)})],
        "training": len(model.training_info),
        "data_processing": describe_columns(model),
    }


def describe_columns(model: Model) -> dict[str, Any] | None:
    """Of a model with data processing: its columns, how many nodes it takes, and where the model behind it begins."""
    schema = schema_of(model.ir)
    if schema is None:
        return None
    nodes = list(all_nodes(model.ir.graph))
    inner = sum((node.name or "").startswith(PREFIX) for node in nodes)
    return {
        "library": schema.library,
        "nodes": inner,
        "model_nodes": len(nodes) - inner,
        "inputs": [_column(column) for column in schema.inputs],
        "outputs": [_column(column) for column in schema.outputs],
        "boundary": dict(schema.boundary),
        "needs": ["onnxruntime-extensions"] if EXTENSIONS in model.ir.opset_imports else [],
    }


def _column(column: ColumnSchema) -> dict[str, Any]:
    type = column.type
    tells = "NaT" if type.is_time else "NaN" if type.nan_is_null else column.null
    categories = None if type.categories is None else list(type.categories)
    return {"name": column.name, "type": str(type), "tensor": column.tensor, "null": tells, "categories": categories}


def describe_weights(about: str, weights: list[dict[str, Any]]) -> dict[str, Any]:
    """As `describe`, of a model of which only the weights are known, with these."""
    return {
        "file": None,
        "graph": "",
        "doc": about,
        "ir_version": None,
        "opsets": {},
        "producer": {"name": "", "version": ""},
        "domain": "",
        "model_version": 0,
        "metadata": {},
        "size": {"file": None, "external": 0, "weights": sum(weight["bytes"] for weight in weights)},
        "data_files": [],
        "parameters": sum(math.prod(weight["shape"]) for weight in weights),
        "inputs": [],
        "outputs": [],
        "ops": [],
        "functions": [],
        "plugins": [],
        "training": 0,
        "data_processing": None,
        "backends": {},
    }


def parameters_of(model: Model) -> int:
    """How many numbers the model holds."""
    return sum(_count(tensor) for _, tensor in _tensors(model.ir))


def weights_of(model: Model) -> list[dict[str, Any]]:
    """The initializers of the graph and of those inside it, and the tensors of Constant nodes."""
    return [
        {"name": name, "dtype": dtype_name(tensor.dtype), "shape": list(tensor.shape.numpy()), "bytes": nbytes(tensor)}
        for name, tensor in _tensors(model.ir)
    ]


def value_info(value: ir.Value) -> dict[str, Any]:
    """The shape is that of the tensor, or of the tensors inside a sequence or optional; None: nothing is known."""
    shape = None if value.shape is None else [d if isinstance(d, int) else d.value for d in value.shape]
    dtype = value.dtype
    known = dtype is not None and dtype != ir.DataType.UNDEFINED
    return {
        "name": value.name or "",
        "type": type_name(value.type),
        "dtype": dtype_name(dtype) if known and dtype is not None else None,
        "shape": shape,
    }


def type_name(type_: Any) -> str:
    """ONNX's own spelling, such as `sequence(tensor(float))`."""
    match type_:
        case None:
            return "unknown"
        case ir.TensorType():
            return f"tensor({dtype_name(type_.dtype)})"
        case ir.SparseTensorType():
            return f"sparse_tensor({dtype_name(type_.dtype)})"
        case ir.SequenceType():
            return f"sequence({type_name(type_.elem_type)})"
        case ir.OptionalType():
            return f"optional({type_name(type_.elem_type)})"
    return repr(type_)


def dtype_name(dtype: ir.DataType) -> str:
    return dtype.name.lower()


def nbytes(tensor: ir.TensorProtocol) -> int:
    if isinstance(tensor, SparseTensor):
        return sum(part.ByteSize() for part in (tensor.proto.values, tensor.proto.indices))
    if isinstance(tensor, ir.StringTensor):
        return sum(len(text) for text in tensor.string_data())
    return int(tensor.nbytes)


def _count(tensor: ir.TensorProtocol) -> int:
    return int(tensor.proto.values.dims[0] if isinstance(tensor, SparseTensor) else tensor.size)


def _tensors(model: ir.Model) -> Iterator[tuple[str, ir.TensorProtocol]]:
    graphs = list(model.graphs())
    for function in model.functions.values():
        graphs += [function.graph, *function.subgraphs()]
    for graph in graphs:
        for value in graph.initializers.values():
            if value.const_value is not None:
                yield value.name or "", value.const_value
        for node in graph:
            for attribute in node.attributes.values() if node.op_type == "Constant" else ():
                if isinstance(attribute.value, ir.TensorProtocol):
                    yield node.outputs[0].name or "", attribute.value


def _ops(model: Model) -> list[dict[str, Any]]:
    support = {name: {found.op: found for found in coverage(model, name)} for name in covered()}
    first = next(iter(support.values()))
    rows = []
    for op, found in first.items():
        domain, name = split(op)
        by_backend = {
            backend: {"status": statuses[op].status, "why": statuses[op].why} for backend, statuses in support.items()
        }
        rows.append({"op": name, "domain": domain or "ai.onnx", "count": found.count, "support": by_backend})
    return rows


def _verdict(model: Model, backend: str) -> dict[str, Any]:
    missing = [found.op for found in coverage(model, backend) if found.status == "unsupported"]
    return {"supported": not missing, "unsupported": missing}
