"""Small models for tests, from ONNX's text format."""

import numpy as np
import onnx
from onnx import helper

from onward.model import Model, load


def model(text: str, opset: int = 17, **weights: np.ndarray) -> Model:
    proto = onnx.ModelProto()
    proto.graph.CopyFrom(onnx.parser.parse_graph(text))
    proto.ir_version, proto.graph.name = 8, "test"
    proto.opset_import.extend([helper.make_opsetid("", opset), helper.make_opsetid("ai.onnx.ml", 3)])
    proto.graph.initializer.extend(onnx.numpy_helper.from_array(value, key) for key, value in weights.items())
    return load(proto)


def weight(*shape: int) -> np.ndarray:
    return np.ones(shape, np.float32)
