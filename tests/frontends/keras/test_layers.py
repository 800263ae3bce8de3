"""Layers of Keras, with their main options."""

from typing import Any

import numpy as np
import pytest

pytest.importorskip("tensorflow")
keras = pytest.importorskip("keras")

from onnx_on_keras import check  # noqa: E402

L = keras.layers
RNG = np.random.default_rng(0)
ROW = RNG.standard_normal((3, 6)).astype(np.float32)
SERIES = RNG.standard_normal((2, 8, 6)).astype(np.float32)
IMAGE = RNG.standard_normal((2, 8, 9, 4)).astype(np.float32)
VOLUME = RNG.standard_normal((1, 5, 6, 7, 2)).astype(np.float32)
WORDS = RNG.integers(0, 9, (2, 8)).astype(np.int32)

ONE: dict[str, tuple[Any, Any]] = {
    "dense": (lambda: L.Dense(5, "relu", bias_initializer="random_normal"), ROW),
    "dense of series": (lambda: L.Dense(5), SERIES),
    "einsum dense": (lambda: L.EinsumDense("abc,cd->abd", (None, 7), bias_axes="d"), SERIES),
    "embedding": (lambda: L.Embedding(9, 5), WORDS),
    "conv 1d": (lambda: L.Conv1D(5, 3, padding="same"), SERIES),
    "conv 1d causal": (lambda: L.Conv1D(5, 3, padding="causal", dilation_rate=2), SERIES),
    "conv 2d": (lambda: L.Conv2D(5, 3, 2, "same", bias_initializer="random_normal"), IMAGE),
    "conv 2d groups": (lambda: L.Conv2D(6, 3, groups=2), IMAGE),
    "conv 2d dilated": (lambda: L.Conv2D(5, 3, dilation_rate=2, padding="same"), IMAGE),
    "conv 2d first": (lambda: L.Conv2D(5, 3, data_format="channels_first"), IMAGE),
    "conv 3d": (lambda: L.Conv3D(3, 2, padding="same"), VOLUME),
    "depthwise 1d": (lambda: L.DepthwiseConv1D(3, depth_multiplier=2), SERIES),
    "depthwise 2d": (lambda: L.DepthwiseConv2D(3, 2, "same", depth_multiplier=2), IMAGE),
    "separable 1d": (lambda: L.SeparableConv1D(5, 3), SERIES),
    "separable 2d": (lambda: L.SeparableConv2D(5, 3, padding="same"), IMAGE),
    "conv 1d transpose": (lambda: L.Conv1DTranspose(5, 3, 2, "same"), SERIES),
    "conv 2d transpose": (lambda: L.Conv2DTranspose(5, 3, 2, "same"), IMAGE),
    "conv 2d transpose valid": (lambda: L.Conv2DTranspose(5, 3, 2, output_padding=1), IMAGE),
    "conv 3d transpose": (lambda: L.Conv3DTranspose(3, 2, 2), VOLUME),
    "max pool 1d": (lambda: L.MaxPooling1D(2), SERIES),
    "max pool 2d": (lambda: L.MaxPooling2D(3, 2, "same"), IMAGE),
    "max pool 3d": (lambda: L.MaxPooling3D(2), VOLUME),
    "average pool 1d": (lambda: L.AveragePooling1D(2, padding="same"), SERIES),
    "average pool 2d": (lambda: L.AveragePooling2D(3, 2, "same"), IMAGE),
    "average pool 3d": (lambda: L.AveragePooling3D(2), VOLUME),
    "global max 1d": (lambda: L.GlobalMaxPooling1D(), SERIES),
    "global max 2d": (lambda: L.GlobalMaxPooling2D(keepdims=True), IMAGE),
    "global average 1d": (lambda: L.GlobalAveragePooling1D(), SERIES),
    "global average 2d": (lambda: L.GlobalAveragePooling2D(), IMAGE),
    "global average 3d": (lambda: L.GlobalAveragePooling3D(), VOLUME),
    "batch norm": (lambda: L.BatchNormalization(beta_initializer="random_normal"), IMAGE),
    "batch norm plain": (lambda: L.BatchNormalization(center=False, scale=False), ROW),
    "batch norm first": (lambda: L.BatchNormalization(axis=1), IMAGE),
    "layer norm": (lambda: L.LayerNormalization(beta_initializer="random_normal"), SERIES),
    "layer norm two axes": (lambda: L.LayerNormalization(axis=[1, 2]), SERIES),
    "rms norm": (lambda: L.RMSNormalization(), SERIES),
    "group norm": (lambda: L.GroupNormalization(2), IMAGE),
    "unit norm": (lambda: L.UnitNormalization(), ROW),
    "spectral norm": (lambda: L.SpectralNormalization(L.Dense(5)), ROW),
    "normalization": (lambda: L.Normalization(mean=0.5, variance=2.0), ROW),
    "rescaling": (lambda: L.Rescaling(0.5, -1), IMAGE),
    "resizing": (lambda: L.Resizing(6, 5), IMAGE),
    "resizing nearest": (lambda: L.Resizing(16, 18, "nearest"), IMAGE),
    "center crop": (lambda: L.CenterCrop(4, 5), IMAGE),
    "discretization": (lambda: L.Discretization(bin_boundaries=[-1.0, 0.0, 1.0]), ROW),
    "category encoding": (lambda: L.CategoryEncoding(9, "multi_hot"), WORDS),
    "relu": (lambda: L.ReLU(6.0, 0.1, 0.5), ROW),
    "leaky relu": (lambda: L.LeakyReLU(0.2), ROW),
    "prelu": (lambda: L.PReLU("random_normal"), ROW),
    "elu": (lambda: L.ELU(), ROW),
    "softmax": (lambda: L.Softmax(axis=1), SERIES),
    "activity regularization": (lambda: L.ActivityRegularization(0.1), ROW),
    "dropout": (lambda: L.Dropout(0.5), ROW),
    "spatial dropout": (lambda: L.SpatialDropout2D(0.5), IMAGE),
    "gaussian noise": (lambda: L.GaussianNoise(0.5), ROW),
    "alpha dropout": (lambda: L.AlphaDropout(0.5), ROW),
    "flatten": (lambda: L.Flatten(), IMAGE),
    "reshape": (lambda: L.Reshape((4, -1)), IMAGE),
    "permute": (lambda: L.Permute((3, 1, 2)), IMAGE),
    "repeat": (lambda: L.RepeatVector(3), ROW),
    "cropping 1d": (lambda: L.Cropping1D((1, 2)), SERIES),
    "cropping 2d": (lambda: L.Cropping2D(((1, 2), (0, 3))), IMAGE),
    "cropping 3d": (lambda: L.Cropping3D(1), VOLUME),
    "zero padding 1d": (lambda: L.ZeroPadding1D(2), SERIES),
    "zero padding 2d": (lambda: L.ZeroPadding2D(((1, 2), (0, 3))), IMAGE),
    "zero padding 3d": (lambda: L.ZeroPadding3D(1), VOLUME),
    "upsampling 1d": (lambda: L.UpSampling1D(2), SERIES),
    "upsampling 2d": (lambda: L.UpSampling2D((2, 3)), IMAGE),
    "upsampling 2d bilinear": (lambda: L.UpSampling2D(2, interpolation="bilinear"), IMAGE),
    "upsampling 3d": (lambda: L.UpSampling3D(2), VOLUME),
    "identity": (lambda: L.Identity(), ROW),
    "masking": (lambda: L.Masking(0.0), SERIES),
    "time distributed": (lambda: L.TimeDistributed(L.Dense(5)), SERIES),
    "conv lstm 1d": (lambda: L.ConvLSTM1D(3, 3, padding="same"), IMAGE),
    "conv lstm 2d": (lambda: L.ConvLSTM2D(3, 3, padding="same", return_sequences=True), VOLUME),
    "rnn of cells": (lambda: L.RNN([L.LSTMCell(4), L.GRUCell(3)], return_sequences=True), SERIES),
    "gru both ways": (lambda: L.Bidirectional(L.GRU(4), merge_mode="sum"), SERIES),
    "multi head attention": (lambda: SelfAttention(), SERIES),
} | {
    f"activation {name}": (lambda name=name: L.Activation(name), ROW)
    for name in (
        "celu", "elu", "exponential", "gelu", "glu", "hard_shrink", "hard_sigmoid", "hard_silu", "hard_tanh",
        "leaky_relu", "linear", "log_sigmoid", "log_softmax", "mish", "relu", "relu6", "selu", "sigmoid", "silu",
        "soft_shrink", "softmax", "softplus", "softsign", "sparse_plus", "sparsemax", "squareplus",
        "tanh", "tanh_shrink",
    )
}  # fmt: skip


