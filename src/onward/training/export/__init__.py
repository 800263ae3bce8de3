"""Training goes on elsewhere: a trainable model as source code of another framework."""

from onward.training.export.jax.package import to_jax_package
from onward.training.export.keras.package import to_keras_package
from onward.training.export.tensorflow.package import to_tensorflow_package
from onward.training.export.torch.package import to_torch_package

__all__ = ["to_jax_package", "to_keras_package", "to_tensorflow_package", "to_torch_package"]
