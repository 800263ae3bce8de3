"""Rules of the frontend: a builtin op of TensorFlow Lite as ONNX ops.

A rule is called with the tensors that the op takes, in floats where they are quantised; `op.operation` has its options.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from onward.frontends.tensorflow.registry import Rule, filing
from onward.plugins.op import CustomOp
from onward.plugins.table import ops
from onward.registry import Registry

CUSTOM = "CUSTOM "
"""What the names of ops that are no builtin ones begin with."""


def _plugged(name: str) -> Rule | None:
    """What a plugin says of a custom op, which it knows by the name that it has in TensorFlow."""
    for op in ops() if name.startswith(CUSTOM) else ():
        function = op.called_in_tensorflow(name.removeprefix(CUSTOM))
        if function is not None:
            return Rule(partial(_called, op, function), frozenset())
    return None


def _called(custom: CustomOp, function: Callable[..., Any], op: Any, *inputs: Any) -> Any:
    from flatbuffers import flexbuffers

    content = bytearray(b"" if op.operation.custom is None else op.operation.custom)
    options = flexbuffers.GetRoot(content).Value if content else {}
    known = {one.name for one in custom.attributes}
    return function(op, *inputs, **{key: value for key, value in dict(options).items() if key in known})


RULES: Registry[Rule] = Registry("TensorFlow Lite op", _plugged)
rule = filing(RULES)
