"""Ops that pick and place elements by index, against ONNX Runtime."""

import ml_dtypes
import numpy as np
import pytest
from harness import check, floats, node_model, source
from test_shape import ALL, forward, ints, some

from onward.scoreboard.suite import prepare

DTYPES = [*ALL, "str"]


@pytest.mark.parametrize("fixed", [(), (1,), (0,)])
@pytest.mark.parametrize("axis", [0, -1])
@pytest.mark.parametrize("indices", [np.array(-1), ints(0, -1, 1), ints(), np.array([[1, -2]], np.int32)])
@pytest.mark.parametrize("dtype", ["float32", "str"])
def test_gather(axis, indices, dtype, fixed):
    x = some((2, 3, 4), dtype)  # ONNX Runtime gathers the first string of each block only
    check(*node_model("Gather", [x, indices], fixed=fixed, axis=axis), expected=[np.take(x, indices, axis)])


def test_gather_of_a_vector_of_strings_by_a_number():
    for fixed in (), (1,), (0,):
        check(*node_model("Gather", [some((3,), "str"), np.array(-1)], fixed=fixed))


@pytest.mark.parametrize("dtype", DTYPES)
def test_gather_elements_and_scatter_elements(dtype):
    x = some((3, 4), dtype)
    indices = np.array([[0, -1, 2, 1], [2, 0, -3, -2]])
    check(*node_model("GatherElements", [x, indices], axis=0))
    check(*node_model("GatherElements", [x, indices[:, :3]], axis=0, fixed=(1,)))
    check(*node_model("GatherElements", [x, ints(0, 3, -1).reshape(3, 1).astype(np.int32)], axis=-1))
    updates = some((2, 4), dtype)[::-1]
    check(*node_model("ScatterElements", [x, indices, updates], axis=0))
    check(*node_model("ScatterElements", [x, ints(0, 3, -3).reshape(3, 1), updates[:1, :3].T], axis=1))


