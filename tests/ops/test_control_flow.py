"""If, Loop and Scan as Python statements, against ONNX Runtime."""

import numpy as np
import pytest
from harness import check, floats, text_model, to_torch
from test_shape import forward

from onward.errors import UnsupportedError

HEADER = '<ir_version: 9, opset_import: ["": 20]>\n'


def run(text, *inputs, unknown=True, **weights):
    model = text_model(HEADER + text, **weights)
    check(model, list(inputs), unknown=unknown)
    return forward(model)


def flag(value):
    return np.array(value)


def number(value):
    return np.array(value, dtype=np.int64)


X = floats(2, 3)

IF = """g (bool c, float[2, 3] x) => (float[a, b] y, float[d, e] z) <float[2, 3] w> {
    before = Neg(x)
    y, z = If (c) <
        then_branch: graph = t () => (yt, zt) { yt = Add(before, w) zt = Identity(x) },
        else_branch: graph = u () => (yu, zu) { yu = Tanh(before) zu = Mul(yu, before) }>
}"""


@pytest.mark.parametrize("value", [True, False])
def test_if(value):
    code = run(IF, flag(value), X, w=X)
    assert "if c:" in code and "else:" in code


def test_if_a_constant_chooses_one_branch():
    text = IF.replace("bool c, ", "").replace("<float", "<bool c = {0}, float")
    code = run(text, X, w=X)
    assert "if " not in code and "tanh" in code


def test_if_the_rank_chooses_one_branch():
    """What exporters write for `squeeze` of a dimension that may be 1."""
    code = run(
        """g (float[n, 1, 3] x) => (float[a, b] y) <int64[1] one = {1}, int64 i = {1}> {
            s = Shape(x)
            d = Gather(s, i)
            c = Equal(d, one)
            y = If (c) <then_branch: graph = t () => (a) { a = Squeeze(x, one) },
                        else_branch: graph = u () => (b) { b = Identity(x) }>
        }""",
        floats(4, 1, 3),
        unknown=False,
    )
    assert ".squeeze(1)" in code


@pytest.mark.parametrize("value", [True, False])
def test_if_gives_numbers_to_shapes(value):
    """Numbers from both branches stay Python numbers."""
    code = run(
        """g (bool c, float[n, m] x) => (float[a, b] y)
            <int64 i = {0}, int64 j = {1}, int64[1] m1 = {-1}, int64[1] ax = {0}> {
            s = Shape(x)
            k = If (c) <then_branch: graph = t () => (a) { a = Gather(s, i) },
                        else_branch: graph = u () => (b) { b = Gather(s, j) }>
            k1 = Unsqueeze(k, ax)
            shape = Concat<axis = 0>(k1, m1)
            y = Reshape(x, shape)
        }""",
        flag(value),
        X,
    )
    assert "torch.tensor" not in code


@pytest.mark.parametrize("value", [0.5, -0.5])
def test_nested_if(value):
    run(
        """g (float x) => (float y) <float zero = {0}, float one = {1}> {
            c = Greater(x, zero)
            d = Less(x, one)
            t = Exp(x)
            y = If (c) <then_branch: graph = a () => (y1) {
                y1 = If (d) <then_branch: graph = b () => (y2) { y2 = Mul(x, t) },
                             else_branch: graph = e () => (y3) { y3 = Sub(x, t) }>
            }, else_branch: graph = f () => (y4) { u = Neg(t) y4 = Add(u, one) }>
        }""",
        np.array(value, dtype=np.float32),
    )


LOOP = """g (int64 n, bool c, float[2] x, float[2] y) => (float[k] p, float[l] q, float[i, j] rows) {
    s = Add(x, y)
    p, q, rows = Loop (%s) <
        body: graph = b (int64 i, bool going, float[2] a, float[2] b) =>
        (bool again, float[2] a2, float[2] b2, float[2] row) {
        f = Cast<to = 1>(i)
        a2 = Identity(b)
        t = Mul(a, s)
        b2 = Sub(t, f)
        row = Add(a, b2)
        three = Constant<value_int = 3>()
        again = %s
    }>
}"""


@pytest.mark.parametrize("inputs", ["n, c, x, y", "n, , x, y"])
@pytest.mark.parametrize("again", ["Identity(going)", "Less(i, three)"])
@pytest.mark.parametrize("n", [0, 1, 9])
@pytest.mark.parametrize("c", [True, False])
def test_loop(inputs, again, n, c):
    code = run(LOOP % (inputs, again), number(n), flag(c), floats(2), floats(2, seed=1))
    assert "for i in range(" in code
    assert ("break" in code) == ("Less" in again)


