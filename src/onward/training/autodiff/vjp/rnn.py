"""Gradients of recurrent layers.

The states of all steps are known from the forward run (an LSTM's cells are run through again), so gates and slopes of
all steps are computed at once; only the gradients of the states go from step to step, by a Scan, and the gradients of
the weights are one product over all steps. A plain LSTM runs forward as Scans that keep its gates and cells instead.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx_ir as ir

from onward.graph.build import Builder, Tensor
from onward.graph.scan import scan
from onward.spec.rnn import GATES, Activation, Recurrence
from onward.training.autodiff.reverse import Context
from onward.training.autodiff.vjp import Gradients, vjp
from onward.training.autodiff.vjp.linear import flat


@vjp(*GATES)
def recurrent(c: Context, g: Tensor | None, *inputs: Tensor | None, p: Recurrence) -> Gradients:
    return _Layer(c, inputs, p).gradients()


class _Layer:
    """A recurrent node: what its directions share."""

    def __init__(self, c: Context, inputs: Sequence[Tensor | None], spec: Recurrence) -> None:
        self.c, self.op, self.spec = c, c.op, spec
        ranks = (3, 3, 3, 2, 1, 3, 3, 2)
        known = [None if t is None else t.ranked(rank) for t, rank in zip(inputs, ranks, strict=False)]
        given = [*known, *[None] * (8 - len(inputs))]
        x, self.w, self.r, self.b, lengths, self.h0, self.c0, self.p = given
        assert x is not None and self.w is not None and self.r is not None
        self.count = len(self.spec.reverse)
        self.x = self._time_first(x)
        self.h0, self.c0 = self._time_first(self.h0), self._time_first(self.c0)
        self.y = self._time_first(c.optional_output(0).ranked(4))
        slopes = [None if (slope := c.gradient(i)) is None else slope.ranked(4 if i == 0 else 3) for i in range(3)]
        self.dy, self.dh, self.dc = (self._time_first(slope) for slope in slopes)
        self.lengths = None if lengths is None else lengths.cast(ir.DataType.INT64)
        time = self.op.Squeeze(self.op.Shape(self.x, start=0, end=1), self.op.ints([0]))
        self.at = self.op.Reshape(self.op.Range(self.op.index(0), time, self.op.index(1)), self.op.ints([-1, 1, 1]))

    @property
    def is_plain(self) -> bool:
        """Whether this is an LSTM as frameworks have it."""
        special = self.lengths is not None or self.p is not None or self.spec.batch_first
        return self.spec.is_usual and not special and self.c.can_replace

    def _time_first(self, tensor: Any) -> Any:
        """From the layout with the batch first, or back to it (states); the order of the axes by their number."""
        if tensor is None or not self.spec.batch_first:
            return tensor
        perm = [1, 2, 0, 3] if tensor.rank == 4 else [1, 0, 2]
        return self.op.Transpose(tensor, perm=perm)

    def gradients(self) -> list[Tensor | None]:
        cell = {"RNN": _simple, "GRU": _gated, "LSTM": _long}[self.spec.kind]
        directions = [_Direction(self, d) for d in range(self.count)]
        found = [cell(direction) for direction in directions]
        if all(direction.outputs for direction in directions):
            for index, parts in enumerate(zip(*(direction.outputs for direction in directions), strict=True)):
                self.c.replace(index, self._stacked(parts, 1 if index == 0 else 0))
        dx = self._time_first(self.op.total([part.pop("x") for part in found]))
        stacked = {name: self._stacked([part[name] for part in found]) for name in found[0]}
        states = [self._time_first(stacked.get(name)) for name in ("h", "c")]
        return [dx, stacked["w"], stacked["r"], stacked["b"], None, *states, stacked.get("p")]

    def _stacked(self, parts: Sequence[Tensor], axis: int = 0) -> Tensor:
        rows = [self.op.Unsqueeze(part, self.op.ints([axis])) for part in parts]
        return rows[0] if len(rows) == 1 else self.op.Concat(*rows, axis=axis)


class _Direction:
    """One direction of a layer, in the order of its steps: sequences of different lengths are turned around here."""

    def __init__(self, layer: _Layer, index: int) -> None:
        self.layer, self.op, self.index = layer, layer.op, index
        self.reverse = layer.spec.reverse[index]
        self.backwards = self.reverse and layer.lengths is None
        """The steps go from the last to the first, and the tensors stay as they are."""
        self.activations = layer.spec.activations[index]
        self.w, self.r, self.b, self.p = (self.own(t) for t in (layer.w, layer.r, layer.b, layer.p))
        self.x = self.turned(layer.x)
        self.y = self.turned(self.own(layer.y, 1))
        self.h0, self.c0 = self.initial(layer.h0), self.initial(layer.c0)
        self.before = self.shifted(self.y, self.h0)
        """The state that each step begins with."""
        self.dy, self.dh = self.injected(self.turned(self.own(layer.dy, 1)), self.own(layer.dh))
        self.dc_steps, self.dc = self.injected(None, self.own(layer.dc))
        self.outputs: list[Tensor] = []
        """States of all steps and final ones, where they are computed here in place of the node."""

    def own(self, tensor: Any, axis: int = 0) -> Any:
        """What belongs to this direction."""
        if tensor is None:
            return None
        if self.layer.count == 1:
            return self.op.Squeeze(tensor, self.op.ints([axis]))
        return self.op.Gather(tensor, self.op.index(self.index), axis=axis)

    def turned(self, tensor: Any) -> Any:
        """Each sequence from its end, where they differ in length."""
        lengths = self.layer.lengths
        if tensor is None or not self.reverse or lengths is None:
            return tensor
        return self.op.ReverseSequence(tensor, self.op.Max(lengths, self.op.index(1)), batch_axis=1, time_axis=0)

    def initial(self, state: Tensor | None) -> Tensor:
        """Zeros by default."""
        if state is not None:
            return self.own(state)  # type: ignore[no-any-return]
        op, dims = self.op, [(self.x.dims or [None] * 3)[1], (self.r.dims or [None] * 2)[1]]
        known = [d for d in dims if isinstance(d, int)]
        if len(known) == 2:
            return op.Expand(op.like(0, self.x), op.ints(known))
        sizes = [op.Shape(tensor, start=1, end=2) for tensor in (self.x, self.r)]
        return op.Expand(op.like(0, self.x), op.Concat(*sizes, axis=0))

    def shifted(self, states: Tensor, first: Tensor) -> Tensor:
        """The state before each step, of the states behind each."""
        op = self.op
        start, (one, last, axis) = op.Unsqueeze(first, op.ints([0])), (op.ints([i]) for i in (1, -1, 0))
        if self.backwards:
            return op.Concat(op.Slice(states, one, op.ints([np.iinfo(np.int64).max]), axis), start, axis=0)
        return op.Concat(start, op.Slice(states, op.ints([0]), last, axis), axis=0)

    def injected(self, steps: Tensor | None, final: Tensor | None) -> tuple[Tensor | None, Tensor]:
        """The gradients that each step's state gets from outside, and the one that the last state begins with.

        Where sequences differ in length, each gets that of its final state at its own last step, and none behind it.
        """
        op, lengths = self.op, self.layer.lengths
        if lengths is None:
            return steps, final if final is not None else op.zeros_like(self.h0)
        zero = op.like(0, self.h0)
        if steps is not None:
            steps = op.Where(self.is_inside(), steps, zero)
        if final is not None:
            ends = op.Equal(self.layer.at, op.Reshape(lengths, op.ints([1, -1, 1])) - 1)
            share = op.Where(ends, op.Unsqueeze(final, op.ints([0])), zero)
            steps = share if steps is None else steps + share
        return steps, op.zeros_like(self.h0)

    def is_inside(self) -> Tensor:
        """Which steps are part of each sequence."""
        lengths = self.layer.lengths
        assert lengths is not None
        return self.layer.at < self.op.Reshape(lengths, self.op.ints([1, -1, 1]))

    def biases(self) -> tuple[Tensor | None, Tensor | None]:
        """Those of the inputs and those of the states."""
        if self.b is None:
            return None, None
        first, second = self.op.many("Split", 2, self.b, axis=0, num_outputs=2)
        return first, second

    def projected(self, states: Tensor, recurrent: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """What enters the activations, of all steps: rows of steps and sequences."""
        return self.op.Gemm(flat(states), recurrent, self.op.Gemm(flat(self.x), weight, bias, transB=1), transB=1)

    def steps(self, rows: Tensor) -> Tensor:
        """Rows as steps of sequences again."""
        if rows.rank == 3:
            return rows
        op, dims = self.op, self.x.dims
        if dims is not None and all(isinstance(d, int) and d > 0 for d in dims[:2]):
            return op.Reshape(rows, op.ints([dims[0], dims[1], -1]))
        made = op.Reshape(rows, op.Concat(op.Shape(self.x, start=0, end=2), op.ints([-1]), axis=0))
        if dims is not None and rows.dims is not None:
            made.value.shape = ir.Shape([*dims[:2], rows.dims[-1]])
        return made

    def activate(self, index: int, x: Tensor) -> tuple[Tensor, Tensor]:
        """An activation, clipped, and its slope."""
        clip = self.layer.spec.clip
        if clip is None:
            return activation(self.op, self.activations[index], x)
        y, slope = activation(self.op, self.activations[index], clipped(x, clip))
        return y, self.op.where(self.op.Abs(x) <= clip, slope, 0)

    def total(self, own: Tensor, outside: Tensor | None) -> Tensor:
        return own if outside is None else own + outside

    def weights(self, slopes: Tensor, h: Tensor) -> dict[str, Any]:
        """The gradients of weights and input, from those of what enters the activations; `h` is that of h0."""
        op = self.op
        rows = flat(slopes)
        bias = op.sum(rows, [0], keepdims=False)
        return {
            "x": self.turned(slopes @ self.w),
            "w": op.Gemm(rows, flat(self.x), transA=1),
            "r": op.Gemm(rows, flat(self.before), transA=1),
            "b": op.Concat(bias, bias, axis=0),
            "h": h,
        }


def _simple(d: _Direction) -> dict[str, Tensor]:
    op = d.op
    first, second = d.biases()
    bias = None if first is None or second is None else first + second
    _, slope = d.activate(0, d.projected(d.before, d.r, d.w, bias))

    def step(states: Sequence[Tensor], rows: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        slopes = d.total(states[0], rows[1] if len(rows) > 1 else None) * rows[0]
        return [slopes @ d.r], [slopes]

    rows = [d.steps(slope), *(t for t in [d.dy] if t is not None)]
    h, slopes = scan(op, step, [d.dh], rows, backwards=not d.backwards)
    return d.weights(slopes, h)


def _gated(d: _Direction) -> dict[str, Tensor]:
    """A GRU: gates z (keep), r (reset) and the candidate n; h = (1 - z) * n + z * before."""
    op = d.op
    first, second = d.biases()
    before = flat(d.before)
    x_all = op.Gemm(flat(d.x), d.w, first, transB=1)
    x_z, x_r, x_n = op.many("Split", 3, x_all, axis=1, num_outputs=3)
    r_z, r_r, r_n = op.many("Split", 3, d.r, axis=0, num_outputs=3)
    b_z, b_r, b_n = [None] * 3 if second is None else op.many("Split", 3, second, axis=0, num_outputs=3)
    z, z_slope = d.activate(0, x_z + op.Gemm(before, r_z, b_z, transB=1))
    r, r_slope = d.activate(0, x_r + op.Gemm(before, r_r, b_r, transB=1))
    if d.layer.spec.reset_after:
        recurrent = op.Gemm(before, r_n, b_n, transB=1)
        n, n_slope = d.activate(1, x_n + r * recurrent)
    else:
        n, n_slope = d.activate(1, x_n + op.Gemm(r * before, r_n, b_n, transB=1))
    of_z, of_n = (before - n) * z_slope, (1 - z) * n_slope
    outside = [t for t in [d.dy] if t is not None]
    if d.layer.spec.reset_after:
        of_r = of_n * recurrent * r_slope
        back = op.Concat(of_z, of_r, of_n * r, axis=1)

        def after(states: Sequence[Tensor], rows: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            keep, factor, *given = rows
            dh = d.total(states[0], given[0] if given else None)
            slopes = op.Concat(dh, dh, dh, axis=1) * factor
            return [dh * keep + slopes @ d.r], [dh, slopes]

        h, dh, slopes = scan(op, after, [d.dh], [d.steps(z), d.steps(back), *outside], backwards=not d.backwards)
        rows = flat(slopes)
        slopes = op.Concat(*(dh * d.steps(t) for t in (of_z, of_r, of_n)), axis=2)
        found = d.weights(slopes, h)
        of_second = op.sum(rows, [0], keepdims=False)
        found["r"] = op.Gemm(rows, before, transA=1)
    else:
        of_r = before * r_slope
        r_gates = op.Concat(r_z, r_r, axis=0)

        def inside(states: Sequence[Tensor], rows: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            keep, reset, to_z, to_r, to_n, *given = rows
            dh = d.total(states[0], given[0] if given else None)
            dn = dh * to_n
            product = dn @ r_n
            gates = op.Concat(dh * to_z, product * to_r, axis=1)
            return [dh * keep + product * reset + gates @ r_gates], [op.Concat(gates, dn, axis=1)]

        factors = [d.steps(t) for t in (z, r, of_z, of_r, of_n)]
        h, slopes = scan(op, inside, [d.dh], [*factors, *outside], backwards=not d.backwards)
        found = d.weights(slopes, h)
        dz, dr, dn = op.many("Split", 3, flat(slopes), axis=1, num_outputs=3)
        gates = op.Gemm(op.Concat(dz, dr, axis=1), before, transA=1)
        found["r"] = op.Concat(gates, op.Gemm(dn, r * before, transA=1), axis=0)
        return found
    of_first = op.sum(flat(slopes), [0], keepdims=False)
    found["b"] = op.Concat(of_first, of_second, axis=0)
    return found


def _long(d: _Direction) -> dict[str, Tensor]:
    """An LSTM: gates i, o, f and the candidate g; cell = f * before + i * g, h = o * activation(cell)."""
    op, coupled = d.op, d.layer.spec.input_forget
    first, second = d.biases()
    bias = None if first is None or second is None else first + second
    peeps = None if d.p is None else op.many("Split", 3, d.p, axis=0, num_outputs=3)
    if d.layer.is_plain:
        i, o, f, g, end, before = _kept(d, bias)
        i_slope, o_slope, f_slope = (gate * (1 - gate) for gate in (i, o, f))
        g_slope, end_slope = 1 - g * g, 1 - end * end
    else:
        in_i, in_o, in_f, in_g = op.many("Split", 4, d.projected(d.before, d.r, d.w, bias), axis=1, num_outputs=4)
        g, g_slope = d.activate(1, in_g)
        cells = _cells(d, in_i, in_f, g, peeps)
        cell, before = flat(cells), flat(d.shifted(cells, d.c0))
        if peeps is not None:
            in_i, in_o, in_f = in_i + peeps[0] * before, in_o + peeps[1] * cell, in_f + peeps[2] * before
        (i, i_slope), (o, o_slope) = d.activate(0, in_i), d.activate(0, in_o)
        f, f_slope = (1 - i, op.zeros_like(i)) if coupled else d.activate(0, in_f)
        end, end_slope = activation(op, d.activations[2], cell)
    of_i = (g - before if coupled else g) * i_slope
    of_o, of_f, of_g = end * o_slope, before * f_slope, i * g_slope
    through, keep = o * end_slope, f
    if peeps is not None:
        through, keep = through + of_o * peeps[1], keep + of_i * peeps[0] + of_f * peeps[2]

    def step(states: Sequence[Tensor], rows: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        factor, to_cell, to_before, *given = rows
        dh = d.total(states[0], given.pop(0) if d.dy is not None else None)
        dc = d.total(dh * to_cell + states[1], given.pop(0) if d.dc_steps is not None else None)
        slopes = op.Concat(dc, dh, dc, dc, axis=1) * factor
        return [slopes @ d.r, dc * to_before], [slopes]

    rows = [d.steps(t) for t in (op.Concat(of_i, of_o, of_f, of_g, axis=-1), through, keep)]
    rows += [t for t in (d.dy, d.dc_steps) if t is not None]
    h, c, slopes = scan(op, step, [d.dh, d.dc], rows, backwards=not d.backwards)
    found = d.weights(slopes, h)
    found["c"] = c
    if peeps is not None:
        di, do, df, _ = op.many("Split", 4, flat(slopes), axis=1, num_outputs=4)
        parts = [di * before, do * flat(cells), df * before]
        found["p"] = op.Concat(*(op.sum(part, [0], keepdims=False) for part in parts), axis=0)
    return found


def _kept(d: _Direction, bias: Tensor | None) -> list[Tensor]:
    """Run forward in place of the node: the gates i, o, f, the candidate g and what it gives, and the cells before."""
    op, recurrent = d.op, d.op.transpose(d.r, [1, 0])

    def step(states: Sequence[Tensor], rows: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        gates = op.many("Split", 4, op.Gemm(states[0], recurrent, rows[0]), axis=1, num_outputs=4)
        i, o, f = map(op.Sigmoid, gates[:3])
        g = op.Tanh(gates[3])
        cell = f * states[1] + i * g
        end = op.Tanh(cell)
        h = o * end
        return [h, cell], [h, states[0], i, o, f, g, end, states[1]]

    inputs = d.x @ op.transpose(d.w, [1, 0])
    inputs = inputs if bias is None else inputs + bias
    h, c, y, d.before, *kept = scan(op, step, [d.h0, d.c0], [inputs], backwards=d.backwards)
    d.outputs = [y, h, c]
    return kept


def _cells(d: _Direction, in_i: Tensor, in_f: Tensor, g: Tensor, peeps: Sequence[Tensor] | None) -> Tensor:
    """The cells of all steps."""
    op, coupled = d.op, d.layer.spec.input_forget
    if peeps is None:
        i, _ = d.activate(0, in_i)
        f = 1 - i if coupled else d.activate(0, in_f)[0]
        keep, new = d.steps(f), d.steps(i * g)
        if d.layer.lengths is not None:
            inside = d.is_inside()
            keep, new = op.where(inside, keep, 0), op.where(inside, new, 0)

        def step(states: Sequence[Tensor], rows: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
            cell = states[0] * rows[0] + rows[1]
            return [cell], [cell]

        return scan(op, step, [d.c0], [keep, new], backwards=d.backwards)[1]

    def peeping(states: Sequence[Tensor], rows: Sequence[Tensor]) -> tuple[list[Tensor], list[Tensor]]:
        assert peeps is not None
        i, _ = d.activate(0, rows[0] + states[0] * peeps[0])
        f = 1 - i if coupled else d.activate(0, rows[1] + states[0] * peeps[2])[0]
        cell = f * states[0] + i * rows[2]
        return [cell], [cell]

    return scan(op, peeping, [d.c0], [d.steps(t) for t in (in_i, in_f, g)], backwards=d.backwards)[1]


def clipped(x: Tensor, clip: float) -> Tensor:
    return x.op.Clip(x, x.op.like(-clip, x), x.op.like(clip, x))


def activation(op: Builder, function: Activation, x: Tensor) -> tuple[Tensor, Tensor]:
    """An activation function of recurrent layers, and its slope."""
    name, numbers = function.name, function.numbers
    alpha, beta = (*numbers, 0.0, 0.0)[:2]
    if name == "sigmoid":
        y = op.Sigmoid(x)
        return y, y * (1 - y)
    if name == "tanh":
        y = op.Tanh(x)
        return y, 1 - y * y
    if name == "scaledtanh":
        y = op.Tanh(x * beta)
        return y * alpha, (1 - y * y) * (alpha * beta)
    if name == "affine":
        return x * alpha + beta, op.filled(x, alpha)
    if name == "softplus":
        return op.Softplus(x), op.Sigmoid(x)
    if name == "softsign":
        share = op.Reciprocal(op.Abs(x) + 1)
        return x * share, share * share
    if name == "hardsigmoid":
        y = op.HardSigmoid(x, alpha=alpha, beta=beta)
        return y, op.where(op.And(y > 0, y < 1), op.filled(x, alpha), 0)
    if name == "elu":
        y = op.Elu(x, alpha=alpha)
        return y, op.where(x > 0, 1, y + alpha)
    slope = op.filled(x, 1)
    limit = alpha if name == "thresholdedrelu" else 0
    slope = op.where(x > limit, slope, alpha if name == "leakyrelu" else 0)
    return x * slope, slope
