"""Layers that are computed on numbers: dense, convolutions, pooling, normalisation, shapes, merging."""

from __future__ import annotations

from typing import Any

import keras
from cases import IMAGE, OTHER, ROW, SERIES, SHORT, VOLUME, WORDS, Case, Inside, L, case, joined

ACTIVATIONS = (
    "celu", "elu", "exponential", "gelu", "glu", "hard_shrink", "hard_sigmoid", "hard_silu", "hard_tanh", "leaky_relu",
    "linear", "log_sigmoid", "log_softmax", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_shrink",
    "softmax", "softplus", "softsign", "sparse_plus", "sparse_sigmoid", "sparsemax", "squareplus", "swish", "tanh",
    "tanh_shrink",
)  # fmt: skip


@keras.saving.register_keras_serializable(package="tests")
class Doubled(L.Wrapper):
    def call(self, x: Any) -> Any:
        return 2 * self.layer(x)


def quantized(layer: Any, *how: str) -> Any:
    """The layer with its weights in fewer bits, as `quantize` leaves them."""

    def call(x: Any) -> Any:
        layer.build(x.shape)
        layer.quantize(*how)
        return layer(x)

    return call


def adapted_by_rank(layer: Any) -> Any:
    """A layer with two small matrices beside its weights."""

    def call(x: Any) -> Any:
        layer.build(x.shape)
        layer.enable_lora(2)
        return layer(x)

    return call


def widened(layer: Any) -> Any:
    """NumPy has no bfloat16."""
    return lambda x: keras.ops.cast(layer(x), "float32")


def reversed_again(layer: Any) -> Any:
    return lambda x: layer(layer(x), reverse=True)


