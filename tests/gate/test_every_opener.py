"""Every way in which a file is opened goes through the gate, and what would be executed is refused."""

import ast
import json
import os
import pickle
import signal
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from messages import problem
from onnx import TensorProto, helper

from onward.backends.matlab import matfile
from onward.cli import main
from onward.errors import InvalidModelError
from onward.formats import Kind, kind_of, kinds

SOURCE = Path(__file__).parents[2] / "src" / "onward"
SECONDS = 120
"""After which something is taken to wait for ever."""
KINDS = {kind.name: kind for kind in kinds()}


@pytest.fixture(autouse=True)
def in_time() -> Iterator[None]:
    def end(*_: object) -> None:
        raise TimeoutError("it waits for ever")

    before = signal.signal(signal.SIGALRM, end)
    signal.alarm(SECONDS)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a model that doubles what it is given, or makes scores of it."""
    monkeypatch.chdir(tmp_path)
    graph = helper.make_graph(
        [helper.make_node("Add", ["x", "x"], ["y"])],
        "g",
        [helper.make_tensor_value_info("x", TensorProto.FLOAT, ["n", 4])],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, ["n", 4])],
    )
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 18)], ir_version=9), "net.onnx")
    return tmp_path


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """In one line, with exit code 2."""
    capsys.readouterr()
    assert main(list(words)) == 2
    return problem(capsys.readouterr().err)


# What is no file


def test_recognisers_do_not_wait(here: Path) -> None:
    os.mkfifo(here / "model.onnx")
    for kind in KINDS.values():
        assert not kind.recognise(here / "model.onnx")
    with pytest.raises(InvalidModelError, match="it is a named pipe, not a file"):
        kind_of(here / "model.onnx")


@pytest.mark.parametrize("path", ["pipe.onnx", "/dev/zero"])
@pytest.mark.parametrize(
    "words",
    [
        ["convert", "?", "--to", "torch", "--out", "out"],
        ["verify", "?", "net.onnx"],
        ["verify", "net.onnx", "net.onnx", "--inputs", "?"],
        ["inspect", "?"],
        ["layout", "?", "--to", "nhwc", "--out", "out.onnx"],
        ["train", "prepare", "?", "--out", "out.onnx"],
        ["train", "inspect", "?"],
        ["train", "run", "?", "--data", "data.npz", "--out", "out.onnx"],
        ["train", "export", "?", "--to", "torch", "--out", "out"],
    ],
    ids=lambda words: " ".join(words[:3]),
)
def test_pipes_and_devices(words: list[str], path: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe.onnx")
    refused(capsys, *(path if word == "?" else word for word in words))


@pytest.mark.parametrize("path", ["pipe.onnx", "/dev/zero"])
def test_pipes_and_devices_as_others(path: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo("pipe.onnx")
    assert main(["verify", "net.onnx", path]) == 2
    assert "not a file" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["data.npz", "data.npy", "data.png", "data.pb"])
def test_pipes_as_data(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    os.mkfifo(name)
    assert "named pipe" in refused(capsys, "verify", "net.onnx", "net.onnx", "--inputs", name)


# What would be executed


class Runs:
    """What touches a file when it is unpickled."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __reduce__(self) -> Any:
        return Path.touch, (self.marker,)


def a_pickle(folder: Path, marker: Path) -> Path:
    (folder / "net.pkl").write_bytes(pickle.dumps(Runs(marker)))
    return folder / "net.pkl"


def a_module(folder: Path, marker: Path) -> Path:
    torch = pytest.importorskip("torch")
    torch.save({"weights": torch.ones(2), "more": Runs(marker)}, folder / "net.pt")
    return folder / "net.pt"


def a_torch_package(folder: Path, marker: Path) -> Path:
    return _package(folder, f"import pathlib\npathlib.Path({str(marker)!r}).touch()\n")


def a_tensorflow_package(folder: Path, marker: Path) -> Path:
    return _package(folder, f"import tensorflow as tf\nopen({str(marker)!r}, 'w').close()\n")


def a_jax_package(folder: Path, marker: Path) -> Path:
    return _package(folder, f"import jax\nopen({str(marker)!r}, 'w').close()\n")


