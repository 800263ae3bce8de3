"""A generated module as a TensorFlow Lite file, by TensorFlow's own converter."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from onward.backends.tensorflow.saved_model import SIGNATURE, argument_names, traced
from onward.errors import ConversionError, OnwardError

if TYPE_CHECKING:
    from onward.backends.emit.package import Source

QUANTIZATIONS = {
    "float16": "weights in half precision",
    "dynamic": "weights in 8 bits, computed with as the data asks",
    "int8": "weights and data in 8 bits, by calibration data; inputs and outputs stay as they are",
}
Sample = Mapping[str, np.ndarray[Any, Any]]


def write_tflite(
    source: Source,
    graph: ir.Graph,
    path: Path,
    quantize: str | None = None,
    samples: Iterable[Sample] | None = None,
) -> Path:
    """Trace the module of a generated source, and convert it.

    `samples` are sets of inputs to calibrate `int8` by, in the layout of the ONNX file.
    """
    content = convert(source, graph, quantize, samples)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def convert(
    source: Source, graph: ir.Graph, quantize: str | None = None, samples: Iterable[Sample] | None = None
) -> bytes:
    if quantize is not None and quantize not in QUANTIZATIONS:
        raise OnwardError(f"there is no quantization {quantize!r}; there are {', '.join(QUANTIZATIONS)}")
    if quantize == "int8" and samples is None:
        raise OnwardError("int8 needs calibration data: sets of inputs as the model will see them (--calibrate)")
    import tensorflow as tf

    net, serve = traced(source, graph)
    builtin = tf.lite.OpsSet.TFLITE_BUILTINS_INT8 if quantize == "int8" else tf.lite.OpsSet.TFLITE_BUILTINS
    kept = [_moved(sample, source) for sample in samples or ()]
    failure: Exception | None = None
    for further in ([], [tf.lite.OpsSet.SELECT_TF_OPS]):  # the second needs the larger runtime
        converter = tf.lite.TFLiteConverter.from_concrete_functions([serve.get_concrete_function()], net)
        converter.target_spec.supported_ops = [builtin, *further]
        if quantize is not None:
            converter.optimizations = [tf.lite.Optimize.DEFAULT]
        if quantize == "float16":
            converter.target_spec.supported_types = [tf.float16]
        if quantize == "int8":
            converter.representative_dataset = lambda: ((SIGNATURE, sample) for sample in kept)
        try:
            return bytes(converter.convert())
        except Exception as error:
            failure = failure or error
    problem = " ".join(str(failure).split())[:300]
    raise ConversionError(f"TensorFlow's converter to TensorFlow Lite refuses the model: {problem}") from failure


def _moved(sample: Sample, source: Source) -> dict[str, Any]:
    """A set of inputs under the names, and in the layout, that the generated model takes."""
    orders, names = source.input_orders, argument_names(sample)
    return {names[name]: np.transpose(x, orders[name]) if name in orders else x for name, x in sample.items()}
