"""Gradients through If, Loop and Scan."""

import numpy as np
import onnx
import pytest
from gradient_checks import check_model, run_onnxruntime, single_precision
from onnx import TensorProto, helper, numpy_helper, parser

from onward.training.autodiff.derivatives import gradient


def model(text: str, opset: int = 21) -> onnx.ModelProto:
    return parser.parse_model(f'<ir_version: 10, opset_import: ["" : {opset}]>\n{text}')


def uniform(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed + sum(shape)).uniform(0.3, 1.2, shape)


IF = """agraph (double[2,3] x, double[3] w, bool flag) => (double[2,3] y, double[2] z) {
    h = Mul (x, w)
    y, z = If (flag) <
        then_branch = yes () => (double[2,3] a, double[2] s) {
            e = Exp (h)
            a = Mul (e, x)
            axis = Constant <value_ints = [1]> ()
            s = ReduceSum <keepdims = 0> (e, axis)
        },
        else_branch = no () => (double[2,3] b, double[2] t) {
            b = Identity (h)
            last = Constant <value_ints = [1]> ()
            r = ReduceMax <keepdims = 0> (x, last)
            t = Sqrt (r)
        }
    >
}"""


@pytest.mark.parametrize("flag", [True, False])
def test_if(flag: bool) -> None:
    check_model(model(IF), {"x": uniform(2, 3), "w": uniform(3), "flag": np.asarray(flag)})


LOOP = """agraph (double[2,3] x, double[3,3] w, int64 trips, bool go) => (double[2,3] last, double[N,2] sums) {
    count = Constant <value_int = 0> ()
    last, n, sums = Loop (trips, go, x, count) <
        body = round (int64 i, bool on, double[2,3] s, int64 k) => (bool on_, double[2,3] s_, int64 k_, double[2] row) {
            on_ = Identity (on)
            p = MatMul (s, w)
            j = CastLike (i, s)
            half = Constant <value = double {0.5}> ()
            f = Mul (j, half)
            q = Tanh (p)
            m = Mul (f, s)
            s_ = Add (q, m)
            one = Constant <value_int = 1> ()
            k_ = Add (k, one)
            kd = CastLike (k, s)
            u = Mul (s, kd)
            axis = Constant <value_ints = [1]> ()
            row = ReduceSum <keepdims = 0> (u, axis)
        }
    >
}"""


@pytest.mark.parametrize("trips", [3, 1])
def test_loop(trips: int) -> None:
    check_model(
        model(LOOP), {"x": uniform(2, 3), "w": uniform(3, 3), "trips": np.asarray(trips), "go": np.asarray(True)}
    )


def test_loop_that_stops_early() -> None:
    text = """agraph (double[2] x, double[2] w) => (double[2] y) {
        trips = Constant <value_int = 9> ()
        go = Constant <value = bool {1}> ()
        y = Loop (trips, go, x) <
            body = round (int64 i, bool on, double[2] s) => (bool more, double[2] s_) {
                limit = Constant <value = double {40.0}> ()
                s_ = Mul (s, w)
                total = ReduceSum <keepdims = 0> (s_)
                more = Less (total, limit)
            }
        >
    }"""
    check_model(model(text), {"x": uniform(2), "w": uniform(2) + 2})


def test_states_that_pass_or_lead_nowhere() -> None:
    """The last state runs off to infinity, and nothing that has a gradient depends on it."""
    text = """agraph (double[2] x, double[2] w, double[2] c) => (double[2] y) {
        go = Constant <value = bool {1}> ()
        y, k, n = Loop ("", go, x, c, w) <
            body = round (int64 i, bool on, double[2] s, double[2] t, double[2] z)
                => (bool more, double[2] s_, double[2] t, double[2] z_) {
                five = Constant <value_int = 5> ()
                more = Less (i, five)
                p = Mul (s, t)
                s_ = Mul (p, w)
                z_ = Exp (z)
            }
        >
    }"""
    check_model(model(text), {"x": uniform(2), "w": uniform(2, seed=1), "c": uniform(2, seed=2)})


