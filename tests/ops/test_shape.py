"""Ops that rearrange elements, against ONNX Runtime."""

import numpy as np
import onnx
import pytest
from harness import check, finish, floats, node_model, source, text_model
from onnx import helper, numpy_helper

from onward.scoreboard.suite import prepare

ALL = [
    "float32",
    "float64",
    "float16",
    "int8",
    "int16",
    "int32",
    "int64",
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "bool",
]


def forward(model) -> str:
    """The body of `forward`, as one line."""
    text = source(model).partition("def forward")[2].partition("def load")[0]
    return " ".join(text.split())


def some(shape, dtype="float32"):
    """Distinct values of a dtype; strings too."""
    values = np.arange(int(np.prod(shape))).reshape(shape)
    if dtype == "str":
        return np.array([f"w{i}" for i in values.reshape(-1)], dtype=object).reshape(shape)
    return (values % 3 == 0) if dtype == "bool" else (values % 100).astype(dtype)


def ints(*values):
    return np.array(values, dtype=np.int64)


@pytest.mark.parametrize("dtype", [*ALL, "str"])
@pytest.mark.parametrize(
    ("op", "inputs", "attributes"),
    [
        ("Identity", [], {}),
        ("Reshape", [ints(4, -1)], {}),
        ("Flatten", [], {"axis": 2}),
        ("Squeeze", [ints(-2)], {}),
        ("Unsqueeze", [ints(0, -1)], {}),
        ("Transpose", [], {"perm": [2, 0, 3, 1]}),
        ("Expand", [ints(2, 1, 1, 4, 1)], {}),
        ("Tile", [ints(2, 1, 2, 1)], {}),
        ("Slice", [ints(0, -1), ints(9, -9), ints(0, 3), ints(1, -2)], {}),
        ("Gather", [ints(1, -2)], {"axis": 3}),
    ],
)
def test_every_dtype(op, inputs, attributes, dtype):
    x = some((2, 3, 1, 4), dtype)
    check(*node_model(op, [x, *inputs], fixed=range(1, len(inputs) + 1), **attributes))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2fnuz", "bfloat16", "int4", "uint2", "float4_e2m1fn"])
def test_moving_needs_no_arithmetic(dtype):
    import ml_dtypes

    x = (np.arange(6).reshape(2, 3) % 3).astype(getattr(ml_dtypes, dtype))
    for op, inputs, expected in [
        ("Transpose", [], x.T),
        ("Reshape", [ints(3, 2)], x.reshape(3, 2)),
        ("Unsqueeze", [ints(1)], x[:, None]),
        ("Identity", [], x),
        ("Flatten", [], x),
    ]:
        model, given = node_model(op, [x, *inputs], fixed=range(1, len(inputs) + 1), opset=25)
        found = prepare("torch", model)(given)[0]
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(found.astype(np.float32), expected.astype(np.float32))


@pytest.mark.parametrize("fixed", [(), (1,)])
@pytest.mark.parametrize(
    ("size", "shape", "allowzero"),
    [
        ((2, 3, 4), (0, -1), 0),
        ((2, 3, 4), (0, 0, 2, 2), 0),
        ((2, 3, 4), (-1,), 0),
        ((1, 1), (), 0),
        ((), (1, 1), 0),
        ((0, 3), (3, 0), 1),
        ((6,), (0, -1), 0),
    ],
)
def test_reshape(size, shape, allowzero, fixed):
    x = floats(*size)
    model, given = node_model("Reshape", [x, ints(*shape)], fixed=fixed, allowzero=allowzero)
    check(model, given)


def like_another(wanted, sizes="k, l"):
    """A reshape of x to `wanted`, made of the dimensions of another tensor."""
    text = f"""<ir_version: 9, opset_import: ["": 20]> g (float[n, m, 4] x, float[{sizes}] z) => (float[a, b, c] y) {{
        i0 = Constant<value_ints = [0]>() i1 = Constant<value_ints = [1]>() m1 = Constant<value_ints = [-1]>()
        i4 = Constant<value_ints = [4]>() s = Shape(z) k = Gather(s, i0) l = Gather(s, i1) kl = Mul(k, l)
        wanted = Concat<axis = 0>({wanted}) y = Reshape(x, wanted) }}"""
    return text_model(text)


