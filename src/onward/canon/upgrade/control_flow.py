"""Scan: version 8 worked on batches, with a length for each sequence of the batch."""

import onnx_ir as ir

from onward.canon.upgrade.registry import upgrade
from onward.graph.rewriter import Rewriter, input_of, require, take


@upgrade("Scan", since=9)
def scan_of_batches(node: ir.Node, op: Rewriter) -> None:
    """A Scan over the batch whose body is the Scan over one sequence, along the first axis that is left.

    A sequence shorter than the longest is cut before the inner Scan, and what that gives is filled up with
    zeros after it.
    """
    body, count = require(node, "body"), require(node, "num_scan_inputs")
    directions = take(node, "directions")
    lengths, operands = input_of(node, 0), list(node.inputs[1:])
    states = len(operands) - count

    def element(like: ir.Value) -> ir.Value:
        """One sample's part of an operand: a state is what the body takes, a sequence is a row of such."""
        value = ir.Value(name=op.names.value(f"{like.name}_sample"))
        value.type = like.type
        return value

    samples = [element(formal) for formal in body.inputs]
    batch = ir.Graph(samples, [], nodes=[], name=op.names.value(f"{body.name or 'scan'}_batch"))
    with op.inside(batch):
        sequences = samples[states:]
        missing: ir.Value | None = None
        if lengths is not None:
            length = ir.Value(name=op.names.value("sequence_length"), type=ir.TensorType(ir.DataType.INT64))
            length.shape = ir.Shape([])
            batch.inputs.append(length)
            end = op("Unsqueeze", length, op.ints([0]))
            missing = op("Sub", op("Shape", sequences[0], start=0, end=1), end)
            sequences = [op("Slice", s, op.ints([0]), end, op.ints([0])) for s in sequences]
        results = list(
            op.many(
                len(body.outputs),
                "Scan",
                *samples[:states],
                *sequences,
                body=body,
                num_scan_inputs=count,
                scan_input_directions=directions,
            )
        )
        if missing is not None:
            pads = op("Concat", op.ints([0]), missing, axis=0)
            rows = [op("Pad", row, pads, None, op.ints([0])) for row in results[states:]]
            results[states:] = rows
    for result, formal in zip(results, body.outputs, strict=True):
        result.type = result.type or formal.type
    batch.outputs.extend(results)
    scanned = [*operands, lengths] if lengths is not None else operands
    op.replace(*op.many(len(node.outputs), "Scan", *scanned, body=batch, num_scan_inputs=len(scanned)))
