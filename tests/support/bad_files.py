"""Files that are no models, and models with one thing wrong each, with words of the message that refuses them."""

from __future__ import annotations

import gzip
import io
import os
import pathlib
import pickle
import zipfile
from collections.abc import Callable
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper
from protos import small

FLOAT = TensorProto.FLOAT


# Not a model at all


class Bomb:
    def __reduce__(self) -> Any:
        return os.mkdir, ("pickles_run_code",)


def zipped() -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        archive.writestr("data.pkl", pickle.dumps(Bomb()))
    return buffer.getvalue()


DATA = small().SerializeToString()

NOT_MODELS = {
    "empty": (b"", "empty"),
    "zip": (zipped(), "zip archive"),
    "pickle": (pickle.dumps(Bomb()), "pickle"),
    "old pickle": (pickle.dumps(Bomb(), 0), "not an ONNX model"),
    "gzip": (gzip.compress(DATA), "gzip"),
    "hdf5": (b"\x89HDF\r\n\x1a\n" + bytes(100), "HDF5"),
    "gguf": (b"GGUF\x03" + bytes(100), "GGUF"),
    "tflite": (b"\x1c\0\0\0TFL3" + bytes(100), "TensorFlow Lite"),
    "lfs": (b"version https://git-lfs.github.com/spec/v1\noid sha256:0\nsize 1\n", "git lfs pull"),
    "text": (b"hello, world", "text"),
    "json": (b'{"irVersion": "8", "graph": {}}', "text"),
    "html": (b"<!DOCTYPE html><html>404: Not Found</html>", "text"),
    "zeros": (bytes(1000), "not an ONNX model"),
    "noise": (np.random.default_rng(0).bytes(10_000), "not an ONNX model"),
    "half": (DATA[: len(DATA) // 2], "cut short"),
    "almost all": (DATA[:-1], "cut short"),
    "no graph": (onnx.ModelProto(ir_version=8).SerializeToString(), "no graph"),
}


# Graphs


def graph(*nodes: onnx.NodeProto, outputs: str = "y", **options: Any) -> onnx.ModelProto:
    ends = [[helper.make_tensor_value_info(name, FLOAT, [2]) for name in names] for names in ("x", outputs)]
    made = helper.make_graph(nodes, "g", *ends, **options)
    return helper.make_model(made, opset_imports=[helper.make_opsetid("", 17)])


def node(op: str, inputs: str, outputs: str, **attributes: Any) -> onnx.NodeProto:
    """One letter a name."""
    return helper.make_node(op, list(inputs), list(outputs), name=f"{op.lower()}_{outputs}", **attributes)


def body(*nodes: onnx.NodeProto, inputs: str = "", outputs: str = "z") -> onnx.GraphProto:
    ends = [[helper.make_tensor_value_info(name, FLOAT, None) for name in names] for names in (inputs, outputs)]
    return helper.make_graph(nodes, "body", *ends)


def branch(inner: onnx.GraphProto, outputs: str = "y") -> onnx.NodeProto:
    return node("If", "x", outputs, then_branch=inner, else_branch=inner)


def weight(**fields: Any) -> TensorProto:
    return TensorProto(**{"name": "w", "dims": [2], "data_type": FLOAT, "raw_data": bytes(8), **fields})


GRAPHS = {
    "cycle of one": (graph(node("Add", "xy", "y")), "cyclic: node 'add_y' (Add) feeds node 'add_y' (Add)"),
    "cycle of two": (graph(node("Add", "xb", "a"), node("Neg", "a", "b"), node("Neg", "b", "y")), "cyclic: "),
    "cycle through a branch": (graph(branch(body(node("Neg", "y", "z")))), "cyclic: node 'if_y' (If)"),
    "cycle in a branch": (graph(branch(body(node("Neg", "b", "z"), node("Neg", "z", "b")))), "cyclic: "),
    "dangling input": (graph(node("Add", "xq", "y")), "node 'add_y' (Add): it reads 'q', which nothing produces"),
    "dangling input of a branch": (graph(branch(body(node("Neg", "q", "z")))), "'neg_z' (Neg): it reads 'q'"),
    "value of a branch used outside": (graph(branch(body(node("Neg", "x", "z")), "a"), node("Neg", "z", "y")), "'z'"),
    "dangling output": (graph(node("Neg", "x", "a")), "no node produces its output 'y'"),
    "dangling output of a branch": (graph(branch(body())), "no node produces its output 'z'"),
    "unnamed output": (graph(node("Neg", "x", "y"), outputs=["y", ""]), "no node produces its output ''"),
    "two producers": (graph(node("Neg", "x", "y"), node("Abs", "x", "y")), "(Abs): output: the name 'y' is already"),
    "one node, one name twice": (graph(node("Split", "x", "yy")), "the name 'y' is already taken"),
    "node makes an input": (graph(node("Neg", "x", "x"), node("Neg", "x", "y")), "the name 'x' is already taken"),
    "node makes a weight": (graph(node("Neg", "x", "w"), outputs="w", initializer=[weight()]), "'w' is already taken"),
    "no operator": (graph(node("", "x", "y")), "it has no operator"),
}


# Messages, changed in one place each


def initializer(model: onnx.ModelProto) -> TensorProto:
    return model.graph.initializer[0]


def set_weight(**fields: Any) -> Callable[[onnx.ModelProto], None]:
    def change(model: onnx.ModelProto) -> None:
        initializer(model).Clear()
        initializer(model).MergeFrom(weight(name="weight", **fields))

    return change


def set_dim(value: int) -> Callable[[onnx.ModelProto], None]:
    def change(model: onnx.ModelProto) -> None:
        for dim in model.graph.input[0].type.tensor_type.shape.dim:
            dim.dim_value = value

    return change


def add_attribute(**fields: Any) -> Callable[[onnx.ModelProto], None]:
    return lambda model: model.graph.node[0].attribute.add().MergeFrom(onnx.AttributeProto(**fields))


def opsets(*versions: tuple[str, int]) -> Callable[[onnx.ModelProto], None]:
    def change(model: onnx.ModelProto) -> None:
        del model.opset_import[:]
        model.opset_import.extend(helper.make_opsetid(*version) for version in versions)

    return change


def functions(*calls: tuple[str, str]) -> Callable[[onnx.ModelProto], None]:
    """Functions, each given with the names it calls."""

    def change(model: onnx.ModelProto) -> None:
        model.opset_import.append(helper.make_opsetid("f", 1))
        for name, called in calls:
            chain = ["x", *(f"v{i}" for i in range(len(called))), "y"]
            nodes = [helper.make_node(c, [chain[i]], [chain[i + 1]], domain="f") for i, c in enumerate(called)]
            nodes.append(helper.make_node("Identity", [chain[-2]], ["y"]))
            model.functions.append(helper.make_function("f", name, ["x"], ["y"], nodes, model.opset_import))
        model.graph.node[0].CopyFrom(helper.make_node(calls[0][0], ["x"], ["y"], domain="f"))

    return change


def sparse(indices: list[int], dims: list[int], shape: list[int]) -> Callable[[onnx.ModelProto], None]:
    def change(model: onnx.ModelProto) -> None:
        values = weight(name="s", dims=[len(indices) // len(shape)], raw_data=bytes(4 * (len(indices) // len(shape))))
        places = helper.make_tensor("", TensorProto.INT64, dims, indices)
        model.graph.sparse_initializer.append(onnx.SparseTensorProto(values=values, indices=places, dims=shape))

    return change


GIGABYTE = 10**9
LETTERS = "abcdefghijklmnopqrstuvwxyz"

CHANGES: dict[str, tuple[Callable[[onnx.ModelProto], Any], str]] = {
    "no opset": (opsets(), "imports no opset"),
    "opset of tomorrow": (opsets(("", 99)), "imports opset 99 of ai.onnx"),
    "ml opset of tomorrow": (opsets(("", 17), ("ai.onnx.ml", 99)), "imports opset 99 of ai.onnx.ml"),
    "opset 0": (opsets(("", 0)), "imports opset 0 of ai.onnx"),
    "IR of tomorrow": (lambda m: setattr(m, "ir_version", 99), "IR version 99"),
    "too few bytes": (set_weight(dims=[3]), "initializer 'weight': its shape [3] needs 12 bytes, but it has 8"),
    "too many bytes": (set_weight(dims=[1]), "its shape [1] needs 4 bytes, but it has 8"),
    "a gigabyte claimed": (set_weight(dims=[GIGABYTE // 4]), "needs 1000000000 bytes, but it has 8"),
    "a gigabyte of nothing": (set_weight(dims=[GIGABYTE // 4], raw_data=None), "needs 1000000000 bytes, but it has 0"),
    "a gigabyte of numbers": (set_weight(dims=[GIGABYTE], raw_data=None, float_data=[1]), "has 1"),
    "a gigabyte of strings": (set_weight(dims=[GIGABYTE], raw_data=None, data_type=8, string_data=[b""]), "strings"),
    "negative dimension": (set_weight(dims=[-2]), "a dimension of its shape [-2] is negative"),
    "two negative dimensions": (set_weight(dims=[-2, -1]), "negative"),
    "absurd shape": (set_weight(dims=[2**40, 2**40]), "more elements than any memory"),
    "absurd and empty shape": (set_weight(dims=[2**62, 2**62, 0], raw_data=None), "more elements than any memory"),
    "absurd input shape": (set_dim(2**62), "input 'x': its shape has more elements"),
    "no element type": (set_weight(data_type=0), "no element type"),
    "unknown element type": (set_weight(data_type=99), "initializer 'weight': element type 99"),
    "unknown input type": (lambda m: setattr(m.graph.input[0].type.tensor_type, "elem_type", 77), "element type 77"),
    "wrong field": (set_weight(raw_data=None, int64_data=[1, 2]), "FLOAT cannot be stored as int64_data"),
    "six bits of eight": (set_weight(data_type=27, dims=[2], raw_data=None, int32_data=[255, 255]), "weight"),
    "raw strings": (set_weight(data_type=8), "strings"),
    "attribute twice": (lambda m: [add_attribute(name="a", i=1, type="INT")(m) for _ in "ab"], "'a' is given twice"),
    "attribute with two values": (add_attribute(name="a", i=1, f=2, type="INT"), "its value is in f and i"),
    "attribute of another type": (add_attribute(name="a", f=2, type="INT"), "its value is in f"),
    "attribute without a value": (add_attribute(name="a"), "attribute 'a': it has no value"),
    "attribute without a graph": (add_attribute(name="a", type="GRAPH"), "attribute 'a': it has no value"),
    "attribute without a name": (add_attribute(i=1, type="INT"), "it has no name"),
    "reference outside a function": (add_attribute(name="a", ref_attr_name="b", type="INT"), "'b', which no function"),
    "recursive function": (functions(("a", "a")), "call themselves: 'f.a' calls 'f.a'"),
    "recursive functions": (functions(("a", "b"), ("b", "c"), ("c", "a")), "functions of the model call themselves: '"),
    "function twice": (functions(("a", ""), ("a", "")), "function 'a' is defined twice"),
    "exponential functions": (
        functions(*zip(LETTERS, [letter * 8 for letter in LETTERS[1:]], strict=False), ("z", "")),
        "functions would become",
    ),
    "sparse index outside": (sparse([0, 6], [2], [6]), "an index is outside its shape [6]"),
    "sparse index negative": (sparse([-1, 3], [2], [6]), "an index is outside"),
    "sparse indices unsorted": (sparse([3, 1], [2], [6]), "not sorted and unique"),
    "sparse indices repeated": (sparse([1, 1, 1, 1], [2, 2], [6, 6]), "not sorted and unique"),
    "sparse indices of another rank": (sparse([1, 2], [1, 2], [6]), "cannot have indices of shape"),
}


# External data


def external(tmp_path: pathlib.Path, location: str, **entries: str) -> pathlib.Path:
    """A model in `tmp_path`/model, with a weight of 16 KB in the file `location`."""
    proto = small()
    initializer(proto).ClearField("raw_data")
    initializer(proto).data_location = TensorProto.EXTERNAL
    for key, value in {"location": location, **entries}.items():
        initializer(proto).external_data.add(key=key, value=value)
    folder = tmp_path / "model"
    folder.mkdir(exist_ok=True)
    for name in ("model/w.bin", "secret.bin"):
        (tmp_path / name).write_bytes(bytes(64 * 64 * 4))
    (folder / "net.onnx").write_bytes(proto.SerializeToString())
    return folder / "net.onnx"
