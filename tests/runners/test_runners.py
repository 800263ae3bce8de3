"""Every runner computes the same, takes inputs by name, and says clearly what it does not take."""

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import onnx
import onnx_ir as ir
import pytest
from onnx import TensorProto, helper

from onward import runners
from onward.errors import OnwardError, RunFailure, UnsupportedError
from onward.graph import narrow
from onward.model import Model, load
from onward.runners import Runner
from onward.runners.files import own_file
from onward.runners.openvino import _fed, _places
from onward.scoreboard.suite import prepare

ALL = ["onnxruntime", "onnxruntime:unoptimized", "onnxruntime:CPU", "reference", "torch", "openvino", "openvino:AUTO"]
SLOW = ["torch:compile", "torch:export"]

TWO = """<ir_version: 9, opset_import: ["": 18]>
two (float[N, 3] b, float[3] a) => (float[N, 3] difference, int64[2] size) { difference = Sub(b, a) size = Shape(b) }"""
DEFAULT = """<ir_version: 9, opset_import: ["": 18]>
g (float[2] x, float[2] w) => (float[2] y) <float[2] w = {3, 4}> { y = Mul(x, w) }"""
SEQUENCE = """<ir_version: 9, opset_import: ["": 18]>
g (seq(float[N]) s) => (float[M] y) { y = ConcatFromSequence <axis = 0> (s) }"""
SPLIT = """<ir_version: 9, opset_import: ["": 18]>
g (float[4] x) => (seq(float[2]) y) <int64 n = {2}> { y = SplitToSequence <axis = 0> (x, n) }"""
STRINGS = """<ir_version: 9, opset_import: ["": 20]>
g (string[N] a, string[N] b) => (string[N] y) { y = StringConcat(a, b) }"""


def text(model: str) -> Model:
    return load(onnx.parser.parse_model(model))


@pytest.mark.parametrize("name", ALL + SLOW)
def test_inputs_and_outputs_go_by_name(name: str) -> None:
    run = runners.prepare(name, text(TWO))
    for rows in (2, 5):
        a, b = np.arange(3, dtype=np.float32), np.ones((rows, 3), np.float32)
        found = run({"a": a, "b": b})
        assert list(found) == ["difference", "size"]
        np.testing.assert_array_equal(found["difference"], b - a)
        np.testing.assert_array_equal(found["size"], [rows, 3])
        assert found["difference"].dtype == np.float32 and found["size"].dtype == np.int64


@pytest.mark.parametrize("name", ["onnxruntime", "onnxruntime:unoptimized", "reference"])
def test_a_runner_may_begin_before_it_is_needed(name: str) -> None:
    waiting = [runners.start(name, text(TWO)) for _ in range(2)]
    a, b = np.arange(3, dtype=np.float32), np.ones((2, 3), np.float32)
    for wait in waiting:
        np.testing.assert_array_equal(wait()({"a": a, "b": b})["difference"], b - a)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ({"b": np.ones((2, 3), np.float32)}, "nothing is given for the input 'a'"),
        ({"a": None, "b": np.ones((2, 3), np.float32)}, "nothing is given for the input 'a'"),
        ({"c": np.ones(3, np.float32)}, "there is no input 'c'; the model has 'b', 'a'"),
        ({"a": np.ones(3), "b": np.ones((2, 3), np.float32)}, "the input 'a' is float, but got float64"),
        ({"a": np.array(["x"] * 3), "b": np.ones((2, 3), np.float32)}, "the input 'a' is float, but got <U1"),
        (
            {"a": np.ones(3, np.float32), "b": np.ones((2, 4), np.float32)},
            r"the input 'b' has the shape \[N, 3\], but got \[2, 4\]",
        ),
        ({"a": np.ones(3, np.float32), "b": np.ones(3, np.float32)}, r"has the shape \[N, 3\], but got \[3\]"),
    ],
)
def test_wrong_inputs(name: str, inputs: dict[str, Any], message: str) -> None:
    with pytest.raises(RunFailure, match=message):
        runners.prepare(name, text(TWO))(inputs)


@pytest.mark.parametrize("name", ALL)
def test_a_default_is_replaced_or_refused(name: str) -> None:
    run = runners.prepare(name, text(DEFAULT))
    x, w = np.ones(2, np.float32), np.zeros(2, np.float32)
    np.testing.assert_array_equal(run({"x": x})["y"], [3, 4])
    if name.startswith(("torch", "openvino")):
        with pytest.raises(RunFailure, match="the input 'w' has a default"):
            run({"x": x, "w": w})
    else:
        np.testing.assert_array_equal(run({"x": x, "w": w})["y"], [0, 0])