@pytest.mark.parametrize(
    ("wanted", "size", "other"),
    [
        ("k, m1", (2, 3, 4), (0, 5)),
        ("k, l, i4", (2, 3, 4), (0, 0)),
        ("k, l, i4", (2, 3, 4), (2, 0)),
        ("k, l, i4", (2, 3, 4), (6, 1)),
        ("m1, l", (2, 3, 4), (9, 0)),
        ("kl, m1", (2, 3, 4), (9, 0)),
        ("kl, m1", (2, 3, 4), (2, 2)),
        ("k, l, i4", (2, 0, 4), (0, 0)),
        ("k, l, l", (2, 0, 4), (2, 0)),
    ],
)
def test_a_dimension_of_another_tensor_that_turns_out_as_zero(wanted, size, other):
    check(like_another(wanted), [floats(*size), floats(*other)])


def test_dimensions_of_the_same_name_are_plain_numbers():
    for wanted, sizes, code in [
        ("k, l, i4", "n, m", "x.reshape(z.shape[0], z.shape[1], 4)"),
        ("kl, i4", "n, 3", "x.reshape(z.shape[0] * z.shape[1], 4)"),
        ("m1, l", "k, m", "x.reshape(-1, z.shape[1])"),
        ("kl, m1", "n, m", "x.reshape(z.shape[0] * z.shape[1], -1)"),
        ("k, l, i4", "n, l", "reshape(x, [z.shape[0], z.shape[1], 4])"),
    ]:
        assert f"return {code}" in forward(like_another(wanted, sizes))
    model = like_another("k, l, i4")
    model.producer_name = "pytorch"
    assert "x.reshape(z.shape[0], z.shape[1], 4)" in forward(model)


@pytest.mark.parametrize("axis", [-3, -2, -1, 0, 1, 2, 3])
@pytest.mark.parametrize("size", [(2, 3, 4), (2, 0, 4), (0, 3, 4)])
def test_flatten(axis, size):
    check(*node_model("Flatten", [floats(*size)], axis=axis))


def test_flatten_of_few_dimensions():
    check(*node_model("Flatten", [floats(3)], axis=1))
    check(*node_model("Flatten", [floats(3)], axis=0))
    check(*node_model("Flatten", [floats()], axis=0))


@pytest.mark.parametrize("perm", [None, (0, 1, 2), (1, 0, 2), (0, 2, 1), (2, 1, 0), (1, 2, 0)])
@pytest.mark.parametrize("dtype", ["float32", "str"])
def test_transpose(perm, dtype):
    check(*node_model("Transpose", [some((2, 3, 4), dtype)], **({} if perm is None else {"perm": perm})))


@pytest.mark.parametrize("fixed", [(), (1,)])
@pytest.mark.parametrize("dtype", ["float32", "str"])
@pytest.mark.parametrize("axes", [(0,), (-1,), (1, 2), (3, 0), (-1, 0), (-2, -1), (0, 1, 4)])
def test_unsqueeze(axes, dtype, fixed):
    check(*node_model("Unsqueeze", [some((2, 3), dtype), ints(*axes)], fixed=fixed))


@pytest.mark.parametrize("fixed", [(), (1,)])
@pytest.mark.parametrize("dtype", ["float32", "str"])
@pytest.mark.parametrize("axes", [None, (0,), (-1,), (0, -1), (0, 2, 3)])
def test_squeeze(axes, dtype, fixed):
    inputs = [some((1, 2, 1, 1), dtype), *([] if axes is None else [ints(*axes)])]
    check(*node_model("Squeeze", inputs, fixed=fixed if axes else ()))


@pytest.mark.parametrize("fixed", [(), (1,)])
@pytest.mark.parametrize("dtype", ["float32", "str"])
def test_squeeze_along_no_axis(dtype, fixed):
    """As ONNX's text, shape inference and reference have it; ONNX Runtime takes an empty list for an absent one."""
    x = some((1, 2, 1), dtype)
    check(*node_model("Squeeze", [x, ints()], fixed=fixed), expected=[x])