def a_matlab_package(folder: Path, marker: Path) -> Path:
    place = folder / "+net"
    place.mkdir()
    (place / "model.m").write_text(f"function y = model(params, x)\nfclose(fopen('{marker}', 'w'));\ny = x + x;\nend\n")
    (place / "load.m").write_text("function params = load()\nparams = struct();\nend\n")
    with (place / "params.mat").open("wb") as file:
        matfile.write(file, {"params": {"w": np.zeros(2, np.float32)}})
    sides = {"inputs": "x", "outputs": "y"}
    shaped = {"kind": "tensor", "dtype": "FLOAT", "shape": [None, 4]}
    told = {role: [{"name": name, **shaped}] for role, name in sides.items()}
    (place / "interface.json").write_text(json.dumps(told))
    return place


def a_stablehlo_module(folder: Path, marker: Path) -> Path:
    """It calls a function that is none of its own."""
    (folder / "net.mlir").write_text("""module { func.func @main(%a: tensor<2xf32>) -> tensor<2xf32> {
      %0 = stablehlo.custom_call @xla_python_cpu_callback(%a) : (tensor<2xf32>) -> tensor<2xf32>
      return %0 : tensor<2xf32> } }""")
    return folder / "net.mlir"


def _package(folder: Path, source: str) -> Path:
    place = folder / "net"
    place.mkdir()
    (place / "model.py").write_text(source)
    (place / "weights.safetensors").write_bytes((2).to_bytes(8, "little") + b"{}")
    return place


def a_keras_file(folder: Path, marker: Path) -> Path:
    keras = pytest.importorskip("keras")
    x = keras.Input((4,), name="x")
    net = keras.Model(x, keras.layers.Lambda(eval(f"lambda t: open({str(marker)!r}, 'w') and t * 2"))(x))
    net.save(folder / "net.keras")
    marker.unlink(missing_ok=True)
    return folder / "net.keras"


def a_program(folder: Path, marker: Path) -> Path:
    torch = pytest.importorskip("torch")
    dims = ({0: torch.export.Dim("batch")},)
    torch.export.save(
        torch.export.export(torch.nn.ReLU(), (torch.ones(3, 4),), dynamic_shapes=dims), folder / "whole.pt2"
    )
    code = f"__import__('pathlib').Path({str(marker)!r}).touch() or Symbol"
    with zipfile.ZipFile(folder / "whole.pt2") as whole, zipfile.ZipFile(folder / "net.pt2", "w") as net:
        for name in whole.namelist():
            net.writestr(name, whole.read(name).replace(b'"Symbol', f'"{code}'.encode()))
    (folder / "whole.pt2").unlink()
    return folder / "net.pt2"


def an_estimator(folder: Path, marker: Path) -> Path:
    pytest.importorskip("skops")
    node = {"__module__": "builtins", "__class__": "str", "__loader__": "JsonNode", "__id__": 1}
    path = {**node, "content": json.dumps(str(marker))}
    arguments = {**node, "__class__": "tuple", "__loader__": "TupleNode", "__id__": 2, "content": [path]}
    called = {"__module__": "os", "__class__": "mkdir", "__loader__": "ConstructorFromReduceNode", "__id__": 3}
    with zipfile.ZipFile(folder / "net.skops", "w") as archive:
        schema = {**called, "content": arguments, "protocol": 2, "_skops_version": "0"}
        archive.writestr("schema.json", json.dumps(schema))
    return folder / "net.skops"


def _writing(marker: Path) -> Any:
    tf = pytest.importorskip("tensorflow")

    def net(x: Any) -> Any:
        with tf.control_dependencies([tf.io.write_file(str(marker), "1")]):
            return tf.nn.relu(x)

    return tf.function(net, input_signature=[tf.TensorSpec([None, 4], tf.float32, "x")])


def a_saved_model(folder: Path, marker: Path) -> Path:
    module = pytest.importorskip("tensorflow").Module()
    module.net = _writing(marker)
    pytest.importorskip("tensorflow").saved_model.save(module, str(folder / "net"))
    return folder / "net"


def a_graph(folder: Path, marker: Path) -> Path:
    graph = _writing(marker).get_concrete_function().graph.as_graph_def()
    (folder / "net.pb").write_bytes(graph.SerializeToString())
    return folder / "net.pb"


