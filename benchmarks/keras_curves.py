"""Loss curves of Keras models on ONNX Runtime beside Keras's own, and how far rounding alone takes Keras from itself.

    python benchmarks/keras_curves.py                 all networks; writes to docs/measured/curves.md
    python benchmarks/keras_curves.py mlp lstm        some of them; only shown

A model is compiled, captured by `onward.from_keras(model, training=True)`, and makes the same steps on the same
batches, each seen once, on ONNX Runtime and in Keras. Beside it, Keras from weights that are off by one in the last of
their bits. Gradients of embeddings are added up before AdamW on both sides.
"""

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import keras
import machine
import numpy as np
import tensorflow as tf

import onward
from onward.training import Trainer

PAGE = Path(__file__).parent.parent / "docs/measured/curves.md"
BEGIN, END = "<!-- keras curves: written by benchmarks/keras_curves.py -->", "<!-- end of keras curves -->"
STEPS, BATCH, CLASSES = 50, 32, 10
SIGNAL = 0.3
"""How much of the data depends on the class."""
L = keras.layers
OPTIMIZERS: dict[str, Callable[[], Any]] = {
    "sgd": lambda: keras.optimizers.SGD(0.05),
    "adamw": lambda: keras.optimizers.AdamW(1e-3),
}


def mlp() -> Any:
    layers = [L.Dense(256, activation="relu"), L.Dense(256, activation="relu"), L.Dense(CLASSES)]
    return keras.Sequential([keras.Input((784,)), *layers])


def cnn() -> Any:
    layers = [L.Conv2D(16, 3, activation="relu"), L.MaxPooling2D(), L.Conv2D(32, 3, activation="relu")]
    return keras.Sequential([keras.Input((28, 28, 1)), *layers, L.MaxPooling2D(), L.Flatten(), L.Dense(CLASSES)])


def normalised() -> Any:
    layers: list[Any] = []
    for width in (16, 32):
        layers += [L.Conv2D(width, 3, padding="same", use_bias=False), L.BatchNormalization()]
        layers += [L.ReLU(), L.MaxPooling2D()]
    return keras.Sequential([keras.Input((28, 28, 1)), *layers, L.GlobalAveragePooling2D(), L.Dense(CLASSES)])


def recurrent(layer: Any) -> Callable[[], Any]:
    return lambda: keras.Sequential([keras.Input((28, 28)), layer(64), L.Dense(CLASSES)])


def transformer() -> Any:
    tokens = keras.Input((32,), dtype="int32")
    h = L.Embedding(500, 64)(tokens)
    for _ in range(2):
        h = L.LayerNormalization()(h + L.MultiHeadAttention(4, 16)(h, h))
        h = L.LayerNormalization()(h + L.Dense(64)(L.Dense(256, activation="gelu")(h)))
    return keras.Model(tokens, L.Dense(CLASSES)(L.GlobalAveragePooling1D()(h)))


NETWORKS: dict[str, Callable[[], Any]] = {
    "mlp": mlp,
    "cnn": cnn,
    "cnn-bn": normalised,
    "lstm": recurrent(L.LSTM),
    "gru": recurrent(L.GRU),
    "transformer": transformer,
}


def labelled(model: Any, draws: np.random.Generator) -> tuple[Any, Any]:
    """Batches of classes that can be told apart."""
    (given,) = model.inputs
    shape = given.shape[1:]
    y = draws.integers(0, CLASSES, (STEPS, BATCH))
    if given.dtype == "int32":
        own = draws.integers(0, 500, (CLASSES, *shape))
        x = draws.integers(0, 500, (STEPS, BATCH, *shape))
        return np.where(draws.random(x.shape) < SIGNAL, own[y], x).astype(np.int32), y
    own = draws.random((CLASSES, *shape))
    x = draws.random((STEPS, BATCH, *shape))
    return (x + SIGNAL * (own[y] - x)).astype(np.float32), y


def keras_curve(model: Any, x: Any, y: Any) -> list[float]:
    @tf.function
    def step(given: Any, wanted: Any) -> Any:
        with tf.GradientTape() as tape:
            loss = model.compute_loss(x=given, y=wanted, y_pred=model(given, training=True))
        gradients = tape.gradient(loss, [variable.value for variable in model.trainable_variables])
        model.optimizer.apply([tf.convert_to_tensor(g) for g in gradients], model.trainable_variables)
        return loss

    return [float(step(a, b)) for a, b in zip(x, y, strict=True)]


def compiled(name: str, optimizer: str, weights: list[Any] | None = None) -> Any:
    keras.utils.set_random_seed(0)
    model = NETWORKS[name]()
    if weights is not None:
        model.set_weights(weights)
    model.compile(OPTIMIZERS[optimizer](), keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    return model


def apart(a: list[float], b: list[float]) -> float:
    return max(abs(x - y) / abs(y) for x, y in zip(a, b, strict=True))


def measured(name: str, optimizer: str, threads: int) -> list[str]:
    model = compiled(name, optimizer)
    draws = np.random.default_rng(0)
    x, y = labelled(model, draws)
    start = model.get_weights()
    trainable = onward.from_keras(model, training=True, dense_gradients=True)
    trainer = Trainer(trainable, threads=threads)
    inputs = trainer.inputs
    ours = [trainer.step({inputs[0]: a, inputs[1]: b}) for a, b in zip(x, y, strict=True)]
    theirs = keras_curve(model, x, y)
    moved = [np.nextafter(w, w + draws.choice([-1, 1], w.shape).astype(w.dtype)) for w in start]
    other = keras_curve(compiled(name, optimizer, moved), x, y)
    pairs = zip(ours, theirs, strict=True)
    beyond = next((i for i, (a, b) in enumerate(pairs, 1) if abs(a - b) / abs(b) > 1e-4), None)
    numbers = [f"{apart(ours, theirs):.0e}", f"{apart(other, theirs):.0e}", str(beyond or "never")]
    return [name, optimizer, *numbers, f"{theirs[0]:.2f}, {theirs[-1]:.2f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("networks", nargs="*", metavar="network", help=", ".join(NETWORKS))
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    args = parser.parse_args()
    if unknown := set(args.networks) - NETWORKS.keys():
        parser.error(f"there is no network {unknown.pop()}; there are {', '.join(NETWORKS)}")
    heads = ["network", "optimizer", "Onward, Keras", "Keras, one bit off", "apart by 1e-4 from step"]
    heads += ["loss: first, last"]
    rows = [heads, ["---"] * len(heads)]
    for name in args.networks or NETWORKS:
        for optimizer in OPTIMIZERS:
            rows.append(measured(name, optimizer, args.threads))
            print(*rows[-1], flush=True)
    lines = ["| " + " | ".join(row) + " |" for row in rows]
    made = machine.describe("onward", "onnxruntime", "tensorflow-cpu", "keras")
    text = "\n".join([BEGIN, *lines, "", f"{args.threads} threads · {made}", END])
    print(text)
    if not args.networks:
        machine.put(PAGE, BEGIN, END, text)


if __name__ == "__main__":
    main()
