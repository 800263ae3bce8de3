"""Recurrent layers that are one op: over a sequence they begin with zeros; step by step they keep their state."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from onward.errors import UnsupportedError
from onward.frontends.tensorflow.writer import Writer
from onward.frontends.tflite.hybrid import is_hybrid, product, seen
from onward.frontends.tflite.like_tensorflow import ACTIVATIONS, activated
from onward.frontends.tflite.registry import rule
from onward.frontends.tflite.rules.state import kept
from onward.graph.build import Tensor
from onward.graph.scan import scan

NORM_EPSILON = 1e-8
TANH = 4
Step = Callable[..., Sequence[Tensor]]
"""Takes a place of the sequence and the states, gives the states that follow; the first of them is the result."""


@dataclass(frozen=True)
class Lstm:
    """Weights of each gate in the order input, forget, cell, output; what a layer does not have is None."""

    inputs: Sequence[Tensor | None]
    recurrent: Sequence[Tensor | None]
    peepholes: Sequence[Tensor | None]
    """Of all gates but the cell's."""
    biases: Sequence[Tensor | None]
    projection: Sequence[Tensor | None]
    """Weight and bias."""
    norms: Sequence[Tensor | None]

    @classmethod
    def of(cls, given: Sequence[Tensor | None], norms: Sequence[Tensor | None] = (None,) * 4) -> Lstm:
        """In the order of the schema, without what comes in and without states."""
        return cls(given[0:4], given[4:8], given[8:11], given[11:15], given[15:17], norms)

    def is_plain(self, op: Writer, length: Any) -> bool:
        """Whether ONNX's LSTM is the same; steps are below one, so that a few do not take the cell to its limit."""
        options = op.operation.options
        own = (*self.peepholes, *self.projection, *self.norms)
        whole = all(w is not None for w in (*self.inputs, *self.recurrent, *self.biases))
        short = not options.cellClip or (isinstance(length, int) and length <= options.cellClip)
        hybrid = any(is_hybrid(op, w) for w in (*self.inputs, *self.recurrent))
        usual = options.fusedActivationFunction == TANH and all(w is None for w in own)
        return whole and short and usual and not hybrid

    def widths(self) -> tuple[int, int]:
        """Of the result and of the cell."""
        assert self.inputs[1] is not None and self.recurrent[1] is not None
        if self.inputs[1].sizes is None or self.recurrent[1].sizes is None:
            raise UnsupportedError("the size of an LSTM is not known")
        return self.recurrent[1].sizes[1], self.inputs[1].sizes[0]

    def step(self, op: Writer) -> Step:
        options = op.operation.options

        def taken(x: Tensor, h: Tensor, cell: Tensor) -> Sequence[Tensor]:
            asymmetric = options.asymmetricQuantizeInputs
            x_seen, h_seen = (seen(op, t, w, asymmetric) for t, w in ((x, self.inputs[1]), (h, self.recurrent[1])))

            def gate(i: int, memory: Tensor | None) -> Tensor:
                w, r, bias, norm = self.inputs[i], self.recurrent[i], self.biases[i], self.norms[i]
                assert w is not None and r is not None and bias is not None
                total = product(op, x_seen, w) + product(op, h_seen, r)
                if i != 2 and (peephole := self.peepholes[min(i, 2)]) is not None and memory is not None:
                    total = total + memory * peephole
                return (total if norm is None else _normalised(op, total) * norm) + bias

            forget = op.Sigmoid(gate(1, cell))
            enter = op.Sigmoid(gate(0, cell)) if self.inputs[0] is not None else 1.0 - forget
            cell = forget * cell + enter * activated(op, gate(2, None), options.fusedActivationFunction)
            cell = _cut(op, cell, options.cellClip)
            out = op.Sigmoid(gate(3, cell)) * activated(op, cell, options.fusedActivationFunction)
            weight, bias = self.projection
            if weight is not None:
                out = product(op, seen(op, out, weight, asymmetric), weight)
                out = _cut(op, out if bias is None else out + bias, options.projClip)
            return out, cell

        return taken


def _normalised(op: Writer, x: Tensor) -> Tensor:
    centred = x - op.reduced("ReduceMean", x, [-1], keepdims=True)
    spread = op.reduced("ReduceMean", centred * centred, [-1], keepdims=True)
    return centred / op.Sqrt(spread + NORM_EPSILON)


