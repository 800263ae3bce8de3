"""ONNX's recurrent layers: inputs are projected for all times at once, then a loop walks over time."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from onward.backends.tensorflow.runtime.control_flow import loop, row_reader
from onward.backends.tensorflow.runtime.host import size

ActivationFunction = Callable[[tf.Tensor], tf.Tensor]
Step = Callable[..., tuple[tf.Tensor, ...]]
Cell = tuple[tf.Tensor, tf.Tensor | None, Step]
"""The weight and bias that inputs are projected with, and `step(projected, *state) -> state`, the output first."""


def rnn_activation(name: str, alpha: float = 0.0, beta: float = 0.0) -> ActivationFunction:
    """The activation functions of ONNX's recurrent operators that have parameters."""
    return {
        "affine": lambda x: alpha * x + beta,
        "leakyrelu": lambda x: tf.nn.leaky_relu(x, alpha),
        "thresholdedrelu": lambda x: tf.where(x > alpha, x, 0),
        "scaledtanh": lambda x: alpha * tf.tanh(beta * x),
        "hardsigmoid": lambda x: tf.clip_by_value(alpha * x + beta, 0, 1),
        "elu": lambda x: tf.where(x < 0, alpha * tf.math.expm1(tf.minimum(x, 0)), x),
    }[name]


def clipped(x: tf.Tensor, clip: float | None) -> tf.Tensor:
    return x if clip is None else tf.clip_by_value(x, -clip, clip)


def affine(x: tf.Tensor, weight: tf.Tensor, bias: tf.Tensor | None) -> tf.Tensor:
    """x · weightᵀ + bias."""
    y = tf.matmul(x, weight, transpose_b=True)
    return y if bias is None else y + bias


def reverse_sequences(x: tf.Tensor, lengths: tf.Tensor | None) -> tf.Tensor:
    """Reverse time (axis 0), for each element of the batch within its own length only."""
    return tf.reverse(x, [0]) if lengths is None else tf.reverse_sequence(x, lengths, seq_axis=0, batch_axis=1)


def run_cell(
    cell: Cell, x: tf.Tensor, state: Sequence[tf.Tensor], lengths: tf.Tensor | None, backwards: bool = False
) -> tuple[tf.Tensor, list[tf.Tensor]]:
    """The outputs of a cell at all times, with time first, and its last state.

    Where a sequence has ended, its state stays as it is and its output is zero. The last state of an empty sequence
    is zero, too, as on ONNX Runtime.
    """
    weight, bias, step = cell
    projected = tf.tensordot(x, weight, [[2], [1]])
    projected = projected if bias is None else projected + bias
    if backwards:
        projected = reverse_sequences(projected, lengths)
    time = size(x, 0)
    input_at = row_reader(projected)

    def body(t: Any, *state: tf.Tensor) -> tuple[Any, ...]:
        new = step(input_at(t), *state)
        if lengths is None:
            return True, *new, new[0]
        alive = (tf.cast(t, lengths.dtype) < lengths)[:, tf.newaxis]
        kept = (tf.where(alive, n, s) for n, s in zip(new, state, strict=True))
        return True, *kept, tf.where(alive, new[0], tf.zeros_like(new[0]))

    *last, y = loop(body, state, count=time, rows=[state[0]])
    if lengths is not None:
        last = [tf.where((lengths > 0)[:, tf.newaxis], s, tf.zeros_like(s)) for s in last]
    return reverse_sequences(y, lengths) if backwards else y, last


def run_directions(
    cells: Sequence[Cell],
    x: tf.Tensor,
    states: Sequence[tf.Tensor | None],
    hidden: Any,
    lengths: tf.Tensor | None,
    reverse: Sequence[bool],
    batch_first: bool,
) -> tuple[tf.Tensor, ...]:
    """Outputs and last states: (time, directions, batch, hidden), or (batch, time, directions, hidden).

    `states` are the initial states, each (directions, batch, hidden), by default zeros.
    """
    if batch_first:
        x = tf.transpose(x, [1, 0, 2])
        states = [None if s is None else tf.transpose(s, [1, 0, 2]) for s in states]
    zeros = tf.zeros([size(x, 1), hidden], x.dtype)
    outputs, finals = [], []
    for d, cell in enumerate(cells):
        y, final = run_cell(cell, x, [zeros if s is None else s[d] for s in states], lengths, reverse[d])
        outputs.append(y)
        finals.append(final)
    y, last = tf.stack(outputs, 1), [tf.stack(s) for s in zip(*finals, strict=True)]
    if batch_first:
        return tf.transpose(y, [2, 0, 1, 3]), *(tf.transpose(s, [1, 0, 2]) for s in last)
    return y, *last