@pytest.mark.parametrize("c", [True, False])
@pytest.mark.parametrize("limit", ["", "endless"])
def test_loop_until_a_condition_is_false(c, limit):
    text = (LOOP % (f"{limit}, c, x, y", "Less(i, three)")).replace(
        "s = Add", "endless = Constant<value_int = 9223372036854775807>()\ns = Add"
    )
    code = run(text, number(0), flag(c), floats(2), floats(2, seed=1))
    assert "while running:" in code and "i + 1" in code


def test_loop_with_a_constant_count_never_is_empty():
    text = (LOOP % ("four, , x, y", "Identity(going)")).replace("s = Add", "four = Constant<value_int = 4>()\ns = Add")
    code = run(text, number(0), flag(True), floats(2), floats(2, seed=1))
    assert "range(4)" in code and "torch.stack(row_list)" in code


COUNTED = """g (float[n, 2] x, bool c) => (float[2] y, %sfloat[k, 2] rows)
<int32 first = {%d}, int32 step = {%d}, int32 one = {1}, int64 axis = {0}, float[2] zero = {0, 0}> {
    s = Shape<start = 0, end = 1>(x)
    n = Squeeze(s)
    m = Cast<to = 6>(n)
    last = Sub(m, one)
    y, %srows = Loop (%s, c, zero, first) <
        body: graph = b (int64 i, bool going, float[2] a, int32 place) =>
        (bool again, float[2] a2, int32 next, float[2] row) {
        next = Add(place, step)
        row = Gather<axis = 0>(x, place)
        a2 = Sub(row, a)
        again = Less(next, last)
    }>
}"""


@pytest.mark.parametrize("limit", ["n", ""])
@pytest.mark.parametrize("c", [True, False])
@pytest.mark.parametrize(
    ("first", "step", "used", "place"),
    [(0, 1, False, "x[i]"), (2, 1, False, "x[i + 2]"), (0, 2, False, "x[place]"), (1, 1, True, "x[place]")],
)
def test_a_state_that_counts_is_the_number_of_the_trip(limit, c, first, step, used, place):
    """Where its last value is not asked for: how many trips there were, only the state knows."""
    text = COUNTED % ("int32 end, " if used else "", first, step, "end, " if used else "_, ", limit)
    code = run(text, floats(6, 2), flag(c))
    assert place in code, code


def test_state_that_the_condition_reads():
    """The test is on the state before it changes."""
    run(
        """g (float x, bool c) => (float y, bool e) <int64 n = {5}, float two = {2}, float ten = {10}> {
            y, e = Loop (n, , x, c) <
                body: graph = b (int64 i, bool going, float a, bool d) => (bool d, float a2, bool d2) {
                a2 = Mul(a, two)
                d2 = Less(a2, ten)
            }>
        }""",
        np.array(1, dtype=np.float32),
        flag(True),
    )


@pytest.mark.parametrize("n", [0, 3])
def test_states_change_shape_and_do_not_change(n):
    code = run(
        """g (int64 n, float[1, 2] x) => (float[a, b] y, float[d, e] z, float[f] sums) {
            y, z, sums = Loop (n, , x, x) <body: graph = b (int64 i, bool going, a, kept) => (going, c, kept, s) {
                c = Concat<axis = 0>(a, kept)
                s = ReduceSum<keepdims = 0>(c)
            }>
        }""",
        number(n),
        floats(1, 2),
    )
    assert "kept" not in code


@pytest.mark.parametrize("n", [0, 1, 3])
def test_nested_loops_over_outer_values(n):
    run(
        """g (int64 n, float[2] x) => (float[a] y, float[b, c] rows) <float[2] w> {
            before = Mul(x, w)
            y, rows = Loop (n, , before) <
                body: graph = b (int64 i, bool going, float[2] a) => (bool g1, float[2] c, float[2] row) {
                g1 = Identity(going)
                t = Tanh(a)
                count = Identity(i)
                inner, all = Loop (count, going, t) <
                    body: graph = d (int64 j, bool h, float[2] e) => (bool k, float[2] f, float[2] each) {
                    ij = Add(i, j)
                    r = Cast<to = 1>(ij)
                    u = Mul(e, r)
                    v = Add(u, before)
                    f = Sub(v, t)
                    each = Add(f, w)
                    two = Constant<value_int = 2>()
                    k = Less(j, two)
                }>
                m = ReduceSum<keepdims = 0>(all)
                c = Add(inner, m)
                row = Add(c, t)
            }>
        }""",
        number(n),
        floats(2),
        w=floats(2, seed=3),
    )


@pytest.mark.parametrize("n", [0, 2])
def test_weights_used_inside_loops(n):
    model = text_model(
        HEADER
        + """g (int64 n, float[2, 3] x) => (float[2, 3] y) {
            y = Loop (n, , x) <body: graph = b (int64 i, bool going, float[2, 3] a) => (bool going, float[2, 3] c) {
                t = MatMul(a, weight)
                u = Add(t, bias)
                c = Relu(u)
            }>
        }""",
        weight=floats(3, 3),
        bias=floats(3),
    )
    check(model, [number(n), X])
    names = [name for name, p in to_torch(model).named_parameters() if p.requires_grad]
    assert len(names) == 2


