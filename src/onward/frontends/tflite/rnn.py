"""Recurrent layers that are one op."""

from __future__ import annotations

from onward.canon.build import Tensor
from onward.errors import UnsupportedError
from onward.frontends.tensorflow.writer import Writer
from onward.frontends.tflite.registry import rule


@rule("UNIDIRECTIONAL_SEQUENCE_LSTM")
def sequence_lstm(op: Writer, x: Tensor, *weights: Tensor | None) -> Tensor:
    """Gates in the order input, forget, cell, output; ONNX has input, output, forget, cell."""
    given = [*weights, *[None] * (23 - len(weights))]
    inputs, recurrent, peepholes, biases, projection = given[0:4], given[4:8], given[8:11], given[11:15], given[15:17]
    options = op.operation.options
    if any(w is None for w in (*inputs, *recurrent, *biases[1:])) or any(
        p is not None for p in (*peepholes, *projection)
    ):
        raise UnsupportedError("an LSTM with coupled gates, peepholes or a projection")
    if any(n is not None for n in given[19:23]) or options.fusedActivationFunction != 4 or options.projClip:
        raise UnsupportedError("an LSTM with layer normalisation, another activation or a cut projection")
    order = (0, 3, 1, 2)
    w, r = (op.unsqueeze(op.Concat(*(group[i] for i in order), axis=0), [0]) for group in (inputs, recurrent))
    bias = op.Concat(*(biases[i] for i in order), axis=0)
    both = op.unsqueeze(op.Concat(bias, op.zeros_like(bias), axis=0), [0])
    time_major = options.timeMajor
    sequence = x if time_major else op.transpose(x.ranked(3), [1, 0, 2])
    hidden = (inputs[0].sizes or [0])[0] if inputs[0] is not None else 0
    y = op.LSTM(sequence, w, r, both, hidden_size=hidden, clip=options.cellClip or None)
    result = op.squeeze(y, [1])
    return result if time_major else op.transpose(result, [1, 0, 2])
