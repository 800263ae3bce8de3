"""ONNX's recurrent layers, step by step: for what `nn.LSTM`, `nn.GRU` and `nn.RNN` do not cover."""

from collections.abc import Callable, Sequence
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

Function = Callable[[Tensor], Tensor]


def run_packed(module: nn.RNNBase, x: Tensor, lengths: Tensor, initial: Any = None) -> tuple[Tensor, Any]:
    """Run a recurrent module on sequences of different lengths: outputs behind the end of each are zero.

    The final state of an empty sequence is zero, too, as on ONNX Runtime.
    """
    time = x.shape[1 if module.batch_first else 0]
    packed = pack_padded_sequence(x, lengths.cpu().clamp(min=1), module.batch_first, enforce_sorted=False)
    y, final = module(packed, initial)
    y, _ = pad_packed_sequence(y, module.batch_first, total_length=time)
    exists = (lengths > 0)[:, None]
    y = torch.where(exists[:, :, None] if module.batch_first else exists, y, 0.0)
    if isinstance(final, tuple):
        return y, tuple(torch.where(exists, state, 0.0) for state in final)
    return y, torch.where(exists, final, 0.0)


def rnn_activation(name: str, alpha: float = 0.0, beta: float = 0.0) -> Function:
    """The activation functions of ONNX's recurrent operators that have parameters or no PyTorch name."""
    return {
        "affine": lambda x: alpha * x + beta,
        "leakyrelu": lambda x: F.leaky_relu(x, alpha),
        "thresholdedrelu": lambda x: F.threshold(x, alpha, 0.0),
        "scaledtanh": lambda x: alpha * torch.tanh(beta * x),
        "hardsigmoid": lambda x: (alpha * x + beta).clamp(0, 1),
        "elu": lambda x: F.elu(x, alpha),
    }[name]


def clipped(x: Tensor, clip: float | None) -> Tensor:
    return x if clip is None else x.clamp(-clip, clip)


def reverse_sequences(x: Tensor, lengths: Tensor | None) -> Tensor:
    """Reverse time (dimension 0), for each element of the batch within its own length only."""
    if lengths is None:
        return x.flip(0)
    time = torch.arange(x.shape[0], device=x.device)[:, None]
    source = torch.where(time < lengths, lengths - 1 - time, time)
    return x.take_along_dim(source.reshape(*source.shape, *[1] * (x.ndim - 2)), 0)


def recurrent_scan(
    step: Callable[..., tuple[Tensor, ...]], x: Tensor, state: tuple[Tensor, ...], lengths: Tensor | None
) -> tuple[Tensor, tuple[Tensor, ...]]:
    """Apply `step(x[t], *state) -> state` over time; the first state is the output.

    Where a sequence has ended, its state stays as it is and its output is zero. The final state of an empty
    sequence is zero, too, as on ONNX Runtime.
    """
    outputs = []
    for t, now in enumerate(x.unbind(0)):
        new = step(now, *state)
        if lengths is None:
            state = new
            outputs.append(new[0])
        else:
            alive = (t < lengths)[:, None]
            state = tuple(torch.where(alive, n, s) for n, s in zip(new, state, strict=True))
            outputs.append(torch.where(alive, new[0], 0.0))
    if lengths is not None:
        exists = (lengths > 0)[:, None]
        state = tuple(torch.where(exists, s, 0.0) for s in state)
    return torch.stack(outputs) if outputs else x.new_zeros(0, *state[0].shape), state


def recurrent_layer(
    make_step: Callable[[int], tuple[Tensor, Callable[..., tuple[Tensor, ...]]]],
    states: Sequence[Tensor],
    lengths: Tensor | None,
    reverse: Sequence[bool],
    batch_first: bool,
) -> tuple[Tensor, ...]:
    """Run each direction: `make_step(d)` gives the inputs, projected for all times, and the step.

    `states` are the initial states, each (directions, batch, hidden). Returns the outputs and the final
    states in ONNX's layout: (time, directions, batch, hidden), or (batch, time, directions, hidden).
    """
    outputs, finals = [], []
    for d, backwards in enumerate(reverse):
        projected, step = make_step(d)
        if backwards:
            projected = reverse_sequences(projected, lengths)
        y, final = recurrent_scan(step, projected, tuple(s[d] for s in states), lengths)
        outputs.append(reverse_sequences(y, lengths) if backwards else y)
        finals.append(final)
    y = torch.stack(outputs, 1)
    last = [torch.stack(s) for s in zip(*finals, strict=True)]
    if batch_first:
        return y.permute(2, 0, 1, 3), *(s.transpose(0, 1) for s in last)
    return y, *last


