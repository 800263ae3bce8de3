"""Slices and borders, against ONNX Runtime."""

import numpy as np
import pytest
from harness import check, floats, node_model
from test_shape import forward, ints, some

from onward.errors import InvalidModelError, RunFailure
from onward.scoreboard.suite import prepare

END, BEGIN = 2**63 - 1, -(2**63)
RANGES = [
    (0, 2, 1),
    (1, END, 1),
    (-2, END, 1),
    (BEGIN, -1, 1),
    (0, -1, 2),
    (3, 1, 1),
    (7, 9, 1),
    (-9, 9, 3),
    (0, 2**31 - 1, 1),
    (-1, BEGIN, -1),
    (END, BEGIN, -1),
    (END, BEGIN, -2),
    (3, 0, -1),
    (3, -9, -2),
    (-9, -10, -1),
    (2, -1, -1),
    (0, 4, -1),
]


@pytest.mark.parametrize(("start", "end", "step"), RANGES)
@pytest.mark.parametrize("fixed", [(), (1, 2, 3, 4), (3, 4)])
def test_ranges(start, end, step, fixed):
    check(*node_model("Slice", [floats(2, 5), ints(start), ints(end), ints(1), ints(step)], fixed=fixed))


@pytest.mark.parametrize(("start", "end", "step"), [(0, 2, 1), (-1, BEGIN, -1), (3, 0, -2)])
@pytest.mark.parametrize("dtype", ["str", "uint16", "bool"])
def test_dtypes(start, end, step, dtype):
    x = some((2, 5), dtype)
    expected = [x[:, slice(start, None if end == BEGIN else end, step)]]
    model, given = node_model("Slice", [x, ints(start), ints(end), ints(-1), ints(step)], fixed=(1, 2, 3, 4))
    check(model, given, expected=expected)


@pytest.mark.parametrize("fixed", [(), (1, 2), (1, 2, 3), (1, 2, 3, 4), (2, 3)])
@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps"),
    [
        ((1, 0), (2, 2), None, None),
        ((0, 1), (3, 9), (2, 0), None),
        ((1, -1), (9, -9), (-1, 0), (2, -1)),
        ((1,), (2,), (-2,), None),
        ((1, 1, 1), (2, 2, 2), (0, -1, -2), (1, 1, 1)),
    ],
)
def test_axes(starts, ends, axes, steps, fixed):
    inputs = [ints(*v) if v is not None else None for v in (starts, ends, axes, steps)]
    while inputs[-1] is None:
        inputs.pop()
    fixed = [i for i in fixed if i <= len(inputs) and inputs[i - 1] is not None]
    check(*node_model("Slice", [floats(3, 4, 5), *inputs], fixed=fixed))


def test_slices_of_nothing():
    check(*node_model("Slice", [floats(0, 4), ints(-1), ints(-9), ints(0), ints(-1)], fixed=(1, 2, 3, 4)))
    check(*node_model("Slice", [floats(0, 4), ints(1), ints(3), ints(0)]))


def test_int32_bounds():
    bounds = [np.array([v], dtype=np.int32) for v in (1, 3, 1)]
    check(*node_model("Slice", [floats(2, 5), *bounds]))


@pytest.mark.parametrize(
    ("starts", "ends", "axes", "steps", "wanted"),
    [
        ((1,), (3,), (1,), (1,), "in0[:, 1:3]"),
        ((0, -2), (END, END), (0, 2), (1, 1), "in0[:, :, -2:]"),
        ((0,), (END,), (1,), (2,), "in0[:, ::2]"),
        ((-1,), (BEGIN,), (1,), (-1,), "in0.flip(1)"),
        ((0,), (-1,), (-1,), (1,), "in0[:, :, :-1]"),
    ],
)
def test_code_is_plain_indexing(starts, ends, axes, steps, wanted):
    inputs = [floats(3, 4, 5), *(ints(*v) for v in (starts, ends, axes, steps))]
    assert f"return {wanted}" in forward(node_model("Slice", inputs, fixed=(1, 2, 3, 4))[0])


MODES = ["constant", "reflect", "edge", "wrap"]


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("fixed", [(), (1,)])
@pytest.mark.parametrize(
    ("size", "pads"),
    [
        ((3, 4), (1, 2, 0, 3)),
        ((3,), (1, 2)),
        ((2, 3, 4, 5), (0, 0, 1, 2, 0, 0, 2, 1)),
        ((2, 3, 4), (0, 0, 1, 0, 0, 2)),
        ((2, 3, 4), (1, 1, 1, 0, 1, 2)),
        ((2, 2, 2, 3, 4), (0, 0, 1, 2, 3, 0, 0, 0, 1, 2)),
        ((2, 2, 3, 2, 3, 4), (1, 0, 1, 0, 2, 3, 0, 1, 0, 1, 1, 2)),
        ((3, 4), (0, 0, 0, 0)),
    ],
)
def test_pad(mode, size, pads, fixed):
    check(*node_model("Pad", [floats(*size), ints(*pads)], fixed=fixed, mode=mode))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("pads", [(-1, 2, 0, -1), (0, -2, 1, 0), (-1, -1, -1, -1), (1, 0, -2, 2)])
