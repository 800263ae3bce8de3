"""The hub: loading, saving, and what lies between."""

from __future__ import annotations

import pathlib
import subprocess
import sys
import time
from typing import Any

import numpy as np
import onnx
import onnx.backend.test.loader
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper, numpy_helper
from protos import everything, same, small

import onward.model
from onward import Model, load
from onward.errors import InvalidModelError, OnwardError

FLOAT = TensorProto.FLOAT


# Sources and names


def weight_of(model: Model) -> Any:
    return model.ir.graph.initializers["weight"].const_value.numpy()


def test_every_kind_of_source(tmp_path: pathlib.Path) -> None:
    proto = small()
    data = proto.SerializeToString()
    path = tmp_path / "net.onnx"
    path.write_bytes(data)
    from_path, from_name, from_bytes, from_proto = load(path), load(str(path)), load(data), load(proto)
    for model in (from_path, from_name, from_bytes, from_proto):
        assert model.to_proto().graph.node == proto.graph.node
        assert model.opset == {"": 17}
    assert load(from_path) is from_path
    assert (from_path.name, from_path.path) == ("net", path)
    assert (from_bytes.name, from_bytes.path) == ("small", None)
    assert proto.SerializeToString() == data, "the protobuf given is not changed"


def test_weights_survive_the_file_they_came_from(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(small(np.full((64, 64), 3, np.float32)).SerializeToString())
    model = load(path)
    path.write_bytes(b"\0" * path.stat().st_size)
    assert (weight_of(model) == 3).all() and weight_of(model).flags.aligned


def test_the_default_domain_has_one_name() -> None:
    proto = small()
    proto.opset_import[0].domain = proto.graph.node[0].domain = "ai.onnx"
    model = load(proto)
    assert model.opset == {"": 17} and model.ir.graph[0].domain == ""


def test_a_dimension_of_minus_one_is_unknown() -> None:
    proto = small()
    proto.graph.input[0].type.tensor_type.shape.dim[0].dim_value = -1
    assert load(proto).ir.graph.inputs[0].shape[0] == None  # noqa: E711


def test_nodes_are_sorted() -> None:
    nodes = [helper.make_node("Neg", [f"v{i}"], [f"v{i + 1}"]) for i in range(5)]
    ends = [helper.make_tensor_value_info(name, FLOAT, []) for name in ("v0", "v5")]
    proto = helper.make_model(helper.make_graph(nodes[::-1], "reversed", ends[:1], ends[1:]))
    assert [node.outputs[0].name for node in load(proto).ir.graph] == ["v1", "v2", "v3", "v4", "v5"]


def test_a_branch_may_return_a_value_from_around_it() -> None:
    def branch(name: str) -> onnx.GraphProto:
        return helper.make_graph([], name, [], [helper.make_tensor_value_info(name, FLOAT, [])])

    node = helper.make_node("If", ["c"], ["y"], then_branch=branch("a"), else_branch=branch("b"))
    infos = {n: helper.make_tensor_value_info(n, FLOAT, []) for n in "aby"}
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    graph = helper.make_graph([node], "g", [condition, infos["a"], infos["b"]], [infos["y"]])
    model = load(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))
    (node,) = model.ir.graph
    assert [n.op_type for n in node.attributes["then_branch"].as_graph()] == ["Identity"]
    feeds = {"c": np.array(True), "a": np.float32(1), "b": np.float32(2)}
    assert onnx.reference.ReferenceEvaluator(model.to_proto()).run(None, feeds) == [1]


def test_attributes_of_the_first_format_have_types() -> None:
    proto = small()
    proto.graph.node[0].attribute.add(name="alpha", f=0.5)
    assert load(proto).ir.graph[0].attributes["alpha"].as_float() == 0.5


def test_a_sparse_constant_is_dense_as_an_array() -> None:
    model = load(everything())
    dense = model.ir.graph.initializers["sparse_weight"].const_value.numpy()
    assert dense.tolist() == [[0, 1], [0, 0], [2, 0]]


def test_map_types_can_be_seen() -> None:
    assert [
        repr(output.type) for output in load(everything()).ir.graph.outputs if output.name in ("map", "opaque")
    ] == [
        "map(int64, tensor(float))",
        "opaque(d, n)",
    ]


# IR version


@pytest.mark.parametrize(("opset", "file", "saved"), [(9, 4, 4), (17, 8, 8), (17, 10, 10), (17, 3, 8), (21, 8, 10)])
def test_a_file_keeps_its_ir_version_if_it_can(opset: int, file: int, saved: int) -> None:
    assert load(small(opset=opset, ir_version=file)).to_proto().ir_version == saved


def made_here(opset: int) -> Model:
    proto = small(opset=opset)
    return Model(ir.from_proto(proto))


def test_a_model_made_here_has_the_lowest_ir_version() -> None:
    for opset in (9, 13, 17, 21, 26):
        assert made_here(opset).to_proto().ir_version == helper.find_min_ir_version_for(
            [helper.make_opsetid("", opset)]
        )
    assert made_here(7).to_proto().ir_version == 4, "a weight that is no input"