@keras.saving.register_keras_serializable(package="tests")
class SelfAttention(L.Layer):
    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.inner = L.MultiHeadAttention(2, 4)

    def call(self, x: Any) -> Any:
        return self.inner(x, x, use_causal_mask=True)


@pytest.mark.parametrize("name", ONE)
def test_a_layer(name: str) -> None:
    make, data = ONE[name]
    x = keras.Input(data.shape[1:], dtype=str(data.dtype))
    check(keras.Model(x, make()(x)), data)


TWO: dict[str, Any] = {
    "add": L.Add,
    "subtract": L.Subtract,
    "multiply": L.Multiply,
    "average": L.Average,
    "maximum": L.Maximum,
    "minimum": L.Minimum,
    "concatenate": L.Concatenate,
    "dot": lambda: L.Dot(axes=2),
    "attention": L.Attention,
    "additive attention": L.AdditiveAttention,
}


@pytest.mark.parametrize("name", TWO)
def test_a_layer_of_two(name: str) -> None:
    a, b = keras.Input(SERIES.shape[1:]), keras.Input(SERIES.shape[1:])
    check(keras.Model([a, b], TWO[name]()([a, b])), SERIES, SERIES[::-1].copy())


def test_attention_over_groups() -> None:
    a, b = keras.Input((8, 6)), keras.Input((None, 6))
    layer = L.GroupQueryAttention(4, 4, 2)
    check(keras.Model([a, b], layer(a, b)), SERIES, SERIES[:, :5])


