"""What layers multiply is what they compute with, and its rounded numbers make up for one another."""

from dataclasses import replace
from typing import Any

import numpy as np
import onnx
import onnx.parser
import pytest

from onward.bits.compensated import Grid, compensated
from onward.bits.eight.multiplied import Matrix, matrices
from onward.bits.eight.ranges import STEPS, Ranges
from onward.bits.eight.unsaturated import LARGEST, TOGETHER, Seen, rounded, scales
from onward.graph.infer import infer
from onward.model import Model, load
from onward.runners import prepare

RNG = np.random.default_rng(5)


def layer(text: str, shape: str, weight: tuple[int, ...]) -> Model:
    numbers = RNG.standard_normal(weight).astype(np.float32)
    proto = onnx.parser.parse_model(
        f'<ir_version: 8, opset_import: ["": 17]> main (float[{shape}] x) => (y) {{ y = {text} }}'
    )
    proto.graph.initializer.append(onnx.numpy_helper.from_array(numbers, "w"))
    proto.graph.output[0].type.tensor_type.elem_type = onnx.TensorProto.FLOAT
    model = load(proto)
    infer(model.ir)
    return model


def matrix(model: Model) -> Matrix:
    (found,) = matrices(model.ir.graph)
    return found


@pytest.mark.parametrize(
    ("text", "shape", "weight"),
    [
        ("Conv <strides=[2,1], pads=[1,0,2,1]> (x, w)", "2,6,9,8", (4, 6, 3, 2)),
        ("Conv <group=3, dilations=[2,1], pads=[0,1,0,1]> (x, w)", "2,6,9,8", (9, 2, 3, 2)),
        ('Conv <auto_pad="SAME_UPPER", strides=[2,3]> (x, w)', "2,6,9,8", (4, 6, 3, 4)),
        ('Conv <auto_pad="SAME_LOWER"> (x, w)', "2,6,9,8", (4, 6, 2, 4)),
        ('Conv <auto_pad="VALID"> (x, w)', "2,6,9", (4, 6, 2)),
        ("Conv <group=2> (x, w)", "1,2,4,5,6", (2, 1, 2, 2, 2)),
        ("MatMul (x, w)", "2,3,5", (5, 4)),
        ("Gemm <transB=1> (x, w)", "3,5", (4, 5)),
    ],
)
def test_rows_times_the_matrix_are_what_a_layer_gives(text: str, shape: str, weight: tuple[int, ...]) -> None:
    model = layer(text, shape, weight)
    x = RNG.standard_normal([int(n) for n in shape.split(",")]).astype(np.float32)
    one = matrix(model)
    each = np.split(one.rows(), one.groups)
    found = np.concatenate([d @ w.T for d, w in zip(one.data(x, 10**6), each, strict=True)], axis=1)
    wanted = prepare("onnxruntime", model)({"x": x})["y"]
    wanted = np.moveaxis(wanted, 1 if "Conv" in text else -1, -1).reshape(found.shape)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-4)
    np.testing.assert_array_equal(one.shaped(one.rows()), one.array)


def test_some_rows_are_taken_where_there_are_many() -> None:
    model = layer("Conv (x, w)", "2,6,9,8", (4, 6, 3, 2))
    assert matrix(model).data(np.zeros((2, 6, 9, 8), np.float32), 10).shape == (1, 10, 36)


def test_weights_that_others_read_are_left_alone() -> None:
    proto = layer("Conv (x, w)", "2,6,9,8", (6, 6, 1, 1)).to_proto()
    proto.graph.node.append(onnx.helper.make_node("Conv", ["y", "w"], ["z"]))
    assert not list(matrices(load(proto).ir.graph))


def test_errors_make_up_for_one_another() -> None:
    mixed = RNG.standard_normal((200, 16)) @ RNG.standard_normal((16, 64))
    weights = RNG.standard_normal((8, 64))
    scale = np.abs(weights).max(axis=1) / 7

    def grid(left: Any, rows: slice) -> Grid:
        return Grid(scale, np.zeros(8), -7, 7)

    found = compensated(weights, mixed.T @ mixed / 200, 16, grid)
    assert np.abs(found).max() <= 7 and np.array_equal(found, np.round(found))
    nearest = np.round(weights / scale[:, None])
    off = [np.linalg.norm(mixed @ (weights - each * scale[:, None]).T) for each in (found, nearest)]
    assert off[0] < 0.5 * off[1]


@pytest.mark.parametrize("text", ["Conv (x, w)", "Conv <group=3> (x, w)"])
def test_no_two_weights_of_a_channel_leave_sixteen_bits(text: str) -> None:
    model = layer(text, "4,6,9,8", (9, 6 if "group" not in text else 2, 3, 2))
    found = matrix(model)
    one = replace(found, array=found.array.copy())
    one.array[::3, 0, 1, 1] *= 20  # it stands out: with the others it takes all of the bits there are
    one.array[::3, 1, 1, 1] *= -20
    seen = Seen(one)
    seen.add(one.data(RNG.standard_normal((4, 6, 9, 8)).astype(np.float32), 500))
    numbers = rounded(one, seen).reshape(9, -1) / scales(one)[:, None]
    np.testing.assert_allclose(numbers, np.round(numbers), atol=1e-4)
    numbers = np.sort(np.round(numbers), axis=1)
    pairs = np.array([numbers[:, -2:].sum(axis=1), -numbers[:, :2].sum(axis=1)])
    assert pairs.max() <= TOGETHER and 255 * TOGETHER < 2**15
    assert pairs.max(axis=0).min() >= TOGETHER - 1 and LARGEST >= np.abs(numbers[::3]).max() > 80


def test_a_weight_alone_has_eight_bits() -> None:
    one = matrix(layer("Conv <group=6> (x, w)", "2,6,9,8", (6, 1, 1, 1)))
    np.testing.assert_allclose(np.abs(one.array.reshape(-1)) / scales(one), LARGEST, rtol=1e-5)


def test_what_was_never_seen_is_rounded_to_the_nearest() -> None:
    one = matrix(layer("Conv (x, w)", "2,6,9,8", (4, 6, 3, 2)))
    off = np.abs(rounded(one, Seen(one)) - one.array).reshape(4, -1).max(axis=1)
    assert (off <= scales(one) * 0.5001).all()


def test_a_range_leaves_out_what_is_rare() -> None:
    ranges = Ranges()
    numbers = RNG.standard_normal(20000)
    ranges.add("x", np.append(numbers, [60.0, np.nan, np.inf]))
    assert ranges.of("x", "all") == (pytest.approx(numbers.min()), 60.0)
    low, high = ranges.of("x", "nearest")
    assert high < 30 and low <= 0

    def error(low: float, high: float) -> float:
        scale = (high - low) / STEPS
        steps = np.clip(np.round(numbers / scale) + np.round(-low / scale), 0, STEPS) - np.round(-low / scale)
        return float(np.mean((numbers - steps * scale) ** 2))

    assert error(low, high) < 0.6 * error(*ranges.of("x", "all"))


def test_a_range_has_zero_in_it() -> None:
    ranges = Ranges()
    ranges.add("x", np.array([3.0, 4.0]))
    ranges.add("none", np.array([]))
    assert ranges.of("x", "all") == (0.0, 4.0) and list(ranges) == ["x"]