def summed(b: tf.Tensor | None, d: int) -> tf.Tensor | None:
    """The biases of input and state together."""
    return None if b is None else tf.add(*tf.split(b[d], 2))


def rnn_cell(
    w: tf.Tensor, r: tf.Tensor, bias: tf.Tensor | None, activation: ActivationFunction, clip: float | None = None
) -> Cell:
    def step(now: tf.Tensor, h: tf.Tensor) -> tuple[tf.Tensor, ...]:
        return (activation(clipped(now + affine(h, r, None), clip)),)

    return w, bias, step


def gru_cell(
    w: tf.Tensor,
    r: tf.Tensor,
    biases: Sequence[tf.Tensor],
    activations: Sequence[ActivationFunction] = (tf.sigmoid, tf.tanh),
    clip: float | None = None,
    reset_after: bool = True,
    update_first: bool = True,
) -> Cell:
    """Gates in the order update, reset, hidden, or reset, update, hidden.

    With `reset_after`, the reset gate multiplies the projected state, else the state.
    """
    hidden = size(r, 1)
    r_gates, r_hidden = r[: 2 * hidden], r[2 * hidden :]
    wb, rb = biases or (None, None)
    rb_gates, rb_hidden = (None, None) if rb is None else (rb[: 2 * hidden], rb[2 * hidden :])
    f, g = activations

    def step(now: tf.Tensor, h: tf.Tensor) -> tuple[tf.Tensor, ...]:
        gates = f(clipped(now[:, : 2 * hidden] + affine(h, r_gates, rb_gates), clip))
        z, reset = tf.split(gates, 2, 1) if update_first else tf.split(gates, 2, 1)[::-1]
        inner = reset * affine(h, r_hidden, rb_hidden) if reset_after else affine(reset * h, r_hidden, rb_hidden)
        return ((1 - z) * g(clipped(now[:, 2 * hidden :] + inner, clip)) + z * h,)

    return w, wb, step


def lstm_cell(
    w: tf.Tensor,
    r: tf.Tensor,
    bias: tf.Tensor | None,
    peephole: tf.Tensor | None = None,
    activations: Sequence[ActivationFunction] = (tf.sigmoid, tf.tanh, tf.tanh),
    clip: float | None = None,
    input_forget: bool = False,
    order: Sequence[int] = (0, 1, 2, 3),
) -> Cell:
    """`order` tells where the gates input, output, forget and cell stand.

    With `input_forget`, the forget gate is one minus the input gate. `clip` bounds what enters the gates and the
    candidate, not the cell state that enters the last activation: ONNX Runtime reads the standard this way.
    """
    f, g, activate = activations

    def step(now: tf.Tensor, h: tf.Tensor, c: tf.Tensor) -> tuple[tf.Tensor, ...]:
        gates = tf.split(now + affine(h, r, None), 4, 1)
        i, o, forget, cell = (gates[k] for k in order)
        if peephole is not None:
            p_i, p_o, p_f = tf.split(peephole, 3)
            i, forget = i + p_i * c, forget + p_f * c
        i = f(clipped(i, clip))
        forget = 1 - i if input_forget else f(clipped(forget, clip))
        c = forget * c + i * g(clipped(cell, clip))
        o = f(clipped(o if peephole is None else o + p_o * c, clip))
        return o * activate(c), c

    return w, bias, step


def simple_rnn(
    x: tf.Tensor,
    w: tf.Tensor,
    r: tf.Tensor,
    b: tf.Tensor | None = None,
    lengths: tf.Tensor | None = None,
    h0: tf.Tensor | None = None,
    *,
    activations: Sequence[Sequence[ActivationFunction]] = ((tf.tanh,),) * 2,
    reverse: Sequence[bool] = (False,),
    clip: float | None = None,
    batch_first: bool = False,
) -> tuple[tf.Tensor, ...]:
    """ONNX's RNN. Returns Y and Y_h."""
    cells = [rnn_cell(w[d], r[d], summed(b, d), activations[d][0], clip) for d in range(len(reverse))]
    return run_directions(cells, x, [h0], size(r, 2), lengths, reverse, batch_first)


