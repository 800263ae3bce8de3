"""Functions and graphs whose variables are in a checkpoint."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from test_battery import run  # noqa: E402

from onward.errors import InvalidModelError, OnwardError, UnsupportedError  # noqa: E402
from onward.exporters import from_tensorflow  # noqa: E402
from onward.formats.graph_def import graph_function  # noqa: E402

v1 = tf.compat.v1
ROWS = np.random.default_rng(0).standard_normal((2, 3)).astype(np.float32)


class Net(tf.Module):
    """Two of its variables have the same name."""

    def __init__(self, start: float, outputs: int = 2) -> None:
        super().__init__()
        self.kernel = tf.Variable(tf.fill([3, outputs], start), name="kernel")
        self.shifts = [tf.Variable(start + i, name="shift") for i in (1, 2)]

    @tf.function(input_signature=[tf.TensorSpec([None, 3], name="x")])
    def __call__(self, x: Any) -> Any:
        return x @ self.kernel * self.shifts[0] + self.shifts[1]


@pytest.mark.parametrize("part", [None, "model"], ids=["itself", "a part"])
def test_what_an_object_was_saved_with(part: str | None, tmp_path: Path) -> None:
    trained, new = Net(3.0), Net(0.0)
    saved = (
        tf.train.Checkpoint(trained) if part is None else tf.train.Checkpoint(step=tf.Variable(1), **{part: trained})
    )
    (found,) = run(from_tensorflow(new, checkpoint=saved.save(str(tmp_path / "net"))), (ROWS,))
    np.testing.assert_allclose(found, trained(ROWS), rtol=1e-6)
    np.testing.assert_array_equal(new.kernel, np.zeros((3, 2)))
    (plain,) = run(from_tensorflow(new), (ROWS,))
    np.testing.assert_allclose(plain, new(ROWS), rtol=1e-6)


def test_names_where_the_object_is_not_given(tmp_path: Path) -> None:
    one, other = tf.Variable([1.0, 2.0, 3.0], name="one"), tf.Variable(0.0, name="other")
    path = tf.train.Checkpoint(a=one, b=other).write(str(tmp_path / "net"))
    one.assign(tf.zeros(3))
    (found,) = run(from_tensorflow(lambda x: x * one + other, [tf.TensorSpec([2, 3])], checkpoint=path), (ROWS,))
    np.testing.assert_allclose(found, ROWS * [1, 2, 3], rtol=1e-6)


@pytest.mark.parametrize("resource", [False, True], ids=["references", "resources"])
def test_graphs_and_functions_by_the_names_of_tensorflow_1(resource: bool, tmp_path: Path) -> None:
    with tf.Graph().as_default() as graph, v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 3], name="x")
        places = tf.constant([1, 0])
        kernel = v1.get_variable("layer/kernel", initializer=np.eye(3, 2, dtype=np.float32) * 5, use_resource=resource)
        rows = v1.get_variable("rows", initializer=np.arange(6, dtype=np.float32).reshape(3, 2), use_resource=resource)
        y = tf.identity(x @ kernel + tf.gather(rows, places), name="y")
        v1.train.GradientDescentOptimizer(0.1).minimize(tf.reduce_sum(y))
        session.run(v1.global_variables_initializer())
        prefix = v1.train.Saver().save(session, str(tmp_path / "net.ckpt"))
        wanted = session.run(y, {x: ROWS})
        (tmp_path / "net.pb").write_bytes(graph.as_graph_def().SerializeToString())
    by_graph = from_tensorflow(tmp_path / "net.pb", outputs=["y"], checkpoint=prefix)
    by_meta = from_tensorflow(f"{prefix}.meta", outputs=["y"])
    for model in (by_graph, by_meta):
        np.testing.assert_allclose(run(model, (ROWS,))[0], wanted, rtol=1e-6)
        assert {"layer/kernel", "rows"} <= set(model.ir.graph.initializers)
    with pytest.raises(UnsupportedError, match=r"its variables \(layer/kernel, rows\) are not in the file"):
        from_tensorflow(tmp_path / "net.pb", outputs=["y"])
    weight = tf.Variable(tf.zeros([3, 2]), name="layer/kernel")
    function = from_tensorflow(lambda x: x @ weight, [tf.TensorSpec([2, 3])], checkpoint=prefix)
    np.testing.assert_allclose(run(function, (ROWS,))[0], ROWS[:, :2] * 5, rtol=1e-6)


def test_a_graph_that_reads_variables_in_a_loop(tmp_path: Path) -> None:
    was_on = v1.control_flow_v2_enabled()
    v1.disable_control_flow_v2()
    with tf.Graph().as_default(), v1.Session() as session:
        x = v1.placeholder(tf.float32, [None, 3], name="x")
        scale = v1.get_variable("scale", initializer=np.array([0.5, 1, 2], np.float32), use_resource=True)
        rows = v1.get_variable("rows", initializer=np.arange(6, dtype=np.float32).reshape(2, 3), use_resource=True)
        step = lambda i, y: (i + 1, y * scale + tf.gather(rows, i))  # noqa: E731
        y = tf.identity(v1.while_loop(lambda i, y: i < 2, step, [0, x])[1], name="y")
        session.run(v1.global_variables_initializer())
        prefix = v1.train.Saver().save(session, str(tmp_path / "net"))
        wanted = session.run(y, {x: ROWS})
    if was_on:
        v1.enable_control_flow_v2()
    np.testing.assert_allclose(run(from_tensorflow(f"{prefix}.meta", outputs=["y"]), (ROWS,))[0], wanted, rtol=1e-6)
    function = graph_function(Path(f"{prefix}.meta"), outputs=["y"])
    np.testing.assert_allclose(function(x=tf.constant(ROWS))["y"], wanted, rtol=1e-6)


def test_what_is_missing_is_named(tmp_path: Path) -> None:
    path = tf.train.Checkpoint(kernel=tf.Variable(tf.zeros([3, 2]))).write(str(tmp_path / "part"))
    with pytest.raises(OnwardError, match="nothing for 2 of the variables: shift, shift"):
        from_tensorflow(Net(0.0), checkpoint=path)
    other = tf.Variable(1.0, name="other")
    with pytest.raises(OnwardError, match="nothing for 1 of the variables: other"):
        from_tensorflow(lambda x: x * other, [tf.TensorSpec([3])], checkpoint=path)
    whole = tf.train.Checkpoint(Net(0.0)).write(str(tmp_path / "whole"))
    with pytest.raises(OnwardError, match=r"kernel is \[3, 2\] there, not \[3, 5\]"):
        from_tensorflow(Net(0.0, outputs=5), checkpoint=whole)
    with pytest.raises(InvalidModelError, match="does not open this checkpoint"):
        from_tensorflow(Net(0.0), checkpoint=tmp_path / "nowhere")
