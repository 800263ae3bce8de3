"""What `from_keras.py` runs in processes of their own: a Keras model to an ONNX file, by either side.

python from_keras_worker.py onward NETWORK NET.onnx     Onward, in this environment
python from_keras_worker.py tf2onnx NETWORK NET.onnx    tf2onnx, in an environment that has it

Prints a line of JSON: the seconds from the model to the file, by the clock and of the processor. A small model is
converted before, so that imports are not in it.
"""

import json
import os
import sys
from collections.abc import Callable
from importlib.metadata import version
from typing import Any

os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras
import tensorflow as tf
from tf_peer_worker import clock, since

L = keras.layers
OPSET = 18
"""The newest that tf2onnx writes."""


def series(layer: Callable[[], Any], masked: bool = False) -> Any:
    x = keras.Input((100, 64))
    y = L.Masking(0.0)(x) if masked else x
    return keras.Model(x, L.Dense(10)(layer()(y)))


def transformer(layers: int = 4, width: int = 128) -> Any:
    x = keras.Input((100, width))
    y = x
    for _ in range(layers):
        y = L.LayerNormalization()(L.Add()([y, L.MultiHeadAttention(4, width // 4)(y, y)]))
        y = L.LayerNormalization()(L.Add()([y, L.Dense(width)(L.Dense(4 * width, "relu")(y))]))
    return keras.Model(x, y)


NETWORKS: dict[str, Callable[[], Any]] = {
    name: lambda name=name: getattr(keras.applications, name)(weights=None)
    for name in ("ResNet50", "NASNetMobile", "MobileNetV2", "EfficientNetB0", "DenseNet121", "InceptionV3")
} | {
    "transformer": transformer,
    "LSTM": lambda: series(lambda: L.LSTM(128)),
    "LSTM, masked": lambda: series(lambda: L.LSTM(128), masked=True),
    "LSTM, both ways": lambda: series(lambda: L.Bidirectional(L.LSTM(128))),
    "GRU": lambda: series(lambda: L.GRU(128)),
    "GRU, masked": lambda: series(lambda: L.GRU(128), masked=True),
    "SimpleRNN": lambda: series(lambda: L.SimpleRNN(128)),
}


def onward(model: Any, path: str) -> None:
    from onward.exporters import from_keras

    from_keras(model, opset=OPSET, check=False).save(path)


def tf2onnx(model: Any, path: str) -> None:
    """Through a function: its own `from_keras` knows Keras 2."""
    import tf2onnx as peer

    specs = [tf.TensorSpec(x.shape, x.dtype, name=x.name) for x in model.inputs]
    peer.convert.from_function(tf.function(lambda x: model(x, training=False)), specs, opset=OPSET, output_path=path)


def main() -> None:
    who, name, path = sys.argv[1:]
    convert = {"onward": onward, "tf2onnx": tf2onnx}[who]
    x = keras.Input((4,))
    convert(keras.Model(x, L.Dense(2)(x)), path)
    keras.utils.set_random_seed(0)
    model = NETWORKS[name]()
    began = clock()
    convert(model, path)
    print("\n" + json.dumps(since(began) | {"version": version(who)}))


if __name__ == "__main__":
    main()