@pytest.mark.parametrize("name", ALL)
def test_sequences(name: str) -> None:
    items = [np.ones(2, np.float32), np.zeros(1, np.float32)]
    if name.startswith("openvino"):
        for model in (SEQUENCE, SPLIT):
            with pytest.raises(RunFailure, match="OpenVINO takes and gives tensors only"):
                runners.prepare(name, text(model))
        return
    run = runners.prepare(name, text(SEQUENCE))
    np.testing.assert_array_equal(run({"s": items})["y"], [1, 1, 0])
    with pytest.raises(RunFailure, match="the input 's' is a sequence, but got ndarray"):
        run({"s": items[0]})
    found = runners.prepare(name, text(SPLIT))({"x": np.arange(4, dtype=np.float32)})["y"]
    assert [v.tolist() for v in found] == [[0, 1], [2, 3]]


@pytest.mark.parametrize("name", ALL)
def test_strings(name: str) -> None:
    inputs = {"a": np.array(["x", "ü"], object), "b": np.array(["1", ""])}
    if name.startswith("openvino"):
        with pytest.raises(RunFailure, match="StringConcat"):
            runners.prepare(name, text(STRINGS))
        return
    assert runners.prepare(name, text(STRINGS))(inputs)["y"].tolist() == ["x1", "ü"]


# fmt: off
NARROW = ["INT4", "UINT4", "INT2", "UINT2", "FLOAT4E2M1", "BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2",
          "FLOAT8E5M2FNUZ", "FLOAT8E8M0", "FLOAT16"]
# fmt: on
NOT_THERE = {
    "onnxruntime": {"FLOAT4E2M1"},
    "openvino": {"INT2", "UINT2", "FLOAT8E4M3FNUZ", "FLOAT8E5M2FNUZ"},
}


@pytest.mark.parametrize("name", ["onnxruntime", "reference", "torch", "openvino"])
@pytest.mark.parametrize("dtype", NARROW)
def test_narrow_dtypes(name: str, dtype: str) -> None:
    """As an output and as an input, five elements, so that some share a byte and the last byte is not full."""
    kind = getattr(TensorProto, dtype)
    values = np.array([1, 2, 1, -2, 1] if dtype.startswith(("I", "B", "F")) else [1, 2, 1, 3, 1], np.float32)
    if dtype in ("INT2", "FLOAT8E8M0"):
        values = np.array([1, -2, 1, -1, 1] if dtype == "INT2" else [1, 2, 0.5, 4, 1], np.float32)
    small = values.astype(helper.tensor_dtype_to_np_dtype(kind))
    if dtype in NOT_THERE.get(name, ()):
        with pytest.raises(RunFailure):
            prepare(name, cast(TensorProto.FLOAT, kind))
        return
    (down,) = prepare(name, cast(TensorProto.FLOAT, kind))([values])
    assert down.dtype == small.dtype
    np.testing.assert_array_equal(down.astype(np.float32), values)
    (up,) = prepare(name, cast(kind, TensorProto.FLOAT))([small])
    np.testing.assert_array_equal(up, values)


def cast(before: int, after: int) -> onnx.ModelProto:
    graph = helper.make_graph(
        [helper.make_node("Cast", ["x"], ["y"], to=after)],
        "cast",
        [helper.make_tensor_value_info("x", before, ["n"])],
        [helper.make_tensor_value_info("y", after, ["n"])],
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 25)], ir_version=13)


@pytest.mark.parametrize("shape", [(), (0,), (1,), (5,), (3, 3)])
@pytest.mark.parametrize("dtype", [*narrow.BITS, ml_dtypes.bfloat16, ml_dtypes.float8_e5m2])
def test_packing_is_as_onnx_has_it(dtype: Any, shape: tuple[int, ...]) -> None:
    array = np.resize(np.array([1, -1, 0, -2, 1, 1, -1], np.float32), shape).astype(dtype)
    packed = narrow.pack(array)
    assert packed.tobytes() == onnx.numpy_helper.from_array(array).raw_data
    back = narrow.unpack(packed.tobytes(), array.dtype, shape)
    assert back.dtype == array.dtype and back.shape == shape
    np.testing.assert_array_equal(back.astype(np.float32), array.astype(np.float32))


UNKNOWN_OP = TWO.replace("Sub(", "Nonsense(")


@pytest.mark.parametrize("name", [*ALL, *SLOW])
def test_what_cannot_be_run_is_one_line(name: str) -> None:
    with pytest.raises(OnwardError, match="Nonsense") as caught:
        runners.prepare(name, text(UNKNOWN_OP))({"a": np.ones(3, np.float32), "b": np.ones((2, 3), np.float32)})
    assert "\n" not in str(caught.value) and len(str(caught.value)) < 400


