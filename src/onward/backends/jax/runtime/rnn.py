"""ONNX's recurrent layers: inputs are projected for all times at once, then `lax.scan` walks over time."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
from jax import Array, lax


def rnn_activation(name: str, alpha: float = 0.0, beta: float = 0.0) -> Callable[[Array], Array]:
    """The activation functions of ONNX's recurrent operators that have parameters."""
    return {
        "affine": lambda x: alpha * x + beta,
        "leakyrelu": lambda x: jax.nn.leaky_relu(x, alpha),
        "thresholdedrelu": lambda x: jnp.where(x > alpha, x, 0),
        "scaledtanh": lambda x: alpha * jnp.tanh(beta * x),
        "hardsigmoid": lambda x: jnp.clip(alpha * x + beta, 0, 1),
        "elu": lambda x: jax.nn.elu(x, alpha),
    }[name]


def clipped(x: Array, clip: float | None) -> Array:
    return x if clip is None else jnp.clip(x, -clip, clip)


def affine(x: Array, weight: Array, bias: Array | None) -> Array:
    """x · weightᵀ + bias."""
    y = x @ weight.T
    return y if bias is None else y + bias


def reverse_sequences(x: Array, lengths: Array | None) -> Array:
    """Reverse time (axis 0), for each element of the batch within its own length only."""
    if lengths is None:
        return x[::-1]
    time = jnp.arange(x.shape[0])[:, None]
    source = jnp.where(time < lengths, lengths - 1 - time, time)
    return jnp.take_along_axis(x, source[..., None], 0)


def run_cell(
    cell: Any, x: Array, state: Sequence[Array], lengths: Array | None, backwards: bool = False
) -> tuple[Array, Sequence[Array]]:
    """The outputs of a cell at all times, with time first, and its last state.

    A cell is the weight and bias that inputs are projected with, and `step(projected, *state) -> state`, of which the
    first is the output. Where a sequence has ended, its state stays as it is and its output is zero. The last state of
    an empty sequence is zero, too, as on ONNX Runtime.
    """
    weight, bias, step = cell
    projected = affine(x, weight, bias)
    if backwards and lengths is not None:
        projected = reverse_sequences(projected, lengths)

    def body(state: Any, now: Any) -> Any:
        t, row = now
        new = step(row, *state)
        if lengths is None:
            return new, new[0]
        alive = (t < lengths)[:, None]
        kept = tuple(jnp.where(alive, n, s) for n, s in zip(new, state, strict=True))
        return kept, jnp.where(alive, new[0], 0)

    start = tuple(s.astype(x.dtype) for s in state)
    times = None if lengths is None else jnp.arange(x.shape[0])
    last, y = lax.scan(body, start, (times, projected), reverse=backwards and lengths is None)
    if lengths is not None:
        last = tuple(jnp.where((lengths > 0)[:, None], s, 0) for s in last)
    return reverse_sequences(y, lengths) if backwards and lengths is not None else y, last


def run_directions(
    cells: Sequence[Any],
    x: Array,
    states: Sequence[Array | None],
    lengths: Array | None,
    reverse: Sequence[bool],
    batch_first: bool,
    hidden: int,
) -> tuple[Array, ...]:
    """Outputs and last states: (time, directions, batch, hidden), or (batch, time, directions, hidden).

    `states` are the initial states, each (directions, batch, hidden), by default zeros.
    """
    if batch_first:
        x = x.swapaxes(0, 1)
        states = [None if s is None else s.swapaxes(0, 1) for s in states]
    zeros = jnp.zeros((x.shape[1], hidden), x.dtype)
    outputs, finals = [], []
    for d, cell in enumerate(cells):
        y, final = run_cell(cell, x, [zeros if s is None else s[d] for s in states], lengths, reverse[d])
        outputs.append(y)
        finals.append(final)
    y, last = jnp.stack(outputs, 1), [jnp.stack(s) for s in zip(*finals, strict=True)]
    if batch_first:
        return y.transpose(2, 0, 1, 3), *(s.swapaxes(0, 1) for s in last)
    return y, *last


def both_biases(b: Array | None, d: int) -> Array | None:
    """The biases of input and state together."""
    return None if b is None else b[d].reshape(2, -1).sum(0)


def rnn_cell(
    w: Array, r: Array, bias: Array | None, activation: Callable[[Array], Array], clip: float | None = None
) -> Any:
    def step(now: Array, h: Array) -> tuple[Array, ...]:
        return (activation(clipped(now + h @ r.T, clip)),)

    return w, bias, step


def gru_cell(
    w: Array,
    r: Array,
    biases: Sequence[Array],
    activations: Sequence[Callable[[Array], Array]] = (jax.nn.sigmoid, jnp.tanh),
    clip: float | None = None,
    reset_after: bool = True,
    update_first: bool = True,
) -> Any:
    """Gates in the order update, reset, hidden, or reset, update, hidden.

    With `reset_after`, the reset gate multiplies the projected state, else the state.
    """
    two = 2 * r.shape[1]
    wb, rb = biases or (None, None)
    f, g = activations

    def step(now: Array, h: Array) -> tuple[Array, ...]:
        if reset_after:
            ahead = affine(h, r, rb)
            gates, hidden = ahead[:, :two], ahead[:, two:]
        else:
            gates = affine(h, r[:two], None if rb is None else rb[:two])
        z, reset = jnp.split(f(clipped(now[:, :two] + gates, clip)), 2, 1)
        if not update_first:
            z, reset = reset, z
        inner = reset * hidden if reset_after else affine(reset * h, r[two:], None if rb is None else rb[two:])
        return ((1 - z) * g(clipped(now[:, two:] + inner, clip)) + z * h,)

    return w, wb, step


