"""Ops of TensorFlow in a model of TensorFlow Lite are written by the rules for TensorFlow."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from flatbuffers import flexbuffers  # noqa: E402
from lite import Flat, on_runtime  # noqa: E402
from tensorflow.core.framework import node_def_pb2  # noqa: E402

from onward.errors import UnsupportedError, UntrustedError  # noqa: E402
from onward.exporters import from_tflite  # noqa: E402
from onward.formats.tflite import flex_nodes  # noqa: E402

RNG = np.random.default_rng(0)
X = RNG.uniform(0.5, 2, (2, 4, 6)).astype(np.float32)


def with_tensorflow_ops(function: Callable[..., Any], x: Any, only: bool) -> bytes:
    """What TensorFlow's converter makes of a function that it leaves to TensorFlow, all of it or what it must."""
    concrete = tf.function(function).get_concrete_function(tf.TensorSpec(x.shape, x.dtype))
    converter = tf.lite.TFLiteConverter.from_concrete_functions([concrete])
    ops = tf.lite.OpsSet
    converter.target_spec.supported_ops = [ops.SELECT_TF_OPS] if only else [ops.TFLITE_BUILTINS, ops.SELECT_TF_OPS]
    converter._experimental_lower_tensor_list_ops = False
    return bytes(converter.convert())


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "Xlogy": lambda x: tf.math.xlogy(x, x + 1.0),
    "Roll": lambda x: tf.roll(tf.nn.relu(x), 2, 1),
    "TopKV2": lambda x: tf.math.top_k(x, 3)[1],
    "RFFT": lambda x: tf.abs(tf.signal.rfft(x)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_ops_of_tensorflow(name: str) -> None:
    """Beside TensorFlow: its package has no interpreter any more that runs them."""
    lite = with_tensorflow_ops(FUNCTIONS[name], X, only=True)
    assert name in {node.op for node in flex_nodes(lite)}
    (found,), wanted = on_runtime(lite, X), FUNCTIONS[name](X).numpy()
    assert (found.shape, found.dtype) == (wanted.shape, wanted.dtype)
    np.testing.assert_allclose(found, wanted, rtol=1e-4, atol=1e-5)


def test_a_list_that_a_loop_fills() -> None:
    """As recurrent layers are written where lists of tensors are left to TensorFlow."""
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input((6, 4)), keras.layers.LSTM(5, return_sequences=True)])
    x = RNG.standard_normal((1, 6, 4)).astype(np.float32)
    lite = with_tensorflow_ops(lambda x: model(x, training=False), x, only=False)
    assert "TensorListSetItem" in {node.op for node in flex_nodes(lite)}
    np.testing.assert_allclose(on_runtime(lite, x)[0], model(x), rtol=1e-4, atol=1e-5)


def alone(node: Any) -> bytes:
    """A model of one op that is called as another is, with this node in its options."""
    options = flexbuffers.Builder()
    with options.Vector():
        options.String("Lgamma")
        options.String(node.SerializeToString().decode())
    flat = Flat()
    graph = flat.graph()
    graph.output(*graph.op("FlexLgamma", [graph.input(X)], [np.float32]))
    graph.made.operators[-1].customOptions = np.frombuffer(bytes(options.Finish()), np.uint8)
    return flat.bytes()


def test_an_op_without_a_rule_is_named() -> None:
    with pytest.raises(UnsupportedError, match="Skipgram"):
        from_tflite(alone(node_def_pb2.NodeDef(name="x", op="Skipgram")))


def test_an_op_that_reaches_out_needs_trust() -> None:
    with pytest.raises(UntrustedError, match="WriteFile"):
        from_tflite(alone(node_def_pb2.NodeDef(name="x", op="WriteFile")), check=False)
