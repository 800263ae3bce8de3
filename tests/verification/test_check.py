"""What every conversion ends with: what differs is not handed over, and what is not proven is not called so."""

from __future__ import annotations

import random
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper

import onward
from onward.cli import main
from onward.errors import NotVerifiedWarning, VerificationError
from onward.model import load
from onward.registry import Registry
from onward.verification.check import compared, compared_with_source, source_side, verdict

torch = pytest.importorskip("torch")

TO = {"to_torch": "torch", "to_tensorflow": "tensorflow", "to_keras": "keras"}


def model(*nodes: onnx.NodeProto, shape: tuple[Any, ...] = ("batch", 4)) -> onnx.ModelProto:
    """From x to y; there is a weight w, and a place 0."""
    weights = [np.arange(12, dtype=np.float32).reshape(4, 3) / 10 - 0.5, np.int64([0]), np.float32(-1)]
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, shape)
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, None)
    named = [numpy_helper.from_array(w, name) for w, name in zip(weights, ("w", "zero", "minus"), strict=True)]
    graph = helper.make_graph(list(nodes), "net", [x], [y], named)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)


def node(op_type: str, *inputs: str, to: str = "y", **attributes: Any) -> onnx.NodeProto:
    return helper.make_node(op_type, list(inputs), [to], **attributes)


DENSE = (node("MatMul", "x", "w", to="h"), node("Erf", "h"))
EMPTY = (node("Slice", "x", "zero", "zero", "zero"),)
NO_NUMBER = (node("Abs", "x", to="h"), node("Sub", "minus", "h", to="n"), node("Log", "n"))
DRAWN = (node("RandomNormalLike", "x"),)


@contextmanager
def wrongly(rules: Registry[Any], op_type: str, rule: Any) -> Iterator[None]:
    """With a rule of the user's for an op, which is not right."""
    rules.register(op_type, user=True)(rule)
    try:
        yield
    finally:
        del rules._user[op_type]


def rules_of(name: str) -> tuple[Registry[Any], Any]:
    """The rules of a backend, and its word for a function that is not the one asked for."""
    if name == "to_torch":
        from onward.backends.torch.target import TARGET, F

        return TARGET.rules, lambda e, x: F.relu(x)
    from onward.backends.tensorflow.target import TARGET, tf

    return TARGET.rules, lambda e, x: tf.nn.relu(x)


@pytest.mark.parametrize("name", TO)
def test_what_differs_is_not_handed_over(name: str) -> None:
    pytest.importorskip(TO[name])
    convert = getattr(onward, name)
    rules, wrong = rules_of(name)
    proto = model(*DENSE)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotVerifiedWarning)
        convert(proto)
    with wrongly(rules, "Erf", wrong):
        with pytest.raises(
            VerificationError, match=r"differs from onnxruntime: y: .*, on the inputs 'random.*; check=False hands it"
        ):
            convert(proto)
        assert convert(proto, check=False) is not None


@pytest.mark.parametrize(
    ("nodes", "words"),
    [
        (EMPTY, "not verified: every output is empty, for all of the data"),
        (NO_NUMBER, "not verified: no output has a finite number in it, for any of the data"),
        (DRAWN, r"not verified: it draws random numbers \(RandomNormalLike\)"),
    ],
)
def test_a_verdict_on_nothing_is_none(
    nodes: tuple[onnx.NodeProto, ...], words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    proto = model(*nodes, shape=(2, 4))
    with pytest.warns(NotVerifiedWarning, match=words) as caught:
        onward.to_torch(proto)
    assert [Path(warning.filename).name for warning in caught] == [Path(__file__).name]
    onnx.save(proto, tmp_path / "net.onnx")
    assert main(["convert", str(tmp_path / "net.onnx"), "--to", "torch", "--out", str(tmp_path / "out")]) == 3
    said = capsys.readouterr().err
    assert words.partition(r"\(")[0] in said and " verified: worst" not in said


def test_axes_in_another_order_are_checked() -> None:
    pytest.importorskip("tensorflow")
    proto = model(node("GlobalAveragePool", "x"), shape=("batch", 2, 5, 6))
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotVerifiedWarning)
        net = onward.to_tensorflow(proto, inputs_nhwc=["x"])
    assert net(np.ones((1, 5, 6, 2), np.float32)).shape == (1, 2, 1, 1)