def lstm_cell(
    w: Array,
    r: Array,
    bias: Array | None,
    peephole: Array | None = None,
    activations: Sequence[Callable[[Array], Array]] = (jax.nn.sigmoid, jnp.tanh, jnp.tanh),
    clip: float | None = None,
    input_forget: bool = False,
    order: Sequence[int] = (0, 1, 2, 3),
) -> Any:
    """`order` tells where the gates input, output, forget and cell stand.

    With `input_forget`, the forget gate is one minus the input gate. `clip` bounds what enters the gates and the
    candidate, not the cell state that enters the last activation: ONNX Runtime reads the standard this way.
    """
    f, g, activate = activations

    def step(now: Array, h: Array, c: Array) -> tuple[Array, ...]:
        gates = jnp.split(now + h @ r.T, 4, 1)
        i, o, forget, cell = (gates[k] for k in order)
        if peephole is not None:
            p_i, p_o, p_f = jnp.split(peephole, 3)
            i, forget = i + p_i * c, forget + p_f * c
        i = f(clipped(i, clip))
        forget = 1 - i if input_forget else f(clipped(forget, clip))
        c = forget * c + i * g(clipped(cell, clip))
        o = f(clipped(o if peephole is None else o + p_o * c, clip))
        return o * activate(c), c

    return w, bias, step


def simple_rnn(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    lengths: Array | None = None,
    h0: Array | None = None,
    *,
    activations: Sequence[Sequence[Callable[[Array], Array]]] = ((jnp.tanh,),) * 2,
    reverse: Sequence[bool] = (False,),
    clip: float | None = None,
    batch_first: bool = False,
) -> tuple[Array, ...]:
    """ONNX's RNN. Returns Y and Y_h."""
    cells = [rnn_cell(w[d], r[d], both_biases(b, d), activations[d][0], clip) for d in range(len(reverse))]
    return run_directions(cells, x, [h0], lengths, reverse, batch_first, r.shape[2])


def gated_rnn(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    lengths: Array | None = None,
    h0: Array | None = None,
    *,
    activations: Sequence[Sequence[Callable[[Array], Array]]] = ((jax.nn.sigmoid, jnp.tanh),) * 2,
    reverse: Sequence[bool] = (False,),
    clip: float | None = None,
    batch_first: bool = False,
    reset_after: bool = False,
) -> tuple[Array, ...]:
    """ONNX's GRU, gates in the order update, reset, hidden. Returns Y and Y_h."""
    biases = [() if b is None else jnp.split(b[d], 2) for d in range(len(reverse))]
    cells = [gru_cell(w[d], r[d], biases[d], activations[d], clip, reset_after) for d in range(len(reverse))]
    return run_directions(cells, x, [h0], lengths, reverse, batch_first, r.shape[2])


def lstm(
    x: Array,
    w: Array,
    r: Array,
    b: Array | None = None,
    lengths: Array | None = None,
    h0: Array | None = None,
    c0: Array | None = None,
    peepholes: Array | None = None,
    *,
    activations: Sequence[Sequence[Callable[[Array], Array]]] = ((jax.nn.sigmoid, jnp.tanh, jnp.tanh),) * 2,
    reverse: Sequence[bool] = (False,),
    clip: float | None = None,
    batch_first: bool = False,
    input_forget: bool = False,
) -> tuple[Array, ...]:
    """ONNX's LSTM, gates in the order input, output, forget, cell. Returns Y, Y_h and Y_c."""
    cells = []
    for d in range(len(reverse)):
        peephole = None if peepholes is None else peepholes[d]
        cells.append(lstm_cell(w[d], r[d], both_biases(b, d), peephole, activations[d], clip, input_forget))
    return run_directions(cells, x, [h0, c0], lengths, reverse, batch_first, r.shape[2])


def recurrent_layers(
    kind: str,
    x: Array,
    weights: Sequence[Sequence[Array]],
    lengths: Array | None = None,
    *initial: Array,
    bidirectional: bool = False,
    batch_first: bool = False,
    activation: Callable[[Array], Array] = jnp.tanh,
) -> tuple[Array, ...]:
    """A stack of layers of one kind: RNN, GRU (reset, update, hidden) or LSTM (input, forget, cell, output).

    `weights` has the weights of input and state, and their biases, of each direction of each layer. Returns the
    outputs of the last layer, directions side by side, and the last states: (layers · directions, batch, hidden).
    """
    x = x.swapaxes(0, 1) if batch_first else x
    finals: list[Sequence[Array]] = []
    for first in range(0, len(weights), 1 + bidirectional):
        outputs = []
        for d, (w, r, *b) in enumerate(weights[first : first + 1 + bidirectional]):
            if kind == "GRU":
                cell = gru_cell(w, r, b, update_first=False)
            elif kind == "LSTM":
                cell = lstm_cell(w, r, b[0] + b[1] if b else None, order=(0, 3, 1, 2))
            else:
                cell = rnn_cell(w, r, b[0] + b[1] if b else None, activation)
            zeros = jnp.zeros((x.shape[1], r.shape[1]), x.dtype)
            state = [s[first + d] for s in initial] or [zeros] * (2 if kind == "LSTM" else 1)
            y, final = run_cell(cell, x, state, lengths, d == 1)
            outputs.append(y)
            finals.append(final)
        x = jnp.concatenate(outputs, 2) if bidirectional else outputs[0]
    y = x.swapaxes(0, 1) if batch_first else x
    return y, *(jnp.stack(s) for s in zip(*finals, strict=True))