def test_more_loops_than_python_allows_are_refused():
    def nested(depth):
        body = f"v{depth} = Tanh(s{depth})"
        for k in range(depth, 0, -1):
            graph = f"b{k} (int64 i{k}, bool g{k}, float[2] s{k}) => (bool g{k}, float[2] v{k})"
            body = f"v{k - 1} = Loop (n, , {f's{k - 1}' if k > 1 else 'x'}) <body: graph = {graph} {{ {body} }}>"
        return text_model(HEADER + f"g (int64 n, float[2] x) => (float[a] v0) {{ {body} }}")

    check(nested(20), [number(1), floats(2)], unknown=False)
    with pytest.raises(UnsupportedError, match="nested in 20 others"):
        to_torch(nested(21))


def test_siblings_may_use_the_same_names():
    run(
        """g (bool c, float[2] x) => (float[a] y, float[b] z) {
            y = If (c) <then_branch: graph = t () => (r) { q = Neg(x) r = Exp(q) },
                        else_branch: graph = u () => (r) { q = Exp(x) r = Tanh(q) }>
            z = If (c) <then_branch: graph = t2 () => (r) { q = Add(y, x) r = Exp(q) },
                        else_branch: graph = u2 () => (r) { q = Exp(y) r = Tanh(q) }>
        }""",
        flag(False),
        floats(2),
    )


@pytest.mark.parametrize("n", [0, 3])
def test_sequences_and_optionals_carried(n):
    run(
        """g (int64 n, float[2] x) => (int64 k, float[a, b] y) {
            empty = SequenceEmpty()
            one = SequenceInsert(empty, x)
            s, nothing = Loop (n, , one, empty) <
                body: graph = b (int64 i, bool going, seq(float[2]) a, seq(float) e) =>
                (bool going, seq(float[2]) c, seq(float) e) {
                last = Constant<value_int = -1>()
                t = SequenceAt(a, last)
                u = Add(t, x)
                c = SequenceInsert(a, u)
            }>
            k = SequenceLength(s)
            y = ConcatFromSequence<axis = 0, new_axis = 1>(s)
        }""",
        number(n),
        floats(2),
    )


@pytest.mark.parametrize("axes", [None, [0, 1], [1, -1], [-2, 0]])
@pytest.mark.parametrize("directions", [None, [0, 1], [1, 1]])
@pytest.mark.parametrize("out", [(0, 0), (1, 1), (-1, 0), (-2, 1)])
def test_scan(axes, directions, out):
    attributes = f"num_scan_inputs = 2, scan_output_axes = [{out[0]}], scan_output_directions = [{out[1]}]"
    if axes:
        attributes += f", scan_input_axes = {axes}"
    if directions:
        attributes += f", scan_input_directions = {directions}"
    sizes = [[3, 2], [3, 2]]
    for size, axis in zip(sizes, axes or [0, 0], strict=True):
        if axis in (1, -1):
            size.reverse()
    a, b = (floats(*size, seed=i) for i, size in enumerate(sizes))
    run(
        f"""g (float[2] s, float{list(a.shape)} x, float{list(b.shape)} y) => (float[k] p, float[i, j] q) {{
            p, q = Scan <{attributes},
                body: graph = b (float[2] t, float[2] u, float[2] v) => (float[2] w, float[2] r) {{
                w1 = Add(t, u)
                w = Mul(w1, v)
                r = Sub(w, t)
            }}> (s, x, y)
        }}""",
        floats(2),
        a,
        b,
    )


def test_scan_over_one_tensor_reads_as_a_for_over_it():
    code = run(
        """g (float[2] s, float[n, 2] x) => (float[k] p, float[i, j] q) {
            p, q = Scan <num_scan_inputs = 1,
                body: graph = b (float[2] total, float[2] row) => (float[2] more, float[2] half) {
                two = Constant<value_float = 2.0>()
                more = Add(total, row)
                half = Div(more, two)
            }> (s, x)
        }""",
        floats(2),
        floats(4, 2),
    )
    assert "for row in x.unbind(0):" in code


def test_scan_over_nothing():
    """ONNX Runtime refuses this."""
    model = text_model(
        HEADER
        + """g (float[2] s, float[n, 2] x) => (float[k] p, float[i, 2] q) {
            p, q = Scan <num_scan_inputs = 1, body: graph = b (float[2] t, float[2] r) => (float[2] m, float[2] h) {
                m = Add(t, r)
                h = Neg(m)
            }> (s, x)
        }"""
    )
    check(model, [floats(2), floats(0, 2)], expected=[floats(2), floats(0, 2)])
