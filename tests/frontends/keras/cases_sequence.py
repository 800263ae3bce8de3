"""Attention, recurrent layers, and what wraps them."""

from __future__ import annotations

from typing import Any

import keras
import numpy as np
from cases import FILM, IMAGE, OTHER, RNG, SERIES, SHORT, VOLUME, WORDS, Case, L, case, floats, joined

ops = keras.ops
KEPT = RNG.uniform(size=(2, 8)) < 0.6
KEPT[:, 3] = True
PAIRS = RNG.uniform(size=(2, 8, 5)) < 0.6
PAIRS[:, :, 2] = True
STATE = floats(2, 4)
FRAMES = floats(2, 3, 6, 5, 2)
"""A series of images."""


@keras.saving.register_keras_serializable(package="tests")
class Leaky(L.Layer):
    """A cell of one's own: what it remembers fades."""

    def __init__(self, units: int, **options: Any) -> None:
        super().__init__(**options)
        self.units = self.state_size = self.output_size = units

    def build(self, shape: Any) -> None:
        self.kernel = self.add_weight(shape=(shape[-1], self.units), name="kernel")

    def call(self, x: Any, states: Any) -> Any:
        state = 0.7 * states[0] + ops.matmul(x, self.kernel)
        return ops.tanh(state), [state]


def masked(layer: Any, width: int = 6) -> Any:
    """The layer behind an embedding of words, of which zeros are left out."""
    return lambda x: layer(L.Embedding(9, width, mask_zero=True)(x))


def step(cell: Any) -> Any:
    """One step of a cell, with its states given."""
    return lambda x, *states: cell(x, list(states))


def stateful(layer: Any) -> Any:
    """The layer in a model with a batch of known size, as Keras wants it then."""

    def call(x: Any) -> Any:
        return layer(ops.reshape(x, (2, 8, 6)))

    return call


def self_attention(**call: Any) -> Any:
    layer = L.MultiHeadAttention(2, 4)
    return lambda x: layer(x, x, **call)