@pytest.mark.parametrize(
    ("version", "change"),
    [
        (7, lambda m: m.training_info.append(onnx.TrainingInfoProto())),
        (10, lambda m: m.ir.graph[0].metadata_props.update(key="value")),
        (10, lambda m: m.ir.graph.metadata_props.update(key="value")),
        (4, lambda m: m.ir.metadata_props.update(key="value")),
        (9, lambda m: retype(m, ir.DataType.FLOAT8E5M2)),
        (10, lambda m: retype(m, ir.DataType.INT4)),
        (11, lambda m: retype(m, ir.DataType.FLOAT4E2M1)),
        (12, lambda m: retype(m, ir.DataType.FLOAT8E8M0)),
        (13, lambda m: retype(m, ir.DataType.UINT2)),
        (14, lambda m: retype(m, ir.DataType.FLOAT6E3M2)),
        (8, lambda m: setattr(m.ir.graph.inputs[0], "type", ir.OptionalType(ir.TensorType(ir.DataType.FLOAT)))),
    ],
)
def test_content_can_need_a_higher_ir_version(version: int, change: Any) -> None:
    model = made_here(9)
    change(model)
    assert model.to_proto().ir_version == version


def retype(model: Model, dtype: ir.DataType) -> None:
    model.ir.graph.inputs[0].type = ir.TensorType(dtype)


# External data


def test_external_data_is_kept_external(tmp_path: pathlib.Path) -> None:
    weight = np.arange(4096, dtype=np.float32).reshape(64, 64)
    onnx.save(small(weight), tmp_path / "a.onnx", save_as_external_data=True, location="weights.bin")
    model = load(tmp_path / "a.onnx")
    (tmp_path / "sub").mkdir()
    model.save(tmp_path / "sub" / "b.onnx")
    assert {p.name for p in (tmp_path / "sub").iterdir()} == {"b.onnx", "b.onnx.data"}
    (tmp_path / "weights.bin").unlink()
    same(model.to_proto(), onnx.load(tmp_path / "sub" / "b.onnx"), tmp_path / "sub")
    onnx.checker.check_model(tmp_path / "sub" / "b.onnx")
    again = load(tmp_path / "sub" / "b.onnx")
    assert (weight_of(again) == weight).all() and weight_of(again).flags.aligned
    again.save(tmp_path / "one.onnx", external_data=False)
    same(again.to_proto(), onnx.load(tmp_path / "one.onnx"))
    assert not (tmp_path / "one.onnx.data").exists()