def test_negative_pads(mode, pads):
    check(*node_model("Pad", [floats(4, 5), ints(*pads)], fixed=(1,), mode=mode))
    check(*node_model("Pad", [floats(4, 5), ints(*pads)], mode=mode))


@pytest.mark.parametrize("fixed", [(), (1,)])
@pytest.mark.parametrize("dtype", ["float32", "str"])
@pytest.mark.parametrize("sides", [(-3, 0), (-2, -1), (-4, 2), (2, -4), (2, -3), (-3, 2), (2, -5)])
def test_pads_that_cut_everything(sides, dtype, fixed):
    """The elements added at one end may be among those cut from the other."""
    x, fill = some((2, 3), dtype), some((1,), dtype)[0]
    pads, kept = ints(0, sides[0], 1, sides[1]), 3 + sum(sides)
    expected = np.full((3, kept), fill, dtype=x.dtype)
    model, given = node_model("Pad", [x, pads, np.array(fill, dtype=x.dtype)], fixed=fixed)
    check(model, given, expected=[expected])
    if dtype == "float32":
        check(model, given)
        model, given = node_model("Pad", [x, pads, np.array(fill)], fixed=fixed)
        model.graph.input[0].type.tensor_type.shape.dim[1].dim_param = "n"
        check(model, given)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("sides", [(-2, -2), (-4, 0), (-9, 2)])
def test_pads_that_cut_more_than_there_is(sides, mode):
    for fixed in ((), (1,)):
        model, given = node_model("Pad", [floats(2, 3), ints(0, sides[0], 0, sides[1])], fixed=fixed, mode=mode)
        with pytest.raises((InvalidModelError, RunFailure)):
            prepare("torch", model)(given)


@pytest.mark.parametrize("mode", MODES[1:])
@pytest.mark.parametrize("sides", [(-4, 2), (2, -3)])
def test_nothing_left_to_pad_with(sides, mode):
    model, given = node_model("Pad", [floats(2, 3), ints(0, sides[0], 0, sides[1])], fixed=(1,), mode=mode)
    with pytest.raises(RunFailure, match="without elements"):
        prepare("torch", model)(given)


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32", "uint64", "bool", "float64", "float16"])
def test_pad_dtypes(mode, dtype):
    x = some((2, 3, 4), dtype)
    model, given = node_model("Pad", [x, ints(0, 1, 2, 0, 1, 1)], fixed=(1,), mode=mode)
    widths = [(0, 0), (1, 1), (2, 1)]
    check(model, given, expected=[np.pad(x, widths, **({} if mode == "constant" else {"mode": mode}))])


@pytest.mark.parametrize("mode", MODES)
def test_pad_strings(mode):
    x = some((2, 3), "str")
    value = [np.array("fill", dtype=object)] if mode == "constant" else []
    model, given = node_model("Pad", [x, ints(1, 0, -1, 2), *value], fixed=(1,), mode=mode)
    rows = x[:1]
    expected = np.pad(rows, [(1, 0), (0, 2)], **({"constant_values": "fill"} if value else {"mode": mode}))
    check(model, given, expected=[expected])


@pytest.mark.parametrize("fixed", [(), (1, 2, 3), (3,)])
@pytest.mark.parametrize(
    ("dtype", "value"), [("float32", 1.5), ("float32", -np.inf), ("int64", 2**62 + 1), ("uint8", 255), ("bool", True)]
)
@pytest.mark.parametrize("axes", [(-1,), (2, 0)])
def test_pad_value_and_axes(dtype, value, axes, fixed):
    x, pads = some((2, 3, 4), dtype), ints(*range(1, 2 * len(axes) + 1))
    widths = [(0, 0)] * 3
    for i, axis in enumerate(axes):
        widths[axis] = (int(pads[i]), int(pads[i + len(axes)]))
    model, given = node_model("Pad", [x, pads, np.array(value, dtype=dtype), ints(*axes)], fixed=fixed)
    check(model, given, expected=[np.pad(x, widths, constant_values=value)])


@pytest.mark.parametrize("shape", [(2, 9), (5, 3), (3, 4), (9, 9), (1, 1)])
@pytest.mark.parametrize("axes", [None, (1, 2), (-1, 0)])
@pytest.mark.parametrize("fixed", [(), (1,)])
def test_center_crop_pad(shape, axes, fixed):
    if axes is None:
        shape = (4, *shape)
    attributes = {} if axes is None else {"axes": axes}
    check(*node_model("CenterCropPad", [floats(4, 5, 6), ints(*shape)], fixed=fixed, **attributes))


def test_pad_is_idiomatic():
    x = floats(2, 3, 4, 5)
    for mode, pads, wanted in [
        ("constant", (0, 0, 1, 1, 0, 0, 1, 1), "F.pad(in0, (1, 1, 1, 1))"),
        ("reflect", (0, 0, 2, 1, 0, 0, 2, 1), 'F.pad(in0, (1, 1, 2, 2), mode="reflect")'),
        ("edge", (0, 0, 0, 1, 0, 0, 0, 1), 'F.pad(in0, (1, 1, 0, 0), mode="replicate")'),
    ]:
        assert f"return {wanted}" in forward(node_model("Pad", [x, ints(*pads)], fixed=(1,), mode=mode)[0])