@pytest.mark.parametrize("reduction", ["add", "mul", "max", "min"])
@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int8", "int64", "uint16", "uint32", "uint64"])
def test_scatter_reductions(reduction, dtype):
    x = some((3, 4), dtype) + np.array(1, dtype)
    indices = np.array([[0, -1, 2, 1], [2, -1, 2, -2]])
    updates = np.arange(1, 9).reshape(2, 4).astype(dtype) * np.array(3, dtype)
    combine = {"add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}[reduction]
    expected = x.copy()
    for (i, j), row in np.ndenumerate(indices):
        expected[row, j] = combine(expected[row, j], updates[i, j])
    model, given = node_model("ScatterElements", [x, indices, updates], axis=0, reduction=reduction)
    check(model, given, expected=[expected])
    places = np.array([[[0, -1], [2, 1]], [[0, -1], [-1, -1]]])
    expected = x.copy()
    for place, update in zip(places.reshape(-1, 2), updates.reshape(-1), strict=False):
        expected[tuple(place)] = combine(expected[tuple(place)], update)
    model, given = node_model("ScatterND", [x, places, updates[:1].reshape(2, 2)], reduction=reduction)
    check(model, given, expected=[expected])


def test_scatter_reductions_of_large_unsigned_numbers():
    x = np.array([2**64 - 1, 5, 2**63], dtype=np.uint64)
    for reduction, wanted in [("max", [2**64 - 1, 2**63 + 1, 2**63]), ("min", [3, 5, 2**63])]:
        updates = np.array([3, 2**63 + 1], dtype=np.uint64)
        model, given = node_model("ScatterElements", [x, ints(0, 1), updates], reduction=reduction)
        check(model, given, expected=[np.array(wanted, dtype=np.uint64)])


@pytest.mark.parametrize("dtype", ["float32", "bool", "uint32", "str"])
@pytest.mark.parametrize(
    ("indices", "batch_dims"),
    [
        ([[0, 1], [-1, -1]], 0),
        ([[1], [-2]], 0),
        ([[[0, 1, 2]], [[1, -1, 3]]], 0),
        ([[1], [-1]], 1),
        ([[[1], [0]], [[2], [-3]]], 1),
        ([[[0], [1], [2]], [[-1], [2], [3]]], 2),
        ([[0, 1], [1, -1]], 1),
    ],
)
def test_gather_nd(indices, batch_dims, dtype):
    check(*node_model("GatherND", [some((2, 3, 4), dtype), np.array(indices)], batch_dims=batch_dims))


@pytest.mark.parametrize("dtype", ["float32", "bool", "uint16", "int64", "str"])
def test_scatter_nd(dtype):
    x = some((3, 4, 2), dtype)
    for indices, shape in [([[0], [-1]], (2, 4, 2)), ([[0, 1], [-1, -1]], (2, 2)), ([[[0, 1, 1]]], (1, 1))]:
        updates = some(shape, dtype)
        indices = np.array(indices)
        expected = x.copy()
        expected[tuple(np.moveaxis(indices, -1, 0))] = updates
        check(*node_model("ScatterND", [x, indices, updates]), expected=[expected])


def test_scatter_nd_of_slices_combines_duplicates():
    x, updates = floats(3, 2, 2), floats(3, 2, 2, seed=1)
    for reduction in ("add", "mul", "max", "min"):
        check(*node_model("ScatterND", [x, ints(0, -3, 2).reshape(3, 1), updates], reduction=reduction))


@pytest.mark.parametrize("dtype", ["float32", "uint16", "float8_e4m3fn"])
@pytest.mark.parametrize("axis", [-2, 1, 2, -1])
@pytest.mark.parametrize("mode", ["linear", "circular"])
@pytest.mark.parametrize("start", [None, (1, 0), (3, 2)])
def test_tensor_scatter(axis, mode, start, dtype):
    kind = np.dtype(getattr(ml_dtypes, dtype, dtype))
    cache, shape = np.zeros((2, 4, 4, 4), kind), [2, 4, 4, 4]
    shape[axis] = 2
    update = (np.arange(np.prod(shape)).reshape(shape) % 7 + 1).astype(kind)
    if mode == "linear" and start == (3, 2):
        start = (2, 1)
    expected = np.moveaxis(cache.copy(), axis, 1)
    for batch in range(2):
        for i in range(2):
            place = (start[batch] if start else 0) + i
            expected[batch, place % 4 if mode == "circular" else place] = np.moveaxis(update, axis, 1)[batch, i]
    inputs = [cache, update, *([] if start is None else [ints(*start)])]
    model, given = node_model("TensorScatter", inputs, opset=24, axis=axis, mode=mode)
    found = prepare("torch", model)(given)[0]
    assert found.dtype == kind
    np.testing.assert_array_equal(found.astype("f4"), np.moveaxis(expected, 1, axis).astype("f4"))


@pytest.mark.parametrize("fixed", [(), (1,), (1, 2)])
@pytest.mark.parametrize("axis", [-1, 0, 1, -2])
@pytest.mark.parametrize(
    ("kind", "values"),
    [
        ("int64", np.array([5, -2], "float32")),
        ("float32", ints(0, 1)),
        ("int32", np.array([False, True])),
        ("int64", some((2,), "str")),
    ],
)
def test_one_hot(kind, values, axis, fixed):
    x = np.array([[0, -1, 2], [-3, 3, -4]])
    flags = np.stack([(x == i) | (x == i - 3) for i in range(3)], axis)
    inputs = [x.astype(kind), np.array([3]).astype(kind), values]
    check(*node_model("OneHot", inputs, axis=axis, fixed=fixed), expected=[np.where(flags, values[1], values[0])])


@pytest.mark.parametrize("dtype", ["float32", "int64", "bool", "uint8"])
@pytest.mark.parametrize("shape", [(2, 3), (4,), (2, 0), (2, 2, 2)])
def test_nonzero(dtype, shape):
    check(*node_model("NonZero", [some(shape, dtype)]))


@pytest.mark.parametrize("value", [3, 0])
def test_nonzero_of_one_number(value):
    """ONNX gives no row, since there is no axis; ONNX Runtime gives one."""
    check(*node_model("NonZero", [np.array(value, np.float32)]), expected=[np.zeros((0, int(value != 0)), np.int64)])


def test_nonzero_of_unsigned_numbers():
    check(*node_model("NonZero", [np.array([0, 2**15, 1], np.uint16)]), expected=[np.array([[1, 2]])])


@pytest.mark.parametrize("dtype", ["float32", "int64", "str"])
@pytest.mark.parametrize("ascending", [0, 1])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("used", [(0,), (0, 1, 2, 3)])
def test_unique(dtype, ascending, axis, used):
    x = np.array([[3, 1, 1, 2, 1], [3, 1, 1, 2, 1], [0, 1, 1, 2, 3], [3, 1, 1, 2, 1]])
    x = x.astype(str).astype(object) if dtype == "str" else x.astype(dtype)
    outputs = [f"out{i}" if i in used else "" for i in range(max(used) + 1)]
    attributes = {} if axis is None else {"axis": axis}
    check(*node_model("Unique", [x], outputs, sorted=ascending, **attributes))


def test_unique_of_large_unsigned_numbers():
    x = np.array([2**63 + 1, 1, 2**63 + 1], np.uint64)
    check(*node_model("Unique", [x]), expected=[np.array([1, 2**63 + 1], np.uint64)])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16", "int64", "int32", "int8", "uint8", "uint32"])
@pytest.mark.parametrize("largest", [0, 1])
@pytest.mark.parametrize("axis", [0, -1])
def test_top_k(dtype, largest, axis):
    """Of equal elements the first comes first; ONNX Runtime has fewer dtypes."""
    x = np.random.default_rng(0).integers(0, 5, (7, 8)).astype(dtype)
    order = np.argsort(-x.astype(int) if largest else x, axis=axis, kind="stable")
    order = order[:4] if axis == 0 else order[:, :4]
    expected = [np.take_along_axis(x, order, axis), order]
    for used in (0, 1), (0,), (1,):
        outputs = [f"out{i}" if i in used else "" for i in range(2)]
        model, given = node_model(
            "TopK", [x, ints(4)], outputs, axis=axis, largest=largest, fixed=(1,) if largest else ()
        )
        check(model, given, expected=[expected[i] for i in used])


def test_top_k_takes_zeros_of_both_signs_as_equal():
    x = np.array([-0.0, 1, 0, -0.0, -1], np.float32)
    check(*node_model("TopK", [x, ints(4)], 2, fixed=(1,)), expected=[np.float32([1, 0, 0, 0]), ints(1, 0, 2, 3)])


def test_top_k_of_large_unsigned_numbers():
    x = np.array([1, 2**63 + 5, 7], np.uint64)
    expected = [np.array([2**63 + 5, 7], np.uint64), ints(1, 2)]
    check(*node_model("TopK", [x, ints(2)], 2), expected=expected)


@pytest.mark.parametrize("dtype", ["float32", "bool", "uint16", "str"])
@pytest.mark.parametrize("axis", [None, 0, -1])
@pytest.mark.parametrize("condition", [(True, False, True), (False, True)])
def test_compress(dtype, axis, condition):
    attributes = {} if axis is None else {"axis": axis}
    x, kept = some((3, 3), dtype), np.array(condition)
    check(*node_model("Compress", [x, kept], **attributes), expected=[np.compress(kept, x, axis)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("time_axis", [0, 1])
def test_reverse_sequence(dtype, time_axis):
    x, lengths = some((3, 3, 2), dtype), [1, 3, 2]
    expected = x.copy()
    for i, n in enumerate(lengths):
        place = (slice(n), i) if time_axis == 0 else (i, slice(n))
        expected[place] = x[place][::-1]
    attributes = {"time_axis": time_axis, "batch_axis": 1 - time_axis}
    check(*node_model("ReverseSequence", [x, ints(*lengths)], **attributes), expected=[expected])


def test_embeddings_only_where_pytorch_had_them():
    """`nn.Embedding` refuses negative indices, which ONNX allows."""
    ids, table = np.array([[0, 1, 4]]), floats(5, 4)
    model, _ = node_model("Gather", [table, ids], fixed=(0,))
    model.graph.initializer[0].name = model.graph.node[0].input[0] = "embed.weight"
    for producer, wanted in [("pytorch", "nn.Embedding(5, 4)"), ("keras", "self.weight[x]")]:
        model.producer_name = producer
        assert wanted in source(model)
    check(model, [-1 - ids])


def test_code_is_plain_indexing():
    x = floats(3, 4)
    for indices, axis, wanted in [(np.array(1), 1, "in0[:, 1]"), (np.array(-1), 0, "in0[-1]")]:
        assert f"return {wanted}" in forward(node_model("Gather", [x, indices], fixed=(1,), axis=axis)[0])
    assert "return in0[in1]" in forward(node_model("Gather", [x, ints(0, 1)])[0])
