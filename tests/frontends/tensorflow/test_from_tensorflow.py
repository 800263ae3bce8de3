"""TensorFlow functions and SavedModels become ONNX models, with the names and sizes they have."""

from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

tf = pytest.importorskip("tensorflow")

from test_battery import run  # noqa: E402

from onward.errors import OnwardError, UnsupportedError  # noqa: E402
from onward.exporters import from_tensorflow  # noqa: E402
from onward.frontends.tensorflow import convert  # noqa: E402
from onward.frontends.tensorflow.registry import RULES  # noqa: E402
from onward.registry import import_files  # noqa: E402


class Net(tf.Module):
    """A convolution, batch statistics and a dense layer, channels last."""

    def __init__(self) -> None:
        super().__init__()
        rng = np.random.default_rng(0)
        self.kernel = tf.Variable(rng.standard_normal((3, 3, 2, 4)).astype(np.float32), name="kernel")
        self.bias = tf.Variable(np.arange(4, dtype=np.float32), name="bias")
        self.mean = tf.Variable(np.ones(4, np.float32), name="mean", trainable=False)
        self.variance = tf.Variable(np.arange(1, 5, dtype=np.float32), name="variance", trainable=False)
        self.scale = tf.Variable(np.full(4, 0.5, np.float32), name="scale")
        self.dense = tf.Variable(rng.standard_normal((4, 3)).astype(np.float32), name="dense")

    @tf.function(input_signature=[tf.TensorSpec([None, 8, 8, 2], name="image")])
    def __call__(self, image: Any) -> dict[str, Any]:
        x = tf.nn.bias_add(tf.nn.conv2d(image, self.kernel, 2, "SAME"), self.bias)
        x = tf.nn.batch_normalization(x, self.mean, self.variance, tf.zeros(4), self.scale, 1e-3)
        return {"scores": tf.reduce_mean(tf.nn.relu(x), [1, 2]) @ self.dense, "features": x}


IMAGE = np.random.default_rng(1).standard_normal((3, 8, 8, 2)).astype(np.float32)


def test_variables_keep_their_names_and_images_their_layout() -> None:
    net = Net()
    model = from_tensorflow(net.__call__)
    graph = model.ir.graph
    assert [value.name for value in graph.inputs] == ["image"]
    assert [value.name for value in graph.outputs] == ["features", "scores"]
    assert {"kernel", "bias", "mean", "dense"} <= set(graph.initializers)
    assert list(graph.initializers["kernel"].shape) == [4, 2, 3, 3]
    kinds = [node.op_type for node in graph]
    assert kinds.count("Transpose") == 2
    assert "BatchNormalization" in kinds
    assert len(next(node for node in graph if node.op_type == "Conv").inputs) == 3
    wanted = net(IMAGE)
    for found, name in zip(run(model, (IMAGE,)), ("features", "scores"), strict=True):
        np.testing.assert_allclose(found, wanted[name], rtol=1e-4, atol=1e-5)


def test_a_saved_model_by_its_signature(tmp_path: Path) -> None:
    net = Net()
    tf.saved_model.save(net, str(tmp_path / "net"), signatures={"serve": net.__call__})
    model = from_tensorflow(tmp_path / "net")
    np.testing.assert_allclose(run(model, (IMAGE,))[1], net(IMAGE)["scores"], rtol=1e-4, atol=1e-5)
    with pytest.raises(OnwardError, match="no signature 'other'; it has serve"):
        from_tensorflow(tmp_path / "net", "other")


@pytest.mark.parametrize("opset", [13, 17, 18, 21, 26])
def test_every_opset(opset: int) -> None:
    net = Net()
    model = from_tensorflow(net.__call__, opset=opset)
    assert model.opset[""] == opset
    onnx.checker.check_model(model.to_proto(), full_check=True)
    np.testing.assert_allclose(run(model, (IMAGE,))[1], net(IMAGE)["scores"], rtol=1e-4, atol=1e-5)


def test_all_that_has_no_rule_is_named() -> None:
    def odd(x: Any) -> Any:
        return tf.cond(x[0] > 0, lambda: tf.math.special.bessel_y0(x), lambda: tf.math.special.bessel_y1(x))

    with pytest.raises(UnsupportedError, match=r"2 ops: BesselY0 \(.*\); BesselY1 \(.*\)"):
        from_tensorflow(odd, [tf.TensorSpec([3])])


def test_a_function_inside_that_changes_a_variable_is_refused() -> None:
    count = tf.Variable(1.0)

    @tf.function
    def counted() -> None:
        count.assign_add(1.0)

    def call(x: Any) -> Any:
        counted()
        return x * count

    with pytest.raises(UnsupportedError, match="AssignAddVariableOp"):
        from_tensorflow(call, [tf.TensorSpec([3])])


def test_a_variable_that_no_result_depends_on_may_change() -> None:
    count = tf.Variable(1.0)

    def call(x: Any) -> Any:
        count.assign_add(1.0)
        return x + 1

    assert [node.op_type for node in from_tensorflow(call, [tf.TensorSpec([3])]).ir.graph] == ["Add", "Identity"]


def test_products_of_small_numbers_are_large() -> None:
    a = np.array([[100, -100, 7]], np.int8)
    b = np.array([[90, 1], [-90, 2], [3, 3]], np.int8)
    for dtype in (tf.int32, tf.int64):
        function = tf.function(lambda a, dtype=dtype: tf.raw_ops.BatchMatMulV3(x=a, y=b, Tout=dtype))
        model = from_tensorflow(function, [tf.TensorSpec([1, 3], tf.int8)])
        assert run(model, (a,))[0].tolist() == [[18021, -79]]