def test_a_state_that_begins_in_another_shape() -> None:
    """The body writes it without reading it, so that each round but the first begins with another shape."""
    text = """agraph (double[2] x, double[2] w) => (double[2] y, double[2] z) {
        trips = Constant <value_int = 3> ()
        go = Constant <value = bool {1}> ()
        none = Constant <value = double {0.0}> ()
        y, z = Loop (trips, go, x, none) <
            body = round (int64 i, bool on, double[2] s, double t) => (bool on_, double[2] s_, double[2] t_) {
                on_ = Identity (on)
                s_ = Mul (s, w)
                t_ = Sin (s_)
            }
        >
    }"""
    check_model(model(text), {"x": uniform(2), "w": uniform(2, seed=1)})


def test_a_branch_with_weights_of_its_own() -> None:
    given, made = (helper.make_tensor_value_info(name, TensorProto.DOUBLE, [2]) for name in ("x", "y"))
    flag = helper.make_tensor_value_info("flag", TensorProto.BOOL, [])
    weight = numpy_helper.from_array(np.asarray([2.0, 3.0]), "k")
    yes = helper.make_graph([helper.make_node("Mul", ["x", "k"], ["a"])], "yes", [], [_named(made, "a")], [weight])
    no = helper.make_graph([helper.make_node("Sin", ["x"], ["b"])], "no", [], [_named(made, "b")])
    node = helper.make_node("If", ["flag"], ["y"], then_branch=yes, else_branch=no)
    graph = helper.make_graph([node], "g", [given, flag], [made])
    branched = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=10)
    check_model(branched, {"x": uniform(2), "flag": np.asarray(True)})


def _named(value: onnx.ValueInfoProto, name: str) -> onnx.ValueInfoProto:
    renamed = onnx.ValueInfoProto()
    renamed.CopyFrom(value)
    renamed.name = name
    return renamed


def test_rows_of_integers() -> None:
    """Which a table is read at, in each round."""
    text = """agraph (double[3] h, double[4,3] table, int64[5] ids) => (double[3] last, double[5,3] ys) {
        last, ys = Scan <num_scan_inputs = 1, body = step (double[3] s, int64 id) => (double[3] s_, double[3] y) {
            e = Gather <axis = 0> (table, id)
            q = Mul (s, e)
            s_ = Tanh (q)
            y = Identity (s_)
        }> (h, ids)
    }"""
    check_model(model(text), {"h": uniform(3), "table": uniform(4, 3), "ids": np.asarray([1, 0, 3, 1, 1])})


def test_loop_without_rounds() -> None:
    """What goes in comes out, and what is captured has no part in it."""
    inputs = {"x": uniform(2, 3), "w": uniform(3, 3), "trips": np.asarray(0), "go": np.asarray(True)}
    check_model(model(LOOP.replace(", double[N,2] sums)", ")")), inputs, second=False)


SCAN = """agraph (double[2] h, double[2,4] xs, double[2] w) => (double[2] last, double[2,4] ys, double[4,2] zs) {
    last, ys, zs = Scan <
        num_scan_inputs = 1, scan_input_axes = [1], scan_input_directions = [1], scan_output_axes = [-1, 0],
        scan_output_directions = [0, 1],
        body = step (double[2] s, double[2] x) => (double[2] s_, double[2] y, double[2] z) {
            a = Mul (s, w)
            b = Add (a, x)
            s_ = Tanh (b)
            y = Mul (s_, x)
            z = Identity (s)
        }
    > (h, xs)
}"""


def test_scan() -> None:
    check_model(model(SCAN), {"h": uniform(2), "xs": uniform(2, 4), "w": uniform(2)})


def test_scan_with_respect_to_one() -> None:
    inputs = {"h": uniform(2), "xs": uniform(2, 4), "w": uniform(2)}
    for name in inputs:
        check_model(model(SCAN), inputs, wrt=[name], second=False)


