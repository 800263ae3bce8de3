"""A generated module as a TensorFlow Lite file, by TensorFlow's own converter."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import onnx_ir as ir

from onward.advice.nearest import meant
from onward.advice.options import option
from onward.backends.tensorflow.convert import Trainable, generate
from onward.backends.tensorflow.kernels import LITE, TENSORFLOW
from onward.backends.tensorflow.lite.divide import write_divisions
from onward.backends.tensorflow.lite.erf import write_erf
from onward.backends.tensorflow.lite.grids import carry_grids, pad_pools
from onward.backends.tensorflow.lite.sizes import fit_in_single
from onward.backends.tensorflow.lite.squeeze import squeeze_first
from onward.backends.tensorflow.missing_kernels import advice
from onward.backends.tensorflow.remarks import without_remarks
from onward.backends.tensorflow.saved_model import SIGNATURE, signature_names, traced
from onward.errors import OnwardError, UnsupportedError

if TYPE_CHECKING:
    from onward.backends.emit.package import Source
    from onward.model import Model

QUANTIZATIONS = {
    "float16": "weights in half precision",
    "dynamic": "weights in 8 bits, computed with as the data asks",
    "int8": "weights and data in 8 bits, by calibration data",
}
IO = ("float32", "int8", "uint8")
"""What a model in 8 bits may take and give."""
RUNTIME = "onward.backends.tensorflow.lite.runtime"
"""Helpers that TensorFlow Lite has to be told in another way than TensorFlow."""
SINGLE = "onward.backends.tensorflow.lite.single"
"""What lets numbers of shapes be computed in single precision."""
CASTS = "Onward: computed in other dtypes than those of the original"
"""The first line of a description that lists them."""
Sample = Mapping[str, np.ndarray[Any, Any]]


def generate_for_tflite(
    model: Model,
    trainable: Trainable = True,
    inputs_nhwc: Iterable[str] = (),
    outputs_nhwc: Iterable[str] = (),
    quantize: str | None = None,
    cast: str = "none",
) -> Source:
    """The source of a model as TensorFlow Lite wants it said.

    One that is quantised already keeps its scales and zero points, unless it is to be quantised in another way. `cast`
    lets ops be computed in dtypes that TensorFlow Lite has kernels for; without it, TensorFlow's own have to do.
    """
    carried, advised, helpers = False, "", [RUNTIME]

    def prepare(graph: ir.Model) -> None:
        nonlocal carried, advised
        if fit_in_single(graph):
            helpers.append(SINGLE)
        write_divisions(graph)
        pad_pools(graph, calibrated=quantize == "int8")
        carried = quantize is None and carry_grids(graph)
        advised = advice(graph, LITE) if cast == "none" else ""

    def finish(graph: ir.Model) -> None:
        write_erf(graph)
        squeeze_first(graph)

    kernels = TENSORFLOW if cast == "none" else LITE
    source = generate(model, trainable, inputs_nhwc, outputs_nhwc, prepare, cast, kernels, helpers, finish)
    return replace(source, in_bytes=carried, advice=advised)


def write_tflite(
    source: Source,
    graph: ir.Graph,
    path: Path,
    quantize: str | None = None,
    samples: Iterable[Sample] | None = None,
    select_tf_ops: bool = False,
    io: str = "float32",
) -> Path:
    """Trace the module of a generated source, and convert it.

    `samples` are sets of inputs to calibrate `int8` by, in the layout of the ONNX file. `select_tf_ops` allows ops of
    TensorFlow where TensorFlow Lite has none of its own; these need the larger runtime. `io` is what a model in `int8`
    takes and gives instead of floats.
    """
    content = convert(source, graph, quantize, samples, select_tf_ops, io)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    return path


def convert(
    source: Source,
    graph: ir.Graph,
    quantize: str | None = None,
    samples: Iterable[Sample] | None = None,
    select_tf_ops: bool = False,
    io: str = "float32",
) -> bytes:
    if quantize is not None and quantize not in QUANTIZATIONS:
        raise OnwardError(f"there is no quantization {quantize!r}; there are {', '.join(QUANTIZATIONS)}")
    if io not in IO:
        raise OnwardError(f"inputs and outputs cannot be {io!r}; they can be {', '.join(IO)}{meant(io, IO)}")
    if quantize == "int8" and samples is None:
        given = option("calibrate")
        raise OnwardError(f"int8 needs calibration data: sets of inputs as the model will see them ({given})")
    import tensorflow as tf

    net, serve = traced(source, graph)
    converter = tf.lite.TFLiteConverter.from_concrete_functions([serve.get_concrete_function()], net)
    builtin = tf.lite.OpsSet.TFLITE_BUILTINS_INT8 if quantize == "int8" else tf.lite.OpsSet.TFLITE_BUILTINS
    converter.target_spec.supported_ops = [builtin, *([tf.lite.OpsSet.SELECT_TF_OPS] if select_tf_ops else [])]
    if quantize is not None or source.in_bytes:
        converter.optimizations = [tf.lite.Optimize.DEFAULT]
    if quantize == "float16":
        converter.target_spec.supported_types = [tf.float16]
    if quantize == "int8":
        converter.inference_input_type = converter.inference_output_type = tf.as_dtype(io)
        kept = [_moved(sample, source) for sample in samples or ()]
        converter.representative_dataset = lambda: ((SIGNATURE, sample) for sample in kept)
    try:
        with without_remarks():
            content = bytes(converter.convert())
    except Exception as error:
        raise _refusal(str(error), select_tf_ops, source.advice) from error
    return _described(content, source.casts) if source.casts else content


def _described(content: bytes, remarks: Iterable[str]) -> bytes:
    """A file that says in its description which ops are computed in other dtypes."""
    from tensorflow.lite.tools import flatbuffer_utils

    model = flatbuffer_utils.read_model_from_bytearray(bytearray(content))
    model.description = "\n".join([CASTS, *remarks])
    return bytes(flatbuffer_utils.convert_object_to_bytearray(model))


def casts_in(path: Path) -> list[str]:
    """What a file says of itself by `_described`."""
    from tensorflow.lite.tools import flatbuffer_utils

    content = path.read_bytes()
    if CASTS.encode() not in content:
        return []
    words = flatbuffer_utils.read_model_from_bytearray(bytearray(content)).description or b""
    title, *remarks = words.decode("utf-8", "replace").splitlines() or [""]
    return remarks if title == CASTS else []


def _refusal(words: str, select_tf_ops: bool, advised: str) -> OnwardError:
    """What TensorFlow's converter says, in a sentence."""
    lacking = {kind: _listed(words, kind) for kind in ("TF Select ops", "Custom ops")}
    if lacking["Custom ops"]:
        return UnsupportedError(f"TensorFlow Lite has no {lacking['Custom ops']}")
    if lacking["TF Select ops"] and not select_tf_ops:
        return UnsupportedError(
            f"{advised}{'; ' if advised else ''}TensorFlow Lite has no {lacking['TF Select ops']} of its own;"
            f" {option('select_tf_ops', True)} takes TensorFlow's kernels, which need the larger runtime"
        )
    found = re.search(r"error: (.+)", words)
    reason = " ".join((words if found is None else found[1]).split())[:300]
    return UnsupportedError(
        f"TensorFlow's converter to TensorFlow Lite refuses the model: {reason}; if dimensions that are"
        f" open are the reason, fix them, such as {option('dims', {'batch': 1})}"
    )


def _listed(words: str, kind: str) -> str:
    found = re.search(rf"^\s*{kind}: (.+)$", words, re.MULTILINE)
    return "" if found is None else found[1].strip()


def _moved(sample: Sample, source: Source) -> dict[str, Any]:
    """A set of inputs under the names, and in the layout, that the generated model takes."""
    orders, names = source.input_orders, signature_names(sample)
    return {names[name]: np.transpose(x, orders[name]) if name in orders else x for name, x in sample.items()}
