"""An LSTM with quantized weights, whose inputs and states are quantized as it runs."""

import onnx_ir as ir

from onward.canon.lower.microsoft_fused import MS, added
from onward.canon.lower.microsoft_matmul import worth
from onward.canon.lower.registry import lowering
from onward.errors import UnsupportedError
from onward.graph.rewriter import Rewriter, describe, input_of, needed, require, take

_D = ir.DataType


@lowering(f"{MS}::DynamicQuantizeLSTM")
def dynamic_quantize_lstm(node: ir.Node, op: Rewriter) -> None:
    """Inputs: x, W, R, bias, lengths, h, c, peepholes, then scale and zero point of W and of R.

    Unlike those of LSTM, the weights are (directions, inputs, 4 * hidden).
    """
    x, size = needed(node, 0), require(node, "hidden_size")
    direction = take(node, "direction", "forward")
    kinds = ["forward", "reverse"] if direction == "bidirectional" else [direction]
    _only_defaults(node, len(kinds))
    outputs = [
        _one_direction(node, op, x, size, number, len(kinds), kind == "reverse") for number, kind in enumerate(kinds)
    ]
    stacked = []
    for index, axis in ((0, 1), (1, 0), (2, 0)):
        parts = [op("Unsqueeze", results[index], op.ints([axis])) for results in outputs]
        stacked.append(parts[0] if len(parts) == 1 else op("Concat", *parts, axis=axis))
    op.replace(*stacked[: len(node.outputs)])


def _only_defaults(node: ir.Node, directions: int) -> None:
    activations = [name.lower() for name in take(node, "activations", [])]
    if activations not in ([], ["sigmoid", "tanh", "tanh"] * directions):
        raise UnsupportedError(f"{describe(node)}: activations other than Sigmoid and Tanh are not supported")
    if take(node, "clip", 0.0) or take(node, "input_forget", 0) or input_of(node, 7) is not None:
        raise UnsupportedError(f"{describe(node)}: clipping, coupled gates and peepholes are not supported")


def _part(x: ir.Value, number: int, op: Rewriter) -> ir.Value:
    """What belongs to one direction."""
    return op("Gather", x, op.ints(number), axis=0)


def _one_direction(
    node: ir.Node, op: Rewriter, x: ir.Value, size: int, number: int, directions: int, reverse: bool
) -> tuple[ir.Value, ir.Value, ir.Value]:
    """The states at all steps, the last state, the last cell."""
    w, r = (_part(needed(node, i), number, op) for i in (1, 2))
    w_scale, w_zero, r_scale, r_zero = (_part(needed(node, i), number, op) for i in (8, 9, 10, 11))
    lengths = input_of(node, 4)
    quantized, x_scale, x_zero = op.many(3, "DynamicQuantizeLinear", x)
    gates = worth(op("MatMulInteger", quantized, w, x_zero, w_zero), op("Mul", x_scale, w_scale), None, op)
    if (bias := input_of(node, 3)) is not None:
        halves = op.many(2, "Split", _part(bias, number, op), axis=0, num_outputs=2)
        gates = op("Add", gates, op("Add", *halves))
    if reverse and lengths is not None:
        gates = op("ReverseSequence", gates, op("Cast", lengths, to=_D.INT64), time_axis=0, batch_axis=1)
    batch = op("Concat", op("Shape", x, start=1, end=2), op.ints([size]), axis=0)
    empty = op("Expand", op.floats(0.0), batch)
    states = [empty if (given := input_of(node, i)) is None else _part(given, number, op) for i in (5, 6)]
    body = _body(op, size, r, r_scale, r_zero, lengths)
    backwards = 1 if reverse and lengths is None else 0
    steps = [gates] if lengths is None else [gates, _count(x, op)]
    h, c, y = op.many(
        3,
        "Scan",
        *states,
        *steps,
        body=body,
        num_scan_inputs=len(steps),
        scan_input_directions=[backwards] * len(steps),
        scan_output_directions=[backwards],
    )
    if reverse and lengths is not None:
        y = op("ReverseSequence", y, op("Cast", lengths, to=_D.INT64), time_axis=0, batch_axis=1)
    return y, h, c


def _count(x: ir.Value, op: Rewriter) -> ir.Value:
    """The number of each step."""
    return op("Range", op.ints(0), op("Squeeze", op("Shape", x, start=0, end=1)), op.ints(1))


def _body(
    op: Rewriter, size: int, r: ir.Value, r_scale: ir.Value, r_zero: ir.Value, lengths: ir.Value | None
) -> ir.Graph:
    """One step: from state, cell and the gates of the input to state, cell and what is put out.

    A row is still quantized together with the others in the step after its last, and is zero from then on.
    """

    def formal(name: str, dtype: ir.DataType, shape: list[int | None]) -> ir.Value:
        value = ir.Value(name=op.names.value(name), type=ir.TensorType(dtype))
        value.shape = ir.Shape(shape)
        return value

    h, c = formal("state", _D.FLOAT, [None, size]), formal("cell", _D.FLOAT, [None, size])
    gates, step = formal("gates", _D.FLOAT, [None, 4 * size]), formal("step", _D.INT64, [])
    inputs = [h, c, gates] if lengths is None else [h, c, gates, step]
    body = ir.Graph(inputs, [], nodes=[], name=op.names.value("lstm_step"))
    with op.inside(body):
        seen = h
        if lengths is not None:
            wide = op("Unsqueeze", op("Cast", lengths, to=_D.INT64), op.ints([1]))
            seen = op("Where", op("LessOrEqual", step, wide), h, op.floats(0.0))
        quantized, h_scale, h_zero = op.many(3, "DynamicQuantizeLinear", seen)
        total = op("MatMulInteger", quantized, r, h_zero, r_zero)
        sums = op("Add", gates, worth(total, op("Mul", h_scale, r_scale), None, op))
        i, o, f, g = op.many(4, "Split", sums, axis=1, num_outputs=4)
        kept, new = op("Mul", op("Sigmoid", f), c), op("Mul", op("Sigmoid", i), op("Tanh", g))
        cell = added(kept, new, op)
        state = op("Mul", op("Sigmoid", o), op("Tanh", cell))
        shown = op("Identity", state)
        if lengths is not None:
            runs = op("Less", step, wide)
            shown = op("Where", runs, state, op.floats(0.0))
            cell, state = op("Where", runs, cell, c), op("Where", runs, state, h)
    body.outputs.extend([state, cell, shown])
    return body