def a_tflite_file(folder: Path, marker: Path) -> Path:
    tf = pytest.importorskip("tensorflow")
    flatbuffers = pytest.importorskip("flatbuffers")
    from flatbuffers import flexbuffers
    from tensorflow.core.framework import node_def_pb2
    from tensorflow.lite.python import schema_py_generated as schema

    function = tf.function(tf.strings.as_string, input_signature=[tf.TensorSpec([2], tf.float32)])
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function.get_concrete_function()])
    converter.target_spec.supported_ops = [tf.lite.OpsSet.SELECT_TF_OPS]
    options = flexbuffers.Builder()
    with options.Vector():
        options.String("AsString")
        options.String(node_def_pb2.NodeDef(name="x", op="WriteFile").SerializeToString().decode())
    model = schema.ModelT.InitFromPackedBuf(converter.convert(), 0)
    model.subgraphs[0].operators[-1].customOptions = list(options.Finish())
    builder = flatbuffers.Builder()
    builder.Finish(model.Pack(builder), b"TFL3")
    (folder / "net.tflite").write_bytes(builder.Output())
    return folder / "net.tflite"


HOSTILE: dict[str, Callable[[Path, Path], Path]] = {
    "pickle": a_pickle,
    "PyTorch module": a_module,
    "generated PyTorch package": a_torch_package,
    "generated TensorFlow package": a_tensorflow_package,
    "generated JAX package": a_jax_package,
    "generated MATLAB package": a_matlab_package,
    "StableHLO module": a_stablehlo_module,
    "Keras model": a_keras_file,
    "exported PyTorch program": a_program,
    "scikit-learn estimator": an_estimator,
    "SavedModel": a_saved_model,
    "TensorFlow graph": a_graph,
    "TensorFlow Lite model": a_tflite_file,
}
"""By kind: makes a file that touches the marker when it is opened or run."""
HARMLESS = {
    "XGBoost model": "trees, read as JSON and checked before XGBoost sees them",
    "LightGBM model": "trees, read as text and checked before LightGBM sees them; the parameters are left out",
}
NOT_CONVERTED = {
    "generated TensorFlow package": "there is no way from it to ONNX",
    "generated JAX package": "there is no way from it to ONNX",
    "generated MATLAB package": "there is no way from it to ONNX",
}
TOLD_BY_WEIGHTS = {"generated PyTorch package", "generated TensorFlow package", "generated JAX package"}
RUN_WHEN_TRUSTED = {
    *("pickle", "PyTorch module", "generated PyTorch package", "Keras model"),
    *("exported PyTorch program", "scikit-learn estimator", "SavedModel", "TensorFlow graph"),
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.name)
def test_every_kind_is_opened_through_the_gate(kind: Kind) -> None:
    assert hasattr(kind.open, "dangers")
    assert (kind.name in HOSTILE) != (kind.name in HARMLESS)


