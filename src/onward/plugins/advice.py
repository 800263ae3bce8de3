"""How to go on with an op that nothing knows."""

from __future__ import annotations

from onward.plugins.find import STANDARD
from onward.plugins.table import find


def next_step(key: str, *, fallback: bool = True) -> str:
    """What an error says behind the name of an op that the target has no rule for; '' for ops of ONNX itself.

    With `fallback`, ONNX Runtime may be able to run it where the target is not.
    """
    if _is_standard(key):
        return ""
    other = ", or let `--fallback onnxruntime` leave it to ONNX Runtime" if fallback else ""
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
