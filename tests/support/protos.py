"""Models to test with, and what it means that two are the same."""

from __future__ import annotations

import pathlib
from typing import Any

import numpy as np
import onnx
import onnx.backend.test.loader
from onnx import TensorProto, helper, numpy_helper

FLOAT = TensorProto.FLOAT


def same(first: onnx.ModelProto, second: onnx.ModelProto, folder: pathlib.Path | str = "") -> None:
    """Assert equality up to order, IR version, and the field or file that holds a weight."""
    for proto in (first, second):
        proto.ClearField("ir_version")
    assert canonical(first, folder) == canonical(second, folder)


def canonical(message: Any, folder: pathlib.Path | str) -> Any:
    """A message as plain data, in which what does not matter is the same."""
    if isinstance(message, TensorProto):
        strings = message.data_type == TensorProto.STRING
        array = None if strings else numpy_helper.to_array(message, base_dir=str(folder))
        data = list(message.string_data) if array is None else array.tobytes()
        rest = canonical_fields(message, folder)
        fields = ("name", "doc_string", "data_type", "dims", "metadata_props")
        return {"data": data, **{field: rest.get(field) for field in fields}}
    if isinstance(message, onnx.OperatorSetIdProto):
        return ("" if message.domain == "ai.onnx" else message.domain, message.version)
    return canonical_fields(message, folder)


UNORDERED = {
    *(
        "initializer",
        "sparse_initializer",
        "value_info",
        "quantization_annotation",
        "attribute",
        "attribute_proto",
    ),
    *("metadata_props", "opset_import", "quant_parameter_tensor_names", "functions"),
}


def canonical_fields(message: Any, folder: pathlib.Path | str) -> dict[str, Any]:
    result = {}
    for field, value in message.ListFields():
        if field.message_type:
            value = [canonical(v, folder) for v in value] if field.is_repeated else canonical(value, folder)
        elif field.is_repeated:
            value = list(value)
        elif value == field.default_value and field.containing_oneof is None:
            continue
        if value == {} and field.name == "type":  # says as much as none
            continue
        if field.name in UNORDERED:
            value = sorted(value, key=repr)
        result[field.name] = value
    return result


