"""Optional values and sequences; those whose elements are known are replaced beforehand, by `training.sequences`."""

from __future__ import annotations

import onnx_ir as ir

from onward.graph.build import Tensor
from onward.training.autodiff.reverse import Context
from onward.training.autodiff.vjp import Gradients, no_gradient, vjp


@vjp("OptionalGetElement")
def optional_get_element(c: Context, g: Tensor, x: Tensor) -> Gradients:
    if not isinstance(x.value.type, ir.TensorType):
        raise c.refuse("its value is an optional, not a tensor")
    return g


no_gradient("integers", "SequenceLength")
no_gradient("true or false", "OptionalHasElement")