def test_a_function_that_changes_a_variable_is_refused() -> None:
    count = tf.Variable(1.0)

    def counted(x: Any) -> Any:
        count.assign_add(1.0)
        return x * count

    with pytest.raises(UnsupportedError, match="AssignAddVariableOp"):
        from_tensorflow(counted, [tf.TensorSpec([3])])


def test_a_convolution_that_is_given_out_stays_without_its_bias() -> None:
    kernel, bias = tf.constant(np.ones((1, 1, 2, 3), np.float32)), tf.constant([1.0, 2.0, 3.0])

    @tf.function
    def both(x: Any) -> Any:
        plain = tf.nn.conv2d(x, kernel, 1, "SAME")
        return plain, tf.nn.bias_add(plain, bias)

    def outer(x: Any) -> Any:
        return both(x)

    image = IMAGE[:1]
    found = run(from_tensorflow(outer, [tf.TensorSpec([1, 8, 8, 2])]), (image,))
    for one, other in zip(found, both(image), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-6)


def test_sizes_that_need_not_be_equal_have_names_of_their_own() -> None:
    model = from_tensorflow(
        lambda x, y: x + y, [tf.TensorSpec([None, 4], name="x"), tf.TensorSpec([None, 4], name="y")]
    )
    assert [str(value.shape[0]) for value in model.ir.graph.inputs if value.shape] == ["x_dim0", "y_dim0"]
    (found,) = run(model, (IMAGE[:1, 0, 0, :1].repeat(4, 1), IMAGE[:, 0, 0, :1].repeat(4, 1)))
    assert found.shape == (3, 4)


def test_custom_ops_go_out_by_request() -> None:
    model = from_tensorflow(lambda x: tf.math.special.bessel_y0(x) + 1, [tf.TensorSpec([3])], allow_custom_ops=True)
    custom = next(node for node in model.ir.graph if node.op_type == "BesselY0")
    assert custom.domain == "org.tensorflow"
    assert model.opset["org.tensorflow"] == 1


@pytest.mark.parametrize(
    ("source", "signature", "words"),
    [
        (lambda x: x, None, "tf.TensorSpec for each argument"),
        (lambda x: x, "serve", "a function has no signature"),
        (3, None, "int is neither a function nor"),
        ("nowhere", None, "nowhere is not a SavedModel"),
    ],
    ids=["no signature", "a name for a function", "a number", "no such folder"],
)
def test_what_cannot_be_converted(source: Any, signature: Any, words: str) -> None:
    with pytest.raises(OnwardError, match=words):
        from_tensorflow(source, signature)


IGNORED = {
    "N": "how many inputs there are",
    "OUTPUT_RAGGED_RANK": "how many inputs there are",
    "PARAMS_RAGGED_RANK": "how many inputs there are",
    "num_row_partition_tensors": "how many inputs there are",
    "num_split": "how many sizes there are",
    "align": "for several diagonals, which are refused",
    "bad_indices_policy": "what happens on indices that are out of range",
    "validate_indices": "what happens on indices that are out of range",
    "incompatible_shape_error": "what happens on shapes that do not fit",
    "config": "how a function is run",
    "config_proto": "how a function is run",
    "executor_type": "how a function is run",
    "parallel_iterations": "how a loop is run",
    "use_cudnn_on_gpu": "where a convolution is run",
    "container": "where a variable is kept",
    "shared_name": "where a variable is kept",
    "grad_a": "a mark of gradients",
    "grad_b": "a mark of gradients",
    "grad_x": "a mark of gradients",
    "grad_y": "a mark of gradients",
    "sparse_gradient": "a mark of gradients",
    "message": "words",
    "summarize": "words",
    "num_elements": "what is known of the number of elements",
    "output_shapes": "what is known of shapes",
    "shape": "what is known of the shape",
    "resize_if_index_out_of_bounds": "lists grow where they are written to",
    "dynamic_size": "lists grow where they are written to",
    "clear_after_read": "how long an array is kept",
    "element_shape": "what is known of the shape",
    "element_shape_except0": "what is known of the shape",
    "identical_element_shapes": "what is known of the shape",
    "tensor_array_name": "words",
    "validate_shape": "a check",
    "init": "zeros where anything would do",
    "RAGGED_RANK": "the number of inputs says it",
    "use_locking": "for other threads",
    "Ndense": "the features of records are inputs",
    "Nsparse": "the features of records are inputs",
    "num_sparse": "the features of records are inputs",
    "dense_keys": "the features of records are inputs",
    "dense_shapes": "the features of records are inputs",
    "sparse_keys": "the features of records are inputs",
    "seed": "random numbers are others anyway",
    "seed2": "random numbers are others anyway",
}
"""Attributes that say nothing of what is computed, and why."""


def test_rules_read_every_attribute_that_changes_a_result() -> None:
    from tensorflow.python.framework import op_def_registry

    import_files(convert.RULES)
    unread = {}
    for name in RULES:
        definition = op_def_registry.get(name)
        if definition is None:
            continue
        rule = RULES.get(name)
        assert rule is not None
        names = {attr.name for attr in definition.attr if attr.type not in ("type", "list(type)")}
        left = names - rule.attributes - IGNORED.keys()
        if left:
            unread[name] = sorted(left)
    assert unread == {}
