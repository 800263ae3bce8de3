"""Recurrent layers become one node each, whatever their options, masks and directions."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from onnx_on_keras import check  # noqa: E402

LAYERS = {"LSTM": "LSTM", "GRU": "GRU", "SimpleRNN": "RNN"}
OPTIONS: list[dict[str, Any]] = [
    {},
    {"return_sequences": True},
    {"return_sequences": True, "return_state": True, "go_backwards": True},
    {"activation": "relu"},
    {"use_bias": False},
    {"unroll": True},
]
SEQUENCES = np.random.default_rng(0).standard_normal((3, 7, 5)).astype(np.float32)
WORDS = np.array([[1, 2, 0, 3, 0, 0, 0], [0, 0, 1, 2, 3, 4, 0], [0, 0, 0, 0, 0, 0, 0]], np.int32)
"""Zeros are left out; they stand before, between and behind, and one row is nothing else."""


@pytest.mark.parametrize("options", OPTIONS, ids=lambda options: "-".join(options) or "plain")
@pytest.mark.parametrize("layer", LAYERS)
def test_a_layer_is_a_node(layer: str, options: dict[str, Any]) -> None:
    biased = {} if "use_bias" in options else {"bias_initializer": "random_normal"}
    x = keras.Input((7 if "unroll" in options else None, 5))
    model = keras.Model(x, getattr(keras.layers, layer)(4, **biased, **options)(x))
    kinds = check(model, SEQUENCES)
    assert kinds.count(LAYERS[layer]) == 1
    assert "Loop" not in kinds


def test_a_reset_before_the_product() -> None:
    x = keras.Input((None, 5))
    model = keras.Model(x, keras.layers.GRU(4, reset_after=False, bias_initializer="random_normal")(x))
    assert check(model, SEQUENCES).count("GRU") == 1


def test_initial_states() -> None:
    x, h, c = keras.Input((None, 5)), keras.Input((4,)), keras.Input((4,))
    model = keras.Model([x, h, c], keras.layers.LSTM(4, return_state=True)(x, initial_state=[h, c]))
    states = np.random.default_rng(1).standard_normal((2, 3, 4)).astype(np.float32)
    assert check(model, SEQUENCES, *states).count("LSTM") == 1


@pytest.mark.parametrize("options", [{}, {"return_sequences": True}], ids=["last", "all"])
@pytest.mark.parametrize("layer", LAYERS)
def test_both_directions_are_one_node(layer: str, options: dict[str, Any]) -> None:
    x = keras.Input((None, 5))
    inner = getattr(keras.layers, layer)(4, bias_initializer="random_normal", **options)
    model = keras.Model(x, keras.layers.Bidirectional(inner)(x))
    assert check(model, SEQUENCES).count(LAYERS[layer]) == 1


def test_directions_that_differ_stay_two_nodes() -> None:
    x = keras.Input((None, 5))
    forth, back = keras.layers.LSTM(4), keras.layers.LSTM(4, activation="relu", go_backwards=True)
    model = keras.Model(x, keras.layers.Bidirectional(forth, backward_layer=back)(x))
    assert check(model, SEQUENCES).count("LSTM") == 2
    other = keras.Input((None, 5))
    series = keras.Model([x, other], keras.layers.Concatenate()([forth(x), keras.layers.LSTM(4)(other)]))
    assert check(series, SEQUENCES, SEQUENCES[:, ::-1].copy()).count("LSTM") == 2


@pytest.mark.parametrize("both", [False, True], ids=["one way", "both ways"])
@pytest.mark.parametrize("options", [{}, {"return_sequences": True}], ids=["last", "all"])
@pytest.mark.parametrize("layer", LAYERS)
def test_masks(layer: str, options: dict[str, Any], both: bool) -> None:
    x = keras.Input((None,), dtype="int32")
    recurrent = getattr(keras.layers, layer)(4, bias_initializer="random_normal", **options)
    embedded = keras.layers.Embedding(6, 5, mask_zero=True)(x)
    model = keras.Model(x, (keras.layers.Bidirectional(recurrent) if both else recurrent)(embedded))
    kinds = check(model, WORDS)
    assert kinds.count(LAYERS[layer]) == (2 if both else 1)
    assert "Loop" not in kinds


def test_layers_are_themselves_again_afterwards() -> None:
    before = keras.layers.LSTM.call
    x = keras.Input((None, 5))
    check(keras.Model(x, keras.layers.LSTM(4)(x)), SEQUENCES)
    assert keras.layers.LSTM.call is before