def small(weight: Any = None, opset: int = 17, **options: Any) -> onnx.ModelProto:
    """x → MatMul(x, weight) → y."""
    weight = np.ones((64, 64), np.float32) if weight is None else weight
    graph = helper.make_graph(
        [helper.make_node("MatMul", ["x", "weight"], ["y"], name="matmul")],
        "small",
        [helper.make_tensor_value_info("x", FLOAT, ["N", weight.shape[0]])],
        [helper.make_tensor_value_info("y", FLOAT, ["N", weight.shape[1]])],
        [numpy_helper.from_array(weight, "weight")],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", opset)], **options)


def entry(key: str, value: str) -> onnx.StringStringEntryProto:
    return onnx.StringStringEntryProto(key=key, value=value)


def tensor(name: str, **fields: Any) -> TensorProto:
    return TensorProto(name=name, **{"dims": [2], "data_type": FLOAT, "float_data": [1, 2], **fields})


def map_type() -> onnx.TypeProto:
    return helper.make_map_type_proto(TensorProto.INT64, helper.make_tensor_type_proto(FLOAT, []))


def sparse(name: str) -> onnx.SparseTensorProto:
    values = tensor(name)
    indices = tensor("", data_type=TensorProto.INT64, dims=[2, 2], float_data=[], int64_data=[0, 1, 2, 0])
    return onnx.SparseTensorProto(values=values, indices=indices, dims=[3, 2])


def typed_tensors() -> list[TensorProto]:
    """One tensor for each field that data can be in, and some that are easy to get wrong."""
    return [
        tensor("float"),
        tensor("complex64", data_type=TensorProto.COMPLEX64, float_data=[1, 2, 3, 4]),
        tensor("double", data_type=TensorProto.DOUBLE, float_data=[], double_data=[1, 2]),
        tensor("complex128", data_type=TensorProto.COMPLEX128, float_data=[], double_data=[1, 2, 3, 4]),
        tensor("int64", data_type=TensorProto.INT64, float_data=[], int64_data=[-1, 2]),
        tensor("uint32", data_type=TensorProto.UINT32, float_data=[], uint64_data=[1, 2**32 - 1]),
        tensor("uint64", data_type=TensorProto.UINT64, float_data=[], uint64_data=[1, 2**64 - 1]),
        tensor("int8", data_type=TensorProto.INT8, float_data=[], int32_data=[-1, 2]),
        tensor("bool", data_type=TensorProto.BOOL, float_data=[], int32_data=[0, 1]),
        tensor("float16", data_type=TensorProto.FLOAT16, float_data=[], int32_data=[0x3C00, 0xBC00]),
        tensor("bfloat16", data_type=TensorProto.BFLOAT16, float_data=[], int32_data=[0x3F80, 0x7FC0]),
        tensor("int4", data_type=TensorProto.INT4, dims=[3], float_data=[], int32_data=[0x21, 0x0F]),
        tensor("uint2", data_type=TensorProto.UINT2, dims=[5], float_data=[], raw_data=b"\x1b\x02"),
        tensor("float4", data_type=TensorProto.FLOAT4E2M1, dims=[3], float_data=[], raw_data=b"\x21\x03"),
        tensor("float6", data_type=TensorProto.FLOAT6E2M3, dims=[4], float_data=[], raw_data=b"\x01\x20\x0c"),
        tensor("string", data_type=TensorProto.STRING, float_data=[], string_data=[b"a", b"\xff"]),
        tensor("raw", float_data=[], raw_data=np.array([np.nan, -0.0], np.float32).tobytes()),
        tensor("large", dims=[3000], float_data=[], raw_data=np.arange(3000, dtype=np.float32).tobytes()),
        tensor("large_floats", dims=[3000], float_data=range(3000)),
        tensor("large_int64", data_type=TensorProto.INT64, dims=[3000], float_data=[], int64_data=range(3000)),
        tensor("scalar", dims=[], float_data=[1]),
        tensor("empty", dims=[0, 3], float_data=[]),
    ]


def everything() -> onnx.ModelProto:
    """A model that uses every field of the format, wherever it can be used."""
    props = [entry("key", "value")]
    shape = onnx.TensorShapeProto(
        dim=[
            onnx.TensorShapeProto.Dimension(dim_value=0, denotation="DATA_BATCH"),
            onnx.TensorShapeProto.Dimension(dim_param="N"),
            onnx.TensorShapeProto.Dimension(),
        ]
    )
    plain = onnx.TypeProto(denotation="IMAGE", tensor_type=onnx.TypeProto.Tensor(elem_type=FLOAT, shape=shape))
    types = {
        "plain": plain,
        "no_shape": onnx.TypeProto(tensor_type=onnx.TypeProto.Tensor(elem_type=FLOAT)),
        "no_element": onnx.TypeProto(tensor_type=onnx.TypeProto.Tensor(shape=shape)),
        "sparse": onnx.TypeProto(sparse_tensor_type=onnx.TypeProto.SparseTensor(elem_type=FLOAT, shape=shape)),
        "sequence": helper.make_sequence_type_proto(plain),
        "optional": helper.make_optional_type_proto(helper.make_sequence_type_proto(plain)),
        "map": map_type(),
        "maps": helper.make_sequence_type_proto(map_type()),
        "unfinished": onnx.TypeProto(sequence_type=onnx.TypeProto.Sequence()),
        "opaque": onnx.TypeProto(opaque_type=onnx.TypeProto.Opaque(domain="d", name="n"), denotation="AUDIO"),
        "untyped": onnx.TypeProto(),
    }
    infos = {
        name: onnx.ValueInfoProto(name=name, type=type_, doc_string="value", metadata_props=props)
        for name, type_ in types.items()
    }
    inner = helper.make_graph(
        [helper.make_node("Identity", ["outer"], ["inner"])],
        "inner",
        [],
        [onnx.ValueInfoProto(name="inner")],
        initializer=[tensor("inner_weight")],
        doc_string="graph",
    )
    inner.sparse_initializer.append(sparse("inner_sparse"))
    inner.metadata_props.extend(props)
    inner.quantization_annotation.add(tensor_name="outer", quant_parameter_tensor_names=[entry("SCALE", "s")])
    attributes = [
        onnx.AttributeProto(name="f", type="FLOAT", f=0.1, doc_string="attribute"),
        onnx.AttributeProto(name="i", type="INT", i=-1),
        onnx.AttributeProto(name="zero", type="INT", i=0),
        onnx.AttributeProto(name="s", type="STRING", s=b"text"),
        onnx.AttributeProto(name="bytes", type="STRING", s=b"\xff\xfe"),
        onnx.AttributeProto(name="t", type="TENSOR", t=tensor("t", doc_string="tensor", metadata_props=props)),
        onnx.AttributeProto(name="g", type="GRAPH", g=inner),
        onnx.AttributeProto(name="sparse_tensor", type="SPARSE_TENSOR", sparse_tensor=sparse("")),
        onnx.AttributeProto(name="tp", type="TYPE_PROTO", tp=plain),
        onnx.AttributeProto(name="tp_map", type="TYPE_PROTO", tp=map_type()),
        onnx.AttributeProto(name="tp_empty", type="TYPE_PROTO", tp=onnx.TypeProto()),
        onnx.AttributeProto(name="floats", type="FLOATS", floats=[1, 2]),
        onnx.AttributeProto(name="ints", type="INTS", ints=[1, 2]),
        onnx.AttributeProto(name="no_ints", type="INTS"),
        onnx.AttributeProto(name="strings", type="STRINGS", strings=[b"a", b"\xff"]),
        onnx.AttributeProto(name="tensors", type="TENSORS", tensors=typed_tensors()),
        onnx.AttributeProto(name="graphs", type="GRAPHS", graphs=[inner, inner]),
        onnx.AttributeProto(name="sparse_tensors", type="SPARSE_TENSORS", sparse_tensors=[sparse("a")]),
        onnx.AttributeProto(name="type_protos", type="TYPE_PROTOS", type_protos=list(types.values())),
    ]
    sharding = onnx.ShardingSpecProto(
        tensor_name="outer",
        device=[0, 1],
        index_to_device_group_map=[onnx.IntIntListEntryProto(key=0, value=[1])],
        sharded_dim=[
            onnx.ShardedDimProto(
                axis=1,
                simple_sharding=[
                    onnx.SimpleShardedDimProto(dim_value=2, num_shards=2),
                    onnx.SimpleShardedDimProto(dim_param="N", num_shards=2),
                ],
            )
        ],
    )
    device = onnx.NodeDeviceConfigurationProto(configuration_id="two", sharding_spec=[sharding], pipeline_stage=1)
    outputs = [name for name in types if name != "plain"]
    nodes = [
        onnx.NodeProto(op_type="Relu", input=["plain"], output=["outer"], name="relu"),
        onnx.NodeProto(
            op_type="Everything",
            domain="custom",
            overload="second",
            name="node",
            doc_string="node",
            input=["outer", "", "float", "sparse_weight", ""],
            output=["", *outputs, "described", ""],
            attribute=attributes,
            metadata_props=props,
            device_configurations=[device],
        ),
    ]
    graph = onnx.GraphProto(
        name="graph",
        doc_string="graph",
        node=nodes,
        input=[infos["plain"], helper.make_tensor_value_info("scalar", FLOAT, [])],
        output=[*(infos[name] for name in outputs), helper.make_tensor_value_info("plain", FLOAT, [7])],
        value_info=[
            onnx.ValueInfoProto(name="described", type=map_type()),
            onnx.ValueInfoProto(name="raw", type=plain, doc_string="a described weight"),
            helper.make_tensor_value_info("int64", TensorProto.INT64, [2]),
            onnx.ValueInfoProto(name="plain", doc_string="an input, described again"),
            onnx.ValueInfoProto(name="custom::function/value", type=plain),
        ],
        initializer=[*typed_tensors(), tensor("noted", doc_string="tensor", metadata_props=props)],
        sparse_initializer=[sparse("sparse_weight")],
        quantization_annotation=[
            onnx.TensorAnnotation(tensor_name=name, quant_parameter_tensor_names=[entry("SCALE_TENSOR", "scalar")])
            for name in ("plain", "float", "described", "nobody")
        ],
        metadata_props=props,
    )
    function = onnx.FunctionProto(
        name="function",
        domain="custom",
        overload="first",
        doc_string="function",
        input=["x"],
        output=["y"],
        attribute=["alpha"],
        attribute_proto=[onnx.AttributeProto(name="beta", type="FLOAT", f=0.5)],
        node=[
            onnx.NodeProto(
                op_type="Elu",
                input=["x"],
                output=["y"],
                attribute=[onnx.AttributeProto(name="alpha", type="FLOAT", ref_attr_name="alpha")],
            )
        ],
        opset_import=[helper.make_opsetid("", 21)],
        value_info=[helper.make_tensor_value_info(name, FLOAT, ["N"]) for name in ("x", "y", "nobody")],
        metadata_props=props,
    )
    training = onnx.TrainingInfoProto(
        initialization=helper.make_graph([helper.make_node("Neg", ["raw"], ["start"])], "init", [], []),
        algorithm=helper.make_graph([helper.make_node("Neg", ["float"], ["step"])], "algorithm", [], []),
        initialization_binding=[entry("float", "start")],
        update_binding=[entry("float", "step")],
    )
    return onnx.ModelProto(
        ir_version=14,
        opset_import=[helper.make_opsetid("", 21), helper.make_opsetid("custom", 3)],
        producer_name="producer",
        producer_version="1.0",
        domain="org.example",
        model_version=7,
        doc_string="model",
        graph=graph,
        metadata_props=props,
        training_info=[training],
        functions=[function],
        configuration=[onnx.DeviceConfigurationProto(name="two", num_devices=2, device=["a", "b"])],
    )