def _cut(op: Writer, x: Tensor, limit: float) -> Tensor:
    return op.Clip(x, op.like(-limit, x), op.like(limit, x)) if limit > 0 else x


def _walked(op: Writer, x: Tensor, widths: Sequence[int], step: Step, backwards: bool) -> Tensor:
    """All results of a step from zeros on, along the first axis."""
    batch = op.Slice(op.Shape(x), op.ints([1]), op.ints([2]))
    states = [op.Expand(op.like(0, x), op.Concat(batch, op.ints([width]), axis=0)) for width in widths]

    def kept(states: Sequence[Tensor], rows: Sequence[Tensor]) -> tuple[Sequence[Tensor], Sequence[Tensor]]:
        after = step(*rows, *states)
        return after, after[:1]

    return scan(op, kept, states, [x], backwards=backwards)[-1]


def _over_time(op: Writer, x: Tensor, layer: Callable[[Tensor], Tensor]) -> Tensor:
    """A layer that has time on the first axis."""
    if op.operation.options.timeMajor:
        return layer(x.ranked(3))
    return op.transpose(layer(op.transpose(x.ranked(3), [1, 0, 2])), [1, 0, 2])


def _lstm(op: Writer, x: Tensor, weights: Lstm, backwards: bool = False) -> Tensor:
    def layer(x: Tensor) -> Tensor:
        if not weights.is_plain(op, x.dims[0] if x.dims else None):
            return _walked(op, x, weights.widths(), weights.step(op), backwards)
        order = (0, 3, 1, 2)  # ONNX has input, output, forget, cell
        groups = (weights.inputs, weights.recurrent)
        w, r = (op.unsqueeze(op.Concat(*(group[i] for i in order), axis=0), [0]) for group in groups)
        bias = op.Concat(*(weights.biases[i] for i in order), axis=0)
        both = op.unsqueeze(op.Concat(bias, op.zeros_like(bias), axis=0), [0])
        direction = "reverse" if backwards else None
        return op.squeeze(op.LSTM(x, w, r, both, hidden_size=weights.widths()[1], direction=direction), [1])

    return _over_time(op, x, layer)


@rule("UNIDIRECTIONAL_SEQUENCE_LSTM")
def sequence_lstm(op: Writer, x: Tensor, *weights: Tensor | None) -> Tensor:
    if getattr(op.operation.options, "diagonalRecurrentTensors", False):
        raise UnsupportedError("recurrent weights of which only the diagonal is given are not supported")
    given = [*weights, *[None] * (23 - len(weights))]
    return _lstm(op, x, Lstm.of(given, given[19:23]))


@rule("BIDIRECTIONAL_SEQUENCE_LSTM")
def bidirectional_lstm(op: Writer, x: Tensor, *weights: Tensor | None) -> Any:
    if any(w is not None for w in weights[38:]):
        raise UnsupportedError("a second input of a bidirectional LSTM is not supported")
    return _both(op, _lstm(op, x, Lstm.of(weights[:17])), _lstm(op, x, Lstm.of(weights[17:34]), backwards=True))


def _both(op: Writer, forwards: Tensor, backwards: Tensor) -> Any:
    return op.Concat(forwards, backwards, axis=-1) if op.operation.options.mergeOutputs else [forwards, backwards]


@rule("LSTM")
def lstm(op: Writer, x: Tensor, *given: Tensor | None) -> Any:
    """One step: with states as inputs and outputs, or with such as the op keeps."""
    options = op.operation.options
    if options.kernelType == 1:
        return _basic(op, x, *given)
    weights = Lstm.of(given, [*given[19:23], *[None] * 4][:4])
    batch = op.operation.inputs[18].shape[0]
    before = [kept(op, place, [batch, n]) for place, n in zip((18, 19), weights.widths(), strict=True)]
    result, cell = weights.step(op)(x, *(state.now for state in before))
    before[0].now, before[1].now = result, cell
    return result


