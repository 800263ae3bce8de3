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
from onward.errors import OnwardError, VerificationError  # noqa: E402
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
    net = bounded(places=4, z=3, distinct=5)
    for call in (net, net.jitted()):
        at, z, distinct, counts = map(np.asarray, call(X, C))
        np.testing.assert_array_equal(at, [[0, 2, 4, -1]])
        np.testing.assert_array_equal(z, [3, 0, 0])
        np.testing.assert_array_equal(distinct, [0, 2, 3, 0, 0])
        np.testing.assert_array_equal(counts, [2, 1, 2, 0, 0])


def test_what_is_too_much_is_left_out() -> None:
    at, z, *_ = bounded(at=2, kept=1, distinct=3).jitted()(X, C)
    np.testing.assert_array_equal(at, [[0, 2]])
    np.testing.assert_array_equal(z, [3])


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
        np.testing.assert_array_equal(call(boxes, scores), [[0, 0, 0], [0, 0, 2], [-1] * 3, [-1] * 3])


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