def test_preprocessing_of_words() -> None:
    x = keras.Input((None,), dtype="string")
    layer = L.StringLookup(vocabulary=["one", "two"])
    check(keras.Model(x, layer(x)), np.array([["two", "three"], ["one", "one"]]))


def test_preprocessing_of_numbers() -> None:
    x = keras.Input((None,), dtype="int64")
    layer = L.IntegerLookup(vocabulary=[3, 5])
    check(keras.Model(x, layer(x)), np.array([[5, 4], [3, 3]]))


def test_a_sequential_model_and_what_it_is_called() -> None:
    model = keras.Sequential([keras.Input((6,), name="row"), L.Dense(4, name="first"), L.Dense(2, name="scores")])
    from onward.frontends.keras.convert import from_keras

    graph = from_keras(model).ir.graph
    assert [value.name for value in graph.inputs] == ["row"]
    assert [value.name for value in graph.outputs] == ["scores"]
    check(model, ROW)


def test_inputs_by_name() -> None:
    inputs = {"a": keras.Input((6,), name="a"), "b": keras.Input((6,), name="b")}
    model = keras.Model(inputs, {"sum": L.Add()([inputs["a"], inputs["b"]]), "a": inputs["a"]})
    from onward.frontends.keras.convert import from_keras

    graph = from_keras(model).ir.graph
    assert [value.name for value in graph.inputs] == ["a", "b"]
    assert {value.name for value in graph.outputs} == {"sum", "a"}
