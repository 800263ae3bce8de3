"""Control flow of ONNX as JAX's own: what is printed, that it can be compiled, and that it has gradients."""

from typing import Any

import numpy as np
import onnx
import pytest

jax = pytest.importorskip("jax")

import onward  # noqa: E402
from onward.backends.backend import backend  # noqa: E402
from onward.backends.emit.package import Source  # noqa: E402
from onward.backends.jax.convert import generate  # noqa: E402
from onward.model import load  # noqa: E402
from onward.scoreboard.suite import forget_shapes, prepare  # noqa: E402

HEADER = '<ir_version: 10, opset_import: ["" : 21]>\n'


def parsed(text: str) -> onnx.ModelProto:
    return onnx.shape_inference.infer_shapes(onnx.parser.parse_model(HEADER + text))


def source(model: onnx.ModelProto) -> Source:
    return generate(load(model))


def check(model: onnx.ModelProto, *inputs: Any, modes: tuple[str, ...] = ("jax", "jax:jit")) -> None:
    """As ONNX Runtime has it, also with shapes that are not known."""
    wanted = prepare("onnxruntime", model)(list(inputs))
    for mode in modes:
        for variant in (model, forget_shapes(model)):
            for found, right in zip(prepare(mode, variant)(list(inputs)), wanted, strict=True):
                np.testing.assert_allclose(found, right, rtol=1e-5)
                assert found.dtype == right.dtype and found.shape == right.shape


BRANCHES = """g (float[3] x, bool c) => (float[3] y) {
    y = If (c) <
        then_branch = yes () => (float[3] a) { a = Exp(x) },
        else_branch = no () => (float[3] b) { two = Constant<value_float = 2.0>()  b = Mul(x, two) }
    >
}"""


def test_if_is_cond_where_both_branches_give_the_same() -> None:
    model = parsed(BRANCHES)
    assert "lax.cond(c, yes, no)" in source(model).model
    for c in (True, False):
        check(model, np.array([1, 2, 3], np.float32), np.array(c))


def test_branches_of_different_shapes_run_as_python_does() -> None:
    """Under jit, what decides is a static argument; else it is refused."""
    model = parsed(BRANCHES.replace("float[3] y", "float[n] y").replace("float[3] b", "float[6] b").replace(
        "b = Mul(x, two)", "t = Mul(x, two)  b = Concat<axis = 0>(t, t)"
    ))  # fmt: skip
    assert "lax.cond" not in source(model).model
    assert "c: Static" in source(model).model
    for c in (True, False):
        check(model, np.array([1, 2, 3], np.float32), np.array(c))
    apply, params = onward.to_jax(model, check=False)
    with pytest.raises(TypeError, match="If 'y' has branches that give different shapes"):
        jax.jit(apply)(params, np.ones(3, np.float32), True)


COUNTED = """g (float[2] x) => (float[2] y, float[5, 2] rows) {
    n = Constant<value_int = 5>()
    go = Constant<value = bool {1}>()
    y, rows = Loop (n, go, x) <
        body = body (int64 i, bool c, float[2] s) => (bool d, float[2] t, float[2] r) {
            d = Identity(c)
            f = Cast<to = 1>(i)
            t = Add(s, f)
            r = Mul(t, x)
        }
    >
}"""


def test_a_loop_of_known_length_is_scan_and_has_gradients() -> None:
    model = parsed(COUNTED)
    text = source(model).model
    assert "lax.scan(body, x, jnp.arange(5))" in text and "ops." not in text.partition("def load")[0]
    x = np.array([0.5, -1], np.float32)
    check(model, x)
    net = backend("jax").load(source(model))
    slope = jax.grad(lambda x: net(x)[1].sum())(x)  # rows are (x + 0 + 1 + … + i) * x
    np.testing.assert_allclose(slope, 5 * 2 * x + (0 + 1 + 3 + 6 + 10), rtol=1e-6)


WHILE = """g (float x, int64 n) => (float y) {
    go = Constant<value = bool {1}>()
    limit = Constant<value_float = 100.0>()
    y = Loop (n, go, x) <
        body = body (int64 i, bool c, float s) => (bool d, float t) { t = Add(s, s)  d = Less(t, limit) }
    >
}"""