def test_what_a_framework_makes_of_it_is_no_noise_of_the_graph() -> None:
    """In a graph that quantises, noise may be large; a result that is off is off all the same."""
    weights = [("scale", np.float32(0.05)), ("zero", np.uint8(128)), ("w", np.eye(4, dtype=np.float32))]
    nodes = [
        helper.make_node("QuantizeLinear", ["x", "scale", "zero"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "scale", "zero"], ["d"]),
        helper.make_node("MatMul", ["d", "w"], ["y"]),
    ]
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", 4]) for name in "xy")
    named = [numpy_helper.from_array(np.asarray(array), name) for name, array in weights]
    graph = helper.make_graph(nodes, "net", [x], [y], named)
    proto = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 20)], ir_version=9)
    session = onnxruntime.InferenceSession(proto.SerializeToString())

    def run(inputs: dict[str, Any]) -> dict[str, Any]:
        return {"y": session.run(None, inputs)[0]}

    original = source_side(load(proto), lambda inputs: {"y": 1.3 * run(inputs)["y"]}, "the framework")
    assert verdict(compared(original, run)).status == "different"


class Wrapped(torch.nn.Module):  # type: ignore[misc]
    """Counts its calls, draws numbers that it does not use, and has a part that is not trained on."""

    calls: torch.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.net = torch.nn.Sequential(torch.nn.Linear(4, 3), torch.nn.BatchNorm1d(3), torch.nn.Dropout())
        self.net[1].eval()
        self.register_buffer("calls", torch.zeros(()))
        self.register_buffer("last", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if not torch.compiler.is_exporting():
            self.calls += 1
            self.last = torch.rand(())
        return self.net(x)


def test_a_module_is_left_as_it_was() -> None:
    net = Wrapped()
    random.seed(3)
    states = torch.get_rng_state(), np.random.get_state()[1].tolist(), random.getstate()
    modes, last, held = (
        [part.training for part in net.modules()],
        net.last,
        {k: v.clone() for k, v in net.state_dict().items()},
    )
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotVerifiedWarning)
        onward.from_torch(net, torch.ones(2, 4), dynamic_batch=False)
    assert [part.training for part in net.modules()] == modes and net.last is last
    assert all(torch.equal(value, held[name]) for name, value in net.state_dict().items())
    assert torch.equal(torch.get_rng_state(), states[0])
    assert np.random.get_state()[1].tolist() == states[1] and random.getstate() == states[2]
    net(torch.ones(2, 4)).sum().backward()
    assert all(parameter.grad is not None for parameter in net.net[0].parameters())


def test_a_generated_module_is_as_new() -> None:
    drawn = torch.get_rng_state()
    net = onward.to_torch(
        model(node("RandomNormalLike", "x", to="r"), node("MatMul", "x", "w", to="h"), node("Relu", "h"))
    )
    assert torch.equal(torch.get_rng_state(), drawn)
    assert not net.training and all(weight.requires_grad and weight.grad is None for weight in net.parameters())
    net(torch.ones(2, 4)).sum().backward()


def test_modules_with_a_wrong_translation() -> None:
    from onnxscript import opset18

    class Net(torch.nn.Module):  # type: ignore[misc]
        def forward(self, pair: Any, *, more: Any) -> Any:
            return torch.digamma(pair[0]) + more["x"]

    args, kwargs = ((torch.rand(2, 3) + 1, torch.ones(2, 3)),), {"more": {"x": torch.ones(2, 3)}}
    wrong = {torch.ops.aten.digamma.default: lambda x: opset18.Log(x)}
    with pytest.raises(VerificationError, match="the ONNX model differs from PyTorch: "):
        onward.from_torch(Net(), args, kwargs=kwargs, translations=wrong)
    onward.from_torch(Net(), args, kwargs=kwargs, translations=wrong, check=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotVerifiedWarning)
        onward.from_torch(Net(), args, kwargs=kwargs)


def test_tensorflow_and_keras() -> None:
    tf, keras = pytest.importorskip("tensorflow"), pytest.importorskip("keras")
    from onward.frontends.tensorflow.registry import RULES, Rule

    counter = tf.Variable(0.0)

    def counted(x: Any) -> Any:
        counter.assign_add(1.0)
        return tf.math.softplus(x)

    class Twofold(keras.layers.Layer):  # type: ignore[misc]
        def call(self, x: Any) -> Any:
            return 2 * x if tf.executing_eagerly() else 3 * x

    tf.random.set_seed(5)
    first = float(tf.random.normal([]))
    tf.random.set_seed(5)
    spec = [tf.TensorSpec([None, 3])]
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotVerifiedWarning)
        onward.from_tensorflow(counted, spec)
    assert float(counter) == 0.0 and float(tf.random.normal([])) == first
    with pytest.warns(NotVerifiedWarning, match="not verified: .*BesselY0"):
        onward.from_tensorflow(tf.math.special.bessel_y0, spec, allow_custom_ops=True)
    with (
        wrongly(RULES, "Softplus", Rule(lambda op, x: op.Relu(x), frozenset())),
        pytest.raises(VerificationError, match="the ONNX model differs from TensorFlow: output_0: "),
    ):
        onward.from_tensorflow(counted, spec)
    net = keras.Sequential([keras.Input((3,)), Twofold()])
    with pytest.raises(VerificationError, match="the ONNX model differs from Keras: "):
        onward.from_keras(net)
    assert onward.from_keras(net, check=False).ir.graph.outputs


