"""Numbers that `jax.jit` has to know: static arguments, named errors, and bounds on how many results there are."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

jax = pytest.importorskip("jax")

import onward  # noqa: E402
from onward.backends.jax import stablehlo_file  # noqa: E402
from onward.backends.jax.convert import generate  # noqa: E402
from onward.backends.jax.load import Net, run  # noqa: E402
from onward.errors import OnwardError, UnsupportedError, VerificationError  # noqa: E402
from onward.model import load  # noqa: E402
from onward.scoreboard.suite import prepare  # noqa: E402

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'
FOUND = onnx.parser.parse_model(
    HEADER
    + """g (float[n] x, bool[n] c) => (int64[1, places] at, float[kept] z, float[u] distinct, int64[u] counts) {
    at = NonZero(x)
    z = Compress<axis = 0>(x, c)
    distinct, first, inverse, counts = Unique(x)
}"""
)
X, C = np.array([3, 0, 2, 0, 3], np.float32), np.array([1, 0, 0, 1, 0], bool)


def bounded(**bounds: int) -> Net:
    return run(generate(load(FOUND), True, bounds))


def test_an_error_under_jit_names_the_node() -> None:
    for op, name in (("NonZero", "at"), ("Compress", "z"), ("Unique", "distinct")):
        others = {"at": 5, "z": 5, "distinct": 5}
        others.pop(name)
        with pytest.raises(TypeError, match=f"{op} '{name}' needs numbers that depend on data"):
            bounded(**others).jitted()(X, C)


def test_what_is_missing_is_filled_up() -> None:
    """By the name of a value or of a dimension; the result is the same eagerly and under jit."""
    net = bounded(places=7, z=8, distinct=9)
    for call in (net, net.jitted()):
        at, z, distinct, counts, *found = map(np.asarray, call(X, C))
        np.testing.assert_array_equal(at, [[0, 2, 4, *[-1] * 4]])
        np.testing.assert_array_equal(z, [3, *[0] * 7])
        np.testing.assert_array_equal(distinct, [0, 2, 3, *[0] * 6])
        np.testing.assert_array_equal(counts, [2, 1, 2, *[0] * 6])
        assert found == [3, 2, 3]  # how many there are of each, in the order of the model


def test_what_is_too_much_is_left_out() -> None:
    at, z, distinct, _, *found = bounded(at=2, kept=1, distinct=2).jitted()(X, C)
    np.testing.assert_array_equal(at, [[0, 2]])
    np.testing.assert_array_equal(z, [3])
    np.testing.assert_array_equal(distinct, [0, 2])
    assert found == [3, 2, 3]  # which tells that some were left out


def test_a_bound_for_nothing_is_refused() -> None:
    with pytest.raises(OnwardError, match="there is no 'boxes' whose size depends on data; there are: 'at', 'z', 'dis"):
        bounded(boxes=3)


def test_rows_of_boxes_that_are_not_there() -> None:
    model = onnx.parser.parse_model(
        HEADER
        + """g (float[1, 3, 4] boxes, float[1, 1, 3] scores) => (int64[found, 3] y) {
    most = Constant<value_int = 3>()
    overlap = Constant<value_float = 0.5>()
    y = NonMaxSuppression(boxes, scores, most, overlap)
}"""
    )
    boxes = np.array([[[0, 0, 1, 1], [0, 0, 1, 1.1], [5, 5, 6, 6]]], np.float32)
    scores = np.array([[[0.9, 0.8, 0.7]]], np.float32)
    net = run(generate(load(model), True, {"found": 4}))
    for call in (net, net.jitted()):
        rows, count = call(boxes, scores)
        np.testing.assert_array_equal(rows, [[0, 0, 0], [0, 0, 2], [-1] * 3, [-1] * 3])
        assert count == 2


def found_then(after: str, outputs: str, bounds: dict[str, int]) -> Net:
    """The boxes that are not suppressed, and what a model does with them."""
    model = onnx.parser.parse_model(
        HEADER
        + f"""g (float[1, 3, 4] boxes, float[1, 1, 3] scores) => ({outputs}) {{
    most = Constant<value_int = 3>()
    overlap = Constant<value_float = 0.5>()
    two = Constant<value_ints = [2]>()
    one = Constant<value_ints = [1]>()
    zero = Constant<value_ints = [0]>()
    flat = Constant<value_ints = [-1]>()
    rows = Constant<value_ints = [-1, 4]>()
    matrix = Constant<value = float[4, 2] {{1, 0, 0, 1, 1, 1, 0, 0}}>()
    at = NonMaxSuppression(boxes, scores, most, overlap)
    column = Gather<axis = 1>(at, two)
    index = Reshape(column, flat)
    {after}
}}"""
    )
    return run(generate(load(model), True, bounds))


@pytest.mark.parametrize("after", [
    "b = Squeeze(boxes, zero) y = Gather(b, index)",
    "b = Squeeze(boxes, zero) c = Gather(b, index) d = Mul(c, c) y = Concat<axis = 1>(c, d)",
    "c = Gather<axis = 1>(boxes, index) d = Reshape(c, rows) e = MatMul(d, matrix) y = Softmax(e)",
    "c = Gather<axis = 1>(boxes, index) y = Transpose<perm = [1, 2, 0]>(c)",
    "b = Squeeze(boxes, zero) c = Gather(b, index) d = ReduceMax<keepdims = 0>(c, one) y = Unsqueeze(d, one)",
    "b = Squeeze(boxes, zero) i = Unsqueeze(index, one) c = GatherND(b, i) y = Slice(c, zero, two)",
])  # fmt: skip
def test_rows_that_stay_apart_are_those_of_the_model(after: str) -> None:
    """As many as are counted are as without a bound; the others are none of the model's."""
    boxes = np.array([[[0, 0, 1, 1], [0, 0, 1, 1.1], [5, 5, 6, 6]]], np.float32)
    scores = np.array([[[0.9, 0.8, 0.7]]], np.float32)
    expected = found_then(after, "float[n, m] y", {})(boxes, scores)
    y, count = found_then(after, "float[n, m] y", {"at": 4}).jitted()(boxes, scores)
    assert count == 2 and len(y) in (2, 4) and len(expected) == 2
    np.testing.assert_array_equal(y[:2], expected)


