"""Training goes on elsewhere: a trainable model as source code of another framework."""

from onward.training.export.torch import to_torch_package

__all__ = ["to_torch_package"]
