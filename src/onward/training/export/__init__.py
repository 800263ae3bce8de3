"""Training goes on elsewhere: a trainable model as source code of another framework."""

from onward.training.export.jax.package import to_jax_package
from onward.training.export.torch.package import to_torch_package

__all__ = ["to_jax_package", "to_torch_package"]