@pytest.mark.parametrize("name", HOSTILE)
def test_nothing_in_a_file_is_executed(name: str, here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever it is called: it is told by its content."""
    marker = here / "ran"
    path = HOSTILE[name](here, marker).rename(here / "model.onnx")
    for words in (
        ["convert", str(path), "--to", "onnx", "--out", "out.onnx"],
        ["convert", str(path), "--to", "onnx", "--out", "out.onnx", "--no-verify"],
        ["verify", "net.onnx", str(path)],
        ["verify", str(path), "net.onnx"],
        *([["verify", "net.onnx", str(path), "--isolate"]] if name in ("pickle", "Keras model") else []),
    ):
        error = refused(capsys, *words)
        assert "--trust opens it" in error or (words[0] == "convert" and name in NOT_CONVERTED)
    refused(capsys, "train", "prepare", str(path), "--out", "out.onnx")
    if name in TOLD_BY_WEIGHTS:
        assert main(["inspect", str(path)]) == 0
    else:
        refused(capsys, "inspect", str(path))
    assert not marker.exists()


@pytest.mark.parametrize("name", sorted(RUN_WHEN_TRUSTED))
def test_what_is_trusted_is_executed(name: str, here: Path) -> None:
    """Or the test above would prove nothing."""
    marker = here / "ran"
    path = HOSTILE[name](here, marker)
    main(["verify", "net.onnx", str(path), "--trust"])
    assert marker.exists()


# What opens files


READERS = {
    "exec", "eval", "h5py.File", "joblib.load", "lite.Interpreter", "Interpreter", "load_model", "marshal.loads",
    "np.load", "numpy.load", "pickle.load", "pickle.loads", "runpy.run_module", "runpy.run_path", "saved_model.load",
    "safe_open", "load_file", "torch.export.load", "torch.jit.load", "torch.load", "train.load_checkpoint",
    "import_graph_def", "xgboost.Booster", "lightgbm.Booster", "ctypes.CDLL", "pandas.read_csv", "pandas.read_pickle",
}  # fmt: skip
"""What opens files, or executes what was in one."""
ALLOWED = {
    "backends/emit/execute.py:run_in": "source that was generated in this process",
    "backends/tensorflow/runtime/weights.py:load": "tensors, by generated code in the user's own program",
    "cli/supervise.py:_end_with": "the C library that Python itself runs on",
    "gate/arrays.py:load": "the one reader of arrays, which opens no pickles",
    "gate/hdf5.py:total": "in a process of its own, before anything is opened",
    "gate/running.py:run_source": "the one place where source in files is executed: it checks each",
    "training/runtime/checkpoint.py:read": "tensors",
    "training/info/read.py:load": "ONNX",
    "training/native/compiler.py:loaded": "what was compiled here, from a folder that nobody else can write",
    "formats/checkpoint.py:__init__": "tensors",
    "formats/keras/dangers.py:attribute": "a text, before anything is opened",
    "formats/keras/dangers.py:_dangers_of_hdf5": "links, before anything is opened",
    "formats/keras/__init__.py:_loaded": "called by `loaded` and `loaded_compiled`",
    "formats/keras/keras_2.py:opened": "called by `loaded`, and looks for dangers itself",
    "formats/tensorflow_order.py:built": "the graph of a function that is open already",
    "formats/tflite.py:_interpreter": "called by `open_tflite`",
    "frontends/tflite/flex.py:written": "a node that `check_content` has let through, for its shapes",
    "formats/torch_module.py:dangers": "PyTorch's reader of tensors alone",
    "formats/pt2/archive.py:_unpickled": "PyTorch's reader of tensors alone",
    "runners/isolate.py:serve": "what the parent process sends",
    "engine/process.py:_unpacked": "what the parent process sends",
    "engine/process.py:_done": "what the parent process sends",
    "engine/process.py:unpacked": "what a process that it started sends",
    "plugins/check.py:function_of": "the source of a plugin that is imported already",
    "writing/exchange.py:_renameat2": "the C library that Python itself runs on",
}
"""Calls outside of functions that are declared with `@opens`, and why they may be there."""


def calls(path: Path) -> Iterator[str]:
    """Where something is opened by functions that are not declared with `@opens`."""

    def walk(node: ast.AST, inside: str) -> Iterator[str]:
        if isinstance(node, ast.FunctionDef):
            if any(isinstance(d, ast.Call) and ast.unparse(d.func) == "opens" for d in node.decorator_list):
                return
            inside = node.name
        if isinstance(node, ast.Call):
            called = ast.unparse(node.func)
            if (
                any(called == reader or called.endswith(f".{reader}") for reader in READERS - {"eval"})
                or called == "eval"
            ):
                yield f"{path.relative_to(SOURCE).as_posix()}:{inside}"
        for child in ast.iter_child_nodes(node):
            yield from walk(child, inside)

    yield from walk(ast.parse(path.read_text()), "")


def test_nothing_is_opened_past_the_gate() -> None:
    found = {call for path in SOURCE.rglob("*.py") for call in calls(path)}
    assert found == ALLOWED.keys()


def test_numbers_of_a_sample(here: Path) -> None:
    np.savez(here / "objects.npz", x=np.array([Runs(here / "ran")], object))
    assert main(["verify", "net.onnx", "net.onnx", "--inputs", "objects.npz"]) == 2
    assert not (here / "ran").exists()