FORKED = """
import os, sys, onnx
from onward.model import load
from onward import runners
model = load(onnx.parser.parse_model(sys.argv[1]))
runners.start("onnxruntime", model)()
child = os.fork()
runners.start("onnxruntime", model)()
if not child:
    os._exit(7)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 7
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
def test_a_process_that_was_forked_begins_on_a_thread_of_its_own() -> None:
    subprocess.run([sys.executable, "-W", "ignore", "-c", FORKED, TWO], check=True, timeout=100)


def test_what_was_begun_in_vain_is_one_line_when_it_is_waited_for() -> None:
    wait = runners.start("onnxruntime", text(UNKNOWN_OP))
    with pytest.raises(RunFailure, match=r"^onnxruntime: .*Nonsense"):
        wait()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        (
            "nothing",
            "there is no runner 'nothing'; there are iree, jax, keras, matlab, onnxruntime, openvino, reference,"
            " tensorflow, torch",
        ),
        ("tflite", r"there is no runner 'tflite'; .*; did you mean tensorflow:tflite\?"),
        ("torch:fast", "torch has no mode 'fast'; it has compile, export"),
        ("reference:fast", "reference has no mode 'fast'; it has none"),
        ("onnxruntime:Fast", "ONNX Runtime has no execution provider 'Fast'; it has .*CPUExecutionProvider"),
        ("openvino:Fast", "OpenVINO has no device 'Fast'; it has CPU, .*AUTO"),
    ],
)
def test_unknown_names(name: str, message: str) -> None:
    with pytest.raises(UnsupportedError, match=message):
        runners.prepare(name, text(TWO))


def test_what_is_written_stays_as_long_as_it_is_run() -> None:
    """TensorFlow Lite's interpreter opens the file anew for each run."""
    model, sample = text(TWO), {"b": np.ones((2, 3), np.float32), "a": np.float32([1, 2, 3])}
    run, expected = runners.prepare("tensorflow:tflite", model), runners.prepare("onnxruntime", model)(sample)
    for _ in range(2):
        for name, value in run(sample).items():
            np.testing.assert_allclose(value, expected[name], rtol=1e-6)


def test_a_package_that_is_missing_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        runners.RUNNERS._user, "mine", Runner("mine", "", "no_such_package", lambda model, mode: lambda inputs: {}, {})
    )
    with pytest.raises(UnsupportedError, match="no_such_package is not installed: pip install no_such_package"):
        runners.prepare("mine", text(TWO))


def test_exported_programs_take_the_sizes_that_the_model_takes() -> None:
    """From an example with one row, of which the exporter makes a constant, it goes on to others."""
    run = runners.prepare("torch:export", text(TWO))
    a = np.arange(3, dtype=np.float32)
    for rows in (1, 4, 7, 1):
        b = np.ones((rows, 3), np.float32)
        np.testing.assert_array_equal(run({"a": a, "b": b})["difference"], b - a)


@pytest.mark.parametrize("name", ["onnxruntime", "reference", "openvino"])
def test_external_data_is_read_from_the_models_own_file(name: str, tmp_path: Path) -> None:
    weight = np.random.default_rng(0).standard_normal((64, 64)).astype(np.float32)
    model = onnx.parser.parse_model(TWO.replace("[3]", "[64]").replace(", 3]", ", 64]").replace("Sub", "MatMul"))
    del model.graph.input[1]
    model.graph.initializer.append(onnx.numpy_helper.from_array(weight, "a"))
    load(model).save(path := tmp_path / "large.onnx", external_data=True)
    found = load(path)
    assert own_file(found) == path
    x = np.eye(64, dtype=np.float32)
    np.testing.assert_allclose(runners.prepare(name, found)({"b": x})["difference"], weight, rtol=1e-6)
    found.ir.graph.initializers["a"].const_value = ir.Tensor(2 * weight)
    assert own_file(found) is None
    np.testing.assert_allclose(runners.prepare(name, found)({"b": x})["difference"], 2 * weight, rtol=1e-6)


class Port:
    def __init__(self, *names: str) -> None:
        self.names = set(names)


def test_outputs_of_openvino_are_matched_by_name_then_position() -> None:
    assert _places(["a", "b"], [Port("b"), Port("x", "a")]) == [1, 0]
    assert _places(["a", "b"], [Port("a"), Port()]) == [0, 1]
    for ports in ([Port("b"), Port()], [Port("a")], [Port("a"), Port(), Port()]):
        with pytest.raises(RunFailure, match="OpenVINO has no output"):
            _places(["a", "b"], ports)


def test_inputs_of_openvino_are_matched_by_name_then_position() -> None:
    assert _fed([Port("b"), Port("x", "a")], ["a", "b"]) == ["b", "a"]
    assert _fed([Port("b")], ["a", "b"]) == ["b"]
    assert _fed([Port(), Port("b")], ["a", "b"]) == ["a", "b"]
    for ports in ([Port()], [Port("b"), Port()], [Port("a"), Port("a")]):
        with pytest.raises(RunFailure, match="OpenVINO has other inputs"):
            _fed(ports, ["a", "b"])


def test_frameworks_are_imported_only_when_used() -> None:
    code = (
        "import sys; from onward import runners; runners.load_all(); runners.find('torch');"
        "print([n for n in ('torch', 'onnxruntime', 'openvino', 'onnx.reference') if n in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
