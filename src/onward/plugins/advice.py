"""How to go on with an op that nothing knows."""

from __future__ import annotations

from onward.plugins.find import STANDARD
from onward.plugins.table import find


def next_step(key: str) -> str:
    """What an error says behind the name of an op that the target has no rule for; '' for ops of ONNX itself."""
    domain = key.rpartition("::")[0]
    if domain in STANDARD or domain.startswith("onward"):
        return ""
    fallback = "or let --fallback onnxruntime keep it as it is"
    if find(key) is None:
        return (
            f"; no plugin knows this op: `onward plugins new {key} --from MODEL` prints one to fill in, which --plugin"
            f" loads, {fallback}"
        )
    return f"; its plugin says nothing of this framework: add a function to it, {fallback}"


def next_rule(key: str) -> str:
    """The same where a gradient is missing."""
    domain = key.rpartition("::")[0]
    if domain in STANDARD or domain.startswith("onward"):
        return ""
    where = "its plugin" if find(key) is not None else f"a plugin (`onward plugins new {key} --from MODEL` prints one)"
    return f"; add @op.vjp, @op.body or op.no_gradient() to {where}"