SEQUENCE: dict[str, Case] = {
    "Masking": case(lambda: L.Masking(0.0), SERIES),
    "Masking before a recurrent layer": case(
        lambda: lambda x: L.LSTM(4)(L.Masking(0.0)(x)), SERIES * KEPT[:, :, None].astype(np.float32)
    ),
    "MultiHeadAttention": case(lambda: lambda q, v: L.MultiHeadAttention(2, 4)(q, v), SERIES, SHORT),
    "MultiHeadAttention open": case(
        lambda: lambda q, v: L.MultiHeadAttention(2, 4)(q, v), SERIES, SHORT, open=True
    ),
    "MultiHeadAttention causal": case(lambda: self_attention(use_causal_mask=True), SERIES),
    "MultiHeadAttention causal, open": case(lambda: self_attention(use_causal_mask=True), SERIES, open=True),
    "MultiHeadAttention with a key, scores": case(
        lambda: lambda q, v, k: L.MultiHeadAttention(2, 4, value_dim=3, output_shape=5)(
            q, v, k, return_attention_scores=True
        ),
        SERIES, SHORT, SHORT + 1,
    ),
    "MultiHeadAttention with a mask": case(
        lambda: lambda q, v, m: L.MultiHeadAttention(2, 4, use_bias=False)(q, v, attention_mask=m),
        SERIES, SHORT, PAIRS,
    ),
    "MultiHeadAttention masked words": case(lambda: masked(self_attention()), WORDS),
    "MultiHeadAttention over two axes": case(
        lambda: lambda x: L.MultiHeadAttention(2, 3, attention_axes=(1, 2))(x, x), IMAGE
    ),
    "MultiHeadAttention sliding window": case(
        lambda: lambda x: L.MultiHeadAttention(2, 4, sliding_window=3)(x, x), SERIES
    ),
    "MultiHeadAttention gated": case(lambda: lambda x: L.MultiHeadAttention(2, 4, use_gate=True)(x, x), SERIES),
    "MultiHeadAttention without flash": case(
        lambda: lambda x: L.MultiHeadAttention(2, 4, flash_attention=False)(x, x), SERIES
    ),
    "MultiHeadAttention mixed_float16": case(
        lambda: lambda x: L.MultiHeadAttention(2, 4, dtype="mixed_float16")(x, x), SERIES, rtol=6e-3
    ),
    "GroupQueryAttention": case(lambda: lambda q, v: L.GroupQueryAttention(4, 4, 2)(q, v), SERIES, SHORT),
    "GroupQueryAttention causal, open": case(
        lambda: lambda x: L.GroupQueryAttention(4, 4, 2)(x, x, use_causal_mask=True), SERIES, open=True
    ),
    "GroupQueryAttention masked, gated": case(
        lambda: lambda q, v, m: L.GroupQueryAttention(4, 4, 1, use_gate=True)(q, v, attention_mask=m),
        SERIES, SHORT, PAIRS,
    ),
    "GroupQueryAttention sliding window, scores": case(
        lambda: lambda x: L.GroupQueryAttention(4, 4, 2, sliding_window=2)(x, x, return_attention_scores=True), SERIES
    ),
    "Attention": case(lambda: joined(L.Attention()), SERIES, SHORT),
    "Attention scaled, causal": case(
        lambda: lambda q, v: L.Attention(use_scale=True)([q, v], use_causal_mask=True), SERIES, OTHER
    ),
    "Attention by addition": case(lambda: joined(L.Attention(score_mode="concat")), SERIES, SHORT),
    "Attention masked, scores": case(
        lambda: lambda q, v, k, a, b: L.Attention()([q, v, k], mask=[a, b], return_attention_scores=True),
        SERIES, OTHER, OTHER + 1, KEPT, KEPT[::-1].copy(),
    ),
    "AdditiveAttention": case(lambda: joined(L.AdditiveAttention()), SERIES, SHORT),
    "AdditiveAttention plain, causal": case(
        lambda: lambda q, v: L.AdditiveAttention(use_scale=False)([q, v], use_causal_mask=True), SERIES, OTHER
    ),
    "AdditiveAttention masked": case(
        lambda: lambda q, v, m: L.AdditiveAttention()([q, v], mask=[None, m]), SERIES, OTHER, KEPT
    ),
    "LSTMCell": case(lambda: step(L.LSTMCell(4)), SERIES[:, 0], STATE, STATE + 1),
    "GRUCell": case(lambda: step(L.GRUCell(4)), SERIES[:, 0], STATE),
    "GRUCell reset before": case(lambda: step(L.GRUCell(4, reset_after=False)), SERIES[:, 0], STATE),
    "SimpleRNNCell": case(lambda: step(L.SimpleRNNCell(4)), SERIES[:, 0], STATE),
    "StackedRNNCells": case(lambda: L.RNN(L.StackedRNNCells([L.LSTMCell(4), L.LSTMCell(3)])), SERIES),
    "RNN of a list of cells": case(lambda: L.RNN([L.LSTMCell(4), L.GRUCell(3)], return_sequences=True), SERIES),
    "RNN of LSTMCell, open": case(lambda: L.RNN(L.LSTMCell(4), return_state=True), SERIES, open=True),
    "RNN of GRUCell, masked": case(lambda: masked(L.RNN(L.GRUCell(4), return_sequences=True)), WORDS),
    "RNN zero for masked": case(
        lambda: masked(L.RNN(L.SimpleRNNCell(4), return_sequences=True, zero_output_for_mask=True)), WORDS
    ),
    "RNN of a cell of one's own": case(lambda: L.RNN(Leaky(4), return_sequences=True), SERIES),
    "RNN of a cell of one's own, masked, backwards": case(
        lambda: masked(L.RNN(Leaky(4), return_sequences=True, return_state=True, go_backwards=True)), WORDS
    ),
    "RNN unrolled": case(lambda: L.RNN(Leaky(4), unroll=True), SERIES),
    "TimeDistributed": case(lambda: L.TimeDistributed(L.Dense(5)), SERIES),
    "TimeDistributed of convolution": case(lambda: L.TimeDistributed(L.Conv2D(3, 3)), FRAMES),
    "TimeDistributed open": case(lambda: L.TimeDistributed(L.Dense(5)), SERIES, open=True),
    "TimeDistributed masked": case(lambda: masked(L.TimeDistributed(L.Dense(5))), WORDS),
    "ConvLSTM1D": case(lambda: L.ConvLSTM1D(3, 3, padding="same"), IMAGE),
    "ConvLSTM1D all steps": case(lambda: L.ConvLSTM1D(3, 3, return_sequences=True, return_state=True), IMAGE),
    "ConvLSTM2D": case(lambda: L.ConvLSTM2D(3, 3, padding="same", return_sequences=True), VOLUME),
    "ConvLSTM2D strides, backwards": case(lambda: L.ConvLSTM2D(3, 3, 2, go_backwards=True), FRAMES),
    "ConvLSTM2D dilated": case(lambda: L.ConvLSTM2D(3, 2, dilation_rate=2), FRAMES),
    "ConvLSTM3D": case(lambda: L.ConvLSTM3D(2, 2, padding="same"), FILM),
}  # fmt: skip

