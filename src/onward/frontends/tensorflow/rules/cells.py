"""One step of recurrent networks, as TensorFlow 1 has it in one op."""

from __future__ import annotations

from onward.frontends.tensorflow.registry import rule
from onward.frontends.tensorflow.writer import Writer
from onward.graph.build import Tensor


@rule("LSTMBlockCell")
def lstm_cell(
    op: Writer,
    x: Tensor,
    memory: Tensor,
    hidden: Tensor,
    weight: Tensor,
    to_input: Tensor,
    to_forget: Tensor,
    to_output: Tensor,
    bias: Tensor,
    *,
    forget_bias: float = 1.0,
    cell_clip: float = 3.0,
    use_peephole: bool = False,
) -> list[Tensor]:
    gates = op.MatMul(op.Concat(x, hidden, axis=1), weight) + bias
    into, new, kept, out = op.many("Split", 4, gates, axis=1, num_outputs=4)
    kept = kept + forget_bias
    if use_peephole:
        into, kept = into + memory * to_input, kept + memory * to_forget
    into, new, kept = op.Sigmoid(into), op.Tanh(new), op.Sigmoid(kept)
    state = new * into + memory * kept
    if cell_clip > 0:
        state = op.Clip(state, op.like(-cell_clip, state), op.like(cell_clip, state))
    out = op.Sigmoid(out + state * to_output if use_peephole else out)
    shown = op.Tanh(state)
    return [into, state, kept, out, new, shown, shown * out]


@rule("GRUBlockCell")
def gru_cell(
    op: Writer, x: Tensor, hidden: Tensor, gate_weight: Tensor, weight: Tensor, gate_bias: Tensor, bias: Tensor
) -> list[Tensor]:
    gates = op.Sigmoid(op.MatMul(op.Concat(x, hidden, axis=1), gate_weight) + gate_bias)
    reset, update = op.many("Split", 2, gates, axis=1, num_outputs=2)
    new = op.Tanh(op.MatMul(op.Concat(x, hidden * reset, axis=1), weight) + bias)
    return [reset, update, new, (1.0 - update) * new + update * hidden]
