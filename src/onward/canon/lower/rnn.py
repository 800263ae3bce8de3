"""Recurrent layers as Scans over their steps, for what has no rule for them, or not for all of their options.

Inputs are projected for all steps at once; each direction is a Scan that carries the states. Its body takes weights as
they are in the file, and arranges them itself: OpenVINO refuses a body that reads what is computed around it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir

from onward.canon.lower.registry import lowering
from onward.errors import UnsupportedError
from onward.graph.rewriter import Rewriter, describe, input_of, needed, require
from onward.spec.rnn import GATES, Activation, Recurrence


@lowering(*GATES)
def recurrent(node: ir.Node, op: Rewriter) -> None:
    spec = Recurrence.of(node)
    if needed(node, 0).dtype is None:
        raise UnsupportedError(f"{describe(node)}: the type of its input is not known")
    x, size = _turned(op, needed(node, 0), spec), require(node, "hidden_size")
    found = [_Way(node, op, spec, size, x, number).run() for number in range(len(spec.reverse))]
    results: list[ir.Value | None] = []
    for index, output in enumerate(node.outputs):
        parts = [op("Unsqueeze", made[index], op.ints([0 if index else 1])) for made in found if output.name]
        if not parts:
            results.append(None)
            continue
        joined = parts[0] if len(parts) == 1 else op("Concat", *parts, axis=0 if index else 1)
        results.append(_turned(op, joined, spec, [1, 0, 2] if index else [2, 0, 1, 3]))
    op.replace(*results)


def _turned(op: Rewriter, x: ir.Value, spec: Recurrence, perm: Sequence[int] = (1, 0, 2)) -> ir.Value:
    """From the layout with the batch first to that with the steps first, or back."""
    return op("Transpose", x, perm=list(perm)) if spec.batch_first else x


@dataclass
class _Way:
    """One direction of a layer."""

    node: ir.Node
    op: Rewriter
    spec: Recurrence
    size: int
    x: ir.Value
    """With the steps first."""
    number: int

    def run(self) -> list[ir.Value]:
        """The outputs of all steps, and the last states."""
        op, turns, lengths = self.op, self.spec.reverse[self.number], input_of(self.node, 4)
        first, second = self.biases()
        gates = op("MatMul", self.x, self.transposed(self.own(1)))
        for bias in (first, second if self.spec.kind != "GRU" else None):
            gates = gates if bias is None else op("Add", gates, bias)
        states = [self.initial(5), *([self.initial(6)] if self.spec.kind == "LSTM" else [])]
        if lengths is None:
            *last, y = self.scan(states, [gates], backwards=turns)
            return [y, *last]
        lengths = op("Cast", lengths, to=ir.DataType.INT64)

        def turned(steps: ir.Value) -> ir.Value:
            """Each sequence from its end."""
            return op("ReverseSequence", steps, op("Max", lengths, op.ints(1)), time_axis=0, batch_axis=1)

        time = op("Squeeze", op("Shape", self.x, start=0, end=1), op.ints([0]))
        at = op("Unsqueeze", op("Range", op.ints(0), time, op.ints(1)), op.ints([1, 2]))
        lengths_wide = op("Unsqueeze", lengths, op.ints([1]))
        runs = op("Less", at, lengths_wide)
        *last, y = self.scan(states, [turned(gates) if turns else gates, runs])
        is_empty = op("Equal", lengths_wide, op.ints(0))  # their last states are zeros, as ONNX Runtime has it
        last = [op("Where", is_empty, self.number_like(0), state) for state in last]
        return [turned(y) if turns else y, *last]

    def scan(self, states: list[ir.Value], rows: list[ir.Value], backwards: bool = False) -> Sequence[ir.Value]:
        """The last states, and the outputs of all steps."""
        return self.op.many(
            len(states) + 1,
            "Scan",
            *states,
            *rows,
            body=self.body(len(states), len(rows) > 1),
            num_scan_inputs=len(rows),
            scan_input_directions=[int(backwards)] * len(rows),
            scan_output_directions=[int(backwards)],
        )

    def own(self, index: int) -> ir.Value:
        """What belongs to this direction of an input that is there."""
        return self.op("Gather", needed(self.node, index), self.op.ints(self.number), axis=0)

    def transposed(self, weight: ir.Value) -> ir.Value:
        return self.op("Transpose", weight, perm=[1, 0])

    def biases(self) -> Sequence[ir.Value] | tuple[None, None]:
        """Those of the inputs and those of the states."""
        if input_of(self.node, 3) is None:
            return None, None
        return self.op.many(2, "Split", self.own(3), axis=0, num_outputs=2)

    def number_like(self, number: float) -> ir.Value:
        return self.op.number(number, needed(self.node, 0))

    def initial(self, index: int) -> ir.Value:
        """A state to begin with; zeros by default."""
        op, given = self.op, input_of(self.node, index)
        if given is not None:
            return op("Gather", _turned(op, given, self.spec), op.ints(self.number), axis=0)
        size = op.ints([self.size])
        return op("Expand", self.number_like(0), op("Concat", op("Shape", self.x, start=1, end=2), size, axis=0))

    def body(self, states: int, has_lengths: bool) -> ir.Graph:
        """A step: of the states, the projected inputs, and whether each sequence still runs."""
        op, size, dtype = self.op, self.size, needed(self.node, 0).dtype

        def formal(name: str, of: ir.DataType | None, shape: list[int | None]) -> ir.Value:
            kind = None if of is None else ir.TensorType(of)
            return ir.Value(name=op.names.value(name), type=kind, shape=ir.Shape(shape))

        before = [formal("state", dtype, [None, size]) for _ in range(states)]
        gates = formal("gates", dtype, [None, GATES[self.spec.kind] * size])
        runs = [formal("runs", ir.DataType.BOOL, [None, 1])] if has_lengths else []
        graph = ir.Graph([*before, gates, *runs], [], nodes=[], name=op.names.value("step"))
        with op.inside(graph):
            after = self.step(gates, *before)
            shown = op("Where", *runs, after[0], self.number_like(0)) if runs else op("Identity", after[0])
            if runs:
                after = [op("Where", *runs, new, old) for new, old in zip(after, before, strict=True)]
        graph.outputs.extend([*after, shown])
        return graph

    def step(self, gates: ir.Value, h: ir.Value, *cell: ir.Value) -> list[ir.Value]:
        """The new states, of which the first is the output."""
        if cell:
            return self.long(gates, h, *cell)
        return self.gated(gates, h) if self.spec.kind == "GRU" else self.simple(gates, h)

    def activate(self, index: int, x: ir.Value, is_clipped: bool = True) -> ir.Value:
        clip = self.spec.clip
        if clip is not None and is_clipped:
            x = self.op("Clip", x, self.number_like(-clip), self.number_like(clip))
        return activation(self.op, self.spec.activations[self.number][index], x)

    def simple(self, gates: ir.Value, h: ir.Value) -> list[ir.Value]:
        recurrent = self.op("MatMul", h, self.transposed(self.own(2)))
        return [self.activate(0, self.op("Add", gates, recurrent))]

    def gated(self, gates: ir.Value, h: ir.Value) -> list[ir.Value]:
        """Gates z (keep), r (reset) and the candidate n; h = (1 - z) * n + z * before."""
        op, (_, second) = self.op, self.biases()
        weights = op.many(3, "Split", self.own(2), axis=0, num_outputs=3)
        biases = [None] * 3 if second is None else op.many(3, "Split", second, axis=0, num_outputs=3)

        def projected(state: ir.Value, gate: int) -> ir.Value:
            made, bias = op("MatMul", state, self.transposed(weights[gate])), biases[gate]
            return made if bias is None else op("Add", made, bias)

        of_z, of_r, of_n = op.many(3, "Split", gates, axis=-1, num_outputs=3)
        z = self.activate(0, op("Add", of_z, projected(h, 0)))
        r = self.activate(0, op("Add", of_r, projected(h, 1)))
        inner = op("Mul", r, projected(h, 2)) if self.spec.reset_after else projected(op("Mul", r, h), 2)
        n = self.activate(1, op("Add", of_n, inner))
        return [op("Add", op("Mul", op("Sub", self.number_like(1), z), n), op("Mul", z, h))]

    def long(self, gates: ir.Value, h: ir.Value, c: ir.Value) -> list[ir.Value]:
        """Gates i, o, f and the candidate g; cell = f * before + i * g, h = o * activation(cell)."""
        op = self.op
        peeps = None if input_of(self.node, 7) is None else op.many(3, "Split", self.own(7), axis=0, num_outputs=3)

        def seen(gate: ir.Value, peep: int, cell: ir.Value) -> ir.Value:
            return gate if peeps is None else op("Add", gate, op("Mul", peeps[peep], cell))

        sums = op("Add", gates, op("MatMul", h, self.transposed(self.own(2))))
        i, o, f, g = op.many(4, "Split", sums, axis=-1, num_outputs=4)
        i, g = self.activate(0, seen(i, 0, c)), self.activate(1, g)
        f = op("Sub", self.number_like(1), i) if self.spec.input_forget else self.activate(0, seen(f, 2, c))
        cell = op("Add", op("Mul", f, c), op("Mul", i, g))
        o = self.activate(0, seen(o, 1, cell))
        return [op("Mul", o, self.activate(2, cell, is_clipped=False)), cell]


def activation(op: Rewriter, function: Activation, x: ir.Value) -> ir.Value:
    """An activation of recurrent layers."""
    alpha, beta = (*function.numbers, 0.0, 0.0)[:2]
    match function.name:
        case "affine":
            return op("Add", op("Mul", x, op.number(alpha, x)), op.number(beta, x))
        case "scaledtanh":
            return op("Mul", op("Tanh", op("Mul", x, op.number(beta, x))), op.number(alpha, x))
        case "hardsigmoid":
            return op("HardSigmoid", x, alpha=alpha, beta=beta)
        case "leakyrelu":
            return op("LeakyRelu", x, alpha=alpha)
        case "thresholdedrelu":
            return op("ThresholdedRelu", x, alpha=alpha)
        case "elu":
            return op("Elu", x, alpha=alpha)
    plain = {"relu": "Relu", "tanh": "Tanh", "sigmoid": "Sigmoid", "softsign": "Softsign", "softplus": "Softplus"}
    return op(plain[function.name], x)