def gated_rnn(
    x: tf.Tensor,
    w: tf.Tensor,
    r: tf.Tensor,
    b: tf.Tensor | None = None,
    lengths: tf.Tensor | None = None,
    h0: tf.Tensor | None = None,
    *,
    activations: Sequence[Sequence[ActivationFunction]] = ((tf.sigmoid, tf.tanh),) * 2,
    reverse: Sequence[bool] = (False,),
    clip: float | None = None,
    batch_first: bool = False,
    reset_after: bool = False,
) -> tuple[tf.Tensor, ...]:
    """ONNX's GRU, gates in the order update, reset, hidden. Returns Y and Y_h."""
    biases = [() if b is None else tf.split(b[d], 2) for d in range(len(reverse))]
    cells = [gru_cell(w[d], r[d], biases[d], activations[d], clip, reset_after) for d in range(len(reverse))]
    return run_directions(cells, x, [h0], size(r, 2), lengths, reverse, batch_first)


def lstm(
    x: tf.Tensor,
    w: tf.Tensor,
    r: tf.Tensor,
    b: tf.Tensor | None = None,
    lengths: tf.Tensor | None = None,
    h0: tf.Tensor | None = None,
    c0: tf.Tensor | None = None,
    peepholes: tf.Tensor | None = None,
    *,
    activations: Sequence[Sequence[ActivationFunction]] = ((tf.sigmoid, tf.tanh, tf.tanh),) * 2,
    reverse: Sequence[bool] = (False,),
    clip: float | None = None,
    batch_first: bool = False,
    input_forget: bool = False,
) -> tuple[tf.Tensor, ...]:
    """ONNX's LSTM, gates in the order input, output, forget, cell. Returns Y, Y_h and Y_c."""
    cells = [
        lstm_cell(
            w[d], r[d], summed(b, d), None if peepholes is None else peepholes[d], activations[d], clip, input_forget
        )
        for d in range(len(reverse))
    ]
    return run_directions(cells, x, [h0, c0], size(r, 2), lengths, reverse, batch_first)


def recurrent_layers(
    kind: str,
    x: tf.Tensor,
    weights: Sequence[Sequence[tf.Tensor]],
    lengths: tf.Tensor | None = None,
    *initial: tf.Tensor,
    bidirectional: bool = False,
    batch_first: bool = False,
    activation: ActivationFunction = tf.tanh,
) -> tuple[tf.Tensor, ...]:
    """A stack of layers of one kind: RNN, GRU (reset, update, hidden) or LSTM (input, forget, cell, output).

    `weights` has the weights of input and state, and their biases, of each direction of each layer. Returns the
    outputs of the last layer, directions side by side, and the last states: (layers · directions, batch, hidden).
    """
    x = tf.transpose(x, [1, 0, 2]) if batch_first else x
    finals: list[list[tf.Tensor]] = []
    for first in range(0, len(weights), 1 + bidirectional):
        outputs = []
        for d, (w, r, *b) in enumerate(weights[first : first + 1 + bidirectional]):
            if kind == "GRU":
                cell = gru_cell(w, r, b, update_first=False)
            elif kind == "LSTM":
                cell = lstm_cell(w, r, tf.add(*b) if b else None, order=(0, 3, 1, 2))
            else:
                cell = rnn_cell(w, r, tf.add(*b) if b else None, activation)
            zeros = tf.zeros([size(x, 1), size(r, 1)], x.dtype)
            state = [s[first + d] for s in initial] or [zeros] * (2 if kind == "LSTM" else 1)
            y, final = run_cell(cell, x, state, lengths, d == 1)
            outputs.append(y)
            finals.append(final)
        x = tf.concat(outputs, 2) if bidirectional else outputs[0]
    y = tf.transpose(x, [1, 0, 2]) if batch_first else x
    return y, *(tf.stack(s) for s in zip(*finals, strict=True))