@pytest.mark.parametrize(
    ("nodes", "weights"),
    [
        ("y = LSTM <hidden_size = 2> (h, w, r)", {"w": (1, 8, 2), "r": (1, 8, 2)}),
        ("y = Conv (h, w, r)", {"w": (2, 1, 2), "r": (2,)}),
        ("p = MaxPool <kernel_shape = [1]> (h) y = InstanceNormalization (p, w, r)", {"w": (1,), "r": (1,)}),
    ],
)
def test_a_rank_that_branches_hide(nodes: str, weights: dict[str, tuple[int, ...]]) -> None:
    """The rank of what one of two branches gives is not known, but the op that takes it has but one."""
    given = ", ".join(f"double{list(shape)} {name}" for name, shape in weights.items())
    text = f"""agraph (double[3,1,2] x, bool flag, {given}) => (y) {{
        h = If (flag) <
            then_branch = yes () => (double[3,1,2] a) {{ a = Sin (x) }},
            else_branch = no () => (double[1,3,1,2] b) {{ at = Constant <value_ints = [0]> () b = Unsqueeze (x, at) }}
        >
        {nodes}
    }}"""
    inputs = {"x": uniform(3, 1, 2), "flag": np.asarray(True)}
    check_model(model(text), inputs | {name: uniform(*shape) for name, shape in weights.items()}, second=False)


def test_nested() -> None:
    """An If in a Loop in a Scan, all with values from outside."""
    text = """agraph (double[2] h, double[3,2] xs, double[2] w) => (double[2] last, double[3,2] ys) {
        last, ys = Scan <num_scan_inputs = 1, body = step (double[2] s, double[2] x) => (double[2] s_, double[2] y) {
            trips = Constant <value_int = 2> ()
            go = Constant <value = bool {1}> ()
            s_ = Loop (trips, go, s) <
                body = round (int64 i, bool on, double[2] t) => (bool on_, double[2] t_) {
                    on_ = Identity (on)
                    zero = Constant <value_int = 0> ()
                    first = Equal (i, zero)
                    t_ = If (first) <
                        then_branch = yes () => (double[2] a) { p = Mul (t, w) a = Add (p, x) },
                        else_branch = no () => (double[2] b) { b = Sin (t) }
                    >
                }
            >
            y = Mul (s_, x)
        }> (h, xs)
    }"""
    check_model(model(text), {"h": uniform(2), "xs": uniform(3, 2), "w": uniform(2)})


def test_an_op_inside_is_lowered() -> None:
    """RotaryEmbedding is differentiated by its definition, in a body too."""
    text = """agraph (double[1,2,2,4] x, bool flag, double[3,2] cos, double[3,2] sin, int64[1,2] at)
            => (double[1,2,2,4] y) {
        y = If (flag) <
            then_branch = yes () => (double[1,2,2,4] a) { a = RotaryEmbedding (x, cos, sin, at) },
            else_branch = no () => (double[1,2,2,4] b) { b = Identity (x) }
        >
    }"""
    inputs = {"x": uniform(1, 2, 2, 4), "flag": np.asarray(True), "cos": uniform(3, 2), "sin": uniform(3, 2, seed=1)}
    inputs["at"] = np.asarray([[2, 0]])
    check_model(model(text, 23), inputs, wrt=["x", "cos"], runtime=False)


def test_a_state_that_grows_is_no_silent_error() -> None:
    text = """agraph (double[2] x, int64 trips) => (double total) {
        go = Constant <value = bool {1}> ()
        y = Loop (trips, go, x) <
            body = round (int64 i, bool on, double[n] s) => (bool on_, double[m] s_) {
                on_ = Identity (on)
                e = Sin (s)
                s_ = Concat <axis = 0> (s, e)
            }
        >
        total = ReduceSum <keepdims = 0> (y)
    }"""
    made = gradient(model(text), "total", ["x"]).to_proto()
    with pytest.raises(Exception, match="shape"):
        run_onnxruntime(single_precision(made), {"x": uniform(2), "trips": np.asarray(3)})
