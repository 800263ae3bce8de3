"""What `top_k` leaves open in a function of TensorFlow is settled as it is in ONNX models: both sides sort."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

tf = pytest.importorskip("tensorflow")

from onward.exporters import from_tensorflow  # noqa: E402
from onward.formats import open_object  # noqa: E402


class Best(tf.Module):
    def __init__(self) -> None:
        super().__init__()
        self.weight = tf.Variable(np.linspace(0.5, 2, 50, dtype=np.float32))

    @tf.function
    def chosen(self, x: Any) -> Any:
        return tf.math.top_k(x * self.weight, 7, sorted=False)

    @tf.function(input_signature=[tf.TensorSpec([None, 50], name="x")])
    def serve(self, x: Any) -> dict[str, Any]:
        values, places = self.chosen(x)
        return {"values": values, "places": places, "both": tf.math.top_k(-x, 7, sorted=False)[0]}


def test_an_open_order_that_shows_is_no_difference(tmp_path: Path) -> None:
    net = Best()
    from_tensorflow(net.serve.get_concrete_function())
    tf.saved_model.save(net, str(tmp_path / "net"), signatures=net.serve)
    from_tensorflow(tmp_path / "net")


def test_what_is_settled_is_sorted() -> None:
    net, x = Best(), np.random.default_rng(0).standard_normal((3, 50)).astype(np.float32)
    found = open_object(net.serve.get_concrete_function()).run({"x": x})
    np.testing.assert_array_equal(found["values"], tf.math.top_k(x * net.weight, 7)[0])
    np.testing.assert_array_equal(found["places"], tf.math.top_k(x * net.weight, 7)[1])
    assert not np.array_equal(net.serve(x)["values"], found["values"])
