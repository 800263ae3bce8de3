import numpy as np
import onnx
import onnxruntime as ort

from onward.verify.compare import measure
from onward.verify.noise import jittered


def run(model: onnx.ModelProto, **inputs: np.ndarray) -> dict[str, np.ndarray]:
    session = ort.InferenceSession(model.SerializeToString(), providers=["CPUExecutionProvider"])
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(None, inputs), strict=True))


def parse(body: str) -> onnx.ModelProto:
    return onnx.parser.parse_model(f'<ir_version: 8, opset_import: ["" : 17]> {body}')


def test_a_smooth_model_has_noise_in_the_last_places_only() -> None:
    model = parse("g (float[4,4] x) => (float[4,4] y) { h = MatMul(x, x) s = Sigmoid(h) y = MatMul(s, s) }")
    x = np.random.default_rng(0).standard_normal((4, 4)).astype(np.float32)
    error = measure(run(model, x=x), run(jittered(model), x=x))["y"]
    assert 0 < error.worst < 2e-6


def test_a_model_that_rounds_has_noise_of_a_whole_step() -> None:
    model = parse("g (float[1,64] x) => (float[1,64] y) { two = Add(x, x) y = Round(two) }")
    x = np.full((1, 64), 0.25, np.float32) + np.arange(64, dtype=np.float32)
    errors = [measure(run(model, x=x), run(jittered(model, seed), x=x))["y"].worst for seed in range(8)]
    assert max(errors) > 1e-3


def test_sizes_are_not_touched() -> None:
    model = parse(
        """g (float[N,3] x) => (float[a,b] y) {
            s = Shape(x) f = Cast<to=1>(s) half = Constant<value_float=0.5>() h = Mul(f, half)
            t = Cast<to=7>(h) zero = ConstantOfShape(t) y = Add(zero, zero)
        }"""
    )
    x = np.ones((4, 3), np.float32)
    assert run(jittered(model), x=x)["y"].shape == (2, 1)