@pytest.mark.parametrize(("op", "after"), [
    ("ReduceMax 'y'", "y = ReduceMax(index)"),
    ("Shape 'y'", "y = Shape(at)"),
    ("ScatterND 'y'", "b = Squeeze(scores) i = Unsqueeze(index, one) u = Cast<to = 1>(index) y = ScatterND(b, i, u)"),
    ("Gather 'y'", "b = Squeeze(boxes, zero) c = Gather(b, index) y = Gather(c, flat)"),
    ("Concat 'y'", "y = Concat<axis = 0>(index, two)"),
    ("Add 'y'", "b = Squeeze(scores) c = Cast<to = 1>(index) y = Add(b, c)"),
    ("Slice 'y'", "y = Slice(index, flat, two)"),
    ("If 'y'", "t = Cast<to = 9>(most) y = If(t) <then_branch = a () => (int64[n] u) { u = Identity(index) }, "
     "else_branch = b () => (int64[n] v) { v = Neg(index) }>"),
])  # fmt: skip
def test_a_node_that_would_take_filled_rows_for_results_is_refused(op: str, after: str) -> None:
    with pytest.raises(UnsupportedError, match=f"bounds: {op} would take rows for results of NonMaxSuppression 'at'"):
        found_then(after, "y", {"at": 4})
    found_then(after, "y", {})


def test_a_bound_inside_of_a_branch_is_refused() -> None:
    """How many results there are could not be told."""
    model = onnx.parser.parse_model(
        HEADER
        + """g (float[n] x, bool t) => (y) {
    y = If(t) <then_branch = a () => (int64[1, k] u) { u = NonZero(x) }, else_branch = b () => (int64[1, k] v) {
        v = NonZero(x) }>
}"""
    )
    with pytest.raises(UnsupportedError, match="NonZero 'u' stands inside of a loop or branch"):
        generate(load(model), True, {"u": 2, "v": 2})


def test_a_conversion_with_bounds_is_checked_without_them(tmp_path: Path) -> None:
    done = onward.convert(FOUND, to="jax", out=tmp_path / "net", bounds={"at": 4, "z": 3, "distinct": 5})
    assert done.verdicts[0].status == "verified"
    assert "size=4, fill_value=-1" in (tmp_path / "net/model.py").read_text()
    with pytest.raises(OnwardError, match="bounds is for to jax"):
        onward.convert(FOUND, to="torch", out=tmp_path / "other", bounds={"at": 4})


def test_a_module_with_bounds_is_run_itself(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beside the source with these bounds, which no ONNX model has."""
    out, options = tmp_path / "net.mlir", {"bounds": {"at": 4, "z": 3, "distinct": 5}, "dims": {"n": 6}}
    done = onward.convert(FOUND, to="stablehlo", out=out, **options)
    assert [verdict.status for verdict in done.verdicts] == ["verified"] * 2
    assert "tensor<1x4xi64>" in out.read_text()
    exported = stablehlo_file.exported

    def another(net: Net, graph: Any) -> str:
        return exported(bounded(at=4, z=2, distinct=5), graph)

    monkeypatch.setattr(stablehlo_file, "exported", another)
    with pytest.raises(VerificationError, match=r"z: .*shape"):
        onward.convert(FOUND, to="stablehlo", out=tmp_path / "other.mlir", **options)
    assert not (tmp_path / "other.mlir").exists()


SIZES = onnx.parser.parse_model(
    HEADER + "g (float[n] x, int64[1] k, int64[2] shape) => (v, r) { v, i = TopK(x, k)  r = Reshape(x, shape) }"
)


def test_inputs_that_decide_sizes_are_static_arguments() -> None:
    source = generate(load(SIZES))
    assert "def apply(params: Params, x: Array, k: Static, shape: Static)" in source.model
    net, x = run(source), np.arange(6, dtype=np.float32)
    top, rows = jax.jit(net.apply, static_argnames=("k", "shape"))(net.params, x, k=2, shape=(2, 3))
    assert top.tolist() == [5, 4] and rows.shape == (2, 3)
    assert [y.shape for y in prepare("jax:jit", SIZES)([x, np.array([2]), np.array([3, 2])])] == [(2,), (3, 2)]
    with pytest.raises(TypeError, match=r"TopK 'v' .* static argument"):
        jax.jit(net.apply)(net.params, x, np.array([2]), np.array([2, 3]))