def test_a_loop_that_data_end_is_a_while_loop() -> None:
    model = parsed(WHILE)
    assert "lax.while_loop(goes_on, body, (0, True, x))" in source(model).model
    for n in (0, 3, 50):
        check(model, np.array(1.5, np.float32), np.array(n))


GROWING = """g (float[n] x, int64 count) => (float[m] y) {
    go = Constant<value = bool {1}>()
    y = Loop (count, go, x) <
        body = body (int64 i, bool c, float[k] s) => (bool d, float[l] t) {
            d = Identity(c)
            t = Concat<axis = 0>(s, x)
        }
    >
}"""


def test_a_state_that_grows_is_a_loop_of_python() -> None:
    model = parsed(GROWING)
    check(model, np.ones(2, np.float32), np.array(3), modes=("jax",))
    with pytest.raises(Exception, match=r"Loop 'y'|carry"):
        prepare("jax:jit", model)([np.ones(2, np.float32), np.array(3)])


SLICES = """g (float[12, 2] x) => (float[12, 2] rows) {
    n = Constant<value_int = 12>()
    go = Constant<value = bool {1}>()
    one = Constant<value_ints = [1]>()
    axis = Constant<value_ints = [0]>()
    rows = Loop (n, go) <
        body = body (int64 i, bool c) => (bool d, float[2] r) {
            d = Identity(c)
            first = Reshape(i, one)
            last = Add(first, one)
            part = Slice(x, first, last, axis)
            r = Squeeze(part, axis)
        }
    >
}"""


def test_a_loop_that_needs_its_number_is_unrolled() -> None:
    check(parsed(SLICES), np.arange(24, dtype=np.float32).reshape(12, 2), modes=("jax",))


SCAN = """g (float[2] start, float[4, 2] x) => (float[2] last, float[2, 4] sums) {
    last, sums = Scan <num_scan_inputs = 1, scan_input_directions = [WAY], scan_output_axes = [1],
                       scan_output_directions = [OUT],
        body = body (float[2] s, float[2] v) => (float[2] t, float[2] r) { t = Add(s, v)  r = Mul(t, t) }
    > (start, x)
}"""


@pytest.mark.parametrize(("way", "out"), [(0, 0), (1, 1), (1, 0), (0, 1)])
def test_scan_is_scan(way: int, out: int) -> None:
    model = parsed(SCAN.replace("WAY", str(way)).replace("OUT", str(out)))
    text = source(model).model
    assert "lax.scan(" in text and ("reverse=True" in text) == (way == out == 1)
    check(model, np.array([1, 2], np.float32), np.arange(8, dtype=np.float32).reshape(4, 2))


OVER_TIME = """g (float[t, 3] x) => (float[t, 3] rows, int64 n) {
    shape = Shape<start = 0, end = 1>(x)
    axes = Constant<value_ints = [0]>()
    count = Squeeze(shape, axes)
    limit = Cast<to = 1>(count)
    zero = Constant<value = float {FIRST}>()
    running = Less(zero, limit)
    begin = Constant<value = int64 {0}>()
    n, rows = Loop (count, running, begin) <
        body = step (int64 i, bool go, int64 now) => (bool on, int64 next, float[3] row) {
        one = Constant<value = int64 {STEP}>()
        next = Add(now, one)
        row = Gather(x, now)
        left = Cast<to = 1>(next)
        passed = Cast<to = 1>(i)
        first = Less(left, limit)
        second = Less(passed, limit)
        on = And(first, second)
    }>
}"""


@pytest.mark.parametrize(
    ("first", "step", "kind"), [("0", "1", "lax.scan"), ("0", "2", "ops.loop"), ("1", "1", "ops.loop")]
)
def test_a_condition_that_repeats_the_trip_count_is_no_condition(first: str, step: str, kind: str) -> None:
    """As TensorFlow writes loops over time; a counter in other steps, or a test that may fail at first, is one."""
    model = parsed(OVER_TIME.replace("FIRST", first).replace("STEP", step))
    assert kind in source(model).model
    for length in (5, 1):
        x = np.arange(3 * length, dtype=np.float32).reshape(length, 3)
        check(model, x, modes=("jax", "jax:jit") if kind == "lax.scan" else ("jax",))
