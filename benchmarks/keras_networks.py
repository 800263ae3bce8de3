"""Networks of `vision.py` as one would write them in Keras: channels last, padding "same". Weights are random."""

from collections.abc import Callable
from typing import Any

import keras
from keras import layers as L
from models import MobileNetV2
from vision import EfficientNet

Tensor = Any


def norm(x: Tensor, activation: str | None = None) -> Tensor:
    x = L.BatchNormalization(epsilon=1e-5)(x)
    return x if activation is None else L.Activation(activation)(x)


def conv(x: Tensor, width: int, kernel: int = 3, stride: int = 1, activation: str | None = "silu") -> Tensor:
    return norm(L.Conv2D(width, kernel, stride, "same", use_bias=False)(x), activation)


def depthwise(x: Tensor, kernel: int, stride: int, activation: str) -> Tensor:
    return norm(L.DepthwiseConv2D(kernel, stride, "same", use_bias=False)(x), activation)


def resnet50(x: Tensor) -> Tensor:
    x = L.MaxPooling2D(3, 2, "same")(conv(x, 64, 7, 2, "relu"))
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            step = stride if block == 0 else 1
            y = conv(conv(x, width, 1, 1, "relu"), width, 3, step, "relu")
            x = conv(x, 4 * width, 1, step, None) if block == 0 else x
            x = L.Activation("relu")(L.Add()([conv(y, 4 * width, 1, 1, None), x]))
    return L.Dense(1000)(L.GlobalAveragePooling2D()(x))


def mobilenet(x: Tensor) -> Tensor:
    x, channels = conv(x, 32, 3, 2, "relu6"), 32
    for expand, width, repeats, stride in MobileNetV2.STAGES:
        for block in range(repeats):
            step = stride if block == 0 else 1
            y = x if expand == 1 else conv(x, channels * expand, 1, 1, "relu6")
            y = conv(depthwise(y, 3, step, "relu6"), width, 1, 1, None)
            x = L.Add()([x, y]) if step == 1 and channels == width else y
            channels = width
    return L.Dense(1000)(L.GlobalAveragePooling2D()(conv(x, 1280, 1, 1, "relu6")))


def efficientnet(x: Tensor) -> Tensor:
    x, channels = conv(x, 32, stride=2), 32
    for expand, width, repeats, stride, kernel in EfficientNet.STAGES:
        for block in range(repeats):
            step = stride if block == 0 else 1
            y = conv(x, channels * expand, 1) if expand > 1 else x
            y = depthwise(y, kernel, step, "silu")
            gates = L.GlobalAveragePooling2D(keepdims=True)(y)
            gates = L.Conv2D(max(1, channels // 4), 1, activation="silu")(gates)
            y = L.Multiply()([y, L.Conv2D(channels * expand, 1, activation="sigmoid")(gates)])
            y = conv(y, width, 1, 1, None)
            x = L.Add()([x, y]) if step == 1 and channels == width else y
            channels = width
    return L.Dense(1000)(L.GlobalAveragePooling2D()(conv(x, 1280, 1)))


def unet(x: Tensor, width: int = 16) -> Tensor:
    sizes, levels = [width * 2**i for i in range(4)], []
    for i, size in enumerate(sizes):
        x = conv(conv(L.MaxPooling2D(2)(x) if i else x, size), size)
        levels.append(x)
    for size, skip in reversed(list(zip(sizes, levels[:-1], strict=False))):
        x = L.Concatenate()([skip, L.Conv2DTranspose(size, 2, 2)(x)])
        x = conv(conv(x, size), size)
    return L.Conv2D(1, 1, activation="sigmoid")(x)


def convnext(x: Tensor) -> Tensor:
    for i, (width, depth) in enumerate(zip((32, 64, 128, 256), (2, 2, 4, 2), strict=True)):
        x = L.LayerNormalization(epsilon=1e-5)(x) if i else x
        x = L.Conv2D(width, 2 if i else 4, 2 if i else 4)(x)
        x = x if i else L.LayerNormalization(epsilon=1e-5)(x)
        for _ in range(depth):
            y = L.LayerNormalization(epsilon=1e-5)(L.DepthwiseConv2D(7, 1, "same")(x))
            y = L.Dense(width)(L.Dense(4 * width, "gelu")(y))
            x = L.Add()([x, L.Rescaling(0.5)(y)])
    return L.Dense(1000)(L.LayerNormalization(epsilon=1e-5)(L.GlobalAveragePooling2D()(x)))


NETWORKS: dict[str, Callable[[Tensor], Tensor]] = {
    "ResNet-50": resnet50,
    "MobileNetV2": mobilenet,
    "EfficientNet-B0": efficientnet,
    "U-Net": unet,
    "ConvNeXt": convnext,
}


def build(name: str, size: int = 224) -> keras.Model:
    image = keras.Input((size, size, 3))
    return keras.Model(image, NETWORKS[name](image))