def _basic(op: Writer, x: Tensor, before: Any, weight: Any, bias: Any, cell: Any) -> list[Tensor]:
    both = op.Concat(x, before, axis=-1)
    gates = product(op, seen(op, both, weight, False), weight) + bias
    width = gates.dims[-1] if gates.dims else None
    if not isinstance(width, int):
        raise UnsupportedError("the size of an LSTM is not known")
    enter, new, forget, out = op.many("Split", 4, gates, op.ints([width // 4] * 4), axis=-1)
    state = op.Sigmoid(enter) * op.Tanh(new) + op.Sigmoid(forget) * cell
    return [op.Sigmoid(out) * op.Tanh(state), state, both, gates]


@dataclass(frozen=True)
class Rnn:
    weight: Tensor
    recurrent: Tensor
    bias: Tensor

    def width(self) -> int:
        if self.recurrent.sizes is None:
            raise UnsupportedError("the size of a recurrent layer is not known")
        return self.recurrent.sizes[0]

    def step(self, op: Writer) -> Step:
        options = op.operation.options

        def taken(x: Tensor, h: Tensor) -> Sequence[Tensor]:
            asymmetric = options.asymmetricQuantizeInputs
            total = product(op, seen(op, x, self.weight, asymmetric), self.weight) + self.bias
            total = total + product(op, seen(op, h, self.recurrent, asymmetric), self.recurrent)
            return (activated(op, total, options.fusedActivationFunction),)

        return taken


def _rnn(op: Writer, x: Tensor, weights: Rnn, backwards: bool = False) -> Tensor:
    function = op.operation.options.fusedActivationFunction

    def layer(x: Tensor) -> Tensor:
        if is_hybrid(op, weights.weight) or ACTIVATIONS[function] not in ("Relu", "Tanh"):
            return _walked(op, x, [weights.width()], weights.step(op), backwards)
        both = op.Concat(weights.bias, op.zeros_like(weights.bias), axis=0)
        parts = [op.unsqueeze(part, [0]) for part in (weights.weight, weights.recurrent, both)]
        direction = "reverse" if backwards else None
        activations = [ACTIVATIONS[function]]
        y = op.RNN(x, *parts, hidden_size=weights.width(), direction=direction, activations=activations)
        return op.squeeze(y, [1])

    return _over_time(op, x, layer)


@rule("UNIDIRECTIONAL_SEQUENCE_RNN")
def sequence_rnn(op: Writer, x: Tensor, weight: Tensor, recurrent: Tensor, bias: Tensor, _: Any) -> Tensor:
    return _rnn(op, x, Rnn(weight, recurrent, bias))


@rule("BIDIRECTIONAL_SEQUENCE_RNN")
def bidirectional_rnn(op: Writer, x: Tensor, *weights: Any) -> Any:
    if any(w is not None for w in weights[8:]):
        raise UnsupportedError("a second input of a bidirectional recurrent layer is not supported")
    return _both(op, _rnn(op, x, Rnn(*weights[:3])), _rnn(op, x, Rnn(*weights[4:7]), backwards=True))


@rule("RNN")
def rnn(op: Writer, x: Tensor, weight: Tensor, recurrent: Tensor, bias: Tensor, _: Any) -> Tensor:
    weights = Rnn(weight, recurrent, bias)
    state = kept(op, 4, [op.operation.inputs[4].shape[0], weights.width()])
    (state.now,) = weights.step(op)(x, state.now)
    return state.now


@rule("SVDF")
def svdf(op: Writer, x: Tensor, features: Tensor, times: Tensor, bias: Tensor | None, _: Any) -> Tensor:
    """Of each filter, what it found in the last steps, weighted by how long ago; filters of a unit are added."""
    options = op.operation.options
    if features.sizes is None or times.sizes is None:
        raise UnsupportedError("the size of an SVDF is not known")
    filters, memory = features.sizes[0], times.sizes[1]
    batch = op.operation.inputs[4].shape[0]
    state = kept(op, 4, [batch, filters * memory])
    before = op.Reshape(state.now, op.ints([-1, filters, memory]))
    new = product(op, seen(op, x, features, options.asymmetricQuantizeInputs), features)
    later = op.Slice(before, op.ints([1]), op.ints([memory]), op.ints([2]))
    now = op.Concat(later, op.unsqueeze(new, [2]), axis=2)
    state.now = op.Reshape(now, op.ints([-1, filters * memory]))
    found = op.sum(now * times, [2], keepdims=False)
    by_unit = op.Reshape(found, op.ints([-1, filters // options.rank, options.rank]))
    total = op.sum(by_unit, [2], keepdims=False)
    return activated(op, total if bias is None else total + bias, options.fusedActivationFunction)