def test_a_model_can_be_saved_over_itself(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "net.onnx"
    load(small(np.full((64, 64), 3, np.float32))).save(path, external_data=True)
    model = load(path)
    for _ in range(2):
        model.save(path)
        assert (weight_of(model) == 3).all() and (weight_of(load(path)) == 3).all()


def test_weights_too_large_for_a_file_go_beside_it(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(onward.model, "LARGEST_FILE", 10_000)
    load(small()).save(tmp_path / "net.onnx")
    assert (tmp_path / "net.onnx.data").stat().st_size == 64 * 64 * 4
    with pytest.raises(OnwardError, match="external data"):
        load(small()).save(tmp_path / "other.onnx", external_data=False)
    assert not (tmp_path / "other.onnx").exists()


def test_mapping_does_not_read(tmp_path: pathlib.Path) -> None:
    """A model with 64 GB of weights, all of them a hole in a file, loads at once."""
    size = 2**36
    proto = small()
    weight = proto.graph.initializer[0]
    weight.CopyFrom(TensorProto(name="weight", dims=[size], data_type=TensorProto.UINT8, data_location="EXTERNAL"))
    weight.external_data.add(key="location", value="hole.bin")
    with (tmp_path / "hole.bin").open("wb") as file:
        try:
            file.truncate(size)
        except OSError:
            pytest.skip("no sparse files here")
    (tmp_path / "net.onnx").write_bytes(proto.SerializeToString())
    assert weight_of(load(tmp_path / "net.onnx"))[size - 1] == 0


class BrokenTensor(ir.LazyTensor):
    def __init__(self) -> None:
        super().__init__(self.fail, ir.DataType.FLOAT, ir.Shape([64, 64]), name="weight")

    def fail(self) -> ir.TensorProtocol:
        raise OSError("the disk is gone")


@pytest.mark.parametrize("external", [False, True])
def test_a_failed_save_leaves_what_was_there(external: bool, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "net.onnx"
    path.write_bytes(b"before")
    model = load(small())
    model.ir.graph.initializers["weight"].const_value = BrokenTensor()
    with pytest.raises(OnwardError, match="the disk is gone"):
        model.save(path, external_data=external)
    assert path.read_bytes() == b"before" and list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("where", ["missing/net.onnx", "."])
def test_a_place_that_cannot_be_written(where: str, tmp_path: pathlib.Path) -> None:
    with pytest.raises(OnwardError, match="cannot be written"):
        load(small()).save(tmp_path / where, external_data=True)
    assert not list(tmp_path.iterdir())


def test_training_info_and_sparse_constants_may_be_external(tmp_path: pathlib.Path) -> None:
    """They are protobuf for as long as they are loaded, so their data moves into it."""
    proto = everything()
    training = proto.training_info[0].algorithm
    training.initializer.append(numpy_helper.from_array(np.arange(3000, dtype=np.float32), "rate"))
    before = onnx.ModelProto()
    before.CopyFrom(proto)
    values = proto.graph.sparse_initializer[0].values
    (tmp_path / "w.bin").write_bytes(training.initializer[0].raw_data + np.array([1, 2], np.float32).tobytes())
    for tensor, offset in ((training.initializer[0], 0), (values, 12000)):
        tensor.ClearField("raw_data")
        tensor.ClearField("float_data")
        tensor.data_location = TensorProto.EXTERNAL
        tensor.external_data.add(key="location", value="w.bin")
        tensor.external_data.add(key="offset", value=str(offset))
    (tmp_path / "net.onnx").write_bytes(proto.SerializeToString())
    same(before, load(tmp_path / "net.onnx").to_proto())


# Validation of what passes have made


def test_validate() -> None:
    nodes = [helper.make_node("Neg", [f"v{i}"], [f"v{i + 1}"]) for i in range(3)]
    ends = [helper.make_tensor_value_info(name, FLOAT, []) for name in ("v0", "v3")]
    proto = helper.make_model(helper.make_graph(nodes, "g", ends[:1], ends[1:]))

    def refused(change: Any) -> str:
        model = load(proto)
        model.validate()
        change(model.ir.graph)
        with pytest.raises(InvalidModelError) as caught:
            model.validate()
        return str(caught.value)

    assert "reads 'v1', which nothing before it" in refused(lambda g: g.append(g[0]))
    assert "reads 'lost'" in refused(lambda g: g[1].replace_input_with(0, ir.Value(name="lost")))
    assert "the name 'v1' is already taken" in refused(lambda g: setattr(g[1].outputs[0], "name", "v1"))
    assert "no node produces the output 'v3'" in refused(lambda g: g.remove(g[2]))


# Scale


def test_time_is_linear_in_nodes() -> None:
    count = 20_000
    nodes = [helper.make_node("Neg", [f"v{i}"], [f"v{i + 1}"], name=f"n{i}") for i in range(count)]
    infos = [helper.make_tensor_value_info(f"v{i}", FLOAT, ["N", 8]) for i in range(count + 1)]
    graph = helper.make_graph(nodes, "long", infos[:1], infos[-1:], value_info=infos[1:-1])
    data = helper.make_model(graph).SerializeToString()
    start = time.process_time()
    load(data).to_proto()
    assert time.process_time() - start < 8, "1 s on an idle machine"


def test_loading_imports_no_framework() -> None:
    code = (
        "import sys, onward.model; print(*{'torch', 'tensorflow', 'jax', 'sklearn', 'onnxruntime'} & set(sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == ""


# State of training, which is large as weights are


def trained() -> onnx.ModelProto:
    """A model whose training info has a large tensor in each of its graphs, and a small one."""
    proto = everything()
    for index, graph in enumerate((proto.training_info[0].initialization, proto.training_info[0].algorithm)):
        arrays = {"large": np.arange(3000, dtype=np.float32) + index, "small": np.arange(3.0) + index}
        graph.initializer.extend(numpy_helper.from_array(array, name) for name, array in arrays.items())
    return proto


@pytest.mark.parametrize("external", [None, True])
def test_training_state_is_saved_and_read(external: bool | None, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "net.onnx"
    model = load(trained())
    model.save(path, external_data=external)
    assert (path.stat().st_size < 12000) == bool(external)
    same(load(trained()).to_proto(), load(path).to_proto())
    if external:
        held = onnx.load(path, load_external_data=False).training_info[0].algorithm.initializer
        assert [tensor.data_location for tensor in held if tensor.name == "large"] == [TensorProto.EXTERNAL]
    else:
        same(load(trained()).to_proto(), onnx.load(path))


def test_training_state_that_is_too_large_goes_to_a_file_of_its_own(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Without it, weights would fit into one file."""
    model = load(trained())
    monkeypatch.setattr("onward.model.LARGEST_FILE", model.nbytes - 20000)
    model.save(tmp_path / "net.onnx")
    assert (tmp_path / "net.onnx.data").stat().st_size > 24000
    same(load(trained()).to_proto(), load(tmp_path / "net.onnx").to_proto())
    with pytest.raises(OnwardError, match="too large for one file"):
        model.save(tmp_path / "other.onnx", external_data=False)
    model.training_info.clear()
    model.save(tmp_path / "plain.onnx")
    assert not (tmp_path / "plain.onnx.data").exists()


def test_a_reference_in_a_file_leads_nowhere() -> None:
    """Only what was read from this very file is ever held."""
    proto = trained()
    tensor = proto.training_info[0].algorithm.initializer[-2]
    tensor.ClearField("raw_data")
    tensor.data_location = TensorProto.EXTERNAL
    tensor.external_data.add(key="location", value="\0held:0")
    with pytest.raises(InvalidModelError, match="its data is in the file"):
        load(proto)
