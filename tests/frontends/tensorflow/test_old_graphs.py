"""Graphs of TensorFlow 1: frozen in a file, with branches and loops made of Switch and Merge."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from test_battery import check, run  # noqa: E402

from onward.exporters import from_tensorflow  # noqa: E402
from onward.formats.graph_def import graph_function  # noqa: E402

v1 = tf.compat.v1
RNG = np.random.default_rng(0)
KERNEL = RNG.standard_normal((5, 8)).astype(np.float32)
ROWS = RNG.standard_normal((5, 3)).astype(np.float32)


@pytest.fixture(autouse=True)
def old_control_flow() -> Iterator[None]:
    """While a graph is built, branches and loops are made as TensorFlow 1 makes them."""
    was_on = v1.control_flow_v2_enabled()
    v1.disable_control_flow_v2()
    yield
    if was_on:
        v1.enable_control_flow_v2()


def frozen(path: Path, build: Callable[[Any], Any]) -> Path:
    """A graph that computes `out` from `x`, in a file."""
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [None, 3], name="x")
        tf.identity(build(x), name="out")
        with v1.Session(graph=graph) as session:
            session.run(v1.global_variables_initializer())
            whole = v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["out"])
    path.write_bytes(whole.SerializeToString())
    return path


def two_results(x: Any) -> Any:
    a, b = v1.cond(tf.reduce_sum(x) > 0, lambda: (x * 2, x + 1), lambda: (x - 1, x * x))
    return a + b


def nested_branches(x: Any) -> Any:
    total = tf.reduce_sum(x)
    return v1.cond(
        total > 0,
        lambda: v1.cond(total > 3, lambda: x + 5, lambda: x * total),
        lambda: v1.cond(x[0, 0] > 0, lambda: tf.sin(x), lambda: tf.constant(1.0) - x),
    )


def same_test_twice(x: Any) -> Any:
    test = tf.reduce_sum(x) > 0
    y = v1.cond(test, lambda: x * 2, lambda: x - 3)
    return v1.cond(test, lambda: tf.reduce_sum(y) + x, lambda: y * x)


def same_test_inside(x: Any) -> Any:
    test = tf.reduce_sum(x) > 0
    return v1.cond(test, lambda: v1.cond(test, lambda: x + 1, lambda: x + 2), lambda: x + 3)


def other_shapes(x: Any) -> Any:
    return v1.cond(tf.reduce_sum(x) > 0, lambda: tf.concat([x, x], 0), lambda: x[:1])


def only_constants(x: Any) -> Any:
    return x + v1.cond(tf.reduce_sum(x) > 0, lambda: tf.constant(1.0), lambda: tf.constant(2.0))


def given_out_as_is(x: Any) -> Any:
    return v1.cond(tf.reduce_sum(x) > 0, lambda: x, lambda: -x)


def crossed(x: Any) -> Any:
    """Branches of two tests, each of which reads one of the other."""
    p, q = tf.reduce_sum(x) > 0, x[0, 0] > 0
    a = v1.cond(p, lambda: x + 1, lambda: x - 1)
    b = v1.cond(q, lambda: x * 3, lambda: x * 4)
    return v1.cond(q, lambda: a * 2, lambda: a) + v1.cond(p, lambda: b * 2, lambda: b)


def cases(x: Any) -> Any:
    total = tf.reduce_sum(x)
    return v1.case([(total > 3, lambda: x), (total > 0, lambda: x * 2)], default=lambda: x * 3)


def loop(x: Any) -> Any:
    total = tf.reduce_sum(x)
    return v1.while_loop(lambda i, a: i < 4, lambda i, a: (i + 1, a * 0.5 + total), [tf.constant(0), x])[1]


def loop_by_value(x: Any) -> Any:
    return v1.while_loop(lambda a: tf.reduce_sum(a * a) > 1, lambda a: a * 0.5, [x])


def nested_loops(x: Any) -> Any:
    def outer(i: Any, a: Any) -> Any:
        inner = v1.while_loop(lambda j, b: j < i + 1, lambda j, b: (j + 1, b + x * tf.cast(i, tf.float32)), [0, a])
        return i + 1, inner[1]

    return v1.while_loop(lambda i, a: i < 3, outer, [0, x])[1]


def branch_in_loop(x: Any) -> Any:
    def body(i: Any, a: Any) -> Any:
        return i + 1, v1.cond(tf.equal(i % 2, 0), lambda: a + x, lambda: a * 2)

    return v1.while_loop(lambda i, a: i < 5, body, [0, x])[1]


def loop_in_branch(x: Any) -> Any:
    def looped() -> Any:
        return v1.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, a + x), [0, x])[1]

    return v1.cond(tf.reduce_sum(x) > 0, looped, lambda: x * 7)


def all_together(x: Any) -> Any:
    def body(i: Any, a: Any) -> Any:
        more = v1.while_loop(lambda j, b: j < 2, lambda j, b: (j + 1, b + a), [0, a])[1]
        return i + 1, v1.cond(tf.reduce_sum(a) > 5, lambda: a - 1, lambda: more)

    return v1.cond(
        x[0, 0] > 0,
        lambda: v1.while_loop(lambda i, a: i < 3, body, [0, x])[1],
        lambda: v1.cond(x[0, 1] > 0, lambda: x, lambda: -x),
    )


def read_by_the_condition_only(x: Any) -> Any:
    """A state that no round reads, and that is not given out."""
    total = tf.reduce_sum(x)
    step = lambda i, go, a: (i + 1, total * tf.cast(i, tf.float32) < 3, a * 0.5)  # noqa: E731
    return v1.while_loop(lambda i, go, a: tf.logical_and(go, i < 4), step, [0, total > -9, x])[2]


def array_of_any_shape(x: Any) -> Any:
    """Nothing says what is put into it; fewer than there is room for."""
    array = tf.TensorArray(tf.float32, size=4, element_shape=[None, 3], infer_shape=False)
    branch = lambda: v1.cond(x[0, 0] > 0, lambda: x * 2, lambda: x - 1)  # noqa: E731
    step = lambda i, a: (i + 1, a.write(i, branch()))  # noqa: E731
    return v1.while_loop(lambda i, a: i < tf.minimum(tf.shape(x)[0], 4), step, [0, array])[1].stack()


def growing(x: Any) -> Any:
    shapes = [tf.TensorShape([]), tf.TensorShape([None, 3])]
    return v1.while_loop(lambda i, a: i < 3, lambda i, a: (i + 1, tf.concat([a, x], 0)), [0, x], shapes)[1]


def array_written(x: Any) -> Any:
    array = tf.TensorArray(tf.float32, size=4, element_shape=[None, 3])
    step = lambda i, a: (i + 1, a.write(i, x * tf.cast(i, tf.float32)))  # noqa: E731
    return v1.while_loop(lambda i, a: i < 4, step, [0, array])[1].stack()


def array_read(x: Any) -> Any:
    array = tf.TensorArray(tf.float32, size=tf.shape(x)[0]).unstack(x)
    step = lambda i, a: (i + 1, a * 0.5 + array.read(i))  # noqa: E731
    return v1.while_loop(lambda i, a: i < array.size(), step, [0, tf.zeros([3])])[1]


def array_backwards(x: Any) -> Any:
    """Written from the end, so that it is no list that grows."""
    array = tf.TensorArray(tf.float32, size=4, element_shape=[3])
    step = lambda i, a: (i - 1, a.write(i, x[i] * 2))  # noqa: E731
    return v1.while_loop(lambda i, a: i >= 0, step, [3, array])[1].stack()


def array_joined(x: Any) -> Any:
    array = tf.TensorArray(tf.float32, size=3, element_shape=[2, 3])
    step = lambda i, a: (i + 1, a.write(i, x[:2] + tf.cast(i, tf.float32)))  # noqa: E731
    return v1.while_loop(lambda i, a: i < 3, step, [0, array])[1].concat()


def mapped(x: Any) -> Any:
    return v1.map_fn(lambda row: tf.reduce_sum(row) * row, x)


def scanned(x: Any) -> Any:
    return v1.scan(lambda a, row: a * 0.5 + row, x)


def folded(x: Any) -> Any:
    return v1.foldl(lambda a, row: a * 0.5 + row, x)


def lstm(x: Any) -> Any:
    """As `dynamic_rnn` wrote a recurrent network, with lengths: a branch in each round leaves finished rows alone."""
    kernel = v1.get_variable("kernel", initializer=KERNEL)
    bias = v1.get_variable("bias", initializer=tf.zeros([8]), use_resource=False)
    steps = tf.TensorArray(tf.float32, size=4).unstack(tf.stack([x * k for k in (1.0, 0.5, -1.0, 2.0)]))
    lengths = tf.cast(tf.range(tf.shape(x)[0]) % 4 + 1, tf.int32)
    zero = tf.zeros([tf.shape(x)[0], 2])

    def step(t: Any, outputs: Any, c: Any, h: Any) -> Any:
        i, j, f, o = tf.split(tf.concat([steps.read(t), h], 1) @ kernel + bias, 4, 1)
        new_c = c * tf.sigmoid(f + 1) + tf.sigmoid(i) * tf.tanh(j)
        new_h = tf.tanh(new_c) * tf.sigmoid(o)
        done = tf.reshape(t >= lengths, [-1, 1])

        def kept() -> Any:
            return tf.where(done, zero, new_h), tf.where(done, c, new_c), tf.where(done, h, new_h)

        out, new_c, new_h = v1.cond(t < tf.reduce_min(lengths), lambda: (new_h, new_c, new_h), kept)
        return t + 1, outputs.write(t, out), new_c, new_h

    outputs = tf.TensorArray(tf.float32, size=4, element_shape=[None, 2])
    _, outputs, _, last = v1.while_loop(lambda t, *_: t < 4, step, [0, outputs, zero, zero])
    return tf.concat([outputs.stack(), last[None]], 0)


BUILDERS = [
    two_results,
    nested_branches,
    same_test_twice,
    same_test_inside,
    other_shapes,
    only_constants,
    given_out_as_is,
    crossed,
    cases,
    loop,
    loop_by_value,
    nested_loops,
    branch_in_loop,
    loop_in_branch,
    all_together,
    growing,
    read_by_the_condition_only,
    array_of_any_shape,
    array_written,
    array_read,
    array_backwards,
    array_joined,
    mapped,
    scanned,
    folded,
    lstm,
]


@pytest.mark.parametrize("build", BUILDERS, ids=lambda build: build.__name__)
def test_the_same_is_computed(build: Callable[[Any], Any], tmp_path: Path) -> None:
    path = frozen(tmp_path / "net.pb", build)
    function = graph_function(path)
    model = from_tensorflow(path)
    assert not any(op.type in ("If", "While") for op in function.graph.get_operations())
    for x in (ROWS, -ROWS, np.abs(ROWS), -np.abs(ROWS), np.roll(ROWS, 1, 1) * 4):
        (found,) = run(model, (x,))
        check(found, function(x=tf.constant(x))["out"].numpy())


def test_inputs_are_told_apart_by_their_names(tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph:
        left, right = v1.placeholder(tf.float32, [None, 3], name="z"), v1.placeholder(tf.float32, [None, 3], name="a")
        tf.identity(left - right, name="out")
    (tmp_path / "net.pb").write_bytes(graph.as_graph_def().SerializeToString())
    model = from_tensorflow(tmp_path / "net.pb")
    assert [value.name for value in model.ir.graph.inputs] == ["a", "z"]
    np.testing.assert_array_equal(run(model, (ROWS, ROWS * 3))[0], ROWS * 3 - ROWS)
    wanted = graph_function(tmp_path / "net.pb")(a=tf.constant(ROWS), z=tf.constant(ROWS * 3))["out"]
    np.testing.assert_array_equal(wanted, ROWS * 3 - ROWS)


def with_lengths(x: Any, lengths: Any, cells: Any) -> Any:
    cell = cells.LSTMCell(4, use_peepholes=True, num_proj=3)
    return v1.nn.dynamic_rnn(cell, x, sequence_length=lengths, dtype=tf.float32)[0]


def in_layers(x: Any, lengths: Any, cells: Any) -> Any:
    cell = cells.MultiRNNCell([cells.BasicLSTMCell(4), cells.GRUCell(3)])
    return v1.nn.dynamic_rnn(cell, x, dtype=tf.float32, time_major=True)[0]


def both_ways(x: Any, lengths: Any, cells: Any) -> Any:
    forth, back = cells.BasicLSTMCell(4), cells.BasicRNNCell(4)
    return tf.concat(v1.nn.bidirectional_dynamic_rnn(forth, back, x, lengths, dtype=tf.float32)[0], -1)


def unrolled(x: Any, lengths: Any, cells: Any) -> Any:
    return tf.stack(v1.nn.static_rnn(cells.LSTMCell(4), tf.unstack(x, 4, 1), None, tf.float32, lengths)[0])


@pytest.mark.parametrize("build", [with_lengths, in_layers, both_ways, unrolled], ids=lambda build: build.__name__)
@pytest.mark.filterwarnings("ignore")
def test_recurrent_networks(build: Callable[..., Any], tmp_path: Path) -> None:
    """As TensorFlow 1 wrote them, with its own cells, which are part of tf_keras today."""
    cells = pytest.importorskip("tf_keras.src.layers.rnn.legacy_cells")
    with tf.Graph().as_default() as graph:
        x = v1.placeholder(tf.float32, [None, 4, 3], name="x")
        lengths = v1.placeholder(tf.int32, [None], name="lengths")
        v1.set_random_seed(0)
        tf.identity(build(x, lengths, cells), name="out")
        with v1.Session(graph=graph) as session:
            session.run(v1.global_variables_initializer())
            whole = v1.graph_util.convert_variables_to_constants(session, graph.as_graph_def(), ["out"])
    (tmp_path / "net.pb").write_bytes(whole.SerializeToString())
    model, function = from_tensorflow(tmp_path / "net.pb"), graph_function(tmp_path / "net.pb")
    series = np.random.default_rng(1).standard_normal((3, 4, 3)).astype(np.float32)
    given = {"x": series, "lengths": np.array([4, 2, 1], np.int32)}
    names = [value.name for value in model.ir.graph.inputs]
    (found,) = run(model, tuple(given[name or ""] for name in names))
    check(found, function(**{name or "": tf.constant(given[name or ""]) for name in names})["out"].numpy())


@pytest.mark.parametrize("padding", ["SAME", "VALID"])
@pytest.mark.parametrize("shape", [(1, 11, 13, 2), (None, None, None, 2)], ids=["fixed", "open"])
@pytest.mark.parametrize("is_depthwise", [False, True], ids=["convolution", "depthwise"])
def test_convolutions_of_blocks_are_dilated(padding: str, shape: tuple[int | None, ...], is_depthwise: bool) -> None:
    from tensorflow.python.ops.nn_ops import with_space_to_batch

    filters = np.random.default_rng(0).standard_normal((3, 3, 2, 4)).astype(np.float32)

    def convolved(x: Any, pads: Any, padding: Any) -> Any:
        if is_depthwise:
            return tf.raw_ops.DepthwiseConv2dNative(input=x, filter=filters, strides=[1] * 4, padding="VALID")
        return tf.nn.conv2d(x, filters, 1, "VALID")

    def function(x: Any) -> Any:
        return with_space_to_batch(x, [2, 3], padding, convolved, filter_shape=[3, 3])

    model = from_tensorflow(tf.function(function, autograph=False), [tf.TensorSpec(shape)])
    (conv,) = (node for node in model.ir.graph if node.op_type == "Conv")
    assert list(conv.attributes["dilations"].as_ints()) == [2, 3]
    assert shape[0] is None or {node.op_type for node in model.ir.graph} <= {"Conv", "Transpose", "Identity"}
    for size in ((11, 13), (11, 13) if shape[0] else (16, 9)):
        image = np.random.default_rng(1).standard_normal((1, *size, 2)).astype(np.float32)
        check(run(model, (image,))[0], function(tf.constant(image)).numpy())
