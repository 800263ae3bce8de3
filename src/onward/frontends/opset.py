"""The opsets that frontends write."""

from onward.errors import OnwardError

OPSET = 21
"""What is written unless another opset is asked for: the newest that ONNX Runtime has all kernels for."""
OLDEST, NEWEST = 13, 26


def checked_opset(opset: int, oldest: int = OLDEST) -> None:
    if not oldest <= opset <= NEWEST:
        raise OnwardError(f"opset {opset} cannot be written: give one from {oldest} to {NEWEST}")