def test_tensorflow_lite(monkeypatch: pytest.MonkeyPatch) -> None:
    """Weights that are read as no kernel reads them are noticed."""
    tf = pytest.importorskip("tensorflow")
    from onward.frontends.tflite import eight_bits

    weight = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    function = tf.function(lambda x: tf.nn.softmax(x @ weight)).get_concrete_function(tf.TensorSpec([2, 64]))
    converter = tf.lite.TFLiteConverter.from_concrete_functions([function])
    converter.optimizations = [tf.lite.Optimize.DEFAULT]
    lite = bytes(converter.convert())
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotVerifiedWarning)
        onward.from_tflite(lite)
    monkeypatch.setattr(
        eight_bits,
        "as_read",
        lambda op, op_type, value, scale: (value, eight_bits.Scale(-scale.scales, scale.zeros, scale.axis)),
    )
    monkeypatch.setattr("onward.frontends.tflite.translate.as_read", eight_bits.as_read)
    with pytest.raises(VerificationError, match="the ONNX model differs from TensorFlow Lite: "):
        onward.from_tflite(lite)


@pytest.mark.parametrize("library", ["xgboost", "lightgbm"])
@pytest.mark.parametrize("raw", [False, True])
def test_trees(library: str, raw: bool) -> None:
    """Of an estimator that predicts what it likes."""
    package = pytest.importorskip(library)
    base = package.XGBRegressor if library == "xgboost" else package.LGBMRegressor
    quiet = {} if library == "xgboost" else {"verbose": -1}

    class Odd(base):  # type: ignore[misc, valid-type]
        def predict(self, x: Any, **options: Any) -> Any:
            return super().predict(x, **options) + 1

    x = np.random.default_rng(0).normal(size=(100, 3))
    convert = getattr(onward, f"from_{library}")
    with warnings.catch_warnings():
        warnings.simplefilter("error", NotVerifiedWarning)
        plain = base(n_estimators=3, **quiet).fit(x, x[:, 0])
        convert(plain, raw=raw)
        convert(plain.get_booster() if library == "xgboost" else plain.booster_, raw=raw)
    odd = Odd(n_estimators=3, **quiet).fit(x, x[:, 0])
    with pytest.raises(VerificationError, match="the ONNX model differs from "):
        convert(odd, raw=raw)
    convert(odd, raw=raw, check=False)


def test_a_framework_with_plain_kernels_beside_accelerated_ones() -> None:
    """A result that agrees with its plain kernels is right, and is said to be compared with these."""

    class Accelerated:
        def __init__(self, off: float, plainly: Any = None) -> None:
            self.off, self.plainly = off, plainly

        def __call__(self, inputs: dict[str, Any]) -> dict[str, Any]:
            return {"y": inputs["x"] @ onnx.numpy_helper.to_array(made.graph.initializer[0]) + self.off}

    made = model(node("MatMul", "x", "w"))
    for run, status in (
        (Accelerated(0.0), "verified"),
        (Accelerated(1.0), "different"),
        (Accelerated(1.0, Accelerated(0.0)), "verified"),
        (Accelerated(1.0, Accelerated(2.0)), "different"),
    ):
        report = compared_with_source(load(made), run, "lite")
        assert verdict(report).status == status
        beside = status == "verified" and run.plainly is not None
        assert ("lite without accelerated kernels" in verdict(report).words) == beside
        assert any("accelerated kernels differ: y: " in note for note in report.notes) == beside


def test_what_differs_says_on_which_inputs_and_where_the_source_makes_nan() -> None:
    proto = onnx.parser.parse_model(
        """<ir_version: 10, opset_import: ["": 21]> g (float[4] x) => (int64[1] place, float[4] root) {
            root = Sqrt(x)  place = ArgMax(root)
        }"""
    )

    def run(inputs: dict[str, Any]) -> dict[str, Any]:
        return {"place": np.array([-1]), "root": np.sqrt(np.abs(inputs["x"]))}

    data = {"x": np.array([1, -1, 4, 9], np.float32)}
    words = verdict(compared(load(proto), run, data=data)).words
    assert "differs from onnxruntime: place: 100 % of the elements differ" in words
    assert ", and root: 1 of 4 that are NaN in the source are not, on the inputs '" in words
