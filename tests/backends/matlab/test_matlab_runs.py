"""What generated MATLAB source computes in Octave: of arguments of any class, of any size, and over time."""

from __future__ import annotations

import itertools
import subprocess
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from harness import compare, floats, node_model
from onnx import numpy_helper

from onward.advice.extras import is_installed
from onward.backends.matlab.convert import generate
from onward.cli import main
from onward.model import load
from onward.runners import prepare

pytestmark = pytest.mark.skipif(not is_installed("octave"), reason="GNU Octave is not installed")
DIGITS = Path(__file__).parents[3] / "examples/digits/digits.onnx"


def octave(folder: Path, program: str) -> str:
    """What a program prints in a folder, and the error that ends it."""
    command = ["octave-cli", "--norc", "--quiet", "--eval", f"warning('off', 'all'); {program}"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    said = (line for line in done.stderr.splitlines() if line.startswith("error: ") and "called from" not in line)
    return done.stdout + "\n".join(said)


def same(model: onnx.ModelProto, *feeds: list[np.ndarray[Any, Any]]) -> None:
    loaded = load(model)
    names = [value.name for value in loaded.ir.graph.inputs if not value.is_initializer()]
    here, there = prepare("matlab", loaded), prepare("onnxruntime", loaded)
    for feed in feeds:
        data = dict(zip(names, feed, strict=True))
        found, wanted = here(data), there(data)
        compare([found[name] for name in wanted], list(wanted.values()), rtol=1e-4, atol=1e-5)


def test_arguments_get_the_class_of_the_network_or_are_refused(tmp_path: Path) -> None:
    assert main(["convert", str(DIGITS), "--to", "matlab", "--out", str(tmp_path / "+net"), "--no-verify"]) == 0
    start = "p = net.load(); x = reshape(mod(1:128, 5), 8, 8, 1, 2); y = net.model(p, single(x)); "
    for kind in ("double", "uint8", "int64"):
        assert octave(tmp_path, f"{start} z = net.model(p, {kind}(x)); printf('%s %d', class(z), isequal(y, z))") == (
            "single 1"
        )
    assert "image has the sizes 8 x 16; the network takes 8 x 8 x 1 x any" in octave(
        tmp_path, "net.model(net.load(), ones(8, 16))"
    )
    assert "image is of the class char" in octave(tmp_path, "net.model(net.load(), repmat('a', 8, 8))")


def test_numbers_that_a_class_does_not_hold_are_refused(tmp_path: Path) -> None:
    model, _ = node_model("Neg", [np.zeros(3, np.int64)])
    path = tmp_path / "whole.onnx"
    onnx.save(model, path)
    assert main(["convert", str(path), "--to", "matlab", "--out", str(tmp_path / "+net"), "--no-verify"]) == 0
    assert octave(tmp_path, "printf('%d ', net.model(net.load(), [1; 2; 3]))") == "-1 -2 -3 "
    assert "in0 has values that the class int64 does not hold" in octave(tmp_path, "net.model(net.load(), [1; 2.5; 3])")
    assert "in0 has the sizes 1 x 3; the network takes 3 x 1" in octave(tmp_path, "net.model(net.load(), [1, 2, 3])")


OPEN = """
<ir_version: 10, opset_import: ["" : 21]>
g (float[n, 4, h, w] x) => (float[n, m] last, float[n, a, b, c] cut, float[n, 4, h, d] back)
<int64[1] minus = {-1}, int64[1] zero = {0}, int64[1] three = {3}, int64[1] far = {-9223372036854775807}>
{
  k = Conv<pads = [1, 1, 1, 1], strides = [2, 1], group = 4> (x, weight)
  p = MaxPool<kernel_shape = [3, 3], strides = [2, 2], ceil_mode = 1, pads = [1, 1, 1, 1]> (k)
  sizes = Shape (x)
  r = Resize<mode = "linear"> (p, , , sizes)
  y = Conv<pads = [1, 1, 1, 1], group = 4, dilations = [1, 1]> (r, weight)
  column = Gather<axis = 3> (y, minus)
  last = Flatten (column)
  cut = Slice (y, zero, minus, three)
  back = Slice (y, minus, far, three, minus)
}
"""


def test_unknown_sizes() -> None:
    model = onnx.parser.parse_model(OPEN)
    model.graph.initializer.append(numpy_helper.from_array(floats(4, 1, 3, 3), "weight"))
    text = generate(load(model)).model
    assert "(:, :, :, end:-1:1)" not in text and "(end:-1:1, :, :, :)" in text and "(1:end - 1, :, :, :)" in text
    sizes = [(1, 4, 8, 8), (3, 4, 7, 10), (2, 4, 1, 2), (1, 4, 20, 3)]
    same(model, *([floats(*shape)] for shape in sizes))


GATES = {"RNN": 1, "GRU": 3, "LSTM": 4}


@pytest.mark.parametrize("kind", GATES)
def test_recurrent_layers(kind: str) -> None:
    """With lengths, of which one is 0, with states, both ways, with numbers of activations, a bound, and peepholes."""
    time, batch, inputs, hidden, gates = 5, 3, 4, 6, GATES[kind]
    outputs = 3 if kind == "LSTM" else 2
    options: dict[str, dict[str, Any]] = {
        "RNN": {"activations": ["ScaledTanh", "Affine"], "activation_alpha": [1.5, 0.5], "activation_beta": [0.5, 0.1]},
        "GRU": {"linear_before_reset": 1, "clip": 0.4},
        "LSTM": {"input_forget": 1},
    }
    for direction, lengths, special in itertools.product(
        ("reverse", "bidirectional"), (None, [5, 0, 3]), (False, True)
    ):
        d = 2 if direction == "bidirectional" else 1
        if special and d == 1:
            continue
        given = [
            floats(time, batch, inputs),
            floats(d, gates * hidden, inputs) / 2,
            floats(d, gates * hidden, hidden) / 2,
            floats(d, 2 * gates * hidden) / 2,
            None if lengths is None else np.array(lengths, np.int32),
            floats(d, batch, hidden),
        ]
        if kind == "LSTM":
            given += [floats(d, batch, hidden, seed=1), *([floats(d, 3 * hidden)] if special else [])]
        own = options[kind] if special else {}
        model, feed = node_model(kind, given, outputs, direction=direction, hidden_size=hidden, **own)
        same(model, feed)


def test_parts_of_texts_that_differ() -> None:
    x = np.array([["b", "a"], ["b", "a"], ["a", "c"]], object)
    same(node_model("Unique", [x], 4, axis=0)[0], [x])


def test_powers_of_integers() -> None:
    x = np.array([-1, -1, 1, 3, 2, -2], np.int64)
    for exponent in (np.int64(-2), np.int64(-1), np.int64(3), np.float32(-2), np.array([-2, -3, -1, -1, 0, 5])):
        same(node_model("Pow", [x, np.asarray(exponent)])[0], [x, np.asarray(exponent)])


def test_signs_of_signs() -> None:
    """Two minus signs side by side mean one less in Octave."""
    start = '<ir_version: 10, opset_import: ["" : 21]>'
    text = f"{start} g (float[2] x) => (float[2] y) {{ a = Neg (x) b = Neg (a) y = Neg (b) }}"
    same(onnx.parser.parse_model(text), [floats(2)])


@pytest.mark.parametrize("dtype", [np.int8, np.int32, np.int64])
def test_the_least_integer_by_minus_one(dtype: Any) -> None:
    """Octave divides as the processor does, which is interrupted there, and does not go on."""
    a = np.array([np.iinfo(dtype).min, 7, -7, 5], dtype)
    b = np.array([-1, -2, 2, -1], dtype)
    low = a[0]
    run = prepare("matlab", load(node_model("Div", [a, b])[0]))
    np.testing.assert_array_equal(run({"in0": a, "in1": b})["out0"], np.array([low, -3, -3, -5], dtype))
    for fmod, wanted in ((0, [0, -1, 1, 0]), (1, [0, 1, -1, 0])):
        run = prepare("matlab", load(node_model("Mod", [a, b], fmod=fmod)[0]))
        np.testing.assert_array_equal(run({"in0": a, "in1": b})["out0"], np.array(wanted, dtype))


def test_floats_at_their_edges() -> None:
    x = np.array([-np.inf, -1, -0.0, 0, 1, np.inf, np.nan, -8, 3.4e38], np.float32)
    powers = np.array([-np.inf, -0.5, 0, 1 / 3, 3, np.inf, np.nan, -1], np.float32)
    pairs = [np.repeat(x, len(powers)), np.tile(powers, len(x))]
    same(node_model("Pow", pairs)[0], pairs)
    divisors = np.array([1e-10, 3e-3, -3, np.inf, 2.5], np.float32)
    pairs = [np.repeat(np.append(x[np.isfinite(x)], 7.5).astype(np.float32), 5), np.tile(divisors, 7)]
    run = prepare("matlab", load(node_model("Mod", pairs, fmod=1)[0]))
    np.testing.assert_array_equal(run({"in0": pairs[0], "in1": pairs[1]})["out0"], np.fmod(*pairs))
    same(node_model("Clip", [x, None, np.float32(2)])[0], [x, np.float32(2)])


def test_many_small_numbers_add_up() -> None:
    """Sums in single precision lose a digit over thousands of classes."""
    x = floats(3, 20_000)
    (found,) = prepare("matlab", load(node_model("Softmax", [x], axis=-1)[0]))({"in0": x}).values()
    exact = np.exp(x.astype(np.float64) - x.max(-1, keepdims=True))
    np.testing.assert_allclose(found, exact / exact.sum(-1, keepdims=True), rtol=1e-6)


def test_casts_at_their_edges() -> None:
    """Floats below zero wrap around, as do whole numbers of more than 53 bits; 8 bits of exponent have no infinity."""

    def cast(x: np.ndarray[Any, Any], to: int, **attributes: Any) -> Any:
        loaded = load(node_model("Cast", [x], to=to, opset=25, **attributes)[0])
        return next(iter(prepare("matlab", loaded)({loaded.ir.graph.inputs[0].name or "": x}).values()))

    low = np.float32([[-1.5, -3], [0, 7]])
    np.testing.assert_array_equal(cast(low, onnx.TensorProto.UINT64), low.astype(np.int64).astype(np.uint64))
    large = np.array([2**63 - 1, -(2**63), (2**63 - 1) // 3], np.int64)
    assert [int(number) for number in cast(large, onnx.TensorProto.INT4)] == [-1, 0, -6]
    x = np.float32([1.5, 3e38, np.inf, 0, 1e-40])
    for saturate, mode in itertools.product((0, 1), ("up", "down", "nearest")):
        found = cast(x, onnx.TensorProto.FLOAT8E8M0, saturate=saturate, round_mode=mode)
        wanted = numpy_helper.to_float8e8m0(x, bool(saturate), mode)
        np.testing.assert_array_equal(found.astype(np.float32), wanted.astype(np.float32))
