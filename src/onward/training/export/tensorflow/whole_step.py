"""How TensorFlow calls the graphs of a training."""

from onward.backends.backend import backend
from onward.backends.tensorflow.convert import RUNTIME
from onward.training.export.graphs import Graphs
from onward.training.export.whole_script import Framework
from onward.training.export.whole_step import Target

ABOUT = "The weights, and functions that TensorFlow itself does not have."
TENSORFLOW = Framework(
    title="TensorFlow",
    tensor="tf.Tensor",
    imports={
        "tf": "import tensorflow as tf",
        "load_file": "from safetensors.numpy import load_file",
        "save_file": "from safetensors.numpy import save_file",
    },
    loaded="{{name: tf.constant(array) for name, array in load_file({path}).items()}}",
    traced=("@tf.function(autograph=False, reduce_retracing=True)",),
    compiled="tf.function",
    scalars=("tf.constant({}, tf.float32)", "tf.constant({}, tf.int64)"),
    seed="tf.random.set_seed(epoch)  # an epoch is the same, however often training was interrupted before",
)


def target() -> Target:
    tensorflow = backend("tensorflow")
    return Target(tensorflow, Graphs(tensorflow), TENSORFLOW, RUNTIME, ABOUT)
