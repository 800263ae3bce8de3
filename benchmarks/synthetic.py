"""ONNX models of any size, made by script: for scaling and memory."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

WIDTH = 8


def _save(path: Path, nodes: list[onnx.NodeProto], weights: dict[str, np.ndarray], output: str) -> Path:
    shape = ["batch", WIDTH]
    graph = helper.make_graph(
        nodes,
        path.stem,
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(array, name) for name, array in weights.items()],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    onnx.save(model, path)
    return path


def _weight(*shape: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal(shape).astype(np.float32) / WIDTH


def chain(nodes: int, path: Path) -> Path:
    """One op after the other, without a hierarchy in the names."""
    made, last = [], "x"
    for i in range(nodes):
        op = ("Relu", "Sigmoid", "Add", "Mul")[i % 4]
        made.append(helper.make_node(op, [last] if i % 4 < 2 else [last, "bias"], [f"v{i}"], f"node{i}"))
        last = f"v{i}"
    return _save(path, made, {"bias": _weight(WIDTH)}, last)


def branches(nodes: int, path: Path) -> Path:
    """Many short branches from the input, added up: every value lives long."""
    made, ends = [], []
    for i in range(nodes // 4):
        made.append(helper.make_node("Mul", ["x", f"scale{i}"], [f"a{i}"]))
        made.append(helper.make_node("Tanh", [f"a{i}"], [f"b{i}"]))
        made.append(helper.make_node("Neg", [f"b{i}"], [f"c{i}"]))
        ends.append(f"c{i}")
    last = ends[0]
    for i, end in enumerate(ends[1:]):
        made.append(helper.make_node("Add", [last, end], [f"s{i}"]))
        last = f"s{i}"
    scales = {f"scale{i}": _weight(WIDTH) for i in range(nodes // 4)}
    return _save(path, made, scales, last)


def blocks(nodes: int, path: Path) -> Path:
    """A deep network of repeated residual blocks, with names such as `layers.7.up.weight`."""
    made, weights, last = [], {}, "x"
    for i in range(nodes // 4):
        at = f"layers.{i}"
        weights |= {f"{at}.up.weight": _weight(WIDTH, WIDTH), f"{at}.up.bias": _weight(WIDTH)}
        weights |= {f"{at}.norm.weight": _weight(WIDTH), f"{at}.norm.bias": _weight(WIDTH)}
        norm = [last, f"{at}.norm.weight", f"{at}.norm.bias"]
        made.append(helper.make_node("LayerNormalization", norm, [f"n{i}"], f"/{at}/norm/LayerNormalization"))
        linear = [f"n{i}", f"{at}.up.weight", f"{at}.up.bias"]
        made.append(helper.make_node("Gemm", linear, [f"g{i}"], f"/{at}/up/Gemm", transB=1))
        made.append(helper.make_node("Relu", [f"g{i}"], [f"r{i}"], f"/{at}/Relu"))
        made.append(helper.make_node("Add", [last, f"r{i}"], [f"o{i}"], f"/{at}/Add"))
        last = f"o{i}"
    return _save(path, made, weights, last)


KINDS: dict[str, Callable[[int, Path], Path]] = {"chain": chain, "branches": branches, "blocks": blocks}


def large(path: Path, layers: int, width: int) -> int:
    """A stack of linear layers with weights in external data, written a layer at a time; returns their bytes."""
    made, last = [], "x"
    graph = onnx.GraphProto(name="large")
    data = path.with_suffix(".data")
    rng = np.random.default_rng(0)
    with data.open("wb") as file:
        for i in range(layers):
            tensor = graph.initializer.add(name=f"layers.{i}.weight", data_type=TensorProto.FLOAT, dims=[width, width])
            tensor.data_location = TensorProto.EXTERNAL
            block = rng.standard_normal((width, width), np.float32)
            place = {"location": data.name, "offset": str(file.tell()), "length": str(block.nbytes)}
            for key, value in place.items():
                tensor.external_data.add(key=key, value=value)
            block.tofile(file)
            made.append(helper.make_node("MatMul", [last, f"layers.{i}.weight"], [f"h{i}"], f"/layers.{i}/MatMul"))
            made.append(helper.make_node("Tanh", [f"h{i}"], [f"t{i}"], f"/layers.{i}/Tanh"))
            last = f"t{i}"
    graph.node.extend(made)
    graph.input.append(helper.make_tensor_value_info("x", TensorProto.FLOAT, ["batch", width]))
    graph.output.append(helper.make_tensor_value_info(last, TensorProto.FLOAT, ["batch", width]))
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    path.write_bytes(model.SerializeToString())
    return data.stat().st_size
