"""The opsets that frontends write.

All of them write one dialect, that of `OPSET` or of the newer opset asked for. An older one is made of it as of any
ONNX file: by the table of downgrades.
"""

from onward.canon.opset import at_opset
from onward.errors import OnwardError
from onward.model import Model

OPSET = 21
"""What is written unless another opset is asked for: the newest that ONNX Runtime has all kernels for."""
OLDEST, NEWEST = 13, 26


def written_opset(opset: int) -> int:
    """The opset to write in, where `opset` is asked for."""
    if not OLDEST <= opset <= NEWEST:
        raise OnwardError(f"opset {opset} cannot be written: give one from {OLDEST} to {NEWEST}")
    return max(opset, OPSET)


def brought_to(opset: int, model: Model) -> Model:
    """A model that was written, at the opset that is asked for."""
    return model if opset == model.opset[""] else at_opset(model, opset).model