@pytest.mark.parametrize("fixed", [(), (1,)])
@pytest.mark.parametrize("dtype", ["float32", "str"])
@pytest.mark.parametrize(
    ("size", "shape"),
    [
        ((3, 1), (3, 4)),
        ((3, 1), (1,)),
        ((3, 1), (2, 1, 6)),
        ((3,), ()),
        ((), (2, 3)),
        ((3, 1), (3, 0)),
        ((0, 1), (1, 4)),
    ],
)
def test_expand(size, shape, dtype, fixed):
    check(*node_model("Expand", [some(size, dtype), ints(*shape)], fixed=fixed))


@pytest.mark.parametrize("fixed", [(), (1,)])
@pytest.mark.parametrize("dtype", ["float32", "bool", "str"])
@pytest.mark.parametrize("repeats", [(1, 1), (2, 3), (0, 2)])
def test_tile(repeats, dtype, fixed):
    check(*node_model("Tile", [some((2, 3), dtype), ints(*repeats)], fixed=fixed))


@pytest.mark.parametrize(
    ("dtype", "axis"), [*((d, 0) for d in [*ALL, "str"]), *((d, a) for d in ("int64", "str") for a in (1, -1, -2))]
)
def test_concat(axis, dtype):
    sizes = [(2, 3), (2, 3), (0, 3)] if axis in (0, -2) else [(2, 3), (2, 1)]
    check(*node_model("Concat", [some(s, dtype) for s in sizes], axis=axis))


def test_concat_of_unsqueezed_tensors_is_a_stack():
    text = """<ir_version: 9, opset_import: ["": 20]>
    g (float[2, 3] x, float[2, 3] y) => (float[a, b, c] z) <int64[1] m = {%d}> {
        u = Unsqueeze(x, m) v = Unsqueeze(y, m) z = Concat<axis = 1>(u, v)
    }"""
    for axis, name in [(1, "stack"), (-2, "stack"), (0, "cat")]:
        model = text_model(text % axis)
        check(model, [floats(2, 3), floats(2, 3, seed=1)])
        assert f"torch.{name}(" in forward(model)


def test_concat_of_one():
    check(*node_model("Concat", [floats(2, 3)], axis=1))


@pytest.mark.parametrize(
    ("size", "sizes", "outputs", "axis"),
    [
        (6, None, 3, 0),
        (7, None, 3, 0),
        (6, (2, 4), 2, 0),
        (6, (0, 6, 0), 3, 0),
        (6, (3, 3), 2, 0),
        (6, None, 1, 0),
        (3, None, 3, -1),
    ],
)
@pytest.mark.parametrize("dtype", ["float32", "str"])
@pytest.mark.parametrize("fixed", [(), (1,)])
def test_split(size, sizes, outputs, axis, dtype, fixed):
    x = some((size, 3), dtype)
    if sizes is None:
        check(*node_model("Split", [x], outputs, axis=axis, num_outputs=outputs))
    else:
        check(*node_model("Split", [x, ints(*sizes)], outputs, fixed=fixed, axis=axis))


def scalar(dtype, *values):
    return [np.array(v, dtype=dtype) for v in values]


@pytest.mark.parametrize("fixed", [(), (0, 2)])
@pytest.mark.parametrize(
    ("dtype", "bounds"),
    [
        ("int64", (0, 5, 1)),
        ("int64", (2, 5, 1)),
        ("int64", (5, 2, 1)),
        ("int64", (0, -3, 1)),
        ("int64", (10, 1, -3)),
        ("int64", (1, 10, -3)),
        ("int32", (1, 10, 3)),
        ("int16", (1, 10, 3)),
        ("float32", (0.5, 3.2, 0.3)),
        ("float32", (3, 0, -0.7)),
        ("float64", (0, 1, 0.1)),
        ("float32", (1, 0, 1)),
    ],
)
def test_range(dtype, bounds, fixed):
    check(*node_model("Range", scalar(dtype, *bounds), fixed=fixed))


@pytest.mark.parametrize("fixed", [(), (0,)])
@pytest.mark.parametrize("shape", [(2, 3), (), (0,), (1,)])
@pytest.mark.parametrize("value", [None, np.float32(-0.0), np.float64(2.5), np.int64(1), np.bool_(True)])
def test_constant_of_shape(shape, value, fixed):
    attributes = {} if value is None else {"value": numpy_helper.from_array(np.array([value]))}
    check(*node_model("ConstantOfShape", [ints(*shape)], fixed=fixed, **attributes))