FIRST = {"data_format": "channels_first"}
CORE: dict[str, Case] = {
    "InputLayer": case(lambda: lambda x: L.InputLayer(input_tensor=x).output, ROW),
    "Layer": case(lambda: Inside(L.Dense(3)), ROW),
    "Identity": case(lambda: L.Identity(), ROW),
    "Wrapper": case(lambda: Doubled(L.Dense(3)), ROW),
    "Lambda": case(lambda: L.Lambda(lambda x: x**2 + 1), ROW),
    "Dense": case(lambda: L.Dense(5), ROW),
    "Dense with activation": case(lambda: L.Dense(5, "relu"), ROW),
    "Dense without bias": case(lambda: L.Dense(5, use_bias=False), ROW),
    "Dense of series": case(lambda: L.Dense(5), SERIES),
    "Dense of open series": case(lambda: L.Dense(5, "gelu"), SERIES, open=True),
    "Dense lora": case(lambda: adapted_by_rank(L.Dense(5)), ROW),
    "Dense int8": case(lambda: quantized(L.Dense(5), "int8"), ROW),
    "Dense int4": case(lambda: quantized(L.Dense(6), "int4"), ROW),
    "Dense float8": case(lambda: quantized(L.Dense(16), "float8"), ROW),
    "Dense float16": case(lambda: L.Dense(5, dtype="float16"), ROW, rtol=3e-3),
    "Dense mixed_float16": case(lambda: L.Dense(5, dtype="mixed_float16"), ROW, rtol=3e-3),
    "Dense bfloat16": case(lambda: widened(L.Dense(5, dtype="bfloat16")), ROW, rtol=2e-2),
    "Dense mixed_bfloat16": case(lambda: widened(L.Dense(5, dtype="mixed_bfloat16")), ROW, rtol=2e-2),
    "Dense float64": case(lambda: L.Dense(5, "tanh", dtype="float64"), ROW),
    "EinsumDense": case(lambda: L.EinsumDense("abc,cd->abd", (None, 7), bias_axes="d"), SERIES),
    "EinsumDense of open series": case(lambda: L.EinsumDense("abc,cd->abd", (None, 7)), SERIES, open=True),
    "EinsumDense ellipsis": case(lambda: L.EinsumDense("...x,xy->...y", 7, "relu", bias_axes="y"), SERIES),
    "EinsumDense of two axes": case(lambda: L.EinsumDense("abc,cde->abde", (None, 3, 4), bias_axes="de"), SERIES),
    "EinsumDense over two axes": case(lambda: L.EinsumDense("abc,bcd->ad", 4, bias_axes="d"), SERIES),
    "EinsumDense int8": case(lambda: quantized(L.EinsumDense("abc,cd->abd", (None, 7)), "int8"), SERIES),
    "EinsumDense int4": case(lambda: quantized(L.EinsumDense("abc,cd->abd", (None, 8)), "int4"), SERIES),
    "EinsumDense lora": case(lambda: adapted_by_rank(L.EinsumDense("abc,cd->abd", (None, 7))), SERIES),
    "Embedding": case(lambda: L.Embedding(9, 5), WORDS),
    "Embedding int8": case(lambda: quantized(L.Embedding(9, 5), "int8"), WORDS),
    "Embedding int4": case(lambda: quantized(L.Embedding(9, 6), "int4"), WORDS),
    "Embedding lora": case(lambda: adapted_by_rank(L.Embedding(9, 5)), WORDS),
    "ReversibleEmbedding": case(lambda: L.ReversibleEmbedding(9, 5), WORDS),
    "ReversibleEmbedding there and back": case(lambda: reversed_again(L.ReversibleEmbedding(9, 5)), WORDS),
    "ReversibleEmbedding untied, capped": case(
        lambda: reversed_again(L.ReversibleEmbedding(9, 5, tie_weights=False, logit_soft_cap=2.0)), WORDS
    ),
    "Conv1D": case(lambda: L.Conv1D(5, 3, padding="same"), SERIES),
    "Conv1D causal": case(lambda: L.Conv1D(5, 3, padding="causal", dilation_rate=2), SERIES),
    "Conv1D strides, groups": case(lambda: L.Conv1D(6, 3, 2, groups=3, activation="relu"), SERIES),
    "Conv1D open": case(lambda: L.Conv1D(5, 3, 2, padding="same"), SERIES, open=True),
    "Conv1D channels first": case(lambda: L.Conv1D(5, 3, **FIRST), SERIES),
    "Conv2D": case(lambda: L.Conv2D(5, 3, 2, "same"), IMAGE),
    "Conv2D valid, without bias": case(lambda: L.Conv2D(5, (3, 2), use_bias=False), IMAGE),
    "Conv2D groups": case(lambda: L.Conv2D(6, 3, groups=2), IMAGE),
    "Conv2D dilated": case(lambda: L.Conv2D(5, 3, dilation_rate=2, padding="same"), IMAGE),
    "Conv2D open": case(lambda: L.Conv2D(5, 3, 2, "same", activation="relu"), IMAGE, open=True),
    "Conv2D channels first": case(lambda: L.Conv2D(5, 3, **FIRST), IMAGE),
    "Conv2D lora": case(lambda: adapted_by_rank(L.Conv2D(5, 3)), IMAGE),
    "Conv2D mixed_float16": case(lambda: L.Conv2D(5, 3, dtype="mixed_float16"), IMAGE, rtol=5e-3),
    "Conv3D": case(lambda: L.Conv3D(3, 2, padding="same"), VOLUME),
    "Conv3D strides": case(lambda: L.Conv3D(3, 2, 2), VOLUME),
    "Conv3D dilated": case(lambda: L.Conv3D(3, 2, dilation_rate=2), VOLUME),
    "DepthwiseConv1D": case(lambda: L.DepthwiseConv1D(3, depth_multiplier=2), SERIES),
    "DepthwiseConv1D strides": case(lambda: L.DepthwiseConv1D(3, 2, "same"), SERIES),
    "DepthwiseConv2D": case(lambda: L.DepthwiseConv2D(3, 2, "same", depth_multiplier=2), IMAGE),
    "DepthwiseConv2D dilated": case(lambda: L.DepthwiseConv2D(3, dilation_rate=2), IMAGE),
    "SeparableConv1D": case(lambda: L.SeparableConv1D(5, 3), SERIES),
    "SeparableConv1D causal-like": case(lambda: L.SeparableConv1D(5, 3, 2, "same", depth_multiplier=2), SERIES),
    "SeparableConv2D": case(lambda: L.SeparableConv2D(5, 3, padding="same"), IMAGE),
    "SeparableConv2D strides": case(lambda: L.SeparableConv2D(5, 3, 2, depth_multiplier=2), IMAGE),
    "Conv1DTranspose": case(lambda: L.Conv1DTranspose(5, 3, 2, "same"), SERIES),
    "Conv1DTranspose dilated": case(lambda: L.Conv1DTranspose(5, 3, dilation_rate=2), SERIES),
    "Conv2DTranspose": case(lambda: L.Conv2DTranspose(5, 3, 2, "same"), IMAGE),
    "Conv2DTranspose output padding": case(lambda: L.Conv2DTranspose(5, 3, 2, output_padding=1), IMAGE),
    "Conv2DTranspose open": case(lambda: L.Conv2DTranspose(5, 4, 2, "same"), IMAGE, open=True),
    "Conv2DTranspose dilated": case(lambda: L.Conv2DTranspose(5, 3, dilation_rate=2), IMAGE),
    "Conv3DTranspose": case(lambda: L.Conv3DTranspose(3, 2, 2), VOLUME),
    "Conv3DTranspose same": case(lambda: L.Conv3DTranspose(3, 3, 2, "same"), VOLUME),
    "MaxPooling1D": case(lambda: L.MaxPooling1D(2), SERIES),
    "MaxPooling1D same": case(lambda: L.MaxPooling1D(3, 2, "same"), SERIES),
    "MaxPooling2D": case(lambda: L.MaxPooling2D(3, 2, "same"), IMAGE),
    "MaxPooling2D valid, open": case(lambda: L.MaxPooling2D((2, 3), 1), IMAGE, open=True),
    "MaxPooling2D channels first": case(lambda: L.MaxPooling2D(2, **FIRST), IMAGE),
    "MaxPooling3D": case(lambda: L.MaxPooling3D(2), VOLUME),
    "MaxPooling3D same": case(lambda: L.MaxPooling3D(3, 2, "same"), VOLUME),
    "AveragePooling1D": case(lambda: L.AveragePooling1D(2, padding="same"), SERIES),
    "AveragePooling2D": case(lambda: L.AveragePooling2D(3, 2, "same"), IMAGE),
    "AveragePooling2D valid, open": case(lambda: L.AveragePooling2D((2, 3), 1), IMAGE, open=True),
    "AveragePooling2D channels first": case(lambda: L.AveragePooling2D(2, **FIRST), IMAGE),
    "AveragePooling3D": case(lambda: L.AveragePooling3D(2), VOLUME),
    "AveragePooling3D same": case(lambda: L.AveragePooling3D(3, 2, "same"), VOLUME),
    "GlobalMaxPooling1D": case(lambda: L.GlobalMaxPooling1D(), SERIES),
    "GlobalMaxPooling2D": case(lambda: L.GlobalMaxPooling2D(keepdims=True), IMAGE),
    "GlobalMaxPooling3D": case(lambda: L.GlobalMaxPooling3D(), VOLUME),
    "GlobalAveragePooling1D": case(lambda: L.GlobalAveragePooling1D(), SERIES),
    "GlobalAveragePooling1D masked": case(
        lambda: lambda x: L.GlobalAveragePooling1D()(L.Embedding(9, 5, mask_zero=True)(x)), WORDS
    ),
    "GlobalAveragePooling2D": case(lambda: L.GlobalAveragePooling2D(), IMAGE),
    "GlobalAveragePooling2D channels first": case(lambda: L.GlobalAveragePooling2D(**FIRST), IMAGE),
    "GlobalAveragePooling3D": case(lambda: L.GlobalAveragePooling3D(), VOLUME),
    "AdaptiveAveragePooling1D": case(lambda: L.AdaptiveAveragePooling1D(3), SERIES),
    "AdaptiveAveragePooling2D": case(lambda: L.AdaptiveAveragePooling2D((3, 4)), IMAGE),
    "AdaptiveAveragePooling2D channels first": case(lambda: L.AdaptiveAveragePooling2D(2, **FIRST), IMAGE),
    "AdaptiveAveragePooling3D": case(lambda: L.AdaptiveAveragePooling3D(3), VOLUME),
    "AdaptiveMaxPooling1D": case(lambda: L.AdaptiveMaxPooling1D(3), SERIES),
    "AdaptiveMaxPooling2D": case(lambda: L.AdaptiveMaxPooling2D((3, 4)), IMAGE),
    "AdaptiveMaxPooling2D channels first": case(lambda: L.AdaptiveMaxPooling2D(2, **FIRST), IMAGE),
    "AdaptiveMaxPooling3D": case(lambda: L.AdaptiveMaxPooling3D(3), VOLUME),
    "BatchNormalization": case(lambda: L.BatchNormalization(), IMAGE),
    "BatchNormalization of rows": case(lambda: L.BatchNormalization(center=False, scale=False), ROW),
    "BatchNormalization axis 1": case(lambda: L.BatchNormalization(axis=1), IMAGE),
    "BatchNormalization renorm": case(lambda: L.BatchNormalization(renorm=True), IMAGE),
    "BatchNormalization open, volumes": case(lambda: L.BatchNormalization(epsilon=1e-5), VOLUME, open=True),
    "LayerNormalization": case(lambda: L.LayerNormalization(), SERIES),
    "LayerNormalization of two axes": case(lambda: L.LayerNormalization(axis=[1, 2]), SERIES),
    "LayerNormalization axis 1": case(lambda: L.LayerNormalization(axis=1), SERIES),
    "LayerNormalization plain": case(lambda: L.LayerNormalization(center=False, scale=False), SERIES, open=True),
    "LayerNormalization mixed_float16": case(lambda: L.LayerNormalization(dtype="mixed_float16"), SERIES, rtol=3e-3),
    "RMSNormalization": case(lambda: L.RMSNormalization(), SERIES),
    "GroupNormalization": case(lambda: L.GroupNormalization(2), IMAGE),
    "GroupNormalization open": case(lambda: L.GroupNormalization(2), IMAGE, open=True),
    "GroupNormalization of instances": case(lambda: L.GroupNormalization(-1, epsilon=1e-5), IMAGE),
    "GroupNormalization axis 1": case(lambda: L.GroupNormalization(4, axis=1), IMAGE),
    "UnitNormalization": case(lambda: L.UnitNormalization(), ROW),
    "UnitNormalization axis 1": case(lambda: L.UnitNormalization(axis=1), SERIES),
    "SpectralNormalization": case(lambda: L.SpectralNormalization(L.Dense(5)), ROW),
    "SpectralNormalization of convolution": case(lambda: L.SpectralNormalization(L.Conv2D(5, 3)), IMAGE),
    "ReLU": case(lambda: L.ReLU(6.0, 0.1, 0.5), ROW),
    "ReLU plain": case(lambda: L.ReLU(), ROW),
    "LeakyReLU": case(lambda: L.LeakyReLU(0.2), ROW),
    "PReLU": case(lambda: L.PReLU(), ROW),
    "PReLU shared": case(lambda: L.PReLU(shared_axes=[1, 2]), IMAGE),
    "ELU": case(lambda: L.ELU(0.7), ROW),
    "Softmax": case(lambda: L.Softmax(), SERIES),
    "Softmax axis 1": case(lambda: L.Softmax(axis=1), SERIES),
    "Softmax of two axes": case(lambda: L.Softmax(axis=(1, 2)), SERIES),
    "Softmax masked": case(lambda: lambda x: L.Softmax()(x, mask=x > -0.5), SERIES),
    "ActivityRegularization": case(lambda: L.ActivityRegularization(0.1), ROW),
    "Dropout": case(lambda: L.Dropout(0.5), ROW),
    "SpatialDropout1D": case(lambda: L.SpatialDropout1D(0.5), SERIES),
    "SpatialDropout2D": case(lambda: L.SpatialDropout2D(0.5), IMAGE),
    "SpatialDropout3D": case(lambda: L.SpatialDropout3D(0.5), VOLUME),
    "GaussianNoise": case(lambda: L.GaussianNoise(0.5), ROW),
    "GaussianDropout": case(lambda: L.GaussianDropout(0.5), ROW),
    "AlphaDropout": case(lambda: L.AlphaDropout(0.5), ROW),
    "Flatten": case(lambda: L.Flatten(), IMAGE),
    "Flatten channels first": case(lambda: L.Flatten(**FIRST), IMAGE),
    "Reshape": case(lambda: L.Reshape((4, -1)), IMAGE),
    "Reshape of open series": case(lambda: L.Reshape((-1, 3, 2)), SERIES, open=True),
    "Permute": case(lambda: L.Permute((3, 1, 2)), IMAGE),
    "RepeatVector": case(lambda: L.RepeatVector(3), ROW),
    "Cropping1D": case(lambda: L.Cropping1D((1, 2)), SERIES),
    "Cropping2D": case(lambda: L.Cropping2D(((1, 2), (0, 3))), IMAGE),
    "Cropping2D channels first": case(lambda: L.Cropping2D(1, **FIRST), IMAGE),
    "Cropping3D": case(lambda: L.Cropping3D(1), VOLUME, open=True),
    "ZeroPadding1D": case(lambda: L.ZeroPadding1D(2), SERIES),
    "ZeroPadding2D": case(lambda: L.ZeroPadding2D(((1, 2), (0, 3))), IMAGE),
    "ZeroPadding2D channels first": case(lambda: L.ZeroPadding2D(1, **FIRST), IMAGE),
    "ZeroPadding3D": case(lambda: L.ZeroPadding3D(1), VOLUME),
    "UpSampling1D": case(lambda: L.UpSampling1D(2), SERIES),
    "UpSampling2D": case(lambda: L.UpSampling2D((2, 3)), IMAGE),
    "UpSampling2D bilinear": case(lambda: L.UpSampling2D(2, interpolation="bilinear"), IMAGE),
    "UpSampling2D bicubic": case(lambda: L.UpSampling2D(2, interpolation="bicubic"), IMAGE),
    "UpSampling2D lanczos": case(lambda: L.UpSampling2D(2, interpolation="lanczos3"), IMAGE),
    "UpSampling2D channels first": case(lambda: L.UpSampling2D(2, **FIRST), IMAGE),
    "UpSampling3D": case(lambda: L.UpSampling3D(2), VOLUME),
    "Add": case(lambda: joined(L.Add()), SERIES, OTHER),
    "Add spread": case(lambda: joined(L.Add()), SERIES, OTHER[:, :1]),
    "Subtract": case(lambda: joined(L.Subtract()), SERIES, OTHER),
    "Multiply": case(lambda: joined(L.Multiply()), SERIES, OTHER),
    "Average": case(lambda: joined(L.Average()), SERIES, OTHER, OTHER + 1),
    "Maximum": case(lambda: joined(L.Maximum()), SERIES, OTHER),
    "Minimum": case(lambda: joined(L.Minimum()), SERIES, OTHER, OTHER + 1),
    "Concatenate": case(lambda: joined(L.Concatenate()), SERIES, OTHER),
    "Concatenate axis 1": case(lambda: joined(L.Concatenate(axis=1)), SERIES, SHORT, open=True),
    "Dot": case(lambda: joined(L.Dot(axes=2)), SERIES, OTHER),
    "Dot normalised": case(lambda: joined(L.Dot(axes=(1, 1), normalize=True)), SERIES, OTHER),
    "Dot of rows": case(lambda: joined(L.Dot(axes=1)), ROW, ROW[::-1].copy()),
} | {f"Activation {name}": case(lambda name=name: L.Activation(name), ROW) for name in ACTIVATIONS}