OPTIONS: dict[str, dict[str, Any]] = {
    "": {},
    "all steps": {"return_sequences": True},
    "backwards, with states": {"return_sequences": True, "return_state": True, "go_backwards": True},
    "relu": {"activation": "relu"},
    "gelu": {"activation": "gelu"},
    "without bias": {"use_bias": False},
    "unrolled": {"unroll": True},
    "float64": {"dtype": "float64"},
    "mixed_float16": {"dtype": "mixed_float16"},
}
MERGED: tuple[str | None, ...] = ("concat", "sum", "mul", "ave", None)
KINDS = {"LSTM": L.LSTM, "GRU": L.GRU, "SimpleRNN": L.SimpleRNN}

for name, kind in KINDS.items():
    for label, options in OPTIONS.items():
        rtol = 3e-3 if label == "mixed_float16" else 2e-5
        SEQUENCE[f"{name} {label}".strip()] = case(lambda k=kind, o=options: k(4, **o), SERIES, rtol=rtol)
    states = (STATE, STATE + 1) if name == "LSTM" else (STATE,)
    SEQUENCE |= {
        f"{name} open": case(lambda k=kind: k(4, return_sequences=True), SERIES, open=True),
        f"{name} initial states": case(
            lambda k=kind: lambda x, *s: k(4, return_state=True)(x, initial_state=list(s)), SERIES, *states
        ),
        f"{name} masked": case(lambda k=kind: masked(k(4)), WORDS),
        f"{name} masked, all steps, backwards": case(
            lambda k=kind: masked(k(4, return_sequences=True, return_state=True, go_backwards=True)), WORDS
        ),
        f"{name} stateful": case(lambda k=kind: stateful(k(4, stateful=True)), SERIES),
        f"Bidirectional {name} masked": case(
            lambda k=kind: masked(L.Bidirectional(k(4, return_sequences=True))), WORDS
        ),
    } | {
        f"Bidirectional {name} {mode}": case(
            lambda k=kind, m=mode: L.Bidirectional(k(4, return_sequences=True), merge_mode=m), SERIES
        )
        for mode in MERGED
    }  # fmt: skip
SEQUENCE |= {
    "GRU reset before": case(lambda: L.GRU(4, reset_after=False), SERIES),
    "LSTM hard sigmoid": case(lambda: L.LSTM(4, recurrent_activation="hard_sigmoid"), SERIES),
    "Bidirectional last step": case(lambda: L.Bidirectional(L.LSTM(4)), SERIES),
    "Bidirectional with states": case(lambda: L.Bidirectional(L.LSTM(4, return_state=True)), SERIES, open=True),
    "Bidirectional of two layers": case(
        lambda: L.Bidirectional(L.LSTM(4), backward_layer=L.GRU(3, go_backwards=True)), SERIES
    ),
}
