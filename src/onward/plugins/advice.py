"""How to go on with an op that nothing knows."""

from __future__ import annotations

from onward.plugins.find import STANDARD
from onward.plugins.table import find

LEFT_TO_RUNTIME = "let `--fallback onnxruntime` leave it to ONNX Runtime"


def divided(target: str) -> str:
    """What else can be done where a framework's model cannot hold parts of another runtime."""
    return f"divide the model: `onward partition MODEL --for {target}` leaves it to ONNX Runtime"


def next_step(key: str, other: str = "") -> str:
    """What an error says behind the name of an op that the target has no rule for; '' for ops of ONNX itself.

    `other` is what can be done instead, where ONNX Runtime may be able to run the op.
    """
    if _is_standard(key):
        return ""
    other = other and f", or {other}"
    if find(key) is not None:
        return f"; its plugin says nothing of this framework: add a function to it{other}"
    new = f"`onward plugins new {key} --from MODEL` prints one to fill in, which --plugin loads"
    return f"; no plugin knows this op: {new}{other}"


def next_rule(key: str) -> str:
    """The same where a gradient is missing."""
    if _is_standard(key):
        return ""
    where = "its plugin" if find(key) is not None else f"a plugin (`onward plugins new {key} --from MODEL` prints one)"
    return f"; add @op.vjp, @op.body or op.no_gradient() to {where}"


def _is_standard(key: str) -> bool:
    domain = key.rpartition("::")[0]
    return domain in STANDARD or domain.startswith("onward")
