"""A Keras model beside the ONNX model that is made of it."""

from typing import Any

import keras
import numpy as np
import onnxruntime
from any_processor import computed

from onward.exporters import from_keras
from onward.formats.keras import structure_of


def check(model: Any, *inputs: Any, rtol: float = 2e-5) -> list[str]:
    """Fail unless both compute the same; returns the ops of the nodes."""
    made = from_keras(model, check=False)
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    session = onnxruntime.InferenceSession(made.to_proto().SerializeToString(), options)
    given = [np.asarray(x) for x in inputs]
    fed = [x.astype(object) if x.dtype.kind == "U" else x for x in given]
    found = session.run(None, dict(zip([slot.name for slot in session.get_inputs()], fed, strict=True)))
    tensors = [keras.ops.convert_to_tensor(x) for x in given]
    wanted = computed(lambda x: model(x, training=False), keras.tree.pack_sequence_as(structure_of(model), tensors))
    flat = [_array(tensor) for tensor in keras.tree.flatten(wanted)]
    assert len(found) == len(flat)
    for one, other in zip(found, flat, strict=True):
        assert one.dtype == other.dtype
        assert one.shape == other.shape
        if other.dtype == object:
            assert one.tolist() == other.tolist()
            continue
        size = np.abs(other).max(initial=1) if other.dtype.kind == "f" else 0
        np.testing.assert_allclose(one, other, rtol=rtol, atol=rtol / 10 * size)
    return [node.op_type for node in made.ir.graph]


def _array(tensor: Any) -> Any:
    """Strings as ONNX Runtime gives them."""
    array = np.asarray(keras.ops.convert_to_numpy(tensor))
    return np.vectorize(bytes.decode, otypes=[object])(array) if array.dtype == object else array
