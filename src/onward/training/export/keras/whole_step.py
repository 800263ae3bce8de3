"""How the graphs of a training are called beside a Keras model: in TensorFlow."""

from dataclasses import replace

from onward.backends.backend import backend
from onward.backends.tensorflow.convert import RUNTIME
from onward.training.export.graphs import Graphs
from onward.training.export.tensorflow.whole_step import ABOUT, TENSORFLOW
from onward.training.export.whole_step import Target

KERAS = replace(
    TENSORFLOW,
    title="Keras",
    model="from .model import build",
    held="""
net = build()
net.load_weights(FOLDER / "model.keras")
for layer in net.layers:
    for number, variable in enumerate(layer.weights):
        variable.assign(held.get(f"{layer.name}/{number}", variable))
net.save(FOLDER / "model.part.keras")
(FOLDER / "model.part.keras").replace(FOLDER / "model.keras.part")
""",
    written='["model.keras", *files]',
)


def target() -> Target:
    return Target(backend("keras"), Graphs(backend("tensorflow")), KERAS, RUNTIME, ABOUT)