@pytest.mark.parametrize("dtype", [None, 1, 7, 9, 11, 13])
@pytest.mark.parametrize("k", [0, 1, -2, 9])
def test_eye_like(dtype, k):
    expected = [np.eye(3, 4, k).astype(np.bool_)] if dtype == 9 else None
    attributes = {} if dtype is None else {"dtype": dtype}
    check(*node_model("EyeLike", [floats(3, 4)], k=k, **attributes), expected=expected)


@pytest.mark.parametrize(("dtype", "fixed"), [("float32", ()), ("int64", (1,)), ("bool", ()), ("uint16", (1,))])
@pytest.mark.parametrize("upper", [0, 1])
@pytest.mark.parametrize("k", [None, 1, -2, 10])
def test_trilu(dtype, upper, k, fixed):
    x = some((2, 3, 4), dtype)
    inputs = [x] if k is None else [x, np.array(k)]
    part = np.triu if upper else np.tril
    expected = None if dtype in ("float32", "int64", "bool") else [part(x, k or 0)]
    check(*node_model("Trilu", inputs, fixed=fixed if k is not None else (), upper=upper), expected=expected)


@pytest.mark.parametrize("mode", ["DCR", "CRD"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "uint8"])
def test_blocks_of_pixels(mode, dtype):
    check(*node_model("DepthToSpace", [some((2, 8, 3, 5), dtype)], blocksize=2, mode=mode))
    if mode == "DCR":
        check(*node_model("SpaceToDepth", [some((2, 3, 4, 6), dtype)], blocksize=2))


@pytest.mark.parametrize("attributes", [{}, {"start": -2, "end": -1}, {"end": 9}, {"start": 2, "end": 1}])
@pytest.mark.parametrize("dtype", ["float32", "str"])
def test_shape_and_size(attributes, dtype):
    x = some((2, 3, 4), dtype)
    check(*node_model("Shape", [x], **attributes))
    check(*node_model("Size", [x]))


def sparse(indices):
    values = helper.make_tensor("values", 1, [2], [1.5, -2.0])
    return helper.make_sparse_tensor(values, numpy_helper.from_array(np.array(indices), "indices"), [2, 3])


@pytest.mark.parametrize(
    "attributes",
    [
        {"value_int": 3},
        {"value_ints": [1, 2]},
        {"value_float": 0.1},
        {"value_floats": [1.0, np.inf]},
        {"value_string": "é"},
        {"value_strings": ["é", "", "x\0"]},
        {"value": numpy_helper.from_array(some((2, 2), "str"))},
        {"value": numpy_helper.from_array(np.array(2**40))},
        {"sparse_value": sparse([1, 4])},
        {"sparse_value": sparse([[0, 1], [1, 2]])},
    ],
)
def test_constant(attributes):
    nodes = [helper.make_node("Constant", [], ["c"], **attributes), helper.make_node("Identity", ["c"], ["y"])]
    check(finish(helper.make_graph(nodes, "g", [], [onnx.ValueInfoProto(name="y")])), [])


def test_code_reads_as_written_by_hand():
    x = floats(2, 3, 4)
    for op, inputs, attributes, wanted in [
        ("Transpose", [], {"perm": [0, 2, 1]}, "in0.mT"),
        ("Transpose", [], {"perm": [1, 0, 2]}, "in0.transpose(0, 1)"),
        ("Transpose", [], {"perm": [2, 0, 1]}, "in0.permute(2, 0, 1)"),
        ("Reshape", [ints(0, -1)], {}, "in0.flatten(1)"),
        ("Reshape", [ints(6, -1)], {}, "in0.reshape(6, -1)"),
        ("Unsqueeze", [ints(1)], {}, "in0.unsqueeze(1)"),
        ("Unsqueeze", [ints(1, 2)], {}, "in0[:, None, None]"),
        ("Expand", [ints(5, 1, 1, 1)], {}, "in0.expand(5, -1, -1, -1)"),
    ]:
        model, _ = node_model(op, [x, *inputs], fixed=range(1, len(inputs) + 1), **attributes)
        assert f"return {wanted}" in forward(model)
