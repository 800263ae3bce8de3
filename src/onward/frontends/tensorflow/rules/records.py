"""Records of bytes: what is in them is an input of the model each."""

from __future__ import annotations

from collections.abc import Sequence

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.values import Features, Value
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor

INSTEAD = (
    "convert what takes the features themselves, such as another signature of it, or the Keras model that was exported"
)
REFUSED = f"it reads records of bytes, which ONNX has no op for: {INSTEAD}"


@rule("ParseExample", "ParseExampleV2", "ParseSingleExample")
def parse(op: Writer, records: Value, *described: Tensor) -> Sequence[Value]:
    """Its features; that there are no others, and their shapes, `formats.tensorflow_records` has looked at."""
    if not isinstance(records, Features):
        raise UnsupportedError(REFUSED)
    return records.tensors
