"""Weights that stay in the file of a large model until they are asked for."""

from __future__ import annotations

import gc
import os
import pathlib
import tracemalloc
from collections.abc import Callable

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper
from protos import same

from onward import Model, load
from onward.backends.torch.convert import generate, write_package
from onward.errors import InvalidModelError
from onward.hub.stored import StoredTensor, in_place

SIZE = 600
DTYPES = ["float32", "float64", "float16", "bfloat16", "int64", "int8", "uint16", "bool", "complex64", "float8_e5m2"]


def large(path: pathlib.Path, seed: int = 0) -> np.ndarray:
    """Writes a model with a weight of more than a megabyte at a place that is no multiple of four bytes."""
    weight = np.random.default_rng(seed).standard_normal((SIZE, SIZE)).astype(np.float32)
    shape = [SIZE, SIZE]
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "weight"], ["y"])],
        "net",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, shape)],
        [numpy_helper.from_array(weight, "weight")],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    while model.SerializeToString().index(weight.tobytes()) % 4 == 0:
        model.graph.initializer[0].name += "_"
        model.graph.node[0].input[1] += "_"
    path.write_bytes(model.SerializeToString())
    return weight


def stored(model: Model) -> StoredTensor:
    (value,) = model.ir.graph.initializers.values()
    assert isinstance(value.const_value, StoredTensor)
    return value.const_value


def test_an_array_is_aligned_and_the_bytes_in_place_are_the_same(tmp_path: pathlib.Path) -> None:
    weight = large(tmp_path / "net.onnx")
    tensor = stored(load(tmp_path / "net.onnx"))
    before = in_place(tensor)
    assert not before.flags.aligned
    np.testing.assert_array_equal(before, weight)
    array = tensor.numpy()
    assert array.flags.aligned and not array.flags.writeable and tensor.numpy() is array and in_place(tensor) is array
    np.testing.assert_array_equal(array, weight)
    assert tensor.tobytes() == weight.tobytes() and tensor.nbytes == weight.nbytes


def test_neither_loading_nor_saving_nor_converting_reads_weights_into_memory(tmp_path: pathlib.Path) -> None:
    weight = large(tmp_path / "net.onnx")
    generate(load(tmp_path / "net.onnx"))
    tracemalloc.start()
    try:
        model = load(tmp_path / "net.onnx")
        model.save(tmp_path / "copy.onnx")
        write_package(generate(model), tmp_path / "package")
        assert tracemalloc.get_traced_memory()[1] < weight.nbytes
    finally:
        tracemalloc.stop()
    same(onnx.load(tmp_path / "net.onnx"), onnx.load(tmp_path / "copy.onnx"))
    assert (tmp_path / "package" / "weights.safetensors").read_bytes().endswith(weight.tobytes())


@pytest.mark.parametrize("what", ["saved over", "replaced", "deleted"])
def test_what_becomes_of_the_files_name_does_no_harm(what: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "net.onnx"
    weight = large(path)
    model = load(path)
    if what == "saved over":
        model.save(path)
        np.testing.assert_array_equal(stored(load(path)).numpy(), weight)
    elif what == "replaced":
        large(tmp_path / "other.onnx", seed=1)
        (tmp_path / "other.onnx").replace(path)
    else:
        path.unlink()
    np.testing.assert_array_equal(in_place(stored(model)), weight)
    np.testing.assert_array_equal(stored(model).numpy(), weight)


@pytest.mark.parametrize("how", ["written over", "cut short"])
def test_a_file_that_was_written_to_is_not_taken_for_the_model(how: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "net.onnx"
    weight = large(path)
    model, read_before = load(path), load(path)
    stored(read_before).numpy()
    source = generate(model)
    with path.open("r+b") as file:
        if how == "cut short":
            file.truncate(1000)
        else:
            file.seek(SIZE * SIZE)
            file.write(b"other")
    os.utime(path, ns=(0, 0))  # however coarse the clock of the file system is
    attempts: list[Callable[[], object]] = [
        lambda: stored(model).numpy(),
        lambda: in_place(stored(model)),
        lambda: model.save(tmp_path / "copy.onnx"),
        lambda: write_package(source, tmp_path / "package"),
    ]
    for attempt in attempts:
        with pytest.raises(InvalidModelError, match="changed after it had been loaded: load it again"):
            attempt()
    assert {p.name for p in tmp_path.iterdir()} == {"net.onnx"}
    np.testing.assert_array_equal(stored(read_before).numpy(), weight)


@pytest.mark.skipif(not pathlib.Path("/proc/self/fd").is_dir(), reason="files that are open are not listed here")
def test_the_file_is_closed_with_the_last_of_its_tensors(tmp_path: pathlib.Path) -> None:
    large(tmp_path / "net.onnx")

    def is_open() -> bool:
        gc.collect()
        return any(p.exists() and p.resolve() == tmp_path / "net.onnx" for p in pathlib.Path("/proc/self/fd").iterdir())

    tensor = stored(load(tmp_path / "net.onnx"))
    assert is_open()
    del tensor
    assert not is_open()


@pytest.mark.parametrize("name", DTYPES)
def test_every_dtype_is_stored(name: str, tmp_path: pathlib.Path) -> None:
    dtype = np.dtype(getattr(ml_dtypes, name, None) or name)
    data = (np.arange(SIZE * SIZE * 3) % 50).reshape(3, SIZE, SIZE).astype(dtype)
    tensor = ir.to_proto(ir.Tensor(data, name="weight"))
    graph = helper.make_graph([], "net", [], [helper.make_tensor_value_info("weight", tensor.data_type, data.shape)])
    graph.initializer.append(tensor)
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=10)
    (tmp_path / "net.onnx").write_bytes(model.SerializeToString())
    found = stored(load(tmp_path / "net.onnx"))
    assert found.numpy().dtype == dtype
    assert found.tobytes() == data.tobytes() == in_place(stored(load(tmp_path / "net.onnx"))).tobytes()