def initial_states(
    x: Tensor, r: Tensor, given: Sequence[Tensor | None], batch_first: bool
) -> tuple[Tensor, list[Tensor]]:
    """The input with time first, and the initial states as (directions, batch, hidden), by default zeros."""
    time_first = x.transpose(0, 1) if batch_first else x
    zeros = x.new_zeros(r.shape[0], time_first.shape[1], r.shape[2])
    return time_first, [zeros if s is None else s.transpose(0, 1) if batch_first else s for s in given]


def simple_rnn(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    lengths: Tensor | None = None,
    h0: Tensor | None = None,
    *,
    activations: Sequence[Sequence[Function]],
    reverse: Sequence[bool] = (False,),
    clip: float | None = None,
    batch_first: bool = False,
) -> tuple[Tensor, ...]:
    """ONNX's RNN. Returns Y and Y_h."""
    x, states = initial_states(x, r, [h0], batch_first)

    def make_step(d: int) -> tuple[Tensor, Callable[..., tuple[Tensor, ...]]]:
        bias = None if b is None else b[d].reshape(2, -1).sum(0)
        (f,) = activations[d]

        def step(now: Tensor, h: Tensor) -> tuple[Tensor, ...]:
            return (f(clipped(now + h @ r[d].T, clip)),)

        return F.linear(x, w[d], bias), step

    return recurrent_layer(make_step, states, lengths, reverse, batch_first)


def gated_rnn(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    lengths: Tensor | None = None,
    h0: Tensor | None = None,
    *,
    activations: Sequence[Sequence[Function]],
    reverse: Sequence[bool] = (False,),
    clip: float | None = None,
    batch_first: bool = False,
    reset_after: bool = False,
) -> tuple[Tensor, ...]:
    """ONNX's GRU, gates in the order update, reset, hidden. Returns Y and Y_h.

    With `reset_after` (`linear_before_reset`), the reset gate multiplies the projected state, else the state.
    """
    x, states = initial_states(x, r, [h0], batch_first)

    def make_step(d: int) -> tuple[Tensor, Callable[..., tuple[Tensor, ...]]]:
        wb, rb = (None, None) if b is None else b[d].chunk(2)
        size = r.shape[2]
        r_gates, r_hidden = r[d].tensor_split([2 * size])
        rb_gates, rb_hidden = (None, None) if rb is None else rb.tensor_split([2 * size])
        f, g = activations[d]

        def step(now: Tensor, h: Tensor) -> tuple[Tensor, ...]:
            now_gates, now_hidden = now.tensor_split([2 * size], 1)
            z, reset = f(clipped(now_gates + F.linear(h, r_gates, rb_gates), clip)).chunk(2, 1)
            if reset_after:
                candidate = now_hidden + reset * F.linear(h, r_hidden, rb_hidden)
            else:
                candidate = now_hidden + F.linear(reset * h, r_hidden, rb_hidden)
            return ((1 - z) * g(clipped(candidate, clip)) + z * h,)

        return F.linear(x, w[d], wb), step

    return recurrent_layer(make_step, states, lengths, reverse, batch_first)


def lstm(
    x: Tensor,
    w: Tensor,
    r: Tensor,
    b: Tensor | None = None,
    lengths: Tensor | None = None,
    h0: Tensor | None = None,
    c0: Tensor | None = None,
    peepholes: Tensor | None = None,
    *,
    activations: Sequence[Sequence[Function]],
    reverse: Sequence[bool] = (False,),
    clip: float | None = None,
    batch_first: bool = False,
    input_forget: bool = False,
) -> tuple[Tensor, ...]:
    """ONNX's LSTM, gates in the order input, output, forget, cell. Returns Y, Y_h and Y_c.

    With `input_forget`, the forget gate is one minus the input gate. `clip` bounds what enters the gates and the
    candidate, not the cell state that enters the last activation: ONNX Runtime reads the standard this way.
    """
    x, states = initial_states(x, r, [h0, c0], batch_first)

    def make_step(d: int) -> tuple[Tensor, Callable[..., tuple[Tensor, ...]]]:
        bias = None if b is None else b[d].reshape(2, -1).sum(0)
        p_i, p_o, p_f = (0.0, 0.0, 0.0) if peepholes is None else peepholes[d].chunk(3)
        f, g, activate = activations[d]

        def step(now: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, ...]:
            i, o, forget, cell = (now + h @ r[d].T).chunk(4, 1)
            i = f(clipped(i + p_i * c, clip))
            forget = 1 - i if input_forget else f(clipped(forget + p_f * c, clip))
            c = forget * c + i * g(clipped(cell, clip))
            o = f(clipped(o + p_o * c, clip))
            return o * activate(c), c

        return F.linear(x, w[d], bias), step

    return recurrent_layer(make_step, states, lengths, reverse, batch_first)
