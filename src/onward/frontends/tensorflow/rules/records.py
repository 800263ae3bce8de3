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


def sparse_of(op: Writer, values: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Places, values and shape of a sparse tensor with the first values of each row, as many as `lengths` says."""
    width = op.Gather(op.Shape(values), op.index(1))
    most = op.where(lengths > width, width, op.where(lengths < 0, 0, lengths))
    held = op.unsqueeze(op.Range(op.index(0), width, op.index(1)), [0]) < op.unsqueeze(most, [1])
    places = op.transpose(op.NonZero(held), [1, 0])
    longest = op.reduced("ReduceMax", op.Concat(most, op.ints([0]), axis=0), [0], keepdims=True)
    rows = op.Slice(op.Shape(values), op.ints([0]), op.ints([1]))
    return places, op.GatherND(values, places), op.Concat(rows, longest, axis=0)


@rule("ParseExample", "ParseExampleV2", "ParseSingleExample")
def parse(op: Writer, records: Value, *described: Tensor) -> Sequence[Value]:
    """Its features; that there are no others, and their shapes, `formats.tensorflow_records` has looked at."""
    if not isinstance(records, Features):
        raise UnsupportedError(REFUSED)
    return records.tensors
